"""Sentence search: translations of a sentence without some of its words, and when they are chosen.

The model here translates word for word. Its reverse model subtracts something for each word that is missing.
"""

import re
from collections import Counter

import numpy as np
import pytest

from families import tiny
from lengthwise import Writer, Written, at_most, measure
from lengthwise.controls import CountdownHead, EncodingControl
from lengthwise.controls.attach import attach
from lengthwise.scoring.reverse import ReverseModel
from lengthwise.translation import Translator
from lengthwise.translation.compression import runs, without
from lengthwise.translation.hypotheses import WIDER, Hypotheses
from translation.fakes import fake_writer

SOURCE = "Oh please do open that very old file right now."
WHOLE = "Ah pitié donc ouvre ce très vieux fichier tout maintenant."  # 58 characters
SHORT = "Donc ouvre ce vieux fichier maintenant."  # 39: without the four fillers, in three places
FRENCH = dict(zip(SOURCE.lower().strip(".").split(), WHOLE.lower().strip(".").split(), strict=True))
FRENCH["kindly"] = "pitié"
FILLERS = dict.fromkeys(("ah", "pitié", "très", "tout"), 0.125)


def french(text):
    def word(found):
        known = FRENCH.get(found[0].lower(), found[0])
        return known.capitalize() if found[0][0].isupper() else known

    return re.sub(r"[A-Za-z]+", word, text)


def two_a_word(text):
    """Return the number of tokens, which is never the number of words."""
    return 2 * len(text.split())


class WordForWord:
    """In place of the search. Within a budget it finds `tight`, or nothing complete. `torn`: what is incomplete."""

    needs_length, reads_length_first = False, False

    def __init__(self, tight=None, torn=()):
        self.tight, self.torn = tight, torn
        self.received = []

    def written(self, text, complete=True):
        return Written(text, len(text), "chars", "", True, complete, "fake", two_a_word(text))

    def free(self, texts):
        return [[self.written(french(text)), self.written(f"{french(text)} Voilà, voilà.")] for text in texts]

    def bound(self, texts, budgets, *how):
        return [[self.written(self.tight or "z", complete=bool(self.tight))] for _ in texts]

    def first(self, texts):
        self.received += [text for text in texts if " " in text]  # words alone are translated to find omissions
        return [self.written(french(text), complete=french(text) not in self.torn) for text in texts]


class MissingWords:
    """In place of a reverse model: the sum of the costs of the words that an output lacks."""

    def __init__(self, costs, usually=1.0):
        self.costs, self.usually = costs, usually

    def mean_log_prob(self, sources, outputs):
        return np.array([self.score(french(s), o) for s, o in zip(sources, outputs, strict=True)])

    def score(self, whole, output):
        missing = Counter(self.words(whole)) - Counter(self.words(output))
        return -sum(self.costs.get(word, self.usually) for word in missing.elements())

    def words(self, text):
        return re.findall(r"\w+", text.lower())


class WordForWordScores:
    """In place of the translator's log-probabilities: 2 nats for each word of an output that translates none."""

    def log_probs(self, outputs, sources):
        for row, (output, source) in enumerate(zip(outputs, sources, strict=True)):
            known = french(source).lower()
            yield row, np.array([0.0 if word in known else -2.0 for word in re.findall(r"\w+", output.lower())])


class ForwardMissingWords(WordForWordScores, MissingWords):
    """In place of the translator's own score."""

    def mean_log_prob(self, sources, outputs):
        return super().mean_log_prob(outputs, sources)


class Indifferent(WordForWordScores):
    """In place of the translator's own score: the same for every output."""

    def mean_log_prob(self, sources, outputs):
        return np.zeros(len(outputs))


@pytest.fixture
def translator(monkeypatch):
    """Returns a translator with these parts, and its search."""

    def make(reverse=None, forward=None, tight=None, torn=(), **options):
        search = WordForWord(tight, torn)
        monkeypatch.setattr("lengthwise.translation.translator.Hypotheses", lambda writer, beams: search)
        monkeypatch.setattr("lengthwise.translation.translator.forward_model", lambda engine, prefix: forward)
        lines = Translator(fake_writer(source_lang="en", target_lang="fr"), reverse=reverse, **options)
        lines.tokenizer = lambda text, add_special_tokens: {
            "input_ids": 3 * text.split()
        }  # not the number that is generated
        return lines, search

    return make


@pytest.fixture
def scored(translator):
    """The same with a reverse model to which fillers cost little, and with scores of the translator itself."""
    return lambda **parts: translator(**{"reverse": MissingWords(FILLERS), "forward": Indifferent()} | parts)


