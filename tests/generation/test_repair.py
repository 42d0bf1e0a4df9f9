"""Ends that are written again: which texts, from where on, and the same whatever else is written beside them."""

import dataclasses
from typing import Any

import pytest
import torch
import transformers as hf

from families import tiny
from length_cases import KINDS, meters
from lengthwise import CountdownHead, EncodingControl, Writer, attach
from lengthwise.controls import Control, Signal
from lengthwise.engines.transformers_rows import Prepared
from lengthwise.generation import decoding, generator, repair, requests, token_choice
from lengthwise.generation.decoding import spelled
from lengthwise.generation.endings import Draft, Ending, unforced_ends
from lengthwise.generation.options import decoding_options
from lengthwise.generation.repair import DEEPEST, ROUNDS, without_tail
from lengthwise.generation.streaming import SentenceStreamer
from lengthwise.length.budget import Budget
from lengthwise.length.meter import Meter
from lengthwise.length.units import measure

SAID = (
    "The dog has the fox. It is a cold day in the text. A line that fits is quick. The clocks are over the lazy "
    "small screen. People read it. The fox jumps and the dog is striking. It was a bright day. A title is a caption."
)
LISTED = "- The dog\n- The fox\n- It is a cold day\n- A title\n- The text\n- A line that fits\n"
PROMPTS = ["A dog.", "Tell me about the fox, and all that he was.", "x", "It is", "Where? Où est-il ?", "The lazy dog"]
GREEDY, DRAWN = {}, {"temperature": 1.0, "seed": 3}


def talking(model: Any, tokenizer: Any, said: str = SAID, *, own: float = 0.3, rare: float = 0.0003) -> Any:
    """`model` as one that says what is in `said`: there, a token is mostly followed by one that follows it there.

    What it would say by itself, which depends on all that it has read, counts by `own`; the `rare`, the more often its
    text has come to no end when its room is at an end.
    """
    ids = tokenizer(said)["input_ids"]
    counts = torch.full((model.get_input_embeddings().num_embeddings,) * 2, rare)
    counts.index_put_((torch.tensor(ids[:-1]), torch.tensor(ids[1:])), torch.ones(len(ids) - 1), accumulate=True)
    follows, read = counts.log() - counts.sum(1, keepdim=True).log(), []

    def say(module, args, output):
        output.logits = own * output.logits + follows[read[-1]][:, -output.logits.shape[1] :]

    model.get_input_embeddings().register_forward_hook(lambda module, args, output: read.append(args[0]))
    model.register_forward_hook(say)
    return model


@pytest.fixture(scope="module")
def writer(byte_bpe):
    return Writer(talking(tiny("llama", byte_bpe), byte_bpe), byte_bpe, batch_size=96)


def texts(written):
    return [[w.text, *(other.text for other in w.candidates)] for w in written]


def listened(monkeypatch, writer):
    """The width of each prompt that goes to `generate` from now on."""
    generate, widths = writer.model.generate, []

    def listen(**options):
        widths.append(options["input_ids"].shape)
        return generate(**options)

    monkeypatch.setattr(writer.model, "generate", listen)
    return widths


# ---- beginnings


def drafted(meter, ids):
    text, reach = spelled(meter, ids)
    return Draft(text, reach, [1.0] * len(ids), 0.0, 0.0, ids)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tail", [1, 3, 12, 24])
def test_a_beginning_ends_where_a_word_begins(request, kind, tail):
    meter = meters(request, kind, "chars")
    ids = meter.tokenizer(SAID, add_special_tokens=False)["input_ids"]
    for n in range(tail + 1, len(ids) + 1):
        kept = without_tail(drafted(meter, ids[:n]), tail, meter.pieces)
        cut = len(kept.ids)
        words = [i for i in range(n - tail, n) if meter.pieces[ids[i]][:1].isspace()]
        assert cut == (words[0] if words else n - tail)
        assert (kept.ids, list(kept.reach)) == (ids[:cut], spelled(meter, ids[:cut])[1])
        assert len(kept.agreement) == cut


