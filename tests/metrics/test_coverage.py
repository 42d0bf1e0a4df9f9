"""Coverage, tail and the reverse score: words counted by hand; the model's part against plain calls."""

import pytest

from by_hand import HYPS, SRCS, back_by_hand, log_prob_by_hand
from families import tiny
from lengthwise import save
from lengthwise.metrics import Texts, compare, score, score_bins
from lengthwise.metrics.models import reverse_model
from lengthwise.scoring.reverse import ReverseModel
from metric_texts import value


@pytest.fixture(scope="module")
def model(sp_unigram):
    return tiny("marian", sp_unigram)


@pytest.fixture(scope="module")
def folder(model, sp_unigram, tmp_path_factory):
    return str(save(model, sp_unigram, tmp_path_factory.mktemp("models") / "backwards"))


@pytest.fixture(scope="module")
def decoder(byte_bpe, tmp_path_factory):
    return str(save(tiny("llama", byte_bpe), byte_bpe, tmp_path_factory.mktemp("models") / "decoder"))


@pytest.mark.parametrize(
    ("source", "back", "coverage", "tail"),
    [
        ("The old man went home before the rain.", "Before the rain, the old man went home!", 1, 1),
        ("The old man went home before the rain.", "The old man went home.", 6 / 8, 1 / 2),  # tail: the rain
        ("The dog and the cat and the bird", "the dog", 4 / 8, 1 / 2),  # "the" is found each time; tail: the bird
        ("Stop", "stop!", 1, 1),
        ("Stop", "halt", 0, 0),
        ("one two three", "three", 1 / 3, 1),  # the last quarter is one word at least
        ("a b c d e f g", "g", 1 / 7, 1),  # and no more than a quarter: 1 of 7
        ("low-income U.S. patients, 2010", "the low income of 2010", 3 / 6, 1),  # low income u s patients 2010
        ("Ça coûte 5 €", "ÇA COÛTE", 2 / 3, 0),
        ("five words are in here", "", 0, 0),
        ("...", "anything", 1, 1),  # nothing to lose
    ],
)
def test_words_that_return(source, back, coverage, tail):
    found = score(["-"], srcs=[source], backs=[back], metrics=["coverage", "tail"])
    assert [one.value for one in found] == pytest.approx([coverage, tail])


def test_the_mean_is_over_texts_not_over_words():
    [found] = score(["-", "-"], srcs=["yes", "a b c d"], backs=["yes", "a"], metrics=["coverage"])
    assert found.value == pytest.approx((1 + 1 / 4) / 2)
    assert "back:given" in found.signature


def test_coverage_sees_what_a_full_stop_hides():
    source = "The old man went home before the heavy rain began."  # 10 words, the last quarter: 2
    (all_of_it, last) = score(["-"], srcs=[source], backs=["The old man went home."], metrics=["coverage", "tail"])
    assert all_of_it.value == 0.6  # "the" came back
    assert last.value == 0
    assert value("tail", ["-"], srcs=[source], backs=["heavy rain"]) == pytest.approx(1 / 2)
    assert value("coverage", ["-"], srcs=["..."], backs=[""]) == 1  # nothing to cover


def test_metrics_of_a_model(model, sp_unigram, folder):
    names = [f"{name}:{folder}" for name in ("coverage", "tail", "reverse")]
    coverage, tail, reverse = score(HYPS, srcs=SRCS, metrics=names)
    backs = [back_by_hand(model, sp_unigram, hyp) if hyp else "" for hyp in HYPS]
    given = score(HYPS, srcs=SRCS, backs=backs, metrics=["coverage", "tail"])
    assert [coverage.per_item, tail.per_item] == [one.per_item for one in given]
    assert (coverage.per_item[2], tail.per_item[2]) == (0, 0)  # the empty output
    sums, tokens = zip(
        *(log_prob_by_hand(model, sp_unigram, *pair) for pair in zip(SRCS, HYPS, strict=True)), strict=True
    )
    assert reverse.value == pytest.approx(sum(sums) / sum(tokens), rel=1e-4)
    assert reverse.per_item[2] == pytest.approx(sums[2] / tokens[2], rel=1e-4)
    assert coverage.signature.startswith("coverage|of:all|words:unicode-lc|repeats:found|back:backwards|search:greedy|")
    assert "model:backwards" in reverse.signature


def test_a_word_that_comes_back(model, sp_unigram, folder):
    """The source is made of what the model will say, so that coverage is not 0 whatever the code does."""
    back = back_by_hand(model, sp_unigram, HYPS[0])
    [found] = score(HYPS[:1], srcs=[back], metrics=[f"coverage:{folder}"])
    assert any(map(str.isalnum, back))
    assert found.value == 1


def test_each_output_is_translated_once(folder, monkeypatch):
    reverse_model.cache_clear()
    batches, generate = [], ReverseModel._generate
    monkeypatch.setattr(
        ReverseModel, "_generate", lambda self, heads: batches.append(len(heads)) or generate(self, heads)
    )
    texts = Texts(HYPS, srcs=SRCS, budgets="at most 40 chars")
    names = [f"coverage:{folder}", f"tail:{folder}"]
    score(texts, metrics=names)
    score_bins(texts, metrics=names)
    compare(texts, texts, metric=names[0])
    assert sum(batches) == 3


def test_what_they_need(folder, decoder):
    assert not {"coverage", "tail", "reverse"} & {found.name for found in score(HYPS, srcs=SRCS, bootstrap=0)}
    for metrics, says in [
        (["coverage"], "needs backs, or a reverse model: 'coverage:path"),
        (["tail"], "'tail:path/to/model'"),
        (["reverse"], "'reverse:path/to/model'"),
        ([f"coverage:{decoder}"], "takes an encoder-decoder .* has only a decoder"),
        ([f"reverse:{decoder}"], "has only a decoder"),
        (["tail:no-such-model"], "no-such-model"),
    ]:
        with pytest.raises(ValueError, match=says):
            score(HYPS, srcs=SRCS, metrics=metrics)
    for name in ("coverage", "tail", "reverse"):
        with pytest.raises(ValueError, match="needs srcs; srcs not given"):
            score(HYPS, metrics=[f"{name}:{folder}"])
