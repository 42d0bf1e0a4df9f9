"""Plots of lengths, length errors, length ratios and quality.

Each function returns a figure; `save` writes it as PNG and as SVG. Systems have different markers, and colours that
colour-blind readers can distinguish. pyplot is not used, so no window opens and no state is shared.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..metrics import Score
from ..metrics.length_error import bins
from ..metrics.optional_imports import library
from ..metrics.tally import as_score, mean_of

Numbers = Sequence[float]
Lengths = tuple[Numbers, Numbers]  # targets, lengths written
Systems = Mapping[str, Lengths]
Curve = tuple[Numbers, Sequence[Score]]  # lengths, and the score at each
Groups = dict[str, list[int]]  # rows, by the label on the axis

# Okabe & Ito 2008, dark colours first, without yellow, which is hard to see on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_STYLE: dict[str, Any] = {"font.size": 11, "lines.linewidth": 1.8, "legend.frameon": False, "legend.fontsize": 10.5}
_STYLE |= {"axes.titlesize": 12, "axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False}
_STYLE |= {"axes.edgecolor": "#6b6b6b", "axes.grid": True, "axes.axisbelow": True}
_STYLE |= {"grid.color": "#e3e3e3", "grid.linewidth": 0.7, "figure.dpi": 150}
_LEGEND_CHARS = 80  # that are as wide as a figure
_STYLE |= {"svg.hashsalt": "lengthwise"}  # equal figures are equal files


def target_scatter(systems: Systems, *, unit: str = "chars", title: str = "") -> Any:
    """Return a plot of written against target lengths, one panel per system; exact lengths are on the line."""
    _check(systems)
    columns, rows = min(len(systems), 3), -(-len(systems) // 3)
    right, longest = (1.04 * max(map(np.max, numbers)) for numbers in zip(*systems.values(), strict=True))
    top = min(max(right, longest), 2 * right)  # a few runaway texts must not compress the rest
    with _figure(3.6 * columns + 0.8, 3.5 * rows + (0.8 if title else 0.5), title) as figure:
        panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
        for place, (panel, (name, (targets, lengths))) in enumerate(zip(panels, systems.items(), strict=False)):
            _scatter(panel, place, np.asarray(targets), np.asarray(lengths), top)
            miss = float(np.abs(np.subtract(lengths, targets)).mean())
            panel.set_title(f"{name}\nmean error {miss:.3g} {unit}", linespacing=1.4)
            panel.set(xlim=(0, right), ylim=(0, top))
            if place % columns == 0:
                panel.set_ylabel(f"length written ({unit})")
            if place + columns >= len(systems):
                panel.set_xlabel(f"length asked for ({unit})")
                panel.tick_params(labelbottom=True)
        for panel in panels[len(systems) :]:
            panel.set_visible(False)
        if panels[0].get_legend() is None:
            panels[0].legend(loc="upper left", handlelength=1.8)
    return figure


def error_by_bins(
    systems: Systems, *, width: int = 100, edges: Sequence[int] | None = None, unit: str = "chars", title: str = ""
) -> Any:
    """Return a plot of the mean error by bins of the target length, with 95 % intervals."""
    return _errors(systems, lambda targets: bins(targets, width=width, edges=edges), unit, title)


def error_by_target(systems: Systems, *, unit: str = "chars", title: str = "") -> Any:
    """Return the same plot by target length, for a few targets with many texts each."""
    return _errors(systems, _by_target, unit, title)


def ratio_histogram(
    systems: Mapping[str, Numbers], *, to: str = "source", band: float = 0.1, title: str = "", width: float = 0.04
) -> Any:
    """Return a histogram of length ratios with the share inside the band; the outermost bars include all beyond."""
    _check(systems)
    everything = np.concatenate([np.asarray(ratios, dtype=np.float64) for ratios in systems.values()])
    low, high = np.percentile(everything, [0.5, 99.5])  # a few extreme ratios must not compress the rest
    low, high = min(low, 1 - 2 * band), max(high, 1 + 2 * band)
    # A ratio of 1, the most frequent, is in the middle of its bar. So bars of 0.04 end at the edge of a band of ± 10 %.
    first, last = int(np.floor((low - 1) / width)), int(np.ceil((high - 1) / width))
    edges = 1 + width * (np.arange(first, last + 2) - 0.5)
    with _figure(7.2, 4.0, title) as figure:
        axes = figure.subplots()
        axes.axvspan(1 - band, 1 + band, color="#efefef", zorder=0, label=f"within ±{band:.0%}")
        for place, (name, given) in enumerate(systems.items()):
            ratios = np.asarray(given, dtype=np.float64)
            inside = np.mean(np.abs(ratios - 1) <= band + 1e-9)
            shares = np.histogram(np.clip(ratios, edges[0], edges[-1]), edges)[0] / len(ratios)
            style = {"color": COLOURS[place], "linestyle": ("-", "--", "-.", ":")[place % 4], "linewidth": 2}
            axes.stairs(shares, edges, label=f"{name} ({inside:.0%} inside)", **style)
        axes.set(xlabel=f"length / length of the {to}", ylabel=f"share of texts (bars of {width:g})")
        axes.set(xlim=(edges[0], edges[-1]), ylim=(0, None))
        axes.grid(axis="x", visible=False)
        axes.yaxis.set_major_formatter(library("matplotlib.ticker").PercentFormatter(1, decimals=0))
        axes.legend(loc="upper right", frameon=True, framealpha=1, edgecolor="white")
    return figure


def error_histogram(systems: Systems, *, reach: int = 30, unit: str = "chars", title: str = "") -> Any:
    """Return a histogram of written minus target length (Takase & Okazaki 2019, figure 1).

    The outermost bars include all texts beyond `reach`. The axis of shares is logarithmic: a model that counts has
    nearly all of its texts in one bar.
    """
    _check(systems)
    edges = np.arange(-reach, reach + 2) - 0.5  # a bar for each unit
    with _figure(7.2, 4.0, title) as figure:
        axes = figure.subplots()
        for place, (name, (targets, lengths)) in enumerate(systems.items()):
            errors = np.clip(np.subtract(lengths, targets), -reach, reach)
            shares = np.histogram(errors, edges)[0] / len(errors)
            style = {"color": COLOURS[place], "linestyle": ("-", "--", "-.", ":")[place % 4], "linewidth": 1.8}
            axes.stairs(shares, edges, label=f"{name} ({np.mean(errors == 0):.0%} exact)", **style)
        axes.set(xlabel=f"length written − length asked for ({unit})", ylabel="share of texts", yscale="log")
        axes.set(xlim=(edges[0], edges[-1]))
        axes.grid(axis="x", visible=False)
        axes.yaxis.set_major_formatter(library("matplotlib.ticker").FuncFormatter(lambda share, _: f"{100 * share:g}%"))
        _legend_below(axes, len(systems))
    return figure


def quality_curve(
    systems: Mapping[str, Curve], *, quality: str = "", along: str = "length (chars)", title: str = ""
) -> Any:
    """Return a plot of a quality score at several lengths, with its interval as a band; `along`: the axis label."""
    _check(systems)
    with _figure(6.8, 4.2, title) as figure:
        axes = figure.subplots()
        for place, (name, (lengths, scores)) in enumerate(systems.items()):
            order = np.argsort(lengths)
            _line(axes, place, name, [lengths[at] for at in order], [scores[at] for at in order], whiskers=False)
        axes.set(xlabel=along, ylabel=quality or next(scores[0].name for _, scores in systems.values()))
        axes.margins(y=0.12)
        _legend_below(axes, len(systems))
    return figure


def save(figure: Any, path: str | Path) -> tuple[Path, Path]:
    """Write the figure as PNG and as SVG, whatever the suffix of `path`, and return both paths."""
    stem = Path(path).with_suffix("") if Path(path).suffix in (".png", ".svg") else Path(path)
    stem.parent.mkdir(parents=True, exist_ok=True)
    png, svg = (stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg"))
    with library("matplotlib").rc_context(_STYLE):
        figure.savefig(png, metadata={"Software": None})
        figure.savefig(svg, metadata={"Date": None})
    return png, svg


def _errors(systems: Systems, grouped: Callable[[Numbers], Groups], unit: str, title: str) -> Any:
    _check(systems)
    labels = list(grouped([t for targets, _ in systems.values() for t in targets]))
    points: list[float] = []
    with _figure(max(6.4, 1.0 + 0.95 * len(labels)), 4.0, title) as figure:
        axes = figure.subplots()
        for place, (name, (targets, lengths)) in enumerate(systems.items()):
            shift = (place - (len(systems) - 1) / 2) * min(0.16, 0.7 / len(systems))  # side by side
            errors = np.abs(np.subtract(lengths, targets))
            scores = {label: as_score("mae", mean_of(errors[rows], "mae")) for label, rows in grouped(targets).items()}
            points += [s.value for s in scores.values()]
            _line(axes, place, name, [labels.index(label) + shift for label in scores], list(scores.values()))
        axes.set_xticks(range(len(labels)), labels)
        axes.grid(axis="x", visible=False)
        axes.set(xlabel=f"length asked for ({unit})", ylabel=f"mean error ({unit})")
        if min(points) > 0 and max(points) / min(points) > 30:  # a wide range needs a log scale
            ticker = library("matplotlib.ticker")
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
            axes.yaxis.set_minor_formatter(ticker.NullFormatter())
        else:
            axes.set_ylim(bottom=0)
        _legend_below(axes, len(systems))
    return figure


def _by_target(targets: Numbers) -> Groups:
    return {f"{target:g}": np.flatnonzero(np.equal(targets, target)).tolist() for target in sorted(set(targets))}


def _scatter(panel: Any, place: int, targets: Any, lengths: Any, top: float) -> None:
    """Draw the points; those above `top` are triangles at the upper edge."""
    beyond = lengths > top
    see_through = float(np.clip(15 / np.sqrt(len(targets)), 0.15, 0.8))
    style = {"color": COLOURS[place], "linewidths": 0, "zorder": 2}
    panel.plot([0, top], [0, top], color="black", linewidth=1, linestyle=(0, (4, 3)), label="as asked", zorder=3)
    panel.scatter(targets[~beyond], lengths[~beyond], s=16, alpha=see_through, **style)
    if beyond.any():
        edge, label = np.full(int(beyond.sum()), top * 0.985), f"longer than {top:.0f} ({beyond.sum()})"
        panel.scatter(targets[beyond], edge, s=28, marker="^", alpha=max(see_through, 0.5), label=label, **style)
        panel.legend(loc="upper left", bbox_to_anchor=(0, 0.97), handlelength=1.8)


def _line(axes: Any, place: int, name: str, xs: Numbers, scores: Sequence[Score], *, whiskers: bool = True) -> None:
    values = [score.value for score in scores]
    lows, highs = np.array([score.interval or (score.value, score.value) for score in scores]).T
    style = {"color": COLOURS[place], "marker": MARKERS[place], "markersize": 6, "label": name, "zorder": 3}
    if whiskers:
        reach = np.maximum([values - lows, highs - values], 0)  # a rounding error must not make a whisker negative
        axes.errorbar(xs, values, reach, capsize=3, elinewidth=1.2, linewidth=1.2, **style)
    else:
        axes.fill_between(xs, lows, highs, color=COLOURS[place], alpha=0.15, linewidth=0, zorder=2)
        axes.plot(xs, values, **style)


def _legend_below(axes: Any, systems: int) -> None:
    """Put the legend below the axes, in as many columns as its longest entry leaves room for."""
    longest = max(len(text) for text in axes.get_legend_handles_labels()[1])
    columns = max(1, min(systems, 4, _LEGEND_CHARS // (longest + 8)))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=columns, columnspacing=1.6)


@contextmanager
def _figure(width: float, height: float, title: str) -> Iterator[Any]:
    with library("matplotlib").rc_context(_STYLE):
        figure = library("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)  # margins in inches
        yield figure
        if title:
            figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold")


def _check(systems: Mapping[str, Any]) -> None:
    if not systems:
        raise ValueError("a plot needs at least one system; got none")
    if len(systems) > len(COLOURS):
        raise ValueError(f"a plot shows at most {len(COLOURS)} systems; got {len(systems)}")
    for name, data in systems.items():
        sizes = [len(column) for column in data] if isinstance(data, tuple) else [len(data)]
        if len(set(sizes)) > 1:
            raise ValueError(f"{name!r} must have as many lengths as values; got {sizes[0]} and {sizes[1]}")
        if not sizes[0]:
            raise ValueError(f"{name!r} has nothing to plot")
