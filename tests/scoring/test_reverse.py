"""Coverage, tail and the reverse score: words counted by hand; the model's part against plain calls, text by text."""

import json
import math

import numpy as np
import pytest
import torch

from families import ENCODER_DECODERS, tiny
from lengthwise import Writer, save
from lengthwise.cli import main
from lengthwise.metrics import Texts, compare, score, score_bins
from lengthwise.scoring.reverse import ReverseModel, loaded

SRCS = ["Where is the old house?", "The sea", "A light shines over the bay at night.", "No."]
HYPS = ["Dov'è la vecchia casa?", "Il mare", "", "Una luce brilla sulla baia di notte."]


@pytest.fixture(scope="module")
def model(sp_unigram):
    return tiny("marian", sp_unigram)


@pytest.fixture(scope="module")
def folder(model, sp_unigram, tmp_path_factory):
    return str(save(model, sp_unigram, tmp_path_factory.mktemp("models") / "backwards"))


@pytest.fixture(scope="module")
def decoder(byte_bpe, tmp_path_factory):
    return str(save(tiny("llama", byte_bpe), byte_bpe, tmp_path_factory.mktemp("models") / "decoder"))


@pytest.fixture
def cli(capfd):
    def run(*args):
        return main([str(arg) for arg in args]), *capfd.readouterr()

    return run


def back_by_hand(model, tokenizer, text):
    """What `generate` makes of one text alone."""
    ids = tokenizer(text, return_tensors="pt")
    limit = min(2 * ids["input_ids"].shape[1] + 32, 127)
    with torch.inference_mode():
        found = model.generate(**ids, num_beams=1, do_sample=False, max_new_tokens=limit)
    return tokenizer.decode(found[0], skip_special_tokens=True).strip()


def log_prob_by_hand(model, tokenizer, source, output):
    """Each token of the source and its end, looked up one by one."""
    ids = tokenizer(output)["input_ids"] or [tokenizer.eos_token_id]
    wanted = [*tokenizer(source)["input_ids"], tokenizer.eos_token_id]
    read = torch.tensor([[model.config.decoder_start_token_id, *wanted[:-1]]])
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([ids]), decoder_input_ids=read).logits[0]
    return sum(logits[n].log_softmax(-1)[token].item() for n, token in enumerate(wanted)), len(wanted)


# ---- words


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


# ---- the model's part


@pytest.mark.parametrize("family", ENCODER_DECODERS)
def test_each_text_as_if_it_were_alone(family, sp_unigram):
    model = tiny(family, sp_unigram)
    reverse = ReverseModel(Writer(model, sp_unigram))
    assert reverse.translate(HYPS) == [back_by_hand(model, sp_unigram, hyp) if hyp else "" for hyp in HYPS]
    found = reverse.likelihood(SRCS, HYPS)  # of unlike length, so there is padding
    for row, pair in enumerate(zip(SRCS, HYPS, strict=True)):
        assert found[row] == pytest.approx(log_prob_by_hand(model, sp_unigram, *pair), rel=1e-4)


@pytest.mark.parametrize("family", ENCODER_DECODERS)
def test_recovery_is_the_mean_of_all_tokens_but_the_end(family, sp_unigram):
    model = tiny(family, sp_unigram)
    reverse = ReverseModel(Writer(model, sp_unigram))
    srcs = [*SRCS, SRCS[0]]
    found = reverse.mean_log_prob(srcs, HYPS + HYPS[1:2])
    assert found.shape == (5,)
    for row, (source, output) in enumerate(zip(srcs, HYPS + HYPS[1:2], strict=True)):
        total, _ = log_prob_by_hand(model, sp_unigram, source, output)
        tokens = log_probs_by_hand(model, sp_unigram, source, output)
        assert sum(tokens) == pytest.approx(total, rel=1e-4)
        assert found[row] == pytest.approx(np.mean(tokens[:-1]), rel=1e-3)
    assert reverse.mean_log_prob([], []).shape == (0,)


def log_probs_by_hand(model, tokenizer, source, output):
    ids = tokenizer(output)["input_ids"] or [tokenizer.eos_token_id]
    wanted = [*tokenizer(source)["input_ids"], tokenizer.eos_token_id]
    read = torch.tensor([[model.config.decoder_start_token_id, *wanted[:-1]]])
    with torch.inference_mode():
        shares = model(input_ids=torch.tensor([ids]), decoder_input_ids=read).logits[0].log_softmax(-1)
    return [shares[n, token].item() for n, token in enumerate(wanted)]


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


def test_a_model_that_knows_nothing_gives_each_token_its_equal_share(sp_unigram):
    model = tiny("marian", sp_unigram)
    torch.nn.init.zeros_(model.get_output_embeddings().weight)
    log_prob, tokens = ReverseModel(Writer(model, sp_unigram)).likelihood(["The sea"], ["Il mare"])[0]
    assert log_prob / tokens == pytest.approx(-math.log(len(sp_unigram)), rel=1e-5)
    model.generation_config.bad_words_ids = [[0], [5, 6]]  # one token that is never written; a pair is no token
    log_prob, tokens = ReverseModel(Writer(model, sp_unigram)).likelihood(["The sea"], ["Il mare"])[0]
    assert log_prob / tokens == pytest.approx(-math.log(len(sp_unigram) - 1), rel=1e-5)


