"""ROUGE against rouge-score and by hand."""

import numpy as np
import pytest

from lengthwise.metrics import NotApplicable, score
from lengthwise.metrics.rouge import first_bytes
from metric_texts import CLOSE, REFS, value


@pytest.mark.parametrize("kind", ["rouge1", "rouge2", "rougeL"])
def test_rouge_equals_rouge_score(kind):
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer([kind], use_stemmer=True)
    name = f"{kind[:5]}-{kind[5:].lower()}"
    theirs = [scorer.score(ref, hyp)[kind] for ref, hyp in zip(REFS, CLOSE, strict=True)]
    assert value(name, CLOSE, REFS) == pytest.approx(np.mean([s.fmeasure for s in theirs]))
    cut = [scorer.score(ref, hyp[:20])[kind].recall for ref, hyp in zip(REFS, CLOSE, strict=True)]
    assert value(f"{name}-recall:20", CLOSE, REFS) == pytest.approx(np.mean(cut))
    assert value(f"{name}-recall:target", CLOSE, REFS, budgets="at most 20 bytes") == pytest.approx(np.mean(cut))


def test_rouge_by_hand():
    assert value("rouge-1", ["the cat ran"], ["the cat sat down"]) == pytest.approx(
        2 * (2 / 3) * (2 / 4) / (2 / 3 + 2 / 4)
    )
    assert value("rouge-1", ["the cat ran"], [["the cat sat down", "the cat ran"]]) == pytest.approx((4 / 7 + 1) / 2)
    assert value("rouge-1:chars", ["猫だ"], ["猫が"]) == 0.5
    assert value("rouge-1:words", ["für uns"], ["für dich"]) == 0.5
    assert [first_bytes("aé€", n) for n in range(7)] == ["", "a", "a", "aé", "aé", "aé", "aé€"]


def test_rouge_does_not_pretend_to_read_other_scripts():
    with pytest.raises(NotApplicable, match=r"row 0 has no token.*rouge-1:chars"):
        score(["猫"], ["猫"], metrics=["rouge-1"])
    names = [s.name for s in score(["猫"], ["猫"], bootstrap=0)]
    assert "chrf" in names
    assert "rouge-1" not in names
