"""Plots: what they show, read back from the figure; and that both files are written."""

import numpy as np
import pytest

from lengthwise.evaluation import plots
from lengthwise.metrics import Score

pytest.importorskip("matplotlib")

TARGETS = list(range(10, 410, 10))
LENGTHS = {"ours": (TARGETS, [t + (-1) ** t for t in TARGETS]), "theirs": (TARGETS, [t + 60 for t in TARGETS])}


def _scores(values):
    return [Score("chrf", v, "chrf|x", (v - 1, v + 1), None, 9) for v in values]


def _legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


FIGURES = {
    "target_scatter": lambda: plots.target_scatter(LENGTHS, unit="words", title="A title"),
    "error_by_bins": lambda: plots.error_by_bins(LENGTHS, width=100, unit="words"),
    "ratio_histogram": lambda: plots.ratio_histogram({"ours": [0.9, 1.0, 1.1, 1.3], "theirs": [2.0, 1.5]}),
    "error_histogram": lambda: plots.error_histogram(LENGTHS, reach=40, unit="words"),
    "quality_curve": lambda: plots.quality_curve({"ours": ([200, 50, 100], _scores([40.0, 50.0, 45.0]))}),
}


@pytest.mark.parametrize("name", FIGURES)
def test_both_files_are_written_and_are_the_same_each_time(name, tmp_path):
    png, svg = plots.save(FIGURES[name](), tmp_path / "new" / f"{name}.png")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in svg.read_bytes()
    assert {png.name, svg.name} == {f"{name}.png", f"{name}.svg"}
    again, _ = plots.save(FIGURES[name](), tmp_path / "v0.1")  # not a file ending
    assert again.name == "v0.1.png"
    assert again.read_bytes() == png.read_bytes()


@pytest.mark.parametrize("name", FIGURES)
def test_axes_are_labelled(name):
    axes = FIGURES[name]().axes[0]
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    assert axes.get_legend() is not None


def test_scatter_shows_every_system_and_what_lies_beyond():
    figure = plots.target_scatter({**LENGTHS, "endless": ([10, 20], [12, 9999])}, unit="words")
    ours, theirs, endless = figure.axes
    assert ours.get_title(loc="left") == "ours\nmean error 1 words"
    assert theirs.get_title(loc="left") == "theirs\nmean error 60 words"
    assert len(ours.collections[0].get_offsets()) == len(TARGETS)
    assert _legend(endless) == ["as asked", "longer than 832 (1)"]  # 2 · 1.04 · 400
    assert "words" in ours.get_xlabel()


def test_error_histogram_shows_shares_and_gathers_the_rest():
    [axes] = plots.error_histogram({"ours": ([9, 9, 9, 9], [9, 9, 8, 99])}, reach=2).axes
    assert _legend(axes) == ["ours (50% exact)"]
    assert axes.patches[0].get_data().values.tolist() == [0, 0.25, 0.5, 0, 0.25]


def test_error_by_bins_shows_means():
    axes = plots.error_by_bins(LENGTHS, width=200).axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1-200", "201-400"]
    assert _legend(axes) == ["ours", "theirs"]
    assert [container.lines[0].get_ydata().tolist() for container in axes.containers] == [[1, 1], [60, 60]]
    assert axes.get_yscale() == "log"  # 1 and 60 cannot share a plain scale
    assert plots.error_by_bins({"ours": LENGTHS["ours"]}).axes[0].get_yscale() == "linear"


def test_errors_at_each_target():
    systems = {"ours": ([100, 20, 20, 100], [101, 20, 22, 99]), "theirs": ([20, 50], [10, 90])}
    axes = plots.error_by_target(systems, unit="words").axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["20", "50", "100"]
    means = [container.lines[0].get_ydata().tolist() for container in axes.containers]
    assert means == [[1, 1], [10, 40]]
    assert "words" in axes.get_ylabel()


def test_histogram_shows_shares_of_all_texts():
    axes = FIGURES["ratio_histogram"]().axes[0]
    assert _legend(axes) == ["within ±10%", "ours (75% inside)", "theirs (0% inside)"]
    steps = [patch for patch in axes.patches if hasattr(patch, "get_data")]
    assert [patch.get_data().values.sum() for patch in steps] == pytest.approx([1, 1])
    edges = steps[0].get_data().edges
    assert np.isclose(edges, 0.9).any()  # a bar ends where the band does
    assert np.isclose(edges, 1.1).any()


def test_curves_run_from_short_to_long():
    axes = FIGURES["quality_curve"]().axes[0]
    assert axes.lines[0].get_xdata().tolist() == [50, 100, 200]
    assert axes.lines[0].get_ydata().tolist() == [50, 45, 40]
    assert axes.get_ylabel() == "chrf"


def test_errors_say_what_is_wrong():
    with pytest.raises(ValueError, match="at least one system"):
        plots.target_scatter({})
    with pytest.raises(ValueError, match=r"'ours'.*got 2 and 1"):
        plots.error_by_bins({"ours": ([1, 2], [1])})
    with pytest.raises(ValueError, match="'ours' has nothing"):
        plots.ratio_histogram({"ours": []})
    with pytest.raises(ValueError, match=r"at most 7 systems.*got 8"):
        plots.ratio_histogram({str(n): [1.0] for n in range(8)})
