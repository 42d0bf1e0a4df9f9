"""Evaluation: a model writes a test set at given lengths, and the outputs are scored.

Knows the rows of a test set and the ways to write them. Writing itself is left to `Writer` and `PlainWriter`, what is
kept and found again to `outputs.py`, scores and plots to `report.py`.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..corpora import Limits, read
from ..generation.options import is_sampling
from ..length.budget import Budget, as_budget, exactly
from ..length.units import measure, unit_named
from ..metrics import LENGTH_PENALTIES, Texts, score
from ..models.registry import resolve
from ..scoring.reverse import all_with, loaded, short, translators
from ..version import __version__
from .outputs import Folder, Key, Output, key_of
from .report import Report, report, short_names, verdicts

if TYPE_CHECKING:
    from ..generation.generator import Writer

BEAMS = 5  # for a length penalty, when nobody says
BATCHES = 8  # that are decoded before they are put on disk


@dataclass(frozen=True)
class How:
    """How the texts are written: under the hard budget, or by one of the baselines that a flag names.

    `soft`: the model is told the length and nothing holds it. The others are not told, unless `soft` is given too:
    `truncate` cuts the output, `length_penalty` ("gnmt:0.5") and `rerank` (20) choose among the n best.
    """

    system: str | None = None
    beams: int = 1
    candidates: int = 1
    soft: bool = False
    truncate: bool = False
    length_penalty: str | None = None
    rerank: int | None = None

    def __post_init__(self) -> None:
        if self.length_penalty and self.rerank:
            raise ValueError("a length penalty and re-ranking both choose among the n best; give one of them")
        if self.plain and self.candidates > 1:
            raise ValueError("candidates are chosen for how they fit the hard budget; a baseline has none")
        if self.rerank is not None and self.rerank < 2:
            raise ValueError(f"re-ranking chooses among at least 2 texts; got {self.rerank}")
        is_sampling(self.candidates, self.beams)
        self.penalty()

    @property
    def words(self) -> list[str]:
        """Which baseline, for a title; none for the hard budget."""
        named = {"soft": self.soft, "truncate": self.truncate}
        chosen = [self.length_penalty or "", f"rerank:{self.rerank}" if self.rerank else ""]
        return [*(name for name, given in named.items() if given), *filter(None, chosen)]

    @property
    def plain(self) -> bool:
        """Without the hard budget?"""
        return bool(self.soft or self.truncate or self.length_penalty or self.rerank)

    def penalty(self) -> tuple[str, float] | None:
        if self.length_penalty is None:
            return None
        form, _, alpha = self.length_penalty.partition(":")
        try:
            number = float(alpha)
        except ValueError:
            number = -1.0
        if form not in LENGTH_PENALTIES or not 0 <= number < 100:
            forms = " or ".join(f"{name}:0.5" for name in LENGTH_PENALTIES)
            raise ValueError(f"a length penalty is a form and a number, {forms}; got {self.length_penalty!r}")
        return form, number

    def writes(self, writer: "Writer") -> Callable[..., list[Any]]:
        """`write` of the writer that this asks for, given texts, budgets, a seed and progress."""
        if not self.plain:
            # Beams are named even when 1: a model's own settings may ask for more.
            options: dict[str, Any] = {"candidates": self.candidates, "num_beams": self.beams}
            return lambda texts, budgets, **more: writer.write(texts, budgets, system=self.system, **options, **more)
        from ..generation.unconstrained import PlainWriter

        penalty = self.penalty()
        beams = max(self.beams, self.rerank or 1, BEAMS if penalty and self.beams == 1 else 1)
        best = beams if penalty else self.rerank or 1
        plain = PlainWriter(writer, told=self.soft, beams=beams, best=best, penalty=penalty, cut=self.truncate)
        return lambda texts, budgets, **more: plain.write(texts, budgets, system=self.system, **more)


@dataclass(frozen=True)
class Length:
    """How long each text shall be: one budget for all, or just as long as its reference."""

    budget: Budget | None  # None: the reference's length
    unit: str

    @classmethod
    def parse(cls, text: str) -> "Length":
        """'at most 75 chars', '1.0x', ...; 'reference:words' for the reference's length in words."""
        word, _, unit = text.strip().partition(":")
        if word.lower() == "reference":
            return cls(None, unit_named(unit or "chars").name)
        budget = as_budget(text)
        return cls(budget, budget.unit)

    def of(self, source: str | None, reference: str | None, tokenizer: Any = None) -> Budget:
        """The budget, in counts, of one text."""
        if self.budget is None:
            if reference is None:
                raise ValueError("the length of the reference is asked for, and there are no references")
            return exactly(max(1, measure(reference, self.unit, tokenizer=tokenizer)), self.unit)
        if self.budget.of_source and source is None:
            raise ValueError(f"'{self.budget}' is relative to the source, and there are no sources")
        return self.budget.resolve(source or "", tokenizer)

    def __str__(self) -> str:
        return f"reference:{self.unit}" if self.budget is None else str(self.budget)