def test_nothing_is_kept_of_a_draft_that_is_no_longer_than_what_is_taken_back(byte_bpe):
    meter, ids = Meter(byte_bpe, "chars"), byte_bpe(SAID)["input_ids"]
    for n in range(13):
        assert without_tail(drafted(meter, ids[:n]), 12, meter.pieces).ids == []
    assert without_tail(drafted(meter, ids[:20]), 12, meter.pieces).ids


def test_what_was_shown_is_kept(byte_bpe):
    meter, ids = Meter(byte_bpe, "chars"), byte_bpe(SAID)["input_ids"]
    draft = drafted(meter, ids)
    for shown in range(1, len(draft.text)):
        assert without_tail(draft, 200, meter.pieces, shown).reach[-1] >= shown


def test_the_least_number_of_tokens_is_kept(byte_bpe):
    meter, ids = Meter(byte_bpe, "chars"), byte_bpe(SAID)["input_ids"]
    for least in range(1, len(ids)):
        kept = len(without_tail(drafted(meter, ids), 200, meter.pieces, least=least).ids)
        assert least <= kept <= least + 5


# ---- what a round does

PIECES = [b" word", b" ```"]
CODE = 1


def step(
    number, budget="exactly 500 tokens", *, length=500, complete=False, first=290, ids=(0,) * 230, code=False, **more
):
    """Return what a round does for a text whose first draft has `first` tokens, and whose best one has `ids`."""

    def draft(ids):
        text = "".join(PIECES[n].decode() for n in ids)
        return Draft(text, [len(PIECES[n]) for n in ids], [1.0] * len(ids), 0.0, 0.0, list(ids))

    begins = more.pop("begins", 0)  # the first token of the first draft
    known = {"place": 3, "source": "", "prompt": [7], "limit": 600, "seed": 50} | more
    request = requests.Request(budget=Budget.parse(budget), **known)
    ending = Ending("", length, len(ids), request.budget.fits(length), complete)
    return repair.next_step(request, number, draft([begins] + [0] * (first - 1)), ending, draft(ids), PIECES)


@pytest.mark.parametrize(
    ("number", "budget", "kept", "samples", "restarts"),
    [
        (0, "exactly 500 tokens", 230 - 12, 2, False),
        (3, "exactly 500 tokens", 290 - DEEPEST, 2, False),  # not 230 - 21: so much of the first draft stays
        (4, "exactly 500 tokens", 290 - 48, 2, True),  # of the first draft
        (10, "exactly 500 tokens", 290 - DEEPEST, 2, True),
        (0, "at most 500 tokens", 230 - 48, 1, False),
        (2, "at most 500 tokens", 230 - 64, 1, False),
    ],
)
def test_a_round_removes_its_tokens_and_samples_a_few_more(number, budget, kept, samples, restarts):
    found = step(number, budget, first=230 if "at most" in budget else 290)
    tail = (ROUNDS if "exactly" in budget else repair.LIMIT_ROUNDS)[number][0]
    assert (found.samples, found.restarts) == (samples, restarts)
    assert (found.request.place, found.request.seed) == (3, 50 + tail)
    assert len(found.request.kept.ids) == kept
    assert found.request.limit == kept + tail + repair.MORE_TOKENS


@pytest.mark.parametrize(
    ("number", "how"),
    [
        (0, {"complete": True}),
        (len(ROUNDS), {}),
        (3, {"budget": "at most 500 tokens"}),
        (0, {"repairs": False}),
        (0, {"length": 450, "limit": 230}),  # too short, with all the tokens that it may have
    ],
)
def test_no_round_follows_where_none_is_needed_or_none_can_help(number, how):
    assert step(number, **how) is None
    assert step(0) is not None


def test_a_complete_text_that_does_not_fit_has_a_further_round():
    assert step(0, length=450, complete=True) is not None


def test_short_ends_of_code_are_not_written_again():
    """A later round removes more, of the first draft."""
    code = (0,) * 50 + (CODE,) + (0,) * 150
    assert step(0, ids=code) == (None, 2, False)
    assert step(4, ids=code).request is not None
    assert len(step(5, ids=code).request.kept.ids) == 290 - 14 - 45
    assert len(step(5).request.kept.ids) == 230 - 14
    assert step(0, "at most 500 tokens", ids=code).request is not None


