"""Texts: the inputs of all metrics, checked once and measured once."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..length.budget import Budget, as_budget
from ..length.units import measure, unit_named

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Texts:
    """Hypotheses, and one entry per hypothesis in every other input that is given; `budgets` may be one for all.

    `refs`: one text or a list of texts per hypothesis. `docs`: the document of each ("a", "a", "b"). `backs`: the
    hypotheses translated back into the language of the sources. `lengths`: in the budgets' unit, if the generator has
    counted them (tokens); by default the hypotheses are measured. `unit`: the unit of length ratios.
    """

    hyps: Sequence[str]
    refs: Sequence[str | Sequence[str]] | None = None
    srcs: Sequence[str] | None = None
    budgets: Any = None  # Budget | str | Sequence[Budget | str]
    docs: Sequence[Hashable] | None = None
    backs: Sequence[str] | None = None
    lengths: Sequence[int] | None = None
    unit: str = "chars"
    tokenizer: Any = None

    def __post_init__(self) -> None:
        set_ = object.__setattr__  # the dataclass is frozen
        set_(self, "unit", unit_named(self.unit).name)
        if isinstance(self.budgets, str | Budget):
            set_(self, "budgets", (self.budgets,) * len(self.hyps))
        for name in _PER_ITEM:
            if getattr(self, name) is not None:
                set_(self, name, self._checked(name))
        if self.refs is not None:
            set_(self, "refs", tuple((ref,) if isinstance(ref, str) else tuple(ref) for ref in self.refs))
            if () in self.refs:
                raise ValueError(f"every hypothesis needs a reference; row {self.refs.index(())} has none")
        if self.budgets is not None:
            set_(self, "budgets", tuple(map(self._resolved, range(len(self)), self.budgets)))

    def _checked(self, name: str) -> tuple[Any, ...]:
        values = getattr(self, name)
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise TypeError(f"{name} must be a list with one entry per text; got {values!r:.80}")
        values = tuple(values)
        if not values:
            raise ValueError(f"nothing to score: {name} is empty")
        if len(values) != (n := len(self.hyps)):
            raise ValueError(f"hyps and {name} must be equally many; got {n} hyps and {len(values)} {name}")
        odd = [row for row, value in enumerate(values) if not isinstance(value, str)]
        if odd and name in ("hyps", "srcs", "backs"):
            raise TypeError(f"{name} must be texts; got {values[odd[0]]!r:.80} for row {odd[0]}")
        return values

    def _resolved(self, row: int, given: Budget | str) -> Budget:
        budget = as_budget(given)
        if budget.of_source and self.srcs is None:
            raise ValueError(f"budget {str(budget)!r} is relative to the source, but no srcs are given")
        return budget if self.srcs is None else budget.resolve(self.srcs[row], self.tokenizer)

    def __len__(self) -> int:
        return len(self.hyps)

    def pick(self, rows: Sequence[int]) -> "Texts":
        """Return the texts of these rows."""
        columns = {name: getattr(self, name) for name in _PER_ITEM}
        picked: dict[str, Any] = {name: values and [values[row] for row in rows] for name, values in columns.items()}
        return replace(self, **picked)

    def as_documents(self) -> "Texts":
        """Return each document as one text: hypotheses, references and sources joined by spaces, without budgets."""
        if self.docs is None:
            raise ValueError("documents need docs: the document of each text, for example docs=['a', 'a', 'b']")
        runs = [list(run) for _, run in groupby(range(len(self)), key=self.docs.__getitem__)]
        names = [self.docs[run[0]] for run in runs]
        if len(set(names)) != len(names):
            split = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"the texts of a document must be adjacent; those of {split!r} are not")
        refs = self.refs and [_joined_refs([self.refs[row] for row in run]) for run in runs]
        hyps = [" ".join(self.hyps[row].strip() for row in run) for run in runs]
        srcs = self.srcs and [" ".join(self.srcs[row].strip() for row in run) for run in runs]
        return Texts(hyps, refs, srcs, docs=names, unit=self.unit, tokenizer=self.tokenizer)

    def measured(self, texts: Iterable[str], unit: str) -> Array:
        """Return the length of each text."""
        return np.array([measure(text, unit, tokenizer=self.tokenizer) for text in texts], dtype=np.float64)

    def unit_signature(self, unit: str) -> str:
        """Return the signature of lengths in `unit`, with the tokenizer's name if they are in tokens."""
        if unit != "tokens" or self.tokenizer is None:
            return unit_named(unit).signature
        name = str(getattr(self.tokenizer, "name_or_path", "")) or type(self.tokenizer).__name__
        return f"{unit_named(unit).signature}|tok:{short_name(name)}"

    @cached_property
    def budget_unit(self) -> str:
        """The unit of all budgets; errors in different units have no mean."""
        units = sorted({budget.unit for budget in self.budgets or ()})
        if len(units) != 1:
            raise ValueError(f"the budgets of one score must share a unit; got {', '.join(units) or 'no budgets'}")
        return units[0]

    @cached_property
    def written(self) -> Array:  # (n,)
        """The length of each hypothesis, in the budgets' unit."""
        if self.lengths is not None:
            return np.array(self.lengths, dtype=np.float64)
        return self.measured(self.hyps, self.budget_unit)

    @cached_property
    def targets(self) -> Array:  # (n,)
        """The target length of each hypothesis."""
        return np.array([budget.target for budget in self.budgets or ()], dtype=np.float64)


_PER_ITEM = tuple(field.name for field in fields(Texts) if field.name not in ("unit", "tokenizer"))


def short_name(path: str) -> str:
    """Return the last part of a path or of a model's name, for signatures."""
    return path.rstrip("/").rpartition("/")[2]


def _joined_refs(refs: list[Sequence[str]] | list[Any]) -> list[str]:
    """Return the references of a document: the k-th joins the k-th references of its sentences."""
    counts = sorted({len(of_one) for of_one in refs})
    if len(counts) != 1:
        raise ValueError(f"the sentences of a document need equally many references; got {counts}")
    return [" ".join(text.strip() for text in column) for column in zip(*refs, strict=True)]
