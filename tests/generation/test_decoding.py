"""Which token is chosen, how far the model agrees with it, and the ways by which an engine decodes."""

import math
import threading
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch

from families import tiny
from lengthwise import CountdownHead, Writer, attach
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.generation import decoding, token_choice
from lengthwise.generation.choice_record import KEPT_FORKS, KEPT_ITEMS
from lengthwise.generation.decoding import spelled
from lengthwise.generation.options import decoding_options
from lengthwise.generation.token_choice import FORKS, TokenChoice
from lengthwise.length.budget import Budget
from lengthwise.length.meter import Meter
from lengthwise.length.units import measure
from lengthwise.scoring.completeness import TokenScores
from lengthwise.scoring.reverse import ReverseModel


class Ban:
    """In place of a constraint: bans one token of each row, and allows the end with score 0 where nothing is left."""

    def __init__(self, *banned):
        self.low = self.banned = banned

    def apply(self, scores):
        kept = scores.clone()
        for row, tokens in enumerate(self.banned):
            kept[row, list(tokens)] = -torch.inf
        kept[:, 2] = torch.where(kept.amax(1) == -torch.inf, 0.0, kept[:, 2])
        return kept

    def update(self, tokens):
        pass


@pytest.fixture
def engine(byte_bpe):
    return TransformersEngine(tiny("llama", byte_bpe), byte_bpe)  # its end token is 2


def test_a_banned_favourite_lowers_the_agreement_of_the_token_that_is_taken(engine):
    choice = TokenChoice(engine, Ban([0], []), None)
    assert choice(torch.tensor([[5.0, 3.0, 1.0]] * 2)).tolist() == [1, 0]
    found = choice.record.token_scores
    assert found.agreement.flatten().tolist() == pytest.approx([math.exp(-2), 1.0])
    assert found.end_ratio.flatten().tolist() == pytest.approx([math.exp(-4)] * 2)
    assert found.score.flatten().tolist() == [-2.0, 0.0]


def test_a_forced_end_has_no_agreement_where_nothing_was_allowed(engine):
    choice = TokenChoice(engine, Ban([0, 1, 2]), None)
    assert choice(torch.tensor([[5.0, 3.0, -9.0]])).tolist() == [2]
    assert choice.record.token_scores.agreement.item() == pytest.approx(math.exp(-14))
    assert choice.done


def test_a_row_that_has_ended_is_padded(engine):
    choice = TokenChoice(engine, Ban([], []), None)
    assert choice(torch.tensor([[0.0, 1.0, 5.0], [0.0, 5.0, 1.0]])).tolist() == [2, 1]
    assert not choice.done
    assert choice(torch.tensor([[0.0, 5.0, 1.0], [0.0, 1.0, 5.0]])).tolist() == [engine.pad, 2]
    assert choice.done


class Closable(Ban):
    """Bans nothing. `code`, `lines`, `items`: the steps in which token 1 would close the code, a list item may end
    before the next token, or may end with token 0."""

    def __init__(self, code=(), lines=(), items=()):
        super().__init__([])
        self.code, self.lines, self.items, self.steps = code, lines, items, 0

    def update(self, tokens):
        self.steps += 1

    def of_code(self, scores, least):
        return [0] if self.steps in self.code else [], 1

    def line_ends(self, scores):
        return {0: -0.5} if self.steps in self.lines else {}

    def of_blocks(self, scores, least, most):
        return ([0], [0]) if self.steps in self.items else ([], [])


@pytest.mark.parametrize(
    ("constraint", "written", "texts"),
    [
        (Closable(code=[1]), [3, 0, 3, 2], [[3, 0, 3, 2], [3, 1, 2, 2]]),
        (Closable(code=[1, 2]), [3, 0, 3, 2], [[3, 0, 3, 2], [3, 0, 1, 2]]),  # the last one
        (Closable(code=[1]), [3, 0, 1, 2], [[3, 0, 1, 2]]),  # it was closed later
        (Closable(code=[1]), [3, 1, 3, 2], [[3, 1, 3, 2]]),  # it was closed here
        (Closable(lines=[2]), [3, 0, 3, 2], [[3, 0, 3, 2], [3, 0, 2, 2]]),
        (Closable(items=[2]), [3, 0, 3, 2], [[3, 0, 3, 2], [3, 0, 0, 2]]),
        (Closable(), [3, 0, 3, 2], [[3, 0, 3, 2]]),
    ],
)
def test_an_end_of_a_block_is_kept_beside_the_text_that_goes_on(engine, constraint, written, texts):
    choice = TokenChoice(engine, constraint, None, closings=constraint)
    for token in written:
        scores = torch.full((1, 4), 1.0)
        scores[0, token] = 3.0
        assert choice(scores).tolist() == [token]  # no row is added, so it takes no pass
    assert choice.record.texts == texts
    if len(texts) > 1 and constraint.code:
        end = texts[1].index(1)
        assert choice.record.token_scores.agreement[1].tolist()[: end + 1] == pytest.approx(
            [1.0] * end + [math.exp(-2)]
        )