def test_code_under_a_limit_has_the_rounds_of_an_exact_length():
    assert step(0, "at most 500 tokens", begins=CODE, ids=(CODE,) + (0,) * 19) == (None, 2, False)
    found = step(4, "at most 500 tokens", begins=CODE, ids=(CODE,) + (0,) * 19)
    assert (found.samples, found.restarts, found.request.steered) == (2, True, True)


def test_a_text_in_code_stays_steered():
    assert step(0).request.steered
    assert not step(4).request.steered
    assert step(4, begins=CODE).request.steered
    assert not step(4, begins=CODE, steered=False).request.steered


def test_no_two_rounds_have_the_same_seed():
    tails = [*(tail for tail, _ in ROUNDS), *(tail + 45 for tail, _ in ROUNDS if tail < repair.RESTART)]
    assert len(set(tails)) == len(tails)


def test_a_closed_listener_has_no_further_round_and_an_open_one_receives_nothing():
    listener = Leaving(1)
    listener.shown = 0
    found = step(0, listener=listener)
    found.request.listener.put([1], [1.0])  # `Leaving` would count it
    assert found.request.closed
    assert step(0, listener=Leaving(0)) is None


# ---- ends of list items


@pytest.mark.parametrize("budget", [f"exactly {n} words" for n in (6, 9, 10, 13)])
def test_a_text_may_end_with_a_list_item_where_its_line_would_end(byte_bpe, budget):
    writer = Writer(talking(tiny("llama", byte_bpe), byte_bpe, LISTED), byte_bpe)
    [written] = writer.write("- A dog\n", budget)
    assert written.fits
    ends = [line.split()[-1] for line in LISTED.splitlines()]
    assert written.complete == (written.text.split()[-1] in ends)
    assert written.complete == (budget not in ("exactly 10 words", "exactly 13 words"))


@pytest.mark.parametrize("unit", ["tokens", "chars"])
def test_a_list_item_at_the_exact_token_or_character_needs_no_full_stop(byte_bpe, unit):
    """The last unit is kept for a full stop, so such an end is tried beside the text that has one."""
    writer = Writer(talking(tiny("llama", byte_bpe), byte_bpe, LISTED), byte_bpe)
    meter, count = writer.meter(unit), len(LISTED.splitlines())
    whole = ["\n".join(LISTED.splitlines()[:n]) for n in range(2, count)]
    lengths = [len(byte_bpe(text)["input_ids"]) if unit == "tokens" else meter.unit.measure(text) for text in whole]
    found = [writer.write("- A dog\n", f"exactly {length} {unit}")[0] for length in lengths]
    assert all(one.fits for one in found)
    items = {line.split()[-1] for line in LISTED.splitlines()}
    ended = [one for one in found if one.complete and one.text.split()[-1] in items]
    assert ended
    assert all(one.text.splitlines()[-1].startswith("- ") for one in ended)


# ---- which texts are written again


def test_a_complete_text_is_not_written_again_and_a_torn_one_is(writer, monkeypatch):
    widths = listened(monkeypatch, writer)
    [whole] = writer.write("A dog.", "at most 60 chars")
    assert whole.complete
    assert len(widths) == 1
    [ended] = writer.write("A dog.", "exactly 30 tokens")
    assert (ended.complete, ended.length) == (True, 30)
    _, width = widths[2]
    assert width >= widths[1][1] + 30 - ROUNDS[0][0]  # it goes on from where 12 tokens are taken back
    monkeypatch.setattr(generator, "repair", lambda *parts, **more: None)
    [torn] = writer.write("A dog.", "exactly 30 tokens")
    assert not torn.complete
    assert torn.text != ended.text


@pytest.mark.parametrize("how", [{"finish": False}, {"num_beams": 2}])
def test_who_does_not_look_for_an_end_gets_none_written_again(writer, monkeypatch, how):
    widths = listened(monkeypatch, writer)
    assert not writer.write("A dog.", "exactly 30 tokens", **how)[0].complete
    assert len(widths) == 1