LIMITS = [(39, "chars"), (6, "words"), (12, "tokens"), (39 - 5, "chars-nospace"), (39, "bytes")]


@pytest.mark.parametrize(("high", "unit"), LIMITS)
def test_the_words_that_cost_least_are_dropped(scored, high, unit):
    lines, _ = scored()
    [row] = lines.translate([SOURCE], at_most(high, unit))
    assert (row.text, row.length, row.fits, row.complete) == (SHORT, high, True, True)
    assert row.score == -0.5


def test_with_a_longer_limit_fewer_words_are_dropped(scored):
    lines, _ = scored(reverse=MissingWords({"ah": 0.1, "pitié": 0.2, "très": 0.3, "tout": 0.3}))
    rows = lines.translate([SOURCE] * 4, [at_most(high, "chars") for high in (58, 57, 52, 51)])
    assert [row.text for row in rows] == [
        WHOLE,
        "Pitié donc ouvre ce très vieux fichier tout maintenant.",  # 55
        "Ah donc ouvre ce très vieux fichier tout maintenant.",  # 52
        "Donc ouvre ce très vieux fichier tout maintenant.",  # 49
    ]


@pytest.mark.parametrize("reverse", [None, MissingWords(FILLERS)])
def test_nothing_is_dropped_if_the_translator_itself_cannot_score(translator, reverse):
    lines, search = translator(reverse)
    [row] = lines.translate([SOURCE], "at most 39 chars")
    assert (row.text, row.fits, search.received) == (WHOLE, False, [])


def test_without_a_reverse_model_words_are_dropped_where_nothing_else_is_complete(translator):
    lines, _ = translator(forward=ForwardMissingWords(FILLERS))
    [row] = lines.translate([SOURCE], "at most 39 chars")
    assert (row.text, row.complete, row.score) == (SHORT, True, None)
    lines, search = translator(forward=ForwardMissingWords(FILLERS), tight="pompeux")
    [row] = lines.translate([SOURCE], "at most 39 chars")
    assert (row.text, row.complete, search.received) == ("pompeux", True, [])


def test_words_that_the_search_omits_are_named(scored):
    lines, _ = scored(tight="Ouvre ce fichier maintenant.", reverse=None)
    short, whole = lines.translate([SOURCE] * 2, [at_most(30, "chars"), at_most(58, "chars")])
    assert (short.text, short.fits, whole.text) == ("Ouvre ce fichier maintenant.", True, WHOLE)
    assert (short.note, whole.note) == ("left out: Oh please … old … right", None)


@pytest.mark.parametrize(("cost", "fewer"), [(0.4, False), (0.6, True)])
def test_nothing_is_dropped_where_the_search_finds_as_good_a_translation(scored, cost, fewer):
    tight = "Pitié donc ouvre ce très vieux fichier tout maintenant."
    lines, search = scored(reverse=MissingWords({"ah": cost, "très": 0.2}), tight=tight)
    [row] = lines.translate([SOURCE], "at most 55 chars")
    assert bool(search.received) is fewer
    assert row.text == (tight if not fewer else "Ah pitié donc ouvre ce vieux fichier tout maintenant.")
    assert lines.translate([SOURCE], "at most 58 chars")[0].text == WHOLE


def test_nothing_is_dropped_where_the_free_translation_fits(scored):
    lines, search = scored()
    rows = lines.translate([SOURCE, SOURCE, f"{SOURCE} {SOURCE}"], ["at most 58 chars", None, "at most 117 chars"])
    assert [row.text for row in rows] == [WHOLE, WHOLE, f"{WHOLE} {WHOLE}"]
    assert search.received == []


@pytest.mark.parametrize("mark", ["%s", "{name}", "42", "https://a.org", "{n, plural, one {# day} other {# days}}"])
def test_placeholders_and_numbers_are_never_dropped(scored, mark):
    lines, search = scored()
    limit = len(mark) + 40
    [row] = lines.translate([f"Oh please do open that very {mark} old file right now."], at_most(limit, "chars"))
    assert search.received
    assert all(mark in text for text in search.received)
    assert row.text == f"Donc ouvre ce {mark} vieux fichier maintenant."
    assert (row.intact, row.fits, row.complete) == (True, True, True)


def test_the_best_that_fit_become_candidates(scored):
    lines, _ = scored(candidates=16)
    [row] = lines.translate([SOURCE], "at most 39 chars")
    short = [row, *(one for one in row.candidates if one.fits and one.text != "z")]
    assert (len(short), row.text) == (8, SHORT)
    assert all(len(one.text) <= 39 and one.complete for one in short)
    scores = [MissingWords(FILLERS).score(WHOLE, one.text) for one in short]
    assert [one.score for one in short] == scores == sorted(scores, reverse=True)