def test_the_likeliest_items_of_a_row_are_kept(engine):
    steps = 3 * KEPT_ITEMS
    closable = Closable(items=range(steps))
    choice = TokenChoice(engine, closable, None, closings=closable)
    for step in range(steps):
        scores = torch.tensor([[0.0, 0.0, 0.0, 9.0]])
        scores[0, 0] = step % 3  # in every third step, the item is likelier
        choice(scores)
    assert [fork.step for fork in choice.record.forks] == list(range(2, steps, 3))


@pytest.mark.parametrize(
    ("text", "line", "end", "ratio"),
    [
        ("- Flour\n- Milk", 0.2, 0.0, 0.2),
        ("- Flour\n- Milk", 0.02, 0.5, 0.0),  # of an item, the end of its line decides
        ("I go.\n\nBest regards,\nJane Smith", 0.2, 0.0, 0.2),
        ("I go.\n\nBest regards,\nJane Smith", 0.02, 0.5, 0.5),  # a letter ends there
        ("I go.\n\nBest regards,\nJane", 0.02, 0.05, 0.0),  # a surname follows
        ("I go to Jane", 0.2, 0.5, 0.0),
    ],
)
def test_a_likely_end_of_the_line_or_of_a_letter_counts_as_an_end(
    engine, byte_bpe, monkeypatch, text, line, end, ratio
):
    def scored(engine, prompts, texts, *more):
        shape = len(texts), len(texts[0])
        return TokenScores(np.ones(shape), np.full(shape, end), np.full(shape, np.log(line)))

    monkeypatch.setattr(decoding, "score_tokens", scored)
    writer, ids = Writer(engine), byte_bpe(text, add_special_tokens=False)["input_ids"]
    batch, blank = (
        writer.decoder._batch([writer.requests.make(0, "x", "at most 90 chars")], decoding_options(1, None, {})),
        np.zeros((1, len(ids) + 1)),
    )
    found = writer.decoder._with_line_ends(batch, [[*ids, 2]], TokenScores(blank, blank, blank))
    assert found.end_ratio[0].tolist() == pytest.approx([0.0] * len(ids) + [ratio])


# ---- options that only `generate` of transformers can carry out

BUDGET = "exactly 12 words"


@pytest.mark.parametrize("how", [{}, {"candidates": 3}, {"temperature": 1.5}])
@pytest.mark.parametrize("only", [{"max_time": 3600.0}, {"cache_implementation": "static"}, {"stop_strings": ["\0"]}])
def test_the_same_texts_inside_generate(engine, byte_bpe, monkeypatch, only, how):
    """Except for forks: `generate` adds no rows."""
    monkeypatch.setattr(token_choice, "FORKS", 0)
    if "stop_strings" in only:
        only = only | {"tokenizer": byte_bpe}
    writer = Writer(engine)
    here = writer.write(["The dog.", "Why? Because."], BUDGET, seed=3, **how)
    assert writer.write(["The dog.", "Why? Because."], BUDGET, seed=3, **how, **only) == here


def test_a_stream_inside_generate(engine):
    writer = Writer(engine)
    whole = writer.write("The dog.", BUDGET, max_time=3600.0)[0].text
    assert "".join(writer.stream("The dog.", BUDGET, max_time=3600.0)) == whole


def test_a_closed_listener_ends_the_search(engine):
    """The text was abandoned: no more than a few tokens are written."""

    class Reader:
        closed, calls, shown = False, 0, 0

        def put(self, ids, agreement):
            self.calls += 1
            self.closed = self.calls == 5

    for how in ({}, {"max_time": 3600.0}):
        writer, reader = Writer(engine), Reader()
        request = replace(writer.requests.make(0, "The dog.", "exactly 60 words"), listener=reader)
        writer.decoder.drafts([request], 1, decoding_options(1, 0, how))
        assert reader.calls < 8


def test_guided_texts_are_rows_of_their_own(engine):
    """Classifier-free guidance keeps a cache inside its logits processor, which cannot be forked."""
    found = Writer(engine).write("The dog.", "at most 60 chars", candidates=3, seed=1, guidance_scale=1.5)
    assert [one.fits for one in [found[0], *found[0].candidates]] == [True] * 3


