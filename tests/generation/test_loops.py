"""Texts that repeat themselves: which are noticed, after how much, and how they go on."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bigram_engine import BigramEngine
from families import tiny
from length_cases import KINDS, TEXTS, meters, spell
from lengthwise import Writer
from lengthwise.generation.loops import LoopGuard, loop_tables_of
from lengthwise.generation.options import decoding_options
from lengthwise.length.meter import Meter

LOOPS = {  # phrase: the most copies that may be written
    "I love the sea. ": 4,
    "word ": 13,
    "Chicken Balls with BBQ Sauce\n": 4,
    "The old house by the river was empty, and nobody in the village knew why it had been left. ": 3,
    "Straße und größer. ": 4,
    "Привет, как дела? ": 4,
    "名前はまだ無い。": 4,
    "吾輩は猫": 7,
    "สวัสดี": 7,
    "안녕하세요 ": 5,
    "مَرْحَبًا بِكُمْ ": 4,
    "नमस्ते ": 6,
    "ha": 45,
    "0": 50,
    "- ": 50,
}
FREE = [
    *TEXTS,
    "It was very, very good. Ha ha ha! No, no, no.",
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214",
    "https://example.com/a/very-long-slug-of-many-words/that_goes_on_and_on_for_more_than_sixty_letters?x=1",
    "1. Apples\n2. Pears\n3. Plums\n4. Grapes\n5. Lemons\n6. Melons\n7. Limes\n8. Figs\n9. Dates\n10. Kiwis\n",
    "| a | b | c |\n|---|---|---|\n| 1 | 2 | 3 |\n| 4 | 5 | 6 |\n| 7 | 8 | 9 |\n",
    "def f(x):\n    return x + 1\n\nprint(f(1), f(2))\n",
    ", ".join(map(str, range(1, 25))),
    "".join(f"7 x {n} = {7 * n}\n" for n in range(1, 8)),
    "".join(f"Day {n}: run {3 * n + 2} km\n" for n in range(1, 6)),
    "".join(f'{{"id": {n}, "value": {n * n + 3}, "active": true}},\n' for n in range(1, 4)),
    "⭐⭐⭐⭐⭐ 👏👏👏👏",
    "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch",
    "これは区切りのないとても長い文で、六十文字を超えても一つの言葉ではないので、そのまま最後まで書き続けることができるはずである",
]


def lowered(guard):
    """The tokens that the guard lowers, of each row."""
    scores = np.zeros((len(guard._run), len(guard.tables.kind) - 1), np.float32)
    return [set(row.nonzero()[0].tolist()) for row in guard.apply(scores)]


def noticed(meter, text):
    """How many tokens of `text` are written before the next one is lowered; None if none is."""
    ids, guard = spell(meter, text), LoopGuard(loop_tables_of(meter), [[]])
    for n, token in enumerate(ids):
        if token in lowered(guard)[0]:
            return n
        guard.update(np.array([token]))
    return None


@pytest.mark.parametrize(("loop", "other"), [("1.", "2"), ("#\n", "//"), ("*", "\n")])
def test_after_a_loop_without_letters_comes_a_letter_or_a_bracket(byte_bpe, loop, other):
    meter = Meter(byte_bpe, "chars")
    guard = LoopGuard(loop_tables_of(meter), [spell(meter, loop * 40)])
    [found] = lowered(guard)
    assert {meter.pieces[token] for token in found} >= {loop[:1].encode(), b"2", other[:1].encode(), b"\n"}
    assert not {meter.pieces[token] for token in found} & {b"a", b"the", b"]", b")", b""}


def test_a_loop_without_letters_that_returns_is_left_sooner(byte_bpe):
    meter = Meter(byte_bpe, "chars")
    word, again = (spell(meter, text) for text in (" the", "-*" * 7))
    for copies, left in ((12, False), (20, True)):
        guard = LoopGuard(loop_tables_of(meter), [spell(meter, "-*" * copies)])
        assert bool(lowered(guard)[0]) == left
        for token in [*word, *again]:
            guard.update(np.array([token]))
        assert bool(lowered(guard)[0]) == left


def test_a_text_that_is_continued_remembers_that_it_left_a_loop_without_letters(byte_bpe):
    meter = Meter(byte_bpe, "chars")
    looped, plain, again = (spell(meter, text) for text in ("-*" * 20 + " the", "the dog the fox", "-*" * 7))
    guard = LoopGuard(loop_tables_of(meter), [looped, plain])
    for token in again:
        assert lowered(guard) == [set(), set()]
        guard.update(np.array([token, token]))
    left, free = lowered(guard)
    assert left
    assert not free


def test_a_loop_without_letters_is_left_between_characters(byte_bpe):
    meter = Meter(byte_bpe, "chars")
    guard = LoopGuard(loop_tables_of(meter), [spell(meter, "🌱" * 20)])
    first = spell(meter, "🌱")
    assert len(first) > 1
    assert lowered(guard)[0]
    guard.update(np.array([first[0]]))
    assert not lowered(guard)[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("phrase", LOOPS)
def test_a_loop_is_noticed_in_any_script(request, kind, phrase):
    meter = meters(request, kind, "chars")
    if kind == "sp_unigram" and not phrase.isascii():
        pytest.skip("this vocabulary has no tokens for other scripts")
    assert noticed(meter, phrase * (LOOPS[phrase] + 1)) is not None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", FREE)
def test_a_text_that_repeats_little_is_left_alone(request, kind, text):
    assert noticed(meters(request, kind, "chars"), text) is None


@pytest.mark.parametrize("kind", KINDS)
def test_items_that_differ_in_their_numbers_are_a_loop(request, kind):
    meter = meters(request, kind, "chars")
    text = "".join(f"{n}. The dog is on the line\n" for n in range(1, 10))
    ids, at = spell(meter, text), noticed(meter, text)
    assert at is not None
    written, piece = meter.spell(ids[:at]), meter.pieces[ids[at]]
    assert written.count(b"The dog") < 5
    assert piece[:1].isspace() or not written[-1:].isalnum()  # a loop is left where a word begins


def test_tokens_that_differ_in_case_or_white_space_are_lowered_together(request):
    meter = meters(request, "byte_bpe", "chars")
    text = "The dog is. " * 9
    guard = LoopGuard(loop_tables_of(meter), [spell(meter, text)[: noticed(meter, text)]])
    pieces = [meter.pieces[token] for token in lowered(guard)[0]]
    assert len({piece.strip().lower() for piece in pieces}) == 1
    assert len(pieces) > 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_word_that_does_not_end_is_ended(request, kind):
    meter = meters(request, kind, "chars")
    letters = "".join(np.random.default_rng(0).choice(list("aeionrst-"), 200))
    at = noticed(meter, "The word " + letters)
    assert at is not None
    assert 80 < len(meter.spell(spell(meter, "The word " + letters)[:at]).strip()) <= 9 + 80 + 16
    guard = LoopGuard(loop_tables_of(meter), [spell(meter, "The word " + letters)])
    allowed = {meter.pieces[n] for n in set(range(len(meter.pieces))) - lowered(guard)[0]}
    assert {b" the", b"."} & allowed
    assert not any(piece[:1].isalpha() for piece in allowed if piece.isascii())


@settings(max_examples=20)
@given(st.data())
def test_a_guard_is_the_same_from_ids_and_step_by_step(request, data):
    meter = meters(request, "byte_bpe", "chars")
    token = st.sampled_from(spell(meter, "The dog is 12, 日本 x."))
    rows = data.draw(st.lists(st.lists(token, max_size=8), min_size=1, max_size=3))
    rows = [row * data.draw(st.integers(1, 6)) for row in rows]
    seeded = lowered(LoopGuard(loop_tables_of(meter), rows))
    for row, found in zip(rows, seeded, strict=True):
        guard = LoopGuard(loop_tables_of(meter), [[]])
        for one in row:
            guard.update(np.array([one]))
        assert lowered(guard) == [found]
    order = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=4))
    chosen = LoopGuard(loop_tables_of(meter), rows)
    chosen.select(np.array(order))
    assert lowered(chosen) == [seeded[row] for row in order]


WORDS = [
    "apple",
    "river",
    "stone",
    "cloud",
    "paper",
    "window",
    "garden",
    "silver",
    "button",
    "candle",
    "forest",
    "bridge",
    "mirror",
    "pocket",
    "ladder",
]
SENTENCE = "The old house by the river was empty, and nobody in the small village knew why the family had left it. "
ORDERS = [WORDS[n:] + WORDS[:n] for n in range(len(WORDS))]


def filler(sentences):
    """Sentences that have no stretch of words in common."""
    return "".join(" ".join(words[:: n + 1]).capitalize() + ". " for n, words in enumerate(ORDERS[:sentences]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_sentence_that_returns_after_others_is_left(request, kind):
    meter = meters(request, kind, "chars")
    text = SENTENCE + filler(14)
    at = noticed(meter, text + SENTENCE * 2)
    assert at is not None
    written = meter.spell(spell(meter, text + SENTENCE * 2)[:at]).decode().strip()
    assert len(text) < len(written) < len(text + SENTENCE * 2)
    assert noticed(meter, text + SENTENCE[:20]) is None


def test_a_text_that_keeps_returning_to_a_sentence_is_left_sooner(request):
    meter = meters(request, "byte_bpe", "chars")
    texts = [f"They had been left to the {word} of the people. " for word in WORDS]
    at = noticed(meter, "".join(texts))
    assert at is not None
    copy = meter.spell(spell(meter, "".join(texts))[:at]).decode().rpartition(". ")[2]
    assert len(copy) < len("They had been left to the ")  # before the word that differs
    assert meter.spell(spell(meter, "".join(texts))[:at]).decode().count("They") > 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "row",
    [
        "| {} | euro | Europe | {} |\n",
        "- {}: {}\n",
        "    {} = self.values[{}]\n",
    ],
)
def test_rows_with_other_words_are_kept(request, kind, row):
    text = "".join(row.format(a, b) for a, b in zip(WORDS, reversed(WORDS), strict=True))
    assert noticed(meters(request, kind, "chars"), text) is None


def test_the_history_of_long_texts_goes_with_their_rows(request):
    meter = meters(request, "byte_bpe", "chars")
    texts = [SENTENCE + filler(14) + SENTENCE[:90], filler(14), SENTENCE * 9]
    rows = [spell(meter, text) for text in texts]
    assert len(rows[0]) > 200  # more than a guard has room for at first
    found = lowered(LoopGuard(loop_tables_of(meter), rows))
    assert [bool(one) for one in found] == [True, False, True]
    guard = LoopGuard(loop_tables_of(meter), [row[:9] for row in rows])
    for step in range(9, max(map(len, rows))):
        guard.update(np.array([row[step] if step < len(row) else -1 for row in rows]))
        for n, row in enumerate(rows):
            if step == len(row) - 1:
                assert lowered(guard)[n] == found[n]
    guard = LoopGuard(loop_tables_of(meter), rows)
    guard.select(np.array([2, 0, 0, 1]))
    assert lowered(guard) == [found[2], found[0], found[0], found[1]]


def test_torch_and_numpy_agree_and_the_scores_of_the_engine_stay(request):
    meter = meters(request, "byte_bpe", "chars")
    guard = LoopGuard(loop_tables_of(meter), [spell(meter, "The dog. " * 9), spell(meter, "The dog.")])
    scores = torch.randn(2, len(meter.pieces) + 3)  # an embedding may be wider than its tokenizer
    before = scores.clone()
    found = guard.apply(scores)
    assert torch.equal(scores, before)
    assert (found != scores).any(1).tolist() == [True, False]
    assert np.array_equal(guard.apply(scores.numpy()), found.numpy())


def test_rows_that_have_ended_are_left_alone(request):
    meter = meters(request, "byte_bpe", "chars")
    guard = LoopGuard(loop_tables_of(meter), [spell(meter, "The dog. " * 9)])
    assert lowered(guard)[0]
    for _ in range(100):
        guard.update(np.array([-1]))
        assert lowered(guard) == [set()]


# ---- a writer


class CircularEngine(BigramEngine):
    """A bigram model that goes round in a circle of tokens, mostly."""

    def __init__(self, tokenizer, circle):
        super().__init__(tokenizer)
        self.ids = tokenizer(circle)["input_ids"]
        self.table[:, self.eos] -= 20
        self.table[self.ids, [*self.ids[1:], self.ids[0]]] += 20

    def prompt_ids(self, text, system=None):
        return [self.ids[-1]]


@pytest.mark.parametrize("how", [{}, {"temperature": 0.7}, {"candidates": 3}])
@pytest.mark.parametrize("budget", ["at most 200 chars", "exactly 50 words", "80-90 tokens"])
def test_a_writer_leaves_a_loop_and_keeps_the_budget(byte_bpe, budget, how):
    writer = Writer(CircularEngine(byte_bpe, " the dog is quick"))
    [guarded] = writer.write("x", budget, seed=0, **how)
    [plain] = writer.write("x", budget, seed=0, no_repeat_ngram_size=0, **how)
    assert guarded.fits
    assert plain.fits
    assert "the dog is quick " * 6 in plain.text
    assert "the dog is quick " * 5 not in guarded.text


def test_the_guard_receives_no_padding(byte_bpe, monkeypatch):
    """Padding repeats itself; looking for its loops would take longer than a step of the model."""
    received = []
    update = LoopGuard.update
    monkeypatch.setattr(LoopGuard, "update", lambda guard, tokens: (received.extend(tokens), update(guard, tokens))[1])
    writer = Writer(CircularEngine(byte_bpe, " the dog is quick"))
    writer.write(["x"] * 3, ["at most 4 tokens", "at most 20 tokens", "at most 20 tokens"], seed=0)
    assert -1 in received
    assert writer.engine.pad not in received


def test_a_loop_is_kept_where_the_budget_leaves_nothing_else(byte_bpe):
    """The one token of the vocabulary that costs a unit and may follow is still chosen."""
    engine = CircularEngine(byte_bpe, " dog")
    only = engine.ids[-1]
    engine.table[:] = -np.inf
    engine.table[:, [only, 2]] = 0.0, -30.0
    [written] = Writer(engine).write("x", "exactly 30 words", finish=False)
    assert (written.fits, written.text) == (True, " ".join(["dog"] * 30))


@pytest.mark.parametrize("given", [{"repetition_penalty": 1.3}, {"no_repeat_ngram_size": 0}, {"repetition_penalty": 1}])
def test_a_callers_own_penalty_replaces_the_guard(given):
    assert not decoding_options(1, 0, given).guards_loops
    assert decoding_options(1, 0, dict.fromkeys(given)).guards_loops


def test_a_translation_may_repeat_what_its_source_repeats(byte_bpe, monkeypatch):
    monkeypatch.setattr("lengthwise.generation.decoding.LoopGuard", None)  # a call would raise an error
    writer = Writer(tiny("marian", byte_bpe), byte_bpe)
    assert writer.write("The dog.", "at most 20 chars")[0].error is None


def test_the_tables_of_a_tokenizer_are_made_once(byte_bpe):
    meter = Meter(byte_bpe, "chars")
    assert loop_tables_of(meter) is loop_tables_of(meter)
