"""Truncation, length penalties and re-ranking on texts and numbers; the decoding modes beside the same by hand."""

import pytest
import regex
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from families import tiny
from lengthwise import EncodingControl, attach
from lengthwise.evaluation.baselines import LENGTH_PENALTIES, DecodingMode, fairseq, gnmt, rerank, rescore, truncate
from lengthwise.generation.generator import Writer
from lengthwise.length.budget import at_most, exactly
from lengthwise.length.units import UNITS, measure
from metric_texts import GOLDEN, REFS


def test_length_penalties():
    case = GOLDEN["length_penalty_0.5"]
    log_prob, n = case["log_prob"], case["n"]
    assert gnmt(log_prob, n, 0.5) == pytest.approx(case["GNMT score logp/((5+n)/6)^a"])
    assert fairseq(log_prob, n, 0.5) == pytest.approx(case["fairseq score logp/n^a"])
    assert gnmt(log_prob, n, 0) == fairseq(log_prob, n, 0) == case["no normalisation a=0"]
    assert fairseq(log_prob, n, 1) == case["fairseq default a=1"]


@settings(deadline=None)
@given(
    st.text(alphabet=st.characters(codec="utf-8"), max_size=60) | st.text("ab é\u0301漢字、\u200d👨👩.", max_size=60),
    st.sampled_from([name for name in UNITS if name != "tokens"]),
    st.integers(1, 40),
)
def test_truncation_always_fits_and_is_a_beginning(text, unit, limit):
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
        (([-1.0], [1, 2], 0.5), "log_probs and lengths must be equally many; got 1 and 2"),
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
    with pytest.raises(ValueError, match="hypotheses and scores must be equally many; got 2 and 1"):
        rerank(source, ["a", "b"], scores=[1.0])
    with pytest.raises(ValueError, match="at least one hypothesis"):
        rerank(source, [])


# ---- decoding modes, beside the same by hand

PAIRS = [
    ("Where is the old house?", "Dov'è la vecchia casa?"),
    ("The sea.", "Il mare."),
    ("A light shines over the bay at night.", "Una luce brilla sulla baia di notte."),
    ("Good morning!", "Buongiorno!"),
    ("He came back in the spring of that year.", "Tornò nella primavera di quell'anno."),
    ("No.", "No."),
]


@pytest.fixture(scope="module")
def model(byte_bpe):
    return attach(tiny("llama", byte_bpe), EncodingControl(scale=0.5), byte_bpe)


@pytest.fixture(scope="module")
def writer(model, byte_bpe):
    return Writer(model, byte_bpe, name="tiny")


def by_hand(model, tokenizer, source, limit, **options):
    """What `generate` itself makes of one source: the tokens written, with their end."""
    ids = tokenizer(source, return_tensors="pt")
    with torch.inference_mode():
        found = model.generate(**ids, max_new_tokens=limit, do_sample=False, **options)
    return found[:, 1 if model.config.is_encoder_decoder else ids["input_ids"].shape[1] :]


def spelt(tokenizer, ids):
    return tokenizer.decode(ids, skip_special_tokens=True).strip()


def test_soft_control_is_generate_with_the_length(writer, model, byte_bpe):
    budgets = [exactly(len(target), "chars") for _, target in PAIRS]
    found = DecodingMode(soft=True).write_with(writer)([source for source, _ in PAIRS], budgets)
    for (source, target), text in zip(PAIRS, found, strict=True):
        limit = writer.requests.make(0, source, f"exactly {len(target)} chars").limit
        [ids] = by_hand(model, byte_bpe, source, limit, decoder_length=torch.tensor([len(target)]))
        assert text.text == spelt(byte_bpe, ids)
        assert text.runaway == (byte_bpe.eos_token_id not in ids.tolist())
    assert {text.runaway for text in found} == {True}  # random models never stop


def test_truncation_cuts_what_the_model_writes_without_a_length(writer, model, byte_bpe):
    found = DecodingMode(truncate=True).write_with(writer)([s for s, _ in PAIRS], "at most 12 chars")
    for (source, _), text in zip(PAIRS, found, strict=True):
        free = spelt(byte_bpe, by_hand(model, byte_bpe, source, 40)[0])
        assert text.text == truncate(free, "at most 12 chars")
        assert (text.fits, text.complete) == (True, text.text == free and text.complete)


def log_prob(model, tokenizer, source, ids):
    """Of the tokens `ids` behind the source, from one plain pass."""
    prompt = tokenizer(source, return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        if model.config.is_encoder_decoder:
            start = torch.tensor([[model.config.decoder_start_token_id]])
            logits = model(input_ids=prompt, decoder_input_ids=torch.cat([start, ids[None, :-1]], 1)).logits[0]
        else:
            logits = model(input_ids=torch.cat([prompt, ids[None, :-1]], 1)).logits[0, prompt.shape[1] - 1 :]
    return logits.log_softmax(-1).gather(1, ids[:, None]).sum().item()


@pytest.mark.parametrize("form", LENGTH_PENALTIES)
@pytest.mark.parametrize("family", ["llama", "marian"])
def test_a_length_penalty_takes_the_best_of_the_n_best(family, form, byte_bpe, sp_unigram):
    tokenizer = byte_bpe if family == "llama" else sp_unigram
    plain = tiny(family, tokenizer)
    with torch.no_grad():  # so that texts end, at several lengths
        plain.get_output_embeddings().weight[2] *= 3
    writer = Writer(plain, tokenizer)
    write = DecodingMode(beams=4, length_penalty=f"{form}:0.5").write_with(writer)
    for source, _ in PAIRS[:3]:
        options = {"num_beams": 4, "num_return_sequences": 4, "length_penalty": 0.5}
        scored = []
        for ids in by_hand(
            plain, tokenizer, source, writer.requests.make(0, source, "at most 12 chars").limit, **options
        ):
            end = ids.tolist().index(2) + 1 if 2 in ids.tolist() else len(ids)
            total = log_prob(plain, tokenizer, source, ids[:end])
            scored.append((LENGTH_PENALTIES[form](total, end, 0.5), spelt(tokenizer, ids[:end])))
        [text] = write([source], "at most 12 chars")
        assert text.text == max(scored)[1]


def test_reranking_takes_the_one_nearest_to_the_source(writer, model, byte_bpe):
    source = "The old house and the sea in the spring."
    limit = writer.requests.make(0, source, "at most 40 chars").limit
    search = {"num_beams": 6, "num_return_sequences": 6}
    texts = [spelt(byte_bpe, ids) for ids in by_hand(model, byte_bpe, source, limit, **search)]
    [found] = DecodingMode(rerank=6).write_with(writer)([source], "at most 40 chars")
    assert found.text == texts[rerank(source, texts)]


def test_a_baseline_does_not_depend_on_its_batch(writer):
    sources = [source for source, _ in PAIRS]
    budgets = [exactly(len(target), "chars") for _, target in PAIRS]
    write = DecodingMode(soft=True).write_with(writer)
    alone = [write([source], [budget])[0] for source, budget in zip(sources, budgets, strict=True)]
    assert write(sources, budgets) == alone