@pytest.mark.parametrize("controlled", [False, True])
def test_streams_of_one_model_side_by_side(engine, byte_bpe, controlled):
    if controlled:  # each thread has its own signal
        attach(engine.model, CountdownHead(("words", "chars"), hidden=8), byte_bpe)
    writer, found = Writer(engine), {}

    def read(n):
        found[n] = "".join(writer.stream("The dog.", f"exactly {10 + n} words", temperature=1.0, seed=n))

    threads = [threading.Thread(target=read, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = [writer.write("The dog.", f"exactly {10 + n} words", temperature=1.0, seed=n)[0].text for n in range(4)]
    assert [found[n] for n in range(4)] == expected


def test_settings_of_the_model_that_would_change_the_search(engine, byte_bpe):
    expected = Writer(engine).write("dog dog dog dog dog", "exactly 12 words")
    engine.model.generation_config.prompt_lookup_num_tokens = 3
    assert Writer(engine).write("dog dog dog dog dog", "exactly 12 words") == expected


def test_an_end_that_the_model_forces_at_the_last_token_is_not_its_own(sp_unigram):
    model = tiny("bart", sp_unigram)
    expected = Writer(model, sp_unigram).write(["The dog.", "Why is it?"], "at most 4 words")
    model.generation_config.forced_eos_token_id = 2
    assert Writer(model, sp_unigram).write(["The dog.", "Why is it?"], "at most 4 words") == expected


def test_a_language_token_takes_its_place_in_the_window(sp_unigram):
    model = tiny("bart", sp_unigram)
    model.generation_config.forced_bos_token_id = 7
    for how in ({}, {"num_beams": 2}):
        [found] = Writer(model, sp_unigram).write("The dog.", "at least 120 tokens", **how)
        assert found.length >= 120
    engine = TransformersEngine(model, sp_unigram)
    text = "dog " * 200
    assert ReverseModel(engine).likelihood([text], ["dog"])[0, 1] == engine.window - 1


def test_a_stop_string_in_a_batch(engine, byte_bpe):
    """A row that has stopped is padded, and padding is no text."""
    prompts, how = ["The dog.", "Why? Because."], {"stop_strings": ["e"], "tokenizer": byte_bpe, "finish": False}
    together = Writer(engine).write(prompts, "at most 30 tokens", **how)
    alone = [Writer(engine).write(prompt, "at most 30 tokens", **how)[0] for prompt in prompts]
    assert [one.text for one in together] == [one.text for one in alone]
    assert together[0].length != together[1].length


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"forced_bos_token_id": 5}, "set it in model.generation_config"),
        ({"do_sample": True, "temperature": 0}, "temperature must be above 0"),
        ({"temperature": 1.0, "top_p": 1.5}, "top_p must be a share between 0 and 1; got 1.5"),
        ({"candidates": 2, "top_p": -0.1}, "top_p"),
        ({"temperature": 1.0, "top_k": -1}, "top_k must be a number of tokens, or 0 for all; got -1"),
        ({"temperature": float("nan")}, "temperature must be a number"),
        ({"temperature": "hot"}, "temperature must be a number, 0 or above; got 'hot'"),
        ({"temperature": 1.0, "top_p": "x"}, "top_p must be a share between 0 and 1; got 'x'"),
        ({"temperature": 1.0, "top_k": "x"}, "top_k must be a number of tokens, or 0 for all; got 'x'"),
        ({"candidates": "x"}, "candidates must be a whole number, at least 1; got 'x'"),
        ({"seed": "x"}, "seed must be a whole number; got 'x'"),
        ({"do_sample": True, "num_beams": 4}, "beam search does not sample; got do_sample=True and 4 beams: give one"),
        ({"do_sample": False, "candidates": 3}, "greedy candidates are all equal; got 3: leave do_sample=False out"),
        ({"do_sample": False, "temperature": 0.7}, "do_sample=False is greedy decoding, which has no temperature=0.7"),
        ({"do_sample": False, "top_p": 0.5}, "do_sample=False is greedy decoding, which has no top_p=0.5"),
    ],
)
def test_sampling_parameters_that_mean_nothing(engine, how, says):
    with pytest.raises(ValueError, match=says):
        Writer(engine).write("The dog.", BUDGET, **how)


def test_the_text_grows_with_its_tokens(byte_bpe):
    meter = Meter(byte_bpe, "chars")
    ids = byte_bpe(" Où est-il ? 日本")["input_ids"]
    text, reach = spelled(meter, ids)
    assert text == "Où est-il ? 日本"
    assert reach == sorted(reach)
    assert (len(reach), reach[-1]) == (len(ids), len(text))