@pytest.mark.parametrize(
    ("family", "budget"), [("llama", "exactly 50 chars"), ("llama", "exactly 9 words"), ("gpt2", "exactly 40 tokens")]
)
def test_ends_do_not_depend_on_what_else_is_written(byte_bpe, monkeypatch, family, budget):
    """Alone, in a batch of prompts and beginnings of other lengths, in another place of it, and in another call."""
    model = talking(tiny(family, byte_bpe), byte_bpe, own=1.0)
    writer = Writer(model, byte_bpe, batch_size=96)
    together = writer.write(PROMPTS[:4], budget)
    assert texts(together) == [text for prompt in PROMPTS[:4] for text in texts(writer.write(prompt, budget))]
    assert texts(together)[::-1] == texts(writer.write(PROMPTS[3::-1], budget))
    monkeypatch.setattr(generator, "repair", lambda *parts, **more: None)
    before = writer.write(PROMPTS[:4], budget)
    assert sum(w.complete for w in together) > sum(w.complete for w in before)
    assert all(now.complete or not then.complete for now, then in zip(together, before, strict=True))


def test_drawn_ends_are_those_of_the_seed_and_the_place(writer):
    first = writer.write(PROMPTS[:4], "exactly 60 chars", **DRAWN)
    assert first == writer.write(PROMPTS[:4], "exactly 60 chars", **DRAWN)
    assert texts(first)[:1] == texts(writer.write(PROMPTS[0], "exactly 60 chars", **DRAWN))


@pytest.mark.parametrize("search", [GREEDY, DRAWN, {"candidates": 3, "seed": 0}])
@pytest.mark.parametrize("unit", ["tokens", "words", "chars", "graphemes"])
def test_every_budget_holds_and_as_many_candidates_come_as_were_asked_for(writer, unit, search):
    budgets = [f"exactly 15 {unit}", f"exactly 9 {unit}", f"18-20 {unit}", f"at most 20 {unit}"]
    for written in writer.write(PROMPTS[:4], budgets, **search):
        assert len(written.candidates) == search.get("candidates", 1) - 1
        for one in (written, *written.candidates):
            assert one.fits, one
            assert unit == "tokens" or one.length == measure(one.text, unit)


def test_rows_that_go_on_stay_inside_the_window(byte_bpe):
    """One that has kept much is padded while one that has kept nothing is written from its beginning."""
    model = tiny("gpt2", byte_bpe)  # it can read 128 tokens, and no more
    with torch.no_grad():
        model.transformer.ln_f.weight.mul_(3)  # so sure of itself that an end suits it rarely
    written = Writer(model, byte_bpe, batch_size=96).write(PROMPTS, "exactly 12 words")
    assert all(w.fits for w in written)


def recorded(monkeypatch, writer):
    """The rows of each batch that is decoded from now on, each with its prompt's length."""
    drafts, batches = writer.decoder.drafts, []

    def record(requests, each, options, **more):
        batches.append([one.start for one in requests for _ in range(each)])
        return drafts(requests, each, options, **more)

    monkeypatch.setattr(writer.decoder, "drafts", record)
    return batches


def test_long_prompts_are_forked_into_fewer_rows_at_once(writer, monkeypatch):
    before = texts(writer.write(PROMPTS[:3], "exactly 30 tokens"))
    monkeypatch.setattr(requests, "BATCH_TOKENS", 100)
    monkeypatch.setattr(repair, "BATCH_TOKENS", 100)
    batches = recorded(monkeypatch, writer)
    assert texts(writer.write(PROMPTS[:3], "exactly 30 tokens")) == before
    assert all(len(rows) * max(rows) <= 100 for rows in batches)
    assert max(map(len, batches)) > 1


def test_nothing_is_written_again_where_the_tokens_do_not_suffice(writer, monkeypatch):
    options = decoding_options(1, 0, {})
    request = writer.requests.make(0, "A dog.", "exactly 200 chars")
    batches = recorded(monkeypatch, writer)
    [written] = writer.write_batch([dataclasses.replace(request, limit=20)], 1, options).values()
    assert not written.fits
    assert len(batches) == 1


