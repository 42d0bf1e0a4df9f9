"""Metrics against tables counted by hand, against the libraries they stand on, and against what must always hold."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.evaluation.baselines import fairseq, gnmt
from lengthwise.length.budget import at_most, between, exactly
from lengthwise.length.units import UNITS, measure
from lengthwise.metrics import (
    METRICS,
    NotApplicable,
    Score,
    Texts,
    as_json,
    as_table,
    attention_entropy,
    compare,
    contrastive_accuracy,
    rerank,
    rescore,
    score,
    score_bins,
    truncate,
)
from lengthwise.metrics import bertscore as bertscores
from lengthwise.metrics.length_error import bins
from lengthwise.metrics.overlap import brevity_penalty
from lengthwise.metrics.rouge import first_bytes
from lengthwise.metrics.tally import Tally, as_score, bootstrap_weights, mean_of, median, population_std

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/metrics.json").read_text(encoding="utf-8"))

REFS = [
    "The cat sat on the mat and looked at the bird.",
    "It was a bright cold day in April.",
    "The clocks were striking thirteen when he came home.",
    "Text that fits is text that people read.",
    "A title, a caption, a button, a line on a small screen.",
    "Nobody knows where the old road ends.",
] * 8
CLOSE = [
    "The cat sat on a mat and looked at the birds.",
    "It was a bright and cold day in april.",
    "The clocks struck thirteen when he came home.",
    "Text that fits is text people read.",
    "A title, a caption, a button or a line on a small screen.",
    "Nobody knows where the old road ends.",
] * 8
FAR = [
    "A cat on mat, bird.",
    "Bright was the day, April is cold",
    "He came home and thirteen clocks",
    "People read",
    "Caption and title and small button",
    "the road ends nobody",
] * 8
DOCS = [row // 6 for row in range(48)]


def value(name, *args, **kwargs):
    (found,) = score(*args, metrics=[name], bootstrap=0, **kwargs)
    return found.value


# --- formulas against reference values


@pytest.mark.parametrize("case", GOLDEN["BLEU_star"])
def test_bleu_star_is_bleu_without_its_brevity_penalty(case):
    given_ = case["in"]
    star = given_["BLEU"] / float(brevity_penalty(given_["hyp_len"], given_["ref_len"]))
    assert star == pytest.approx(case["out"], abs=1e-5)


def test_length_ratios_are_means_over_sentences():
    lengths, expected = GOLDEN["length_ratio_metrics"]["in"], GOLDEN["length_ratio_metrics"]["out"]
    hyps, refs, srcs = (["x" * n for n in lengths[key]] for key in ("hyp_chars", "ref_chars", "src_chars"))
    assert value("lr-src", hyps, srcs=srcs) == pytest.approx(expected["LRsrc=mean of sentence ratios"])
    assert value("lr-ref", hyps, refs=refs) == pytest.approx(expected["LRref"])
    assert value("lr-src-std", hyps, srcs=srcs) == pytest.approx(expected["std(LRsrc) population"])
    assert value("lr-src-median", hyps, srcs=srcs) == 1.0  # of 1.0, 1.2, 0.95


def test_variance():
    case = GOLDEN["takase_variance"]
    hyps = ["x" * n for n in case["in"]["lengths"]]
    assert value("variance", hyps, budgets=exactly(case["in"]["len"], "chars")) == case["out"]


def test_length_penalties():
    case = GOLDEN["length_penalty_0.5"]
    log_prob, n = case["log_prob"], case["n"]
    assert gnmt(log_prob, n, 0.5) == pytest.approx(case["GNMT score logp/((5+n)/6)^a"])
    assert fairseq(log_prob, n, 0.5) == pytest.approx(case["fairseq score logp/n^a"])
    assert gnmt(log_prob, n, 0) == fairseq(log_prob, n, 0) == case["no normalisation a=0"]
    assert fairseq(log_prob, n, 1) == case["fairseq default a=1"]


@pytest.mark.parametrize("case", GOLDEN["entropy_uniform"])
def test_even_attention_has_the_entropy_ln_n(case):
    n = case["in"]["n"]
    assert attention_entropy(np.full((2, 3, n), 1 / n)) == pytest.approx(np.full((2, 3), case["out"]))


def test_attention_entropy_of_masked_keys_and_of_logits():
    assert attention_entropy([[1.0, 0.0], [0.5, 0.5]]).tolist() == pytest.approx([0.0, math.log(2)])
    with pytest.raises(ValueError, match=r"sum to 1.*after the softmax"):
        attention_entropy([[1.0, 2.0]])


# --- parity with sacreBLEU, rouge-score and the BERTScore of its authors


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


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A tiny random BERT with a vocabulary of letters."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("tiny-bert")
    letters = list("abcdefghijklmnopqrstuvwxyz.,")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_max_length=64).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=4,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
    return str(folder)


def test_bertscore(encoder):
    (same,) = score(REFS[:3], REFS[:3], metrics=[f"bertscore:{encoder}@2"], bootstrap=0)
    assert same.value == pytest.approx(1, abs=1e-5)
    assert "layer:2|" in same.signature
    assert "encoder:tiny-bert" in same.signature
    usual, *_ = score(FAR[:3], REFS[:3], metrics=[f"bertscore:{encoder}"], bootstrap=0)
    assert "layer:3|" in usual.signature
    assert usual.value < 1
    together = score([*FAR[:3], ""], [*REFS[:3], "a"], metrics=[f"bertscore:{encoder}"], bootstrap=0)[0].per_item
    assert together == pytest.approx([*usual.per_item, 0], abs=1e-5)  # padding changes nothing; nothing is worth 0
    best = score(
        FAR[:3], [[ref, hyp] for ref, hyp in zip(REFS, FAR[:3], strict=False)], metrics=[f"bertscore:{encoder}"]
    )
    assert best[0].value == pytest.approx(1, abs=1e-5)


def test_bertscore_equals_that_of_its_authors(encoder):
    utils = pytest.importorskip("bert_score.utils")
    import torch

    tokenizer, model = bertscores._load(encoder)
    hyp, ref = (bertscores._encode([text], tokenizer, model, 3)[0] for text in (FAR[0], REFS[0]))
    batch = [torch.tensor(part)[None].clone() for part in (*ref, *hyp)]
    r, r_counts, h, h_counts = (part.float() for part in batch)
    _, _, f1 = utils.greedy_cos_idf(r, torch.ones_like(r_counts), r_counts, h, torch.ones_like(h_counts), h_counts)
    assert bertscores.greedy_f1(hyp, ref) == pytest.approx(float(f1), abs=1e-5)


def test_bertscore_says_what_is_wrong(encoder):
    for argument, message in (
        ("", "needs an encoder"),
        ("/no/such/folder", "no encoder at"),
        (f"{encoder}@9", "0 to 4"),
    ):
        with pytest.raises(ValueError, match=message):
            score(["a"], ["a"], metrics=[f"bertscore:{argument}"])


# --- tables counted by hand

FIVE = ["x" * n for n in (8, 10, 11, 12, 20)]
ABOUT_TEN = {  # against 8 to 12 chars, ideally 10
    "variance": (4 + 0 + 1 + 4 + 100) / 5,
    "mae": (2 + 0 + 1 + 2 + 10) / 5,
    "relative-error": 0.3,
    "exact": 0.2,
    "within:1": 0.4,
    "within:2": 0.8,
    "overrun": 0.2,
    "violation": 0.2,
}


@pytest.mark.parametrize("name", ABOUT_TEN)
def test_against_a_budget(name):
    (found,) = score(FIVE, budgets=between(8, 12, "chars"), metrics=[name])
    assert found.value == pytest.approx(ABOUT_TEN[name])
    assert UNITS["chars"].signature in found.signature
    assert found.name == name


def test_overrun_and_violation_read_the_limits():
    for budget, overrun, violation in (
        ("at most 10 chars", 0.6, 0.6),
        ("at least 11 chars", 0.0, 0.4),
        ("exactly 10 chars", 0.6, 0.8),
    ):
        assert value("overrun", FIVE, budgets=budget) == overrun
        assert value("violation", FIVE, budgets=budget) == violation


def test_budgets_one_each_in_their_own_unit_and_relative_ones():
    budgets = ["at most 2 words", "exactly 3 words", at_most(1, "words")]
    (found,) = score(["a b", "a b c d", "a"], budgets=budgets, metrics=["mae"], unit="bytes")
    assert found.per_item == [0, 1, 0]
    assert UNITS["words"].signature in found.signature
    assert score(["abcd"], srcs=["abcdefgh"], budgets="1.0x", metrics=["mae"])[0].per_item == [4]


def test_lengths_the_writer_counted_are_the_truth(byte_bpe):
    (found,) = score(["abc", "d"], budgets="exactly 4 tokens", lengths=[4, 6], metrics=["mae"])
    assert (found.per_item, "lengths:given" in found.signature) == ([0, 2], True)
    (found,) = score(["abc"], budgets="exactly 9 tokens", tokenizer=byte_bpe, metrics=["mae"])
    assert found.per_item == [9 - measure("abc", "tokens", tokenizer=byte_bpe)]
    assert "tok:" in found.signature
    with pytest.raises(ValueError, match="tokenizer"):
        score(["abc"], budgets="exactly 9 tokens")


COMPLIANCE = [  # source, output, with spaces, isometric
    ("a" * 100, "b" * 110, True, True),
    ("a" * 100, "b" * 111, False, False),
    ("a" * 100, "b" * 90, True, True),
    ("a" * 100, "b" * 89, False, False),
    ("a" * 10, "b" * 11, True, True),
    ("a" * 9, "b" * 30, False, True),  # a short source passes
    ("a" * 30, "b" * 9, False, True),  # and a short output
    ("a " * 50, "b" * 55, False, True),  # 99 chars, 50 without spaces
    ("a b c d e f", "b" * 11, True, True),
]


def test_compliance():
    srcs, hyps, spaced, isometric = zip(*COMPLIANCE, strict=True)
    (a, b) = score(hyps, srcs=srcs, metrics=["compliance", "compliance-isometric"])
    assert a.per_item == list(spaced)
    assert b.per_item == list(isometric)
    assert a.name == "compliance:10"
    assert a.signature != b.signature
    assert value("compliance:20", ["x" * 12], srcs=["x" * 10]) == 1


def test_wording():
    hyps = ["a b a b a b", "One two.", "And then he"]
    assert value("completeness", hyps) == pytest.approx(1 / 3)
    assert value("repetition:2", hyps) == 3 / 8  # 3 of 5, 0 of 1, 0 of 2
    assert value("repetition", ["a b c d a b c d", "short"]) == 1 / 5
    assert value("distinct-1", ["a b A", "b c"]) == 3 / 5
    assert value("distinct-2", ["a b", "a b", "b c"]) == 2 / 3
    assert value("distinct-2", ["a", "b"]) == 0
    assert score(hyps, metrics=["distinct-1"])[0].interval is None


def test_coverage_sees_what_a_full_stop_hides():
    source = "The old man went home before the heavy rain began."  # 10 words, the last quarter: 2
    (all_of_it, last) = score(["-"], srcs=[source], backs=["The old man went home."], metrics=["coverage", "tail"])
    assert all_of_it.value == 0.6  # "the" came back
    assert last.value == 0
    assert value("tail", ["-"], srcs=[source], backs=["heavy rain"]) == pytest.approx(1 / 2)
    assert value("coverage", ["-"], srcs=["..."], backs=[""]) == 1  # nothing to cover


def test_contrastive_accuracy():
    found = contrastive_accuracy([-1.0, -2.0, -3.0, -4.0], [[-2.0, -3.0], [-1.0], [-3.0], [-5.0]])
    assert found.value == 0.5
    assert found.per_item == [1, 0, 0, 1]
    assert "ties:wrong" in found.signature
    for arguments, message in (
        (([-1.0], [[], []]), "1 references and 2"),
        (([-1.0], [[]]), "row 0"),
        (([], []), "empty"),
    ):
        with pytest.raises(ValueError, match=message):
            contrastive_accuracy(*arguments)


def test_bins():
    assert bins([40, 100, 101, 350]) == {"1-100": [0, 1], "101-200": [2], "301-400": [3]}
    assert bins([5, 10, 11, 60], edges=[10, 50]) == {"1-10": [0, 1], "11-50": [2], "51-": [3]}
    for wrong in ({"width": 0}, {"edges": [5, 5]}, {"edges": [0, 5]}):
        with pytest.raises(ValueError, match=r"at least 1|rise"):
            bins([1], **wrong)


def test_scores_by_bins_of_the_target():
    texts = Texts(["x" * n for n in (9, 12, 30, 27)], budgets=[f"exactly {n} chars" for n in (10, 10, 30, 30)])
    table = score_bins(texts, width=20, metrics=["mae", "exact"])
    assert {name: [s.value for s in scores] for name, scores in table.items()} == {
        "1-20 chars": [1.5, 0.0],
        "21-40 chars": [1.5, 0.5],
    }
    assert "| 21-40 chars | 2 | 1.500 [0.000, 3.000] |" in as_table(table)
    with pytest.raises(ValueError, match="need budgets"):
        score_bins(Texts(["x"]))


# --- intervals and comparisons


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
    metrics = {"CHRF": _sacrebleu("CHRF", references=[REFS])}
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
    with pytest.raises(ValueError, match="bootstrap, randomisation"):
        compare(CLOSE, FAR, metric="completeness", test="t")


# --- baselines


@given(
    st.text(alphabet=st.characters(codec="utf-8"), max_size=60) | st.text("ab é\u0301漢字、\u200d👨👩.", max_size=60),
    st.sampled_from([name for name in UNITS if name != "tokens"]),
    st.integers(1, 40),
)
def test_truncation_always_fits_and_is_a_beginning(text, unit, limit):
    import regex

    cut = truncate(text, at_most(limit, unit))
    assert measure(cut, unit) <= limit
    assert text.startswith(cut)
    boundaries = {0, *(found.end() for found in regex.finditer(r"\X", text))}
    assert len(cut) in boundaries or text[len(cut) :].isspace() or text[len(cut)].isspace()


def test_truncation_fits_in_tokens(byte_bpe):
    cut = truncate(REFS[0], "at most 9 tokens", tokenizer=byte_bpe)
    assert 0 < measure(cut, "tokens", tokenizer=byte_bpe) <= 9
    assert REFS[0].startswith(cut + " ")


TRUNCATED = [  # text, budget, what remains
    ("The cat sat on the mat.", "at most 100 chars", "The cat sat on the mat."),
    ("The cat sat on the mat.", "at most 22 chars", "The cat sat on the"),
    ("The cat sat on the mat.", "at most 7 chars", "The cat"),
    ("The cat sat on the mat.", "at most 6 chars", "The"),
    ("The cat sat on the mat.", "at most 2 words", "The cat"),
    ("The cat sat on the mat.", "10-12 chars", "The cat sat"),
    ("The cat sat on the mat.", "at least 3 chars", "The cat sat on the mat."),
    ("well-known", "at most 6 chars", "well-k"),
    ("cafe\u0301s", "at most 4 chars", "cafe\u0301"),
    ("cafe\u0301s", "at most 4 bytes", "caf"),
    ("👨\u200d👩\u200d👧 a", "at most 3 chars", ""),
    ("吾輩は猫である。名前は", "at most 7 chars", "吾輩は猫であ"),  # not parted from its full stop
    ("吾輩は猫である。名前は", "at most 8 chars", "吾輩は猫である。"),
    ("吾輩は猫である。名前は", "at most 6 bytes", "吾輩"),
]


@pytest.mark.parametrize(("text", "budget", "expected"), TRUNCATED)
def test_truncation(text, budget, expected):
    assert truncate(text, budget) == expected


def test_truncation_to_a_ratio():
    assert truncate("one two three four", "at most 0.5x", source="x" * 18) == "one two"
    with pytest.raises(ValueError, match="relative to the source"):
        truncate("one two", "at most 0.5x")


def test_rescoring():
    log_probs, lengths = [-4.0, -5.0], [4, 9]
    assert rescore(log_probs, lengths, 0.0) == [0, 1]
    assert rescore(log_probs, lengths, 1.0) == [1, 0]  # −4 · 6/9 = −2.67, −5 · 6/14 = −2.14
    assert rescore(log_probs, lengths, 0.5, "fairseq") == [1, 0]  # −2, −1.67
    for arguments, message in (
        (([-1.0], [1, 2], 0.5), "1 log_probs and 2 lengths"),
        (([-1.0], [0], 0.5), "got 0 for hypothesis 0"),
        (([-1.0], [1], 0.5, "x"), "gnmt, fairseq"),
    ):
        with pytest.raises(ValueError, match=message):
            rescore(*arguments)


def test_reranking_counts_stems_shared_with_the_source():
    pytest.importorskip("nltk")
    source = "The government announces new taxes on cars."
    assert rerank(source, ["A dog barks", "Government announced tax", "government"]) == 1
    assert rerank(source, ["cars", "car car"]) == 1  # repeats count
    assert rerank(source, ["new cars", "new taxes"]) == 0  # a tie: the earlier, or the better scored
    assert rerank(source, ["new cars", "new taxes"], scores=[-2.0, -1.0]) == 1
    assert rerank(source, ["5 , .", "new"]) == 1
    with pytest.raises(ValueError, match="2 hypotheses and 1 scores"):
        rerank(source, ["a", "b"], scores=[1.0])
    with pytest.raises(ValueError, match="no hypothesis"):
        rerank(source, [])


# --- what must always hold

SENTENCES = st.lists(st.text("abc de.é漢", min_size=1).filter(str.strip), min_size=1, max_size=6)


@settings(max_examples=40, deadline=None)
@given(SENTENCES)
def test_a_text_complies_with_itself(texts):
    budgets = [exactly(measure(text, "chars"), "chars") for text in texts]
    found = {s.name: s.value for s in score(texts, srcs=texts, backs=texts, budgets=budgets, bootstrap=0)}
    ones = (
        "compliance:10",
        "compliance-isometric:10",
        "exact",
        "within:5",
        "lr-src",
        "lr-src-median",
        "coverage",
        "tail",
    )
    zeros = ("variance", "mae", "relative-error", "overrun", "violation", "lr-src-std")
    assert [found[name] for name in ones] == pytest.approx([1] * len(ones))
    assert [found[name] for name in zeros] == [0] * len(zeros)


def test_all_that_the_inputs_allow():
    names = lambda *args, **kwargs: {s.name.partition(":")[0] for s in score(*args, bootstrap=0, **kwargs)}  # noqa: E731
    alone = {"completeness", "repetition", "distinct-1", "distinct-2"}
    assert names(["a."]) == alone
    assert names(["a."], budgets="at most 9 chars") - alone == {
        name for name, metric in METRICS.items() if metric.needs == ("budgets",)
    }
    everything = names(CLOSE, REFS, CLOSE, "at most 40 chars", docs=DOCS, backs=CLOSE)
    assert everything == {name for name, metric in METRICS.items() if metric.usual}


def test_every_metric_signs_and_counts():
    rest = {"refs": REFS, "srcs": CLOSE, "budgets": "at most 40 chars", "docs": DOCS, "backs": FAR}
    for name in METRICS:
        if name not in ("bertscore", "nll", "reverse"):  # which need a model
            (found,) = score(CLOSE, **rest, metrics=[name], bootstrap=50)
            assert found.signature in str(found)
            assert found.n in (48, 8)
            assert found.per_item is None or len(found.per_item) == found.n
            assert found.interval is None or found.interval[0] <= found.interval[1]


WRONG = [
    ({"hyps": ["a", "b"], "refs": ["a"]}, "got 2 hyps and 1 refs"),
    ({"hyps": ["a"], "srcs": ["a", "b", "c"]}, "got 1 hyps and 3 srcs"),
    ({"hyps": ["a"], "budgets": ["1.0x", "2.0x"]}, "got 1 hyps and 2 budgets"),
    ({"hyps": ["a"], "budgets": "1.0x"}, "no srcs are given"),
    ({"hyps": []}, "hyps is empty"),
    ({"hyps": ["a"], "refs": [[]]}, "row 0 has none"),
    ({"hyps": ["a"], "metrics": ["bleu"]}, "'bleu' needs refs; refs not given"),
    ({"hyps": ["a"], "srcs": ["a"], "metrics": ["coverage"]}, "needs srcs and backs; backs not given"),
    ({"hyps": ["a"], "metrics": ["blue"]}, "unknown metric 'blue'; the metrics are bleu"),
    ({"hyps": ["a"], "refs": ["a"], "metrics": ["chrf:2"]}, "'chrf' takes no argument"),
    ({"hyps": ["a"], "budgets": "at most 9 chars", "metrics": ["within:few"]}, "'within:5'; got 'few'"),
    ({"hyps": ["a"], "srcs": ["a"], "metrics": ["compliance:0"]}, "1 to 100; got '0'"),
    ({"hyps": ["a"], "metrics": ["repetition:0"]}, "at least 1"),
    ({"hyps": ["a"], "refs": ["a"], "metrics": ["rouge-1:german"]}, "there are english, words, chars"),
    ({"hyps": ["a"], "refs": ["a"], "metrics": ["rouge-1-recall:all"]}, "number of bytes"),
    ({"hyps": ["a", "b"], "budgets": ["at most 9 chars", "at most 9 words"]}, "must share a unit; got chars, words"),
    ({"hyps": ["a"], "srcs": [" "]}, "row 0 of srcs has 0 chars"),
    ({"hyps": ["a"], "unit": "miles"}, "unknown unit"),
    ({"hyps": ["a"] * 3, "refs": ["a"] * 3, "docs": [1, 2, 1]}, "those of 1 do not"),
    ({"hyps": ["a"] * 2, "refs": [["a"], ["a", "b"]], "docs": [1, 1]}, "equally many references"),
]


@pytest.mark.parametrize(("inputs", "message"), WRONG)
def test_errors_say_what_is_wrong(inputs, message):
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        score(**inputs)


@pytest.mark.parametrize("inputs", [{"hyps": "a text"}, {"hyps": ["a", None]}, {"hyps": ["a"], "refs": "a"}])
def test_a_text_is_no_list_of_texts(inputs):
    with pytest.raises(TypeError, match="must be"):
        score(**inputs)


# --- printing


def test_printing():
    scores = [Score("mae", 2.5, "mae|x", (2.25, 1234.5), [1.0, 4.0], 2), Score("exact", 0.0, "exact|x", None, None, 2)]
    assert str(scores[0]) == "mae 2.500 [2.250, 1234] n=2 mae|x"
    assert str(scores[1]) == "exact 0.000 n=2 exact|x"
    assert as_table(scores).splitlines() == [
        "| metric | value | 95 % interval | n | signature |",
        "| --- | ---: | --- | ---: | --- |",
        r"| mae | 2.500 | [2.250, 1234] | 2 | `mae\|x` |",
        r"| exact | 0.000 |  | 2 | `exact\|x` |",
    ]
    plain = json.loads(as_json(scores))
    assert plain[0] == {"name": "mae", "value": 2.5, "signature": "mae|x", "interval": [2.25, 1234.5], "n": 2}
    assert json.loads(as_json({"ours": scores}, per_item=True))["ours"][0]["per_item"] == [1.0, 4.0]
    line = str(compare(FAR, CLOSE, REFS, metric="chrf"))
    assert line.startswith("chrf ")
    assert "→" in line
    assert "p=0.001" in line or "p<0.001" in line


def test_tables_of_systems_refuse_to_mix_rules():
    a, b = (score(CLOSE, REFS, metrics=["chrf", name], bootstrap=0) for name in ("bleu", "ter"))
    table = as_table({"one": a, "two": b})
    assert table.startswith("|  | n | chrf | bleu | ter |\n")
    assert f"- bleu: `{a[1].signature}`" in table
    with pytest.raises(ValueError, match="unlike signatures"):
        as_table(
            {"one": a, "two": score(CLOSE, REFS, metrics=["bleu:char"], bootstrap=0) + a[:0], "three": _renamed(a)}
        )


def _renamed(scores):
    return [Score(s.name, s.value, s.signature + "|other", s.interval, s.per_item, s.n) for s in scores]


def test_one_text_has_no_interval():
    assert score(["a."], metrics=["completeness"])[0].interval is None
    assert as_score("m", Tally("m", np.ones((3, 1)), median), samples=0).interval is None


# --- what is not loaded


def test_importing_metrics_and_plots_loads_nothing_heavy():
    heavy = "torch transformers sacrebleu rouge_score nltk matplotlib bert_score"
    code = f"import sys, lengthwise.metrics, lengthwise.evaluation.plots; print([m for m in '{heavy}'.split() if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_a_missing_library_names_the_extra(monkeypatch):
    for module in [name for name in sys.modules if name.partition(".")[0] == "sacrebleu"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [])
    with pytest.raises(ImportError, match=r"needs sacrebleu.*pip install 'lengthwise\[eval\]'"):
        score(["a"], ["a"], metrics=["bleu"])