def test_each_row_of_a_batch_has_its_own_listener(engine):
    """One row is abandoned after three tokens; another is streamed, and has the text that it has alone."""

    class Leaver:
        closed, shown = False, 0

        def put(self, ids, agreement):
            self.closed = len(ids) == 3

    writer, options, parts = Writer(engine), decoding_options(1, 0, {}), []
    left, kept = (writer.requests.make(n, "The dog.", "at most 60 words") for n in range(2))
    streamer = writer.streamer(kept, options, parts.append)
    leaver = Leaver()
    rows = [replace(left, listener=leaver), replace(kept, listener=streamer)]
    drafts = writer.decoder.drafts(rows, 1, options)
    assert len(drafts[0][0].ids) == 3
    assert len(drafts[1][0].ids) > 3
    leaver.closed = False
    written = writer.write_batch(rows, 1, options)
    assert written[1].text.startswith("".join(parts[: len(parts) // 2]))  # streamed twice
    assert written[1].text == writer.write("The dog.", "at most 60 words")[0].text


@contextmanager
def rows_of_steps(engine):
    """Yield a list that receives the number of rows of each decoding step."""
    seen, prefill = [], engine.prefill

    def watched(*args, **options):
        rows = prefill(*args, **options)
        step = rows.step
        rows.step = lambda tokens: seen.append(len(tokens)) or step(tokens)
        return rows

    engine.prefill = watched
    yield seen
    del engine.prefill


def test_rows_that_have_ended_are_dropped(engine):
    """A batch of short and long texts takes fewer rows with every quarter that ends, and each text is its own."""
    writer = Writer(engine)
    budgets = ["at most 10 chars", "exactly 12 chars", "at most 3 words", "exactly 60 words"]
    with rows_of_steps(engine) as seen:
        together = writer.write(["The dog."] * 4, budgets, finish=False)
    assert set(seen) >= {4, 1}
    assert seen == sorted(seen, reverse=True)
    assert all(one.fits for one in together)
    alone = [writer.write("The dog.", budget, finish=False)[0] for budget in budgets]
    assert [one.text for one in together] == [one.text for one in alone]


# ---- forks that close a text of an exact length


def first_drafts(engine, budget, **options):
    """The drafts of one text, and how many rows were decoded over all steps."""
    writer = Writer(engine)
    request = writer.requests.make(0, "The dog.", budget)
    with rows_of_steps(engine) as seen:
        [drafts] = writer.decoder.drafts([request], 1, decoding_options(1, 0, {}), **options).values()
    return drafts, seen


@pytest.mark.parametrize("budget", ["exactly 40 chars", "exactly 12 words", "exactly 20 tokens"])
def test_a_fork_ends_with_a_full_stop_inside_the_limits(engine, budget):
    (first, *forks), _ = first_drafts(engine, budget)
    assert 0 < len(forks) <= KEPT_FORKS
    wanted = Budget.parse(budget)
    for fork in forks:
        same = len(fork.ids) - 2  # all but the token that was tried, and the full stop
        assert fork.ids[:same] == first.ids[:same]
        assert fork.ids[same] != first.ids[same]
        assert fork.text[-1] in ".!?。！？۔؟।"
        assert wanted.fits(len(fork.ids) if wanted.unit == "tokens" else measure(fork.text, wanted.unit))
        assert (len(fork.reach), len(fork.agreement)) == (len(fork.ids), len(fork.ids))
        assert fork.agreement[:same] == first.agreement[:same]
        assert fork.end_ratio == 0.0  # its end was not scored, so only the full stop makes it complete


@pytest.mark.parametrize(
    "budget", ["at most 40 chars", "20-90 chars", "38-41 chars", "7-16 words", "at least 10 words"]
)
def test_a_limit_and_a_window_have_no_forks(engine, budget):
    assert len(first_drafts(engine, budget)[0]) == 1


def test_no_forks_where_no_sentence_end_is_looked_for(engine):
    assert len(first_drafts(engine, "exactly 40 chars", finish=False)[0]) == 1


def test_a_fork_takes_one_pass(engine, monkeypatch):
    _, rows = first_drafts(engine, "exactly 20 tokens")
    monkeypatch.setattr(token_choice, "FORKS", 0)
    (first,), rows_without = first_drafts(engine, "exactly 20 tokens")
    assert set(rows_without) == {1}
    assert len(first.ids) == 20
    assert sum(rows) - sum(rows_without) in range(1, FORKS + 1)  # only the last token but one can be another


def test_a_long_text_has_no_forks(engine, monkeypatch):
    monkeypatch.setattr(token_choice, "FORK_TOKENS", 30)
    assert len(first_drafts(engine, "exactly 40 tokens")[0]) == 1
    assert len(first_drafts(engine, "exactly 8 tokens")[0]) > 1