def look(data: str, length: Length, fields: tuple[str, str] | None = None, against: Path | None = None) -> None:
    """Finds out before a model is loaded whether the test set is there, and fit to be compared `against` another."""
    next(read(data, fields=fields, limits=Limits(duplicates=True)))
    if against is not None:
        _comparable(against, length)


def evaluate(
    writer: "Writer",
    data: str,
    length: str | Length,
    how: How | None = None,
    *,
    out: Path | None = None,
    limit: int | None = None,
    fields: tuple[str, str] | None = None,
    metrics: Sequence[str] | None = None,
    reverse: str | None = None,
    against: Path | None = None,
    model: str = "",
    progress: Callable[[int, int], None] | None = None,
    back_progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Decodes `data` and scores it; with `out`, all that is made is kept there.

    `reverse` names a model that translates the outputs back, and adds the metrics made with it. `model` marks the very
    weights (see `mark`), so that a model trained anew is decoded anew. `progress` is called with the number of texts
    written and of all that are to be, `back_progress` with that of texts translated back.
    """
    how = how or How()
    length = Length.parse(length) if isinstance(length, str) else length
    _heard(writer, how, length)
    settings = {"model": writer.name, "weights": model, "length": str(length), **asdict(how), "version": __version__}
    rows = list(islice(_rows(data, length, fields, writer.tokenizer), limit))
    # All that can be wrong is found out before hours of decoding.
    name, other_name = (writer.name, "") if out is None else short_names(out, against)
    others, other = [], None
    if against is not None:
        _comparable(against, length)
        others = Folder(against).paired(rows)
        other = (other_name or Folder(against).name, _texts(others, writer.tokenizer))
    also = all_with(reverse)
    _rehearse(rows, metrics, also, writer.tokenizer)
    folder = None if out is None else Folder(out)
    backwards = partial(_translate_back, models=translators([*(metrics or ()), *also]), progress=back_progress)
    outputs = _decode(rows, settings, how.writes(writer), writer.batch_size, folder, progress, backwards)
    backwards(others)
    found = report(
        name,
        _texts(outputs, writer.tokenizer),
        metrics=metrics,
        also=also,
        more=verdicts(outputs),
        bins=True,
        against=other,
        more_against=verdicts(others),
        about={**settings, "data": data, "not written": sum("error" in output for output in outputs)},
        title=", ".join([f"{writer.name} on {data}", str(length), *how.words]),
    )
    if folder:
        folder.save(found)
    return found


def _comparable(against: Path, length: Length) -> None:
    """Texts of other lengths differ in every score, and not by the system's merit."""
    settings = against / "settings.json"
    there = json.loads(settings.read_text("utf-8")).get("length") if settings.exists() else None
    if there not in (None, str(length)):
        raise ValueError(
            f"a paired test needs texts of the same length; {against} was asked for '{there}' and this evaluation for "
            f"'{length}': evaluate both with one --length"
        )


def mark(folder: Path) -> str:
    """A short name for just these files: a model saved anew has another, at the cost of a look at each file."""
    files = sorted(path for path in Path(folder).iterdir() if path.is_file())
    seen = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return blake2b(repr(seen).encode(), digest_size=8).hexdigest()


def _heard(writer: "Writer", how: How, length: Length) -> None:
    """Soft control in a unit that no control counts in would be none at all, and look like a failure of the model."""
    from ..controls.attach import controls_of

    units = {unit for control in controls_of(writer.model) for unit in control.units}
    if how.soft and units and length.unit not in units:
        raise ValueError(
            f"the model's controls count in {', '.join(sorted(units))} and the length is in {length.unit}; "
            f"soft control needs a length in {min(units)}"
        )


def _rehearse(rows: list[Output], metrics: Sequence[str] | None, also: Sequence[str], tokenizer: Any) -> None:
    """Scores one reference as if it were an output: a misspelt metric fails here, and one whose library is missing."""
    several = len({row["document"] for row in rows}) < len(rows)
    texts = _texts([rows[0] | {"text": rows[0]["reference"], "length": 1}], tokenizer)
    for asked in (metrics, also):
        score(replace(texts, docs=[0] if several else None), metrics=asked, bootstrap=0)


# ---- rows in, outputs out


def _rows(data: str, length: Length, fields: tuple[str, str] | None, tokenizer: Any) -> Iterator[Output]:
    """A row for each pair of the test set. Duplicates stay: whoever made the test set wanted them."""
    for number, document in enumerate(read(data, fields=fields, limits=Limits(duplicates=True))):
        for part, (source, reference) in enumerate(document.segments, 1):
            yield {
                "id": document.id if len(document.segments) == 1 else f"{document.id}#{part}",
                "document": number,
                "source": source,
                "reference": reference,
                "budget": str(length.of(source, reference, tokenizer)),
            }


def _decode(
    rows: list[Output],
    settings: dict[str, Any],
    writes: Callable[..., list[Any]],
    batch_size: int,
    folder: Folder | None,
    progress: Callable[[int, int], None] | None,
    backwards: Callable[[list[Output]], None],
) -> list[Output]:
    """The output of each row: known already, or written now, and then on disk before the next are begun."""
    known: dict[Key, Output] = folder.known(settings) if folder else {}
    missing, done = [row for row in rows if key_of(row) not in known], 0

    def written(count: int) -> None:
        nonlocal done
        done += count
        if progress:
            progress(done, len(missing))

    written(0)
    for start in range(0, len(missing), batch_size * BATCHES):
        some = missing[start : start + batch_size * BATCHES]
        texts = writes([r["source"] for r in some], [r["budget"] for r in some], seed=start, progress=written)
        outputs = [row | _fields(text) for row, text in zip(some, texts, strict=True)]
        known |= {key_of(output): output for output in outputs}
        if folder:
            folder.add(outputs)
    found = [known[key_of(row)] | row for row in rows]
    backwards(found)
    if folder:
        folder.finish(found, known)
    return found


def _translate_back(outputs: list[Output], models: Sequence[str], progress: Callable[[int, int], None] | None) -> None:
    """What each reverse model makes of each output, beside it; the metrics find there what they would ask for."""
    for model in models:
        translator, key = loaded(model), f"{short(model)} {mark(resolve(model))}"  # trained anew, it translates anew
        known = {output["text"]: output["back"][key] for output in outputs if key in output.get("back", {})}
        translator.backs.update(known)
        backs = translator.translate([output["text"] for output in outputs], progress)
        for output, back in zip(outputs, backs, strict=True):
            output["back"] = output.get("back", {}) | {key: back}


def _fields(text: Any) -> Output:
    return {name: value for name, value in text.as_json().items() if name not in ("model", "candidates")}


def _texts(outputs: list[Output], tokenizer: Any) -> Texts:
    documents = [output["document"] for output in outputs]
    budgets = [as_budget(output["budget"]) for output in outputs]
    tokens = budgets[0].unit == "tokens"  # which only their writer can count; others are measured
    return Texts(
        [output["text"] for output in outputs],
        [output["reference"] for output in outputs],
        [output["source"] for output in outputs],
        budgets,
        documents if len(set(documents)) < len(documents) else None,
        lengths=[output["length"] for output in outputs] if tokens else None,
        tokenizer=tokenizer,
    )