class Leaving:
    """A listener that leaves after so many looks at it."""

    shown = 0

    def __init__(self, looks):
        self.looks = looks

    @property
    def closed(self):
        self.looks -= 1
        return self.looks < 0

    def put(self, ids, agreement):
        pass


def test_a_listener_can_end_the_repair_of_its_text(writer, monkeypatch):
    options = decoding_options(1, 0, {})
    request = writer.requests.make(0, "A dog.", "exactly 30 tokens")
    made, drafts = [], writer.decoder.drafts

    def record(some, each, how, **more):
        if made:
            leaving.looks = 3 * each
        made.append(drafts(some, each, how, **more))
        return made[-1]

    leaving = Leaving(10_000)
    monkeypatch.setattr(writer.decoder, "drafts", record)
    writer.write_batch([dataclasses.replace(request, listener=leaving)], 1, options)
    assert len(made) == 2
    [again] = made[1].values()
    kept = min(len(draft.ids) for draft in again)
    assert max(len(draft.ids) for draft in again) <= kept + 4


# ---- streams


@pytest.mark.parametrize(
    ("budget", "search"),
    [
        ("exactly 120 tokens", GREEDY),
        ("exactly 120 tokens", DRAWN),
        ("exactly 90 chars", DRAWN),
        ("exactly 9 words", GREEDY),
    ],
)
def test_a_stream_whose_end_is_written_again_is_the_text(byte_bpe, budget, search):
    model = talking(tiny("llama", byte_bpe), byte_bpe)
    model.config.max_position_embeddings = 400
    writer = Writer(model, byte_bpe)
    [written] = writer.write(PROMPTS[1], budget, **search)
    parts = list(writer.stream(PROMPTS[1], budget, **search))
    assert "".join(parts) == written.text
    assert (len(parts) > 1) == (written.length == 120)


def test_a_stream_of_a_model_that_was_told_a_length_is_the_text(byte_bpe):
    """Told, it puts full stops where it would not untold: no end is let go that `write` does not take for one."""
    control = CountdownHead("words", at_most=True, hidden=8)
    model = attach(tiny("llama", byte_bpe), control, byte_bpe)
    stop = model.get_output_embeddings().weight[byte_bpe(".")["input_ids"][0]]
    control.learnt["choice"].data[:] = 20 * stop / stop.norm() ** 2
    writer = Writer(talking(model, byte_bpe), byte_bpe)
    streamed = {prompt: list(writer.stream(prompt, "at most 20 words")) for prompt in PROMPTS[2:]}
    for prompt, parts in streamed.items():
        assert "".join(parts) == writer.write(prompt, "at most 20 words")[0].text
    assert max(map(len, streamed.values())) > 1


def test_no_end_that_is_written_again_reaches_what_was_let_go(byte_bpe):
    """A text may be taken back by 12 tokens, end there, be taken back by 20 and so on, but never below a limit."""
    meter = Meter(byte_bpe, "chars")
    ids = byte_bpe(" ".join([SAID] * 3))["input_ids"]
    exactly = Budget.parse("exactly 4000 chars")
    streamer = SentenceStreamer(
        meter, exactly, lambda text, tokens: len(text), lambda ids, agreement: agreement, lambda part: None
    )
    shown = set()
    for n in range(1, len(ids) + 1):
        streamer.put(ids[: n - 1], [1.0] * (n - 1))
        draft = drafted(meter, ids[:n])
        for tail, _ in ROUNDS:
            draft = without_tail(draft, tail, meter.pieces, least=n - DEEPEST)
        assert streamer.shown <= max(draft.reach, default=0)
        shown.add(streamer.shown)
    assert len(shown) > 3
    assert shown <= {0, *(end for end, _ in unforced_ends(drafted(meter, ids), drafted(meter, ids).text))}


def test_of_an_abandoned_stream_no_end_is_written_again(byte_bpe, monkeypatch):
    model = talking(tiny("llama", byte_bpe), byte_bpe)
    model.config.max_position_embeddings = 400
    writer = Writer(model, byte_bpe)
    widths = listened(monkeypatch, writer)
    parts = writer.stream("A dog.", "exactly 250 tokens")
    next(parts)
    parts.close()
    assert len(widths) == 1


# ---- prompts that are read once


