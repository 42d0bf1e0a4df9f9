"""Intervals and paired tests: what must hold of any metric."""

import numpy as np
import pytest

from lengthwise.metrics import Texts, compare, score
from lengthwise.metrics.tally import Tally, as_score, bootstrap_weights, mean_of, median, population_std
from metric_texts import CLOSE, FAR, REFS


def test_intervals_depend_on_the_seed_alone():
    first, again, other = (score(FAR, REFS, metrics=["chrf"], seed=seed)[0] for seed in (3, 3, 4))
    assert first == again
    assert first.interval != other.interval
    assert first.interval[0] < first.value < first.interval[1]
    assert first.signature.endswith("|bs:1000|rs:3")


def test_intervals_cover():
    """Of 95 % intervals for a mean that is known, about 95 % hold it."""
    rng = np.random.default_rng(0)
    held = [
        low <= 5 <= high
        for low, high in (as_score("m", mean_of(rng.normal(5, 2, 80), "m"), 400, seed).interval for seed in range(200))
    ]
    assert 0.9 <= np.mean(held) <= 0.99


def test_one_text_has_no_interval():
    assert score(["a."], metrics=["completeness"])[0].interval is None
    assert as_score("m", Tally("m", np.ones((3, 1)), median), samples=0).interval is None


def test_resamples_of_median_and_std_are_those_of_the_drawn_values():
    values = np.random.default_rng(0).normal(100, 3, 11)
    weights = next(bootstrap_weights(11, 50, 0))
    for drawn, middle, spread in zip(
        weights.astype(int), median(values[:, None], weights), population_std(values[:, None], weights), strict=True
    ):
        assert middle == pytest.approx(np.median(np.repeat(values, drawn)))
        assert spread == pytest.approx(np.std(np.repeat(values, drawn)))


def test_resamples_do_not_depend_on_how_they_are_batched(monkeypatch):
    whole = np.concatenate(list(bootstrap_weights(50, 30, 7)))
    monkeypatch.setattr("lengthwise.metrics.tally._CELLS", 200)
    parts = list(bootstrap_weights(50, 30, 7))
    assert len(parts) > 1
    assert (np.concatenate(parts) == whole).all()
    assert (whole.sum(axis=1) == 50).all()


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter", "rouge-1", "lr-ref-median"])
def test_clearly_different_systems_differ(test, metric):
    found = compare(FAR, CLOSE, REFS, metric=metric, test=test, samples=500)
    assert found.p < 0.01
    assert found.delta == pytest.approx(found.b - found.a)
    assert found.interval[0] <= found.delta <= found.interval[1]
    assert not found.interval[0] <= 0 <= found.interval[1]
    assert f"paired:{test}|bs:500|rs:0" in found.signature


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
def test_a_system_does_not_differ_from_itself(test):
    found = compare(CLOSE, CLOSE, REFS, metric="chrf", test=test)
    assert (found.delta, found.p, found.interval) == (0, 1, (0, 0))


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
def test_equal_systems_rarely_differ(test):
    """Two systems that differ by chance alone come out as different about one time in twenty."""
    rng, found = np.random.default_rng(0), []
    for seed in range(100):
        a, b = (Texts(["-"] * 60, budgets="exactly 50 chars", lengths=rng.integers(40, 60, 60).tolist()) for _ in "ab")
        found.append(compare(a, b, metric="mae", test=test, samples=200, seed=seed).p < 0.05)
    assert np.mean(found) <= 0.12


def test_randomisation_agrees_with_sacrebleu():
    significance = pytest.importorskip("sacrebleu.significance")
    a, b = FAR[:10] + CLOSE[10:], CLOSE[:10] + FAR[10:22] + CLOSE[22:]  # each is worse somewhere: p is neither 0 nor 1
    metrics = {"CHRF": pytest.importorskip("sacrebleu.metrics").CHRF(references=[REFS])}
    _, results = significance.PairedTest([("a", a), ("b", b)], metrics, None, "ar", 4000)()
    (theirs,) = (found[1] for name, found in results.items() if name != "System")
    ours = compare(a, b, REFS, metric="chrf", test="randomisation", samples=4000)
    assert ours.b == pytest.approx(theirs.score)
    assert 0.1 < ours.p < 0.9
    assert ours.p == pytest.approx(theirs.p_value, abs=0.03)


def test_comparisons_that_cannot_be_made():
    with pytest.raises(ValueError, match="no paired test"):
        compare(CLOSE, FAR, metric="distinct-1")
    with pytest.raises(ValueError, match="got 48 and 47"):
        compare(Texts(CLOSE), Texts(FAR[1:]), metric="completeness")
    with pytest.raises(ValueError, match="bootstrap or randomisation"):
        compare(CLOSE, FAR, metric="completeness", test="t")
