"""Scores and comparisons as values, with tables and JSON of them. Each has a signature: how it was computed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Score:
    """A number, its 95 % interval if it has one, and its signature: scores are comparable if their signatures agree.

    >>> print(Score("mae", 2.5, "mae|unit:chars", (2.25, 2.75), None, 40))
    mae 2.500 [2.250, 2.750] n=40 mae|unit:chars
    """

    name: str
    value: float
    signature: str
    interval: tuple[float, float] | None
    per_item: list[float] | None
    n: int

    def __str__(self) -> str:
        return f"{self.name} {_cell(self)} n={self.n} {self.signature}"


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same texts: `delta` = b − a with its 95 % interval, and the p-value of the difference."""

    name: str
    a: float
    b: float
    delta: float
    interval: tuple[float, float]
    p: float
    signature: str
    n: int

    def __str__(self) -> str:
        p = "p<0.001" if self.p < 0.001 else f"p={self.p:.3f}"
        values = f"{_show(self.a)} → {_show(self.b)} ({'+' if self.delta >= 0 else ''}{_show(self.delta)}"
        return f"{self.name} {values} {_bracketed(self.interval)}) {p} n={self.n} {self.signature}"


def as_table(scores: Sequence[Score] | Mapping[str, Sequence[Score]]) -> str:
    """Return a Markdown table: one row per score of a list, or one row per named list."""
    if isinstance(scores, Mapping):
        return _systems_table(scores)
    rows = [(s.name, _show(s.value), _bracketed(s.interval), str(s.n), f"`{s.signature}`") for s in scores]
    return _markdown(("metric", "value", "95 % interval", "n", "signature"), rows, numbers=(1, 3))


def _systems_table(systems: Mapping[str, Sequence[Score]]) -> str:
    signatures: dict[str, str] = {}
    for system, scores in systems.items():
        for score in scores:
            known = signatures.setdefault(score.name, score.signature)
            if known != score.signature:
                found = f"{score.signature!r} for {system!r} and {known!r} before"
                raise ValueError(f"the scores in a column must have one signature; {score.name} is {found}")
    rows = []
    for system, scores in systems.items():
        cells = {score.name: _cell(score) for score in scores}
        sizes = "/".join(str(n) for n in sorted({score.n for score in scores}))
        rows.append((system, sizes, *(cells.get(name, "") for name in signatures)))
    table = _markdown(("", "n", *signatures), rows, numbers=range(1, len(signatures) + 2))
    return table + "\n" + "\n".join(f"- {name}: `{signature}`" for name, signature in signatures.items()) + "\n"


def as_json(scores: Sequence[Score | Comparison] | Mapping[str, Sequence[Score]], *, per_item: bool = False) -> str:
    """Return the scores as JSON; with `per_item` also the value of each text."""
    return json.dumps(
        dict(scores) if isinstance(scores, Mapping) else list(scores),
        default=lambda score: {key: value for key, value in vars(score).items() if per_item or key != "per_item"},
        indent=2,
        ensure_ascii=False,
    )


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int]) -> str:
    rule = ["---:" if column in numbers else "---" for column in range(len(head))]
    escaped = ([cell.replace("|", "\\|") for cell in row] for row in (head, rule, *rows))
    return "".join(f"| {' | '.join(row)} |\n" for row in escaped)


def _show(number: float) -> str:
    """Return four figures: 43.80, 1.050, 0.0150, 1234."""
    return f"{number:.0f}" if abs(number) >= 1000 else f"{number or 0.0:#.4g}".rstrip(".")  # 0.0 also for -0.0


def _bracketed(interval: tuple[float, float] | None) -> str:
    return "[{}, {}]".format(*map(_show, interval)) if interval else ""


def _cell(score: Score) -> str:
    return f"{_show(score.value)} {_bracketed(score.interval)}".rstrip()
