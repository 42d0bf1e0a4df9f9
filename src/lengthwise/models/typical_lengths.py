"""Typical lengths: how long a model's texts are without a budget, and where a budget lies among them.

One JSON file for each model and task, shipped beside a bundled model or kept in the user's cache: pairs of lengths, of
a source and of its text. Texts without a budget show what is usual; texts within a tight budget show what is possible.
No model is loaded.
"""

import json
import math
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock

from .. import atomic
from ..length.budget import Budget, as_budget
from ..length.units import measure
from .cache import cache_dir
from .registry import BUNDLED

Task = Literal["write", "translate", "shorten"]
Kind = Literal["free", "shortest"]  # without a budget; as short as could be found
UNITS = ("chars", "words")
NEAREST = 100  # texts whose sources are most similar in length
SIMILAR = 2.0  # a source of such a length is at most twice as long, and at least half as long
FEWEST = 20  # texts; fewer say nothing
MOST = 2000  # texts that the cache keeps of a model

Pair = tuple[int, int]  # lengths of a source and of its text
Rows = dict[str, dict[str, list[Pair]]]  # by kind and unit


@dataclass(frozen=True)
class Verdict:
    """Where a budget lies among the lengths of a model's texts, from `texts` of them. Empty fields are not known.

    `usual`: the 5th and the 95th percentile, in the budget's unit. `share`: how many are within the budget, in percent.
    """

    budget: str
    model: str
    unit: str
    texts: int
    usual: tuple[int, int] | None = None
    share: int | None = None
    shortest: int | None = None
    verdict: str = ""

    def __str__(self) -> str:
        return f"{self.budget}: {self.verdict}"

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def explain(model: str, task: Task, budget: str | Budget, source: str) -> Verdict:
    """Return where `budget` lies among the lengths of what `model` writes for such a source, before it is written."""
    budget = as_budget(budget)
    budget = budget.resolve(source) if budget.of_source else budget
    if budget.unit not in UNITS:
        verdict = f"no lengths of {model} were measured in {budget.unit}, only in {' and '.join(UNITS)}"
        return Verdict(str(budget), model, budget.unit, 0, verdict=verdict)
    rows = read(model, task)
    length = measure(source, budget.unit) if task != "write" else None
    # A shortener without a budget changes nothing, so its usual lengths are the shortest that were found.
    free = _lengths(rows["shortest" if task == "shorten" else "free"][budget.unit], length)
    shortest = min([*_lengths(rows["shortest"][budget.unit], length), *free], default=None)
    if len(free) < FEWEST:
        verdict = f"{len(free)} texts of {model} for such a source were measured, too few to say; see `data lengths`"
        return Verdict(str(budget), model, budget.unit, len(free), shortest=shortest, verdict=verdict)
    usual = _quantile(free, 0.05), _quantile(free, 0.95)
    share = round(100 * sum(map(budget.fits, free)) / len(free))
    known = Verdict(str(budget), model, budget.unit, len(free), usual, share, shortest)
    return Verdict(**vars(known) | {"verdict": _sentence(known, budget, task)})


def _sentence(known: Verdict, budget: Budget, task: Task) -> str:
    assert known.usual is not None
    low, high = known.usual
    if task == "shorten":
        return _of_shortened(known, budget)
    what = f"what {known.model} writes for such a source ({low} to {high} {known.unit}, {known.texts} texts measured)"
    if budget.high is not None and budget.high < low:
        said = f"below the 5th percentile of {what}"
    elif budget.low > high:
        said = f"above the 95th percentile of {what}"
    else:
        said = f"about {_rounded(known)} % of {what} is within it"
    return said if known.shortest is None else f"{said}; the shortest found is {known.shortest}"


def _of_shortened(known: Verdict, budget: Budget) -> str:
    """Return the sentence for a shortener, whose usual lengths are the shortest that it found."""
    assert known.usual is not None
    low, high = known.usual
    if budget.high is not None and budget.high < low:
        said = "this budget is below that"
    elif budget.low > high:
        said = "this budget is above that"
    else:
        said = f"about {_rounded(known)} % are within this budget"
    measured = f"{known.model} shortened {known.texts} texts like this one as far as it could"
    return (
        f"{measured}; 90 % of the results have {low} to {high} {known.unit}; {said}; the shortest has {known.shortest}"
    )


def _rounded(known: Verdict) -> int:
    """Return the share of texts to the nearest five percent: a hundred texts say no more."""
    return 5 * round((known.share or 0) / 5)


def _lengths(pairs: list[Pair], source: int | None) -> list[int]:
    """Return lengths of texts, scaled to a source of this length from those of similar sources, in ascending order."""
    if source is None:
        return sorted(text for _, text in pairs)
    if source == 0:
        return []
    apart = sorted((abs(math.log(own / source)), own, text) for own, text in pairs if own)
    near = [(own, text) for far, own, text in apart[:NEAREST] if far <= math.log(SIMILAR)]
    return sorted(round(text * source / own) for own, text in near)


def _quantile(ordered: list[int], share: float) -> int:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


# ---- files


def add(model: str, task: Task, kind: Kind, texts: Iterable[tuple[str, str]], folder: Path | None = None) -> None:
    """Add the lengths of (source, text) pairs to those of the model, in the user's cache or in the model's `folder`.

    The cache keeps the last ones. If it cannot be written, nothing happens: the texts matter more than their lengths.
    """
    pairs = [(source, text) for source, text in texts if source.strip() and text.strip()]
    if not pairs:
        return
    cached = _cached(model, task)
    file = folder / f"lengths.{task}.json" if folder else cached
    with suppress(OSError):
        cached.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(cached.with_suffix(".lock")):
            rows = _read(file)
            for unit in UNITS:
                found = [(measure(source, unit), measure(text, unit)) for source, text in pairs]
                rows[kind][unit] = [*rows[kind][unit], *found][-MOST:]
            atomic.write_text(file, json.dumps({"model": model, "task": task, **rows}, separators=(",", ":")) + "\n")


def read(model: str, task: Task) -> Rows:
    """Return the lengths that are shipped for the model and those in the user's cache."""
    # BUNDLED / model is the model's own folder if its name is an absolute path.
    shipped, own = _read(BUNDLED / model / f"lengths.{task}.json"), _read(_cached(model, task))
    return {kind: {unit: shipped[kind][unit] + own[kind][unit] for unit in UNITS} for kind in shipped}


def _cached(model: str, task: Task) -> Path:
    return cache_dir() / "lengths" / f"{re.sub(r'[^A-Za-z0-9.-]+', '-', model).strip('-.')}.{task}.json"


def _read(file: Path) -> Rows:
    """Return the rows of a file; none if it is absent or damaged."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return {
            kind: {unit: [(int(a), int(b)) for a, b in found[kind][unit]] for unit in UNITS}
            for kind in ("free", "shortest")
        }
    except (OSError, ValueError, LookupError, TypeError):
        return {kind: {unit: [] for unit in UNITS} for kind in ("free", "shortest")}
