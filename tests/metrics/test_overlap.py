"""BLEU, chrF and TER against sacreBLEU and golden values."""

import numpy as np
import pytest

from lengthwise.metrics import METRICS, Texts, score
from lengthwise.metrics.overlap import brevity_penalty
from lengthwise.metrics.tally import bootstrap_weights
from metric_texts import CLOSE, DOCS, FAR, GOLDEN, REFS, value


@pytest.mark.parametrize("case", GOLDEN["BLEU_star"])
def test_bleu_star_is_bleu_without_its_brevity_penalty(case):
    given_ = case["in"]
    star = given_["BLEU"] / float(brevity_penalty(given_["hyp_len"], given_["ref_len"]))
    assert star == pytest.approx(case["out"], abs=1e-5)


def _sacrebleu(kind, **options):
    return getattr(pytest.importorskip("sacrebleu.metrics"), kind)(**options)


OVERLAPS = {
    "bleu": ("BLEU", {}),
    "bleu:char": ("BLEU", {"tokenize": "char"}),
    "bleu-lc": ("BLEU", {"lowercase": True}),
    "chrf": ("CHRF", {}),
    "chrf-lc": ("CHRF", {"lowercase": True}),
    "ter": ("TER", {}),
    "ter-cased": ("TER", {"case_sensitive": True}),
}


@pytest.mark.parametrize("name", OVERLAPS)
@pytest.mark.parametrize("hyps", [CLOSE, FAR, ["", *FAR[1:]], ["no", "match", "here"] * 16], ids=range(4))
def test_overlap_equals_sacrebleu(name, hyps):
    kind, options = OVERLAPS[name]
    theirs = _sacrebleu(kind, **options)
    expected = theirs.corpus_score(hyps, [REFS]).score
    (found,) = score(hyps, REFS, metrics=[name], bootstrap=0)
    assert found.value == pytest.approx(expected, abs=1e-9)
    assert found.signature == str(theirs.get_signature())


@pytest.mark.parametrize("name", ["chrf", "ter"])
def test_overlap_of_one_text_equals_sacrebleu(name):
    theirs = _sacrebleu(OVERLAPS[name][0])
    (found,) = score(FAR, REFS, metrics=[name], bootstrap=0)
    assert found.per_item == pytest.approx(
        [theirs.sentence_score(h, [r]).score for h, r in zip(FAR, REFS, strict=True)]
    )


def test_bleu_of_resamples_equals_sacrebleu():
    theirs = _sacrebleu("BLEU")
    weights = next(bootstrap_weights(6, 20, 1))
    tally = METRICS["bleu"].tally(Texts(FAR[:6], REFS[:6]), "")
    ours = tally.finish(tally.counts, weights)
    for drawn, found in zip(weights.astype(int), ours, strict=True):
        hyps, refs = (np.repeat(column[:6], drawn).tolist() for column in (FAR, REFS))
        assert found == pytest.approx(theirs.corpus_score(hyps, [refs]).score, abs=1e-9)


def test_several_references_even_unequally_many():
    refs = [[a, b] if row % 2 else [a] for row, (a, b) in enumerate(zip(REFS, CLOSE, strict=True))]
    streams = [REFS, [of_one[1] if len(of_one) > 1 else None for of_one in refs]]
    for name, kind in (("bleu", "BLEU"), ("chrf", "CHRF"), ("ter", "TER")):
        theirs = _sacrebleu(kind)
        assert value(name, FAR, refs) == pytest.approx(theirs.corpus_score(FAR, streams).score)


def test_documents_are_one_line_each():
    lines = [" ".join(column[at : at + 6]) for column in (CLOSE, REFS) for at in range(0, 48, 6)]
    theirs = _sacrebleu("BLEU", lowercase=True)
    (found,) = score(CLOSE, REFS, docs=DOCS, metrics=["d-bleu-lc"], bootstrap=0)
    assert found.value == pytest.approx(theirs.corpus_score(lines[:8], [lines[8:]]).score)
    assert found.n == 8
    assert "level:document" in found.signature
    assert "case:lc" in found.signature
    assert value("s-bleu", CLOSE, REFS) == value("bleu", CLOSE, REFS) != found.value


def test_bleu_star_and_bleu_differ_by_the_brevity_penalty():
    result = _sacrebleu("BLEU").corpus_score(FAR, [REFS])
    assert result.bp < 1
    assert value("bleu*", FAR, REFS) == pytest.approx(result.score / result.bp)
