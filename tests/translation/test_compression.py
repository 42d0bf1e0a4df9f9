"""Translations of a sentence without some of its words: which are tried, which are taken, and what is whole of them.

The model here translates word for word, and what reads its translations misses each word that is gone.
"""

import copy
import re
from collections import Counter
from itertools import combinations
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import processors

from families import tiny
from lengthwise import Budget, Writer, at_most, measure
from lengthwise.generation.generator import Written
from lengthwise.length.sentences import finished
from lengthwise.scoring.reverse import ReverseModel
from lengthwise.translation import Translator
from lengthwise.translation.compression import runs, together, without
from lengthwise.translation.hypotheses import Hypotheses
from translation.test_translator import fake_writer

# ---- words


@given(st.integers(0, 30))
def test_every_run_of_up_to_four_words_and_half_of_them(words):
    found = runs(" ".join("x" * words))
    assert len(set(found)) == len(found)
    assert set(found) == {
        frozenset(range(first, last))
        for first in range(words)
        for last in range(first + 1, words + 1)
        if last - first <= 4 and 2 * (last - first) <= words and words >= 4
    }


LETTERS = st.text("abcéxABÉ%", min_size=1, max_size=4)


@st.composite
def cuts(draw):
    """Words, and the places of up to half of them."""
    marks = st.sampled_from(["", "", "", ",", ";", ":", ".", "!", "?", "…"])
    words = draw(st.lists(st.tuples(LETTERS, marks).map("".join), min_size=3, max_size=8))
    words.append(draw(LETTERS) + draw(st.sampled_from(["", ".", "!", "?", "…"])))
    return words, draw(st.frozensets(st.integers(0, len(words) - 1), max_size=len(words) // 2))


@given(cuts(), st.sampled_from([" ", "  "]))
def test_what_is_left_begins_and_ends_as_before(cut, space):
    words, gone = cut
    left = [word for place, word in enumerate(words) if place not in gone]
    found = without(space.join(words), gone).split(" ")
    assert len(found) == len(left)
    assert found[1:-1] == left[1:-1]
    # the beginning: a capital for a capital, and else as it was
    capital = (
        0 in gone and words[0][0].isupper() and not re.search("[AB%]", left[0].rstrip("%,;:.!?…"))
    )  # no name is touched
    assert found[0][0] == (left[0][0].upper() if capital else left[0][0])
    # the end: what was closed is, and no pause stands before that
    end, last = words[-1][-1], left[-1]
    if len(words) - 1 not in gone or last[-1] in ".!?…":
        assert found[-1][1:] == last[1:]
    elif end in ".!?…":
        assert found[-1][1:] == last[1:].rstrip(",;:") + end
    else:
        assert found[-1][1:].rstrip(",;:") == last[1:].rstrip(",;:")


@pytest.mark.parametrize(
    ("text", "gone", "left"),
    [
        ("Oh, open the file, if you can!", {0, 4, 5, 6}, "Open the file!"),
        ("Is it really. Here?", {3}, "Is it really."),  # one end is enough
        ("open the big file", {0, 3}, "the big"),
        ("Élan {name} is here.", {0}, "{name} is here."),
        ("Open   the old\tfile.", {2}, "Open the file."),
    ],
)
def test_words_left_out(text, gone, left):
    assert without(text, frozenset(gone)) == left


@pytest.mark.parametrize(
    ("text", "gone", "left"),
    [
        ("Please enter your name:", {3}, "Please enter your:"),
        ("Open the old file...", {3}, "Open the old..."),
        ("Are you really sure?!", {3}, "Are you really?!"),
        ("Open the file, if possible", {3, 4}, "Open the file"),
        ("هل تريد حذف الملف؟", {3}, "هل تريد حذف؟"),
    ],
)
def test_other_ends(text, gone, left):
    assert without(text, frozenset(gone)) == left


def trials(seed):
    """Words, and what came of leaving out some of their runs: lengths and scores (in halves, whose sums are exact)."""
    chance = Random(seed)
    words, often = chance.randint(4, 10), chance.random()
    every = [gone for gone in runs(" ".join("x" * words)) if words - 1 in gone or chance.random() < often]
    return words, {gone: (chance.randint(20, 41), -chance.randint(0, 9) / 2) for gone in every}, (40, -1.0)


@given(st.integers(0, 10**6).map(trials), st.integers(1, 40), st.integers(0, 20), st.integers(1, 60))
def test_several_runs_together(trial, low, window, most):
    words, tried, whole = trial
    budget = Budget(low, low + window)
    found = together(words, tried, whole, budget.fits, most)
    assert len(found) == len(set(found)) <= most
    # by trying all of them
    saved = {gone: whole[0] - length for gone, (length, _) in tried.items() if length < whole[0]}
    costs = {}
    for some in [*combinations(saved, 2), *combinations(saved, 3)]:
        gone = frozenset().union(*some)
        apart = not any(a & b for a, b in combinations(some, 2))
        if apart and 2 * len(gone) <= words and budget.fits(whole[0] - sum(saved[one] for one in some)):
            costs[gone] = min(costs.get(gone, 99.0), sum(whole[1] - tried[one][1] for one in some))
    costs = {gone: cost for gone, cost in costs.items() if gone not in tried}
    assert set(found) <= costs.keys()
    if len(saved) <= 24:  # of more not all threes are looked at
        assert [costs[gone] for gone in found] == sorted(costs.values())[:most]


def test_the_same_words_cost_what_they_cost_at_best():
    def gone(*places):
        return frozenset(places)

    tried = {gone(0): -1.0, gone(1, 2): -1.0, gone(0, 1): -3.0, gone(2): -3.0, gone(4): -1.5, gone(6, 7): -1.5}
    found = together(8, {one: (9, score) for one, score in tried.items()}, (10, 0.0), at_most(8, "chars").fits, 99)
    assert found.index(gone(0, 1, 2)) < found.index(gone(4, 6, 7))  # 2 nats, in other pieces 6; and 3


# ---- sentences, with a model that translates word for word


SOURCE = "Oh please do open that very old file right now."
WHOLE = "Ah pitié donc ouvre ce très vieux fichier tout maintenant."  # 58 characters
SHORT = "Donc ouvre ce vieux fichier maintenant."  # 39: the four that tell least are left out, in three places
FRENCH = dict(zip(SOURCE.lower().strip(".").split(), WHOLE.lower().strip(".").split(), strict=True))
FRENCH["kindly"] = "pitié"
FILLERS = dict.fromkeys(("ah", "pitié", "très", "tout"), 0.125)


def french(text):
    def word(found):
        known = FRENCH.get(found[0].lower(), found[0])
        return known.capitalize() if found[0][0].isupper() else known

    return re.sub(r"[A-Za-z]+", word, text)


def two_a_word(text):
    """Tokens, so that none is taken for a word."""
    return 2 * len(text.split())


class WordForWord:
    """In the place of the search. Within a budget it finds nothing whole, unless it is `tight`; what of a shorter text
    is `torn` has not come to its end.
    """

    told = False

    def __init__(self, tight=None, torn=()):
        self.tight, self.torn = tight, torn
        self.asked = []

    def written(self, text, complete=True):
        return Written(text, len(text), "chars", "", True, complete, "fake", two_a_word(text))

    def free(self, texts):
        return [[self.written(french(text)), self.written(f"{french(text)} Voilà, voilà.")] for text in texts]

    def bound(self, texts, budgets):
        return [[self.written(self.tight or "z", complete=bool(self.tight))] for _ in texts]

    def first(self, texts):
        self.asked += texts
        return [self.written(french(text), complete=french(text) not in self.torn) for text in texts]


class Listener:
    """In the place of a reverse model: each word of a translation that is missing costs something."""

    def __init__(self, costs, usually=1.0):
        self.costs, self.usually = costs, usually

    def mean_log_prob(self, sources, outputs):
        return np.array([self.read(french(s), o) for s, o in zip(sources, outputs, strict=True)])

    def read(self, whole, output):
        missing = Counter(self.words(whole)) - Counter(self.words(output))
        return -sum(self.costs.get(word, self.usually) for word in missing.elements())

    def words(self, text):
        return re.findall(r"\w+", text.lower())


class Liking(Listener):
    """In the place of the translator's own judgement: it likes what leaves little out."""

    def mean_log_prob(self, sources, outputs):
        return super().mean_log_prob(outputs, sources)


class Content:
    """In the same place: it likes everything."""

    def mean_log_prob(self, sources, outputs):
        return np.zeros(len(outputs))


@pytest.fixture
def translator(monkeypatch):
    """Makes a translator with these parts, and gives its search with it."""

    def make(reverse=None, forward=None, tight=None, torn=(), **options):
        search = WordForWord(tight, torn)
        monkeypatch.setattr("lengthwise.translation.translator.Hypotheses", lambda writer, beams: search)
        monkeypatch.setattr("lengthwise.translation.translator.forward", lambda writer, prefix: forward)
        lines = Translator(fake_writer(source_lang="en", target_lang="fr"), reverse=reverse, **options)
        lines.tokenizer = lambda text, add_special_tokens: {"input_ids": 3 * text.split()}  # not as they are written
        return lines, search

    return make


@pytest.fixture
def judging(translator):
    """The same with a reverse model to which fillers tell little, and with the translator's own judgement."""
    return lambda **parts: translator(**{"reverse": Listener(FILLERS), "forward": Content()} | parts)


LIMITS = [(39, "chars"), (6, "words"), (12, "tokens"), (39 - 5, "chars-nospace"), (39, "bytes")]


@pytest.mark.parametrize(("high", "unit"), LIMITS)
def test_what_tells_least_is_left_out(judging, high, unit):
    lines, _ = judging()
    [row] = lines.translate([SOURCE], at_most(high, unit))
    assert (row.text, row.length, row.fits, row.complete) == (SHORT, high, True, True)
    assert row.score == -0.5


def test_with_more_room_less_is_left_out(judging):
    lines, _ = judging(reverse=Listener({"ah": 0.1, "pitié": 0.2, "très": 0.3, "tout": 0.3}))
    rows = lines.translate([SOURCE] * 4, [at_most(high, "chars") for high in (58, 57, 52, 51)])
    assert [row.text for row in rows] == [
        WHOLE,
        "Pitié donc ouvre ce très vieux fichier tout maintenant.",  # 55
        "Ah donc ouvre ce très vieux fichier tout maintenant.",  # 52
        "Donc ouvre ce très vieux fichier tout maintenant.",  # 49
    ]


@pytest.mark.parametrize("reverse", [None, Listener(FILLERS)])
def test_nothing_is_left_out_if_the_translator_itself_is_no_judge(translator, reverse):
    lines, search = translator(reverse)
    [row] = lines.translate([SOURCE], "at most 39 chars")
    assert (row.text, row.complete, search.asked) == ("z", False, [])


def test_without_a_reverse_model_words_are_left_out_where_nothing_else_is_whole(translator):
    lines, _ = translator(forward=Liking(FILLERS))
    [row] = lines.translate([SOURCE], "at most 39 chars")
    assert (row.text, row.complete, row.score) == (SHORT, True, None)
    lines, search = translator(forward=Liking(FILLERS), tight="pompeux")
    [row] = lines.translate([SOURCE], "at most 39 chars")
    assert (row.text, row.complete, search.asked) == ("pompeux", True, [])


@pytest.mark.parametrize(("cost", "fewer"), [(0.4, False), (0.6, True)])
def test_nothing_is_left_out_where_the_search_finds_as_good_a_one(judging, cost, fewer):
    tight = "Pitié donc ouvre ce très vieux fichier tout maintenant."
    lines, search = judging(reverse=Listener({"ah": cost, "très": 0.2}), tight=tight)
    [row] = lines.translate([SOURCE], "at most 55 chars")
    assert bool(search.asked) is fewer
    assert row.text == (tight if not fewer else "Ah pitié donc ouvre ce vieux fichier tout maintenant.")
    assert lines.translate([SOURCE], "at most 58 chars")[0].text == WHOLE


def test_where_the_whole_fits_nothing_is_left_out(judging):
    lines, search = judging()
    rows = lines.translate([SOURCE, SOURCE, f"{SOURCE} {SOURCE}"], ["at most 58 chars", None, "at most 117 chars"])
    assert [row.text for row in rows] == [WHOLE, WHOLE, f"{WHOLE} {WHOLE}"]
    assert search.asked == []


@pytest.mark.parametrize("mark", ["%s", "{name}", "42", "https://a.org", "{n, plural, one {# day} other {# days}}"])
def test_what_must_come_through_is_never_left_out(judging, mark):
    lines, search = judging()
    room = len(mark) + 40
    [row] = lines.translate([f"Oh please do open that very {mark} old file right now."], at_most(room, "chars"))
    assert search.asked
    assert all(mark in text for text in search.asked)
    assert row.text == f"Donc ouvre ce {mark} vieux fichier maintenant."
    assert (row.intact, row.fits, row.complete) == (True, True, True)


def test_the_best_of_those_that_fit_are_told_of(judging):
    lines, _ = judging(candidates=16)
    [row] = lines.translate([SOURCE], "at most 39 chars")
    told = [row, *(one for one in row.candidates if one.fits and one.text != "z")]
    assert (len(told), row.text) == (8, SHORT)
    assert all(len(one.text) <= 39 and one.complete for one in told)
    scores = [Listener(FILLERS).read(WHOLE, one.text) for one in told]
    assert [one.score for one in told] == scores == sorted(scores, reverse=True)


def test_several_runs_are_left_out_only_where_that_should_fit(judging):
    lines, search = judging()
    lines.translate([f"{SOURCE} {SOURCE}"], "at most 79 chars")
    several = set(search.asked) - {without(SOURCE, gone) for gone in runs(SOURCE)}
    assert 1 < len(several) <= 48
    assert max(len(french(text)) for text in several) == 39


def test_what_comes_out_alike_takes_one_place_of_those_to_choose_from(judging):
    lines, search = judging(candidates=16)
    [row] = lines.translate(["Please kindly do open that old file"], "at most 27 chars")
    alike = {"Please do open that file", "Kindly do open that file"}  # they come out alike, and next
    assert alike <= set(search.asked)
    short = [row, *(one for one in row.candidates if one.fits and one.text != "z")]
    assert (row.text, len(short)) == ("Donc ouvre ce vieux fichier", 8)


def test_the_end_may_go_as_well_as_the_rest(judging):
    lines, _ = judging(reverse=Listener({"tout": 0.1, "maintenant": 0.1}))
    [row] = lines.translate([SOURCE], "at most 42 chars")
    assert (row.text, row.complete) == ("Ah pitié donc ouvre ce très vieux fichier.", True)
    assert row.note == "left out: right now."


def test_what_has_not_come_to_its_end_gives_way(judging):
    [row] = judging(torn=[SHORT])[0].translate([SOURCE], "at most 39 chars")
    assert row.text != SHORT
    assert (row.fits, row.complete) == (True, True)


@pytest.mark.parametrize(("cost", "complete"), [(1.2, True), (1.3, False)])
def test_what_says_far_less_is_not_complete(judging, cost, complete):
    lines, _ = judging(reverse=Listener({}, usually=cost))
    [row] = lines.translate([SOURCE], "at most 6 words")  # four are left out: 4.8 or 5.2 nats
    assert (len(row.text.split()), row.score, row.complete) == (6, pytest.approx(-4 * cost), complete)


@pytest.mark.parametrize(("cost", "complete"), [(0.45, True), (0.55, False)])
def test_nor_is_it_if_the_search_found_it(judging, cost, complete):
    lines, _ = judging(reverse=Listener({}, usually=cost), tight="pompeux")
    [row] = lines.translate([SOURCE], "at most 7 chars")  # not one of ten words
    assert (row.text, row.complete) == ("pompeux", complete)
    lines, _ = judging(reverse=None, tight="pompeux")  # nobody can tell
    assert lines.translate([SOURCE], "at most 7 chars")[0].complete


@pytest.mark.parametrize(("high", "unit"), LIMITS[:3])
def test_two_sentences_share_the_room(judging, high, unit):
    lines, _ = judging()
    between = {"chars": 1}.get(unit, 0)
    [row] = lines.translate([f"{SOURCE} {SOURCE}"], at_most(2 * high + between, unit))
    assert (row.text, row.length, row.complete) == (f"{SHORT} {SHORT}", 2 * high + between, True)
    for room in (high, 5 * high // 2):
        [row] = lines.translate([f"{SOURCE} {SOURCE}"], at_most(room, unit))
        assert row.fits
        assert row.length <= room


def test_what_one_sentence_saves_the_next_may_use(judging):
    lines, _ = judging()
    [row] = lines.translate([f"{SOURCE} {SOURCE}"], "at most 82 chars")  # 40 for the first one, which takes 39
    assert (row.text, row.fits) == (f"{SHORT} Ah donc ouvre ce vieux fichier maintenant.", True)


def test_one_that_is_shouted(judging):
    lines, search = judging()
    [row] = lines.translate([SOURCE.upper()], "at most 39 chars")
    assert (row.text, row.complete) == (SHORT.upper(), True)
    assert {text[0] + text[1:].lower() for text in search.asked} == set(search.asked)


def test_one_that_fits_once_it_is_tidy(judging):
    lines, search = judging()
    plain = search.written
    search.written = lambda text, complete=True: plain(re.sub("(?<!;)[.]", " & #160;.", text), complete)
    [row] = lines.translate([SOURCE], "at most 40 chars")
    assert (row.text, row.fits, row.complete) == ("Donc ouvre ce vieux fichier maintenant\u00a0.", True, True)


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ("GO TO THE OLD SHOP", "Go to the old"),
        ("Save AS PDF OR HTML", "AS PDF OR HTML"),
    ],
)
def test_what_is_left_is_read_in_the_letters_of_the_whole(judging, source, read):
    lines, search = judging()
    lines.translate([source], "at most 5 chars")
    assert read in search.asked


def test_half_of_the_words_may_go_wherever_a_placeholder_stands(judging):
    lines, _ = judging()
    [row] = lines.translate(["%s oh open very right file"], "at most 16 chars")
    assert row.text == "%s ouvre fichier"
    [row] = lines.translate(["Oh open very right file %s"], "at most 16 chars")
    assert row.text == "Ouvre fichier %s"


@pytest.mark.parametrize("source", ["Go.", "Do open that.", "..."])
def test_a_short_one_is_not_abridged(judging, source):
    lines, search = judging()
    lines.translate([source], "at most 2 chars")
    assert search.asked == []


# ---- a real model


def with_end(tokenizer):
    """The same tokenizer, but it puts an end behind each text, as those of translators do."""
    found = copy.deepcopy(tokenizer)
    ended = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", found.eos_token_id)])
    found.backend_tokenizer.post_processor = ended
    return found


@pytest.fixture(scope="module")
def tokenizer(sp_unigram):
    return with_end(sp_unigram)


def test_one_of_each_is_what_the_model_writes_by_itself(tokenizer):
    sources, seen = ["The quick brown fox.", "A button", "It was a bright cold day."], set()
    for wish in (0.0, 4.0, 5.0, 6.0, 7.0):  # to end
        model = tiny("marian", tokenizer)
        with torch.no_grad():
            model.model.decoder.layers[-1].final_layer_norm.weight *= 2
        model.final_logits_bias[0, tokenizer.eos_token_id] = wish
        asking = Writer(copy.deepcopy(model), tokenizer, name="tiny-en-fr")
        asking.model.generation_config.num_beams = 3  # as opus-mt's own settings do
        *found, failed = Hypotheses(asking, 5).first([*sources, "A dog " * 100])
        for source, one in zip(sources, found, strict=True):
            ids = tokenizer(source, return_tensors="pt")
            limit = 3 * ids["input_ids"].shape[1] + 30
            with torch.inference_mode():
                alone = model.generate(**ids, num_beams=1, do_sample=False, max_new_tokens=limit)[0].tolist()
            assert one.text == tokenizer.decode(alone, skip_special_tokens=True).strip()
            assert one.candidates == []
            over = tokenizer.eos_token_id in alone[1:]  # one that the limit ended is whole only if its sentence is
            assert one.complete is (bool(one.text) and (over or finished(one.text)))
            seen.add((over, one.complete))
        assert "too long for the model" in failed.error
    assert {(True, True), (False, False)} <= seen


def test_lines_fit_whatever_a_model_makes_of_fewer_words(tokenizer, monkeypatch):
    model, asked, first = tiny("marian", tokenizer), [], Hypotheses.first
    model.final_logits_bias[0, tokenizer.convert_tokens_to_ids(".")] = 4.0
    writer = Writer(model, tokenizer, name="tiny-en-fr")
    monkeypatch.setattr(Hypotheses, "first", lambda self, texts: asked.extend(texts) or first(self, texts))
    budgets = ["at most 30 chars", "at most 3 words", "at most 12 tokens"]
    source = [" It was a day. The clocks were striking! "] * 3
    for row in Translator(writer, beams=1, reverse=ReverseModel(writer)).translate(source, budgets):
        assert row.fits
        assert row.unit == "tokens" or row.length == measure(row.text, row.unit)
        assert (row.text[0], row.text[-1]) == (" ", " ")
    assert {"It was day.", "The clocks!"} <= set(asked)


# ---- what must not happen


@given(
    st.lists(st.sampled_from(["do", "not", "open", "never", "can't", "without", "it", "n'est"]), min_size=4, max_size=9)
)
def test_what_denies_is_never_left_out(words):
    denies = {place for place, word in enumerate(words) if word in ("not", "never", "can't", "without", "n'est")}
    assert all(not gone & denies for gone in runs(" ".join(words)))


def test_a_long_sentence_is_not_tried_in_every_way():
    assert len(runs("x " * 59)) == 59 + 58 + 57 + 56
    assert len(runs("x " * 300)) < 300


@pytest.mark.parametrize(
    ("text", "gone", "left"),
    [
        ('He said "open the old file."', {5}, 'He said "open the old.'),
        ("Open the file — now.", {3, 4}, "Open the file."),
    ],
)
def test_ends_behind_a_closing_mark(text, gone, left):
    assert without(text, frozenset(gone)) == left


def test_a_bracket_is_not_left_open(judging):
    lines, search = judging()
    lines.translate(["Please open this old file (right now)."], "at most 20 chars")
    assert search.asked
    assert all(text.count("(") == text.count(")") for text in search.asked)


def test_one_that_is_too_short_is_not_made_shorter(judging):
    lines, search = judging()
    lines.translate([SOURCE], "at least 90 chars")
    assert search.asked == []


def test_it_says_what_it_left_out(judging):
    lines, _ = judging(candidates=4, reverse=None)
    [row] = lines.translate([SOURCE], "at most 39 chars")
    assert (row.fits, row.complete, row.intact) == (True, True, True)
    assert row.note.startswith("left out: ")
    assert all(word in SOURCE.split() or word == "…" for word in row.note.removeprefix("left out: ").split())
    assert [one.fits for one in row.candidates] == [True] * 3  # the best come first
    [row] = lines.translate([SOURCE], "at most 99 chars")
    assert row.note is None


@pytest.mark.parametrize(
    ("text", "gone", "left"),
    [
        ("Attention : fichier ouvert", {2, 3}, "Attention"),
        ("Open iPhone settings now", {0}, "iPhone settings now"),
        ("Visit https://a.org for more", {0}, "https://a.org for more"),
        ("Now open, please, the file", {0}, "Open, please, the file"),
    ],
)
def test_what_stands_first_and_last(text, gone, left):
    assert without(text, frozenset(gone)) == left


def test_names_deny_nothing():
    assert frozenset([0]) in runs("Python's old file is here")