def test_each_output_is_translated_once(folder, monkeypatch):
    loaded.cache_clear()
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


def test_progress_counts_outputs(model, sp_unigram):
    told = []
    ReverseModel(Writer(model, sp_unigram)).translate([*HYPS, HYPS[0]], lambda done, total: told.append((done, total)))
    assert told[-1] == (3, 3)  # an empty one and one that is there twice take no time


def test_what_the_window_does_not_hold_is_not_read(model, sp_unigram):
    reverse, long = ReverseModel(Writer(model, sp_unigram)), "Il mare è bello. " * 60
    assert len(sp_unigram(long)["input_ids"]) > model.config.max_position_embeddings
    assert len(reverse.translate([long])) == 1
    assert reverse.likelihood([long], [long])[0, 1] == model.config.max_position_embeddings


# ---- what can go wrong


def test_what_they_need(folder, decoder):
    assert not {"coverage", "tail", "reverse"} & {found.name for found in score(HYPS, srcs=SRCS, bootstrap=0)}
    for metrics, says in [
        (["coverage"], "backs not given. A reverse model makes them: 'coverage:path"),
        (["tail"], "'tail:path/to/model'"),
        (["reverse"], "'reverse:path/to/model'"),
        ([f"coverage:{decoder}"], "takes an encoder-decoder .* is a llama, which has only a decoder"),
        ([f"reverse:{decoder}"], "which has only a decoder"),
        (["tail:no-such-model"], "no-such-model"),
    ]:
        with pytest.raises(ValueError, match=says):
            score(HYPS, srcs=SRCS, metrics=metrics)
    for name in ("coverage", "tail", "reverse"):
        with pytest.raises(ValueError, match="needs srcs; srcs not given"):
            score(HYPS, metrics=[f"{name}:{folder}"])


# ---- the commands


def values(shown):
    return {one["name"]: one["value"] for one in json.loads(shown)["scores"]}


def test_score_with_a_reverse_model(cli, folder, decoder, tmp_path):
    for name, lines in {"hyp": HYPS, "src": SRCS}.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    ask = ["score", "--hyp", tmp_path / "hyp", "--src", tmp_path / "src", "--json"]
    names = {f"{name}:{folder}" for name in ("coverage", "tail", "reverse")}
    code, shown, err = cli(*ask, "--metrics", "lr-src", "--reverse", folder, "--against", tmp_path / "src")
    assert (code, err) == (0, "")
    assert values(shown).keys() == {"lr-src", *names}
    assert {one["name"] for one in json.loads(shown)["against"]["comparisons"]} == {"lr-src", *names}
    assert names < values(cli(*ask, "--reverse", folder)[1]).keys()  # beside the usual ones
    assert values(cli(*ask, "--metrics", f"tail:{folder}", "--reverse", folder)[1]).keys() == names  # none twice
    code, _, err = cli("score", "--hyp", tmp_path / "hyp", "--reverse", folder)
    assert (code, "--src" in err) == (2, True)
    code, _, err = cli(*ask, "--reverse", decoder)
    assert (code, "only a decoder" in err, err.count("\n")) == (2, True, 1)


def test_evaluate_keeps_the_back_translations(cli, model, sp_unigram, folder, decoder, tmp_path, monkeypatch):
    data, out = tmp_path / "test.jsonl", tmp_path / "out"
    pairs = zip(SRCS, ["Dove?", "Il mare", "Una luce", "No."], strict=True)
    data.write_text("".join(json.dumps({"source": s, "target": t}) + "\n" for s, t in pairs))
    ask = ["evaluate", folder, data, "--length", "at most 30 chars", "--out", out, "--json", "--metrics", "mae"]
    code, _, err = cli(*ask, "--reverse", decoder)
    assert (code, "only a decoder" in err) == (2, True)
    assert not out.exists()  # told before anything is decoded
    code, shown, _ = cli(*ask, "--reverse", folder)
    assert code == 0
    rows = [json.loads(line) for line in (out / "outputs.jsonl").read_text().splitlines()]
    for row in rows:
        [(name, back)] = row["back"].items()
        assert name.startswith("backwards ")
        assert back == (back_by_hand(model, sp_unigram, row["text"]) if row["text"] else "")
    # A later run finds them there.
    loaded.cache_clear()
    asked, generate = [], ReverseModel._generate
    monkeypatch.setattr(
        ReverseModel, "_generate", lambda self, heads: asked.append(len(heads)) or generate(self, heads)
    )
    again = cli(*ask, "--reverse", folder, "--against", out)[1]
    assert sum(asked) <= 1  # one reference, before anything is decoded
    assert values(again) == values(shown)
