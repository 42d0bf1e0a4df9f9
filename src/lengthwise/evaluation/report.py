"""Reports: the scores of one system as Markdown, as JSON and as plots."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

from ..metrics import Comparison, Score, Texts, as_json, as_table, compare, score, score_bins
from ..metrics.length_error import bins as bins_of
from ..metrics.tally import Tally, as_comparison, as_score, mean_of

# Metrics that are also shown per bin of target lengths, if computed.
BINNED = ("mae", "exact", "violation", "completeness", "bleu", "chrf", "rouge-l")
VERDICTS = {"complete": "complete|by:writer|budget:{kind}|v2", "runaway": "runaway|at:token-limit|v1"}  # signatures
MAX_BINS = 8


@dataclass(frozen=True)
class Report:
    """The scores of one system."""

    name: str  # short, for legends
    texts: Texts
    scores: list[Score]
    bins: Mapping[str, list[Score]] = field(default_factory=dict)
    comparisons: list[Comparison] = field(default_factory=list)
    about: Mapping[str, Any] = field(default_factory=dict)  # how the texts were made
    other: tuple[str, Texts] | None = None  # the system that it is compared with
    title: str = ""  # system and data


def report(
    name: str,
    texts: Texts,
    *,
    metrics: Sequence[str] | None = None,
    also: Sequence[str] = (),
    more: Mapping[str, Tally] | None = None,
    bins: bool = False,
    against: tuple[str, Texts] | None = None,
    more_against: Mapping[str, Tally] | None = None,
    about: Mapping[str, Any] | None = None,
    title: str = "",
) -> Report:
    """Return the scores, with `bins` also by target length, and the paired tests `against` another system.

    `also`: metrics in addition to those named, or to the usual ones. `more`: tallies of `verdicts`. `more_against`:
    those of the other system.
    """
    also, more = [asked for asked in also if asked not in (metrics or ())], more or {}
    counted = [*score(texts, metrics=metrics), *score(texts, metrics=also)]
    others = [as_score(name, tally) for name, tally in more.items()]
    shown = [s.name for s in counted if metrics is not None or s.name in (*BINNED, *also)]
    by_length = score_bins(texts, edges=bin_edges(texts), metrics=shown) if bins and counted else {}
    # A metric without an interval has no test either: its counts of one text depend on the other texts.
    tested = [s.name for s in counted if s.interval is not None]
    comparisons = [compare(against[1], texts, metric=metric) for metric in tested] if against else []
    for s in others:
        there, here = (more_against or {}).get(s.name), more[s.name]
        if there and there.signature == here.signature and s.interval is not None:  # else by another rule
            comparisons.append(as_comparison(s.name, there, here))
    return Report(name, texts, [*counted, *others], by_length, comparisons, about or {}, against, title or name)


def verdicts(outputs: Sequence[Mapping[str, Any]]) -> dict[str, Tally]:
    """Return the tallies of the flags that the generator recorded with each output: complete, runaway."""
    written = [output for output in outputs if not output.get("error")]
    kind = "soft" if any("runaway" in output for output in written) else "hard"
    return {
        name: mean_of([bool(output.get(name)) for output in outputs], signature.format(kind=kind))
        for name, signature in VERDICTS.items()
        if written and all(name in output for output in written)
    }


def short_names(path: Path, other: Path | None) -> tuple[str, str]:
    """Return short names of two files or folders: the shortest ends of their paths that differ."""
    parts, others = path.absolute().parts, other.absolute().parts if other else ()
    length = next((n for n in range(1, len(parts)) if parts[-n:] != others[-n:]), len(parts))
    return Path(*parts[-length:]).as_posix(), Path(*others[-length:]).as_posix() if others else ""


def bin_edges(texts: Texts) -> list[int]:
    """Return the upper ends of at most 8 bins of round and equal width: targets up to 200 → 50, 100, 150, 200.

    A bin of one text has no interval, so it is merged with the next bin, or the last bin with the one before.
    """
    longest, width, steps = int(texts.targets.max()), 1, cycle((2, 2.5, 2))
    while width * MAX_BINS < longest:
        width = int(width * next(steps))
    below = {edge: int((texts.targets <= edge).sum()) for edge in range(width, longest + width, width)}
    edges: list[int] = []
    for edge, count in below.items():
        if count - (below[edges[-1]] if edges else 0) > 1:
            edges.append(edge)
    return [*edges[:-1], max(below)]


def as_markdown(found: Report) -> str:
    """Return the report as Markdown."""
    parts = [f"# {found.title or found.name}\n"]
    if found.about:
        parts.append("".join(f"- {key}: {value}\n" for key, value in found.about.items() if value not in (None, False)))
    parts.append(as_table(found.scores))
    if found.bins:
        parts.append("## By target length\n\n" + as_table(found.bins))
    if found.comparisons and found.other:
        lines = "".join(f"- {comparison}\n" for comparison in found.comparisons)
        parts.append(f"## Against {found.other[0]}\n\nOther system → this system, paired bootstrap test.\n\n{lines}")
    return "\n".join(parts)


def as_plain(found: Report) -> dict[str, Any]:
    """Return the report as plain values, ready for JSON."""
    plain: dict[str, Any] = {"title": found.title, "name": found.name, "n": len(found.texts)}
    plain |= {"about": dict(found.about), "scores": json.loads(as_json(found.scores))}
    if found.bins:
        plain["bins"] = json.loads(as_json(found.bins))
    if found.comparisons and found.other:
        plain["against"] = {"name": found.other[0], "comparisons": json.loads(as_json(found.comparisons))}
    return plain


def save_plots(found: Report, folder: Path) -> list[Path]:
    """Save the plots that the inputs allow as PNG and SVG: three of budgets, one of sources, one of references."""
    from . import plots

    systems = {found.name: found.texts} | ({found.other[0]: found.other[1]} if found.other else {})
    figures = {}
    if found.texts.budgets is not None:
        unit, edges = found.texts.budget_unit, bin_edges(found.texts)
        lengths = {name: (texts.targets.tolist(), texts.written.tolist()) for name, texts in systems.items()}
        figures["target-scatter"] = plots.target_scatter(lengths, unit=unit)
        figures["error-by-length"] = plots.error_by_bins(lengths, edges=edges, unit=unit)
        quality = "chrf" if found.texts.refs is not None else "completeness"
        curves = {name: _curve(texts, edges, quality) for name, texts in systems.items()}
        figures["quality-by-length"] = plots.quality_curve(curves, along=f"length asked for ({unit})")
    for to, metric, there in (("source", "lr-src", found.texts.srcs), ("reference", "lr-ref", found.texts.refs)):
        if there is not None:
            ratios = {name: score(texts, metrics=[metric], bootstrap=0)[0] for name, texts in systems.items()}
            figures[f"ratio-to-{to}"] = plots.ratio_histogram({n: s.per_item or [] for n, s in ratios.items()}, to=to)
    return [path for name, figure in figures.items() for path in plots.save(figure, folder / name)]


def _curve(texts: Texts, edges: list[int], quality: str) -> tuple[list[float], list[Score]]:
    """Return the mean target and the quality of each bin."""
    rows_by_bin = bins_of(texts.targets.tolist(), edges=edges)
    means = [float(texts.targets[rows].mean()) for rows in rows_by_bin.values()]
    return means, [score(texts.pick(rows), metrics=[quality])[0] for rows in rows_by_bin.values()]