def planned():
    control = CountdownHead(("words", "chars"), at_most=True, hidden=8)
    control.on_attach(1.0, 32)
    torch.manual_seed(1)
    for weight in control.parameters():
        weight.data.normal_(std=0.3)
    return control


@pytest.mark.parametrize(
    "control",
    [
        None,
        lambda: EncodingControl(unit="chars", placement="whole", end_index=1, scale=0.5),
        lambda: EncodingControl(unit=("words", "chars"), placement="answer", at_most=True, scale=0.5),
        planned,
    ],
    ids=["plain", "whole", "answer", "countdown_head"],
)
def test_prompts_read_once_make_the_same_texts(byte_bpe, monkeypatch, control):
    model = tiny("llama", byte_bpe)
    if control is not None:
        attach(model, control(), byte_bpe)
    with torch.no_grad():
        model.model.norm.weight.mul_(2)  # it minds what it reads
    writer = Writer(talking(model, byte_bpe, own=1.0), byte_bpe, batch_size=96)

    def both():
        drawn = writer.write(PROMPTS[:2], "exactly 20 chars", candidates=3, seed=1)
        return texts(drawn) + texts(writer.write(PROMPTS[:2], "exactly 20 chars"))

    monkeypatch.setattr(token_choice, "FORKS", 0)  # rows that cannot be forked have none
    once = both()
    monkeypatch.setattr(type(writer.engine), "prompt_cache", lambda *parts: None)
    monkeypatch.setattr(Prepared, "can_fork", False)
    assert both() == once


class Hearing(Control):
    """Says nothing and notes where the rows of each step stand."""

    name = "hearing"
    units = ("tokens",)

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[list[int]] = []

    def encode(self, signal: Signal, inputs: torch.Tensor) -> None:
        self.heard.append(signal.position[:, -1].tolist())


def test_a_control_counts_what_was_kept(byte_bpe, monkeypatch):
    control = Hearing()
    model = attach(tiny("llama", byte_bpe), control, byte_bpe)
    writer = Writer(talking(model, byte_bpe), byte_bpe)
    widths = listened(monkeypatch, writer)
    writer.write("A dog.", "exactly 30 tokens")
    (_, prompt), (_, width) = widths[:2]
    assert width > prompt
    assert [width - prompt] in control.heard


def sliding(tokenizer: Any) -> Any:
    config = hf.MistralConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, sliding_window=6, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    torch.manual_seed(0)
    return hf.MistralForCausalLM(config)


def stateful(tokenizer: Any) -> Any:
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = hf.MambaConfig(vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, state_size=4, **special)
    torch.manual_seed(0)
    return hf.MambaForCausalLM(config)


def forgetful(tokenizer: Any) -> Any:
    model = tiny("llama", tokenizer)
    model.generation_config.use_cache = False  # as of many a model that was saved while it was trained
    return model


@pytest.mark.parametrize("make", [sliding, stateful, forgetful])
def test_a_model_whose_memory_cannot_be_shared(byte_bpe, monkeypatch, make):
    writer = Writer(talking(make(byte_bpe), byte_bpe, own=1.0), byte_bpe)
    widths = listened(monkeypatch, writer)
    monkeypatch.setattr(token_choice, "FORKS", 0)  # rows that cannot be forked have none
    greedy, drawn = (writer.write(PROMPTS[:2], "exactly 20 chars", **how) for how in ({}, {"candidates": 3, "seed": 1}))
    assert len(widths) > 2
    assert all(w.fits for w in greedy + drawn)
    monkeypatch.setattr(type(writer.engine), "prompt_cache", lambda *parts: None)
    monkeypatch.setattr(Prepared, "can_fork", False)
    assert texts(greedy) == texts(writer.write(PROMPTS[:2], "exactly 20 chars"))
    assert texts(drawn) == texts(writer.write(PROMPTS[:2], "exactly 20 chars", candidates=3, seed=1))


@pytest.mark.parametrize("how", [{"use_cache": False}, {"cache_implementation": "static"}])
def test_a_cache_of_the_callers_choice(writer, how):
    for more in (GREEDY, {"candidates": 2, "seed": 1}):
        free = writer.write("The lazy dog", "exactly 30 tokens", **more)
        assert texts(writer.write("The lazy dog", "exactly 30 tokens", **more, **how)) == texts(free)