def test_several_runs_are_dropped_only_where_that_should_fit(scored):
    lines, search = scored()
    lines.translate([f"{SOURCE} {SOURCE}"], "at most 79 chars")
    several = set(search.received) - {without(SOURCE, gone) for gone in runs(SOURCE, 1 - 39 / 58)}
    assert 1 < len(several) <= 8
    assert max(len(french(text)) for text in several) == 39


def test_equal_translations_count_once(scored):
    lines, search = scored(candidates=16)
    [row] = lines.translate(["Please kindly do open that old file"], "at most 27 chars")
    alike = {"Please do open that file", "Kindly do open that file"}  # their translations are equal, and second best
    assert alike <= set(search.received)
    short = [row, *(one for one in row.candidates if one.fits and one.text != "z")]
    assert (row.text, len(short)) == ("Donc ouvre ce vieux fichier", 7)


def test_the_end_can_be_dropped(scored):
    lines, _ = scored(reverse=MissingWords({"tout": 0.1, "maintenant": 0.1}))
    [row] = lines.translate([SOURCE], "at most 42 chars")
    assert (row.text, row.complete) == ("Ah pitié donc ouvre ce très vieux fichier.", True)
    assert row.note == "left out: right now."


def test_an_incomplete_translation_is_not_chosen(scored):
    [row] = scored(torn=[SHORT])[0].translate([SOURCE], "at most 39 chars")
    assert row.text != SHORT
    assert (row.fits, row.complete) == (True, True)


@pytest.mark.parametrize(("cost", "fits"), [(1.2, True), (1.3, False)])
def test_a_compressed_translation_with_a_far_lower_score_is_not_complete(scored, cost, fits):
    lines, _ = scored(reverse=MissingWords({}, usually=cost), candidates=9)
    [row] = lines.translate([SOURCE], "at most 6 words")  # four are dropped: 4.8 or 5.2 nats
    short = [one for one in (row, *row.candidates) if len(one.text.split()) == 6]
    assert (short[0].score, short[0].complete, row.fits) == (pytest.approx(-4 * cost), fits, fits)


@pytest.mark.parametrize(("cost", "text"), [(0.45, "pompeux"), (0.55, WHOLE)])
def test_a_searched_translation_with_a_far_lower_score_is_not_complete(scored, cost, text):
    lines, _ = scored(reverse=MissingWords({}, usually=cost), tight="pompeux")
    [row] = lines.translate([SOURCE], "at most 7 chars")  # it has none of ten words
    assert (row.text, row.fits) == (text, text == "pompeux")
    lines, _ = scored(reverse=None, tight="pompeux")  # without scores
    assert lines.translate([SOURCE], "at most 7 chars")[0].complete