def test_a_prompt_of_one_token(writer):
    assert len(writer.engine.prompt_ids("x")) == 1
    [written] = writer.write("x", "exactly 30 tokens", candidates=3, seed=0)
    assert (written.fits, len(written.candidates)) == (True, 2)


# ---- ends that were told


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize(("then", "complete"), [(" and all", False), ("</s>", True)])
def test_an_answer_that_ends_where_it_was_told_to_is_not_complete_for_that(
    byte_bpe, monkeypatch, then, complete, beams
):
    """Only if the model would end there untold."""
    monkeypatch.setattr(generator, "repair", lambda *parts, **more: None)
    control = CountdownHead("words", hidden=8)
    model = attach(tiny("llama", byte_bpe), control, byte_bpe)
    end = model.get_output_embeddings().weight[2]
    control.learnt["choice"].data[0] = 60 * end / end.norm() ** 2  # where nothing remains to be written, it ends
    model = talking(model, byte_bpe, f"A dog is quick in the day{then}")
    [written] = Writer(model, byte_bpe).write("A dog", "exactly 5 words", num_beams=beams)
    assert (written.text, written.complete) == ("is quick in the day", complete)


class Told(Control):
    """Adds nothing and notes which lengths were told."""

    name = "told"
    units = ("words",)
    lengths: torch.Tensor

    def encode(self, signal: Signal, inputs: torch.Tensor) -> None:
        self.lengths = signal.length


def taught(byte_bpe, said, length):
    """A writer of a model that has learnt to put a full stop after "in" where so many words are to be written."""
    [word], [stop] = byte_bpe(" in")["input_ids"], byte_bpe(".")["input_ids"]
    control, read = Told(), []
    model = talking(attach(tiny("llama", byte_bpe), control, byte_bpe), byte_bpe, said)

    def stops(module, args, output):
        if (control.lengths == length).all():
            output.logits[..., stop] += 20.0 * (read[-1][:, -output.logits.shape[1] :] == word)

    model.get_input_embeddings().register_forward_hook(lambda module, args, output: read.append(args[0]))
    model.register_forward_hook(stops)
    return Writer(model, byte_bpe)


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize(("said", "complete"), [("A dog is quick in the day.", False), ("A dog is quick in.", True)])
def test_a_full_stop_that_an_encoding_has_taught_makes_no_complete_text(byte_bpe, monkeypatch, said, complete, beams):
    """Only if the model would end its sentence there with more to write."""
    monkeypatch.setattr(generator, "repair", lambda *parts, **more: None)
    [written] = taught(byte_bpe, said, 3).write("A dog", "exactly 3 words", num_beams=beams)
    assert (written.text, written.complete) == ("is quick in.", complete)


@pytest.mark.parametrize(("said", "parts"), [("A dog is quick in the day.", 1), ("A dog is quick in.", 2)])
def test_a_stream_lets_no_full_stop_go_that_an_encoding_has_taught(byte_bpe, said, parts):
    writer = taught(byte_bpe, f"{said} It was a cold line.", 10)
    streamed = list(writer.stream("A dog", "at most 10 words"))
    assert "".join(streamed) == writer.write("A dog", "at most 10 words")[0].text == "is quick in. It was a cold line."
    assert len(streamed) == parts


def test_an_end_that_is_written_again_is_judged_where_it_stands(byte_bpe, monkeypatch):
    """What was kept of a text counts as written, for the judge as for the writer."""
    writer, judged = taught(byte_bpe, SAID, 40), []
    score, prompt = decoding.score_tokens, len(byte_bpe("A dog.")["input_ids"])

    def noted(engine, prompts, texts, lengths, *more):
        judged.extend(len(ids) - written for ids, written in zip(prompts, lengths.written, strict=True) if written)
        return score(engine, prompts, texts, lengths, *more)

    monkeypatch.setattr(decoding, "score_tokens", noted)
    writer.write("A dog.", "exactly 40 words")
    assert judged
    assert set(judged) == {prompt}