@pytest.mark.parametrize(("high", "unit"), LIMITS[:3])
def test_two_compressed_sentences_share_the_budget(scored, high, unit):
    lines, _ = scored()
    between = {"chars": 1}.get(unit, 0)
    [row] = lines.translate([f"{SOURCE} {SOURCE}"], at_most(2 * high + between, unit))
    assert (row.text, row.length, row.complete) == (f"{SHORT} {SHORT}", 2 * high + between, True)
    [row] = lines.translate([f"{SOURCE} {SOURCE}"], at_most(5 * high // 2, unit))
    assert (row.fits, row.complete) == (True, True)
    [row] = lines.translate([f"{SOURCE} {SOURCE}"], at_most(high, unit))  # too tight for two sentences
    assert (row.text, row.fits, row.complete) == (f"{WHOLE} {WHOLE}", False, True)


def test_what_one_sentence_saves_the_next_can_use(scored):
    lines, _ = scored()
    [row] = lines.translate([f"{SOURCE} {SOURCE}"], "at most 82 chars")  # 40 for the first one, which takes 39
    assert (row.text, row.fits) == (f"{SHORT} Ah donc ouvre ce vieux fichier maintenant.", True)


def test_a_sentence_in_capitals(scored):
    lines, search = scored()
    [row] = lines.translate([SOURCE.upper()], "at most 39 chars")
    assert (row.text, row.complete) == (SHORT.upper(), True)
    assert {text[0] + text[1:].lower() for text in search.received} == set(search.received)


def test_a_translation_that_fits_once_its_references_are_mended(scored):
    lines, search = scored()
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
def test_the_rest_has_the_case_of_the_sentence(scored, source, read):
    lines, search = scored()
    lines.translate([source], "at most 5 chars")
    assert read in search.received


def test_half_of_the_words_can_be_dropped_around_a_placeholder(scored):
    lines, _ = scored()
    [row] = lines.translate(["%s oh open very right file"], "at most 16 chars")
    assert row.text == "%s ouvre fichier"
    [row] = lines.translate(["Oh open very right file %s"], "at most 16 chars")
    assert row.text == "Ouvre fichier %s"


@pytest.mark.parametrize("source", ["Go.", "Do open that.", "..."])
def test_a_short_sentence_is_not_compressed(scored, source):
    lines, search = scored()
    lines.translate([source], "at most 2 chars")
    assert search.received == []


def test_lines_fit_with_a_random_model(tokenizer, monkeypatch):
    model, asked, first = tiny("marian", tokenizer), [], Hypotheses.first
    model.final_logits_bias[0, tokenizer.convert_tokens_to_ids(".")] = 4.0
    writer = Writer(model, tokenizer, name="tiny-en-fr")
    monkeypatch.setattr(Hypotheses, "first", lambda self, texts: asked.extend(texts) or first(self, texts))
    budgets = ["at most 30 chars", "at most 3 words", "at most 12 tokens"]
    source = [" It was a day. The clocks were striking! "] * 3
    for row in Translator(writer, beams=1, reverse=ReverseModel(writer.engine)).translate(source, budgets):
        assert row.fits
        assert row.unit == "tokens" or row.length == measure(row.text, row.unit)
        assert (row.text[0], row.text[-1]) == (" ", " ")
    assert {"It was day.", "The clocks!"} <= set(asked)


def test_brackets_stay_balanced(scored):
    lines, search = scored()
    lines.translate(["Please open this old file (right now)."], "at most 20 chars")
    assert search.received
    assert all(text.count("(") == text.count(")") for text in search.received)


def test_a_translation_that_is_too_short_is_not_compressed(scored):
    lines, search = scored()
    lines.translate([SOURCE], "at least 90 chars")
    assert search.received == []


def test_the_note_names_the_dropped_words(scored):
    lines, _ = scored(candidates=4, reverse=None)
    [row] = lines.translate([SOURCE], "at most 39 chars")
    assert (row.fits, row.complete, row.intact) == (True, True, True)
    assert row.note.startswith("left out: ")
    assert all(word in SOURCE.split() or word == "…" for word in row.note.removeprefix("left out: ").split())
    assert [one.fits for one in row.candidates] == [True] * 3  # the best come first
    [row] = lines.translate([SOURCE], "at most 99 chars")
    assert row.note is None


@pytest.mark.parametrize(
    ("controls", "can_compress"),
    [
        ([], True),
        ([CountdownHead("chars", hidden=4)], True),  # without a length it is the plain model
        ([EncodingControl("difference", unit="chars")], False),
        ([EncodingControl("difference", unit="words", at_most=True)], False),
        ([EncodingControl("difference", unit=("words", "chars"), at_most=True)], True),  # with a distant limit
        ([EncodingControl("difference", unit="chars"), CountdownHead("chars", hidden=4, at_most=True)], False),
    ],
)
def test_models_that_score_without_a_length_can_compress(sp_unigram, controls, can_compress):
    model = tiny("marian", sp_unigram)
    writer = Writer(attach(model, controls, sp_unigram) if controls else model, sp_unigram, name="tiny-en-fr")
    assert Translator(writer).search.can_compress is can_compress


NARROW, SHORTER, WIDE = (1, 1.0), (1, 0.95), (WIDER, 0.95)


@pytest.mark.parametrize(
    ("budget", "searches"),
    [
        ("at most 6 chars", [NARROW]),
        ("at most 6 chars", [NARROW, SHORTER]),
        ("at most 6 chars", [NARROW, SHORTER, WIDE]),
        ("exactly 6 chars", [NARROW, WIDE]),  # nothing shorter can be asked for
    ],
)
def test_a_length_that_is_read_first_needs_other_searches_only_if_few_beams_fail(translator, budget, searches):
    lines, search = translator(forward=Indifferent())
    search.reads_length_first, asked = True, []

    def bound(texts, budgets, *how):
        asked.append(how)
        found = "Vas-y." if how == searches[-1] else "z"
        return [[search.written(found, complete=found != "z")] for _ in texts]

    search.bound = bound
    [line] = lines.translate(["Go there at once."], budget)
    assert (asked, line.fits, line.complete, line.text) == (searches, True, True, "Vas-y.")
