"""The shortener: what holds for every text and budget, with a random model; and what real texts become."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lengthwise
from lengthwise import Shortened, Written
from lengthwise.controls import PromptControl
from lengthwise.engines.base import TokenLogProbs
from lengthwise.length.budget import Budget
from lengthwise.shortening.content import stems
from lengthwise.shortening.pieces import split_pieces, split_sentences
from lengthwise.shortening.records import Candidate, Source
from lengthwise.shortening.short_forms import HEADLINE_FORMS, SHORT_FORMS
from lengthwise.shortening.shortener import _is_settled, _is_sound
from lengthwise.translation.placeholders import count_placeholders

TEXTS = [
    "The operation could not be completed because the disk is full.",
    "The file {name} could not be opened, because it was made by version 3 of %s.",
    "On Monday, Anna Smith (42) did not go to Paris, which is large. She stayed at home. Nobody knew why!",
    "Save as a copy",
]
FORMS = [*SHORT_FORMS.values(), *HEADLINE_FORMS.values()]
SHORT = {word.lower() for form in FORMS for word in form.split()} | {"a", "an"}


def words(text):
    pieces = [piece for sentence in split_sentences(text) for piece in split_pieces(sentence)]
    return [piece.lower for piece in pieces if piece.is_word]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.sampled_from(TEXTS),
    limit=st.integers(8, 70),
    unit=st.sampled_from(["chars", "words", "tokens"]),
    form=st.sampled_from(["text", "sentence", "headline"]),
)
def test_within_and_faithful_and_nothing_lost_in_silence(shortener, text, limit, unit, form):
    [one] = shortener.shorten(text, f"at most {limit} {unit}", form=form, faithful=True)
    assert one.error is None
    assert one.length == lengthwise.measure(one.text, unit, tokenizer=shortener.model.tokenizer)
    assert one.fits == (one.length <= limit)
    assert one.fits or all(other.length >= one.length for other in one.candidates)
    assert set(words(one.text)) <= set(words(text)) | SHORT
    lost = count_placeholders(text) - count_placeholders(one.text)
    assert one.intact == (not lost)
    for word in [*lost, *(number for number in ("42", "3") if number in words(text) and number not in words(one.text))]:
        assert word in one.note
    if "not" in words(text) and not {"not", "couldn't", "didn't", "nobody"} & set(words(one.text)):
        assert "not" in one.note


def written(text):
    return Written(text, len(text), "chars", "", True, True, "writer", 5)


@pytest.fixture
def any_text(monkeypatch):
    """A random model writes marks and parts of words; none of them is discarded."""
    monkeypatch.setattr("lengthwise.shortening.shortener._about_source", as_written)
    monkeypatch.setattr("lengthwise.shortening.shortener.is_empty", lambda *_: False)


def as_written(_source, some, _form):
    return [Candidate(one.text, "rewritten", one.complete) for one in some]


@pytest.mark.parametrize(
    ("text", "routes"),
    [
        ("Operation not completed", {"rewritten"}),
        ("Operation failed: disk full", {"rewritten"}),  # a word that the source has not; the note says so
        ("Operation 7 not completed", {"rewritten", "left out"}),  # a number that it has not
        ("Operation not completed because of a disk", {"rewritten", "left out"}),  # too long
    ],
)
def test_a_sound_headline_of_a_model_trained_for_headlines_has_no_competitor(shortener, monkeypatch, text, routes):
    monkeypatch.setattr("lengthwise.shortening.shortener.rewrite", lambda *_: [[written(text)]])
    monkeypatch.setattr(
        type(shortener.writer.engine), "controls", [PromptControl("A headline of {target} {unit}: {text}")]
    )
    [one] = shortener.shorten(TEXTS[0], "at most 30 chars", form="headline")
    assert {other.route for other in [one, *one.candidates]} == routes
    [one] = shortener.shorten(TEXTS[0], "at most 30 chars", form="text")
    assert "left out" in {other.route for other in [one, *one.candidates]}


@pytest.fixture
def trained(shortener, monkeypatch):
    """The shortener, as if its model had been trained to shorten."""
    template = "Write a shorter text of at most {target} {unit}. {text}"
    monkeypatch.setattr(type(shortener.writer.engine), "controls", [PromptControl(template)])
    return shortener


def test_a_model_trained_to_shorten_takes_part_in_the_choice(trained, monkeypatch):
    texts = ["Operation not completed.", "Disk is full: operation not completed."]
    monkeypatch.setattr("lengthwise.shortening.shortener.rewrite", lambda *_: [[written(text) for text in texts]])
    for likelihood in (0.0, 1e4):
        monkeypatch.setattr("lengthwise.shortening.choosing.UNLIKELIHOOD", likelihood)
        [one] = trained.shorten(TEXTS[0], "at most 40 chars")
        found = [one, *one.candidates]
        assert {other.route for other in found} == {"left out", "rewritten"}
        assert [other.score for other in found if other.complete] == sorted(
            (other.score for other in found if other.complete), reverse=True
        )
        assert (min(other.score for other in found) < -1e5) == bool(likelihood)
    monkeypatch.setattr("lengthwise.shortening.shortener.LIKELY", -1e9)
    [one] = trained.shorten(TEXTS[0], "at most 40 chars")
    assert {other.route for other in [one, *one.candidates]} == {"left out"}, "likely enough"
    monkeypatch.setattr("lengthwise.shortening.rewriting.LONGEST", 5)  # this text is longer than those of its training
    [one] = trained.shorten(TEXTS[0], "at most 40 chars")
    assert min(other.score for other in [one, *one.candidates]) > -1e5


def test_short_forms_of_several_sentences_are_judged_one_by_one(trained, monkeypatch):
    text, read = "The old disk in the box is full. Nobody knew why. The red door in the house was open.", []

    def log_probs_after(engine, prompt, texts):
        read.append((engine.tokenizer.decode(prompt), [engine.tokenizer.decode(one) for one in texts]))
        return [TokenLogProbs(*np.full((3, len(one)), -1.0)) for one in texts]

    monkeypatch.setattr("lengthwise.shortening.shortener.rewrite", lambda *_: pytest.fail("it takes longest"))
    monkeypatch.setattr("lengthwise.shortening.choosing.log_probs_after", log_probs_after)
    [one] = trained.shorten(text, "at most 70 chars")
    assert one.candidates
    judged = {sentence: some for sentence in split_sentences(text) for prompt, some in read if sentence in prompt}
    assert judged, "each after its own sentence, which ends its prompt"
    for sentence, some in judged.items():
        assert not any(form.startswith(sentence) for form in some), "whole sentences are not judged"
        assert len(some) == len(set(some)), "each is read once"
    assert not [prompt for prompt, _ in read if text in prompt]


def test_an_unlikely_short_form_costs_the_text_its_share(trained, monkeypatch):
    text = "The old disk in the box is full. Nobody knew why. The red door in the house was open."
    scores = {}
    for nats in (0.0, -10.0):
        monkeypatch.setattr(
            "lengthwise.shortening.choosing._likelihoods", lambda _, __, texts, nats=nats: [nats] * len(texts)
        )
        [one] = trained.shorten(text, "at most 70 chars")
        scores[nats] = {other.text: other.score for other in (one, *one.candidates)}
    whole = set(split_sentences(text))
    assert any(one not in whole for short in scores[0.0] for one in split_sentences(short))
    for short, score in scores[0.0].items():
        sentences = split_sentences(short)
        changed = sum(one not in whole for one in sentences)
        expected = 0.2 * 7 * changed / len(sentences)  # below -3
        assert score - scores[-10.0][short] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(("form", "text", "each"), [("sentence", "Disk full.", -10.0), ("text", "Full. Red.", -5.0)])
def test_a_rewritten_text_is_read_after_the_whole_source(trained, monkeypatch, form, text, each):
    source, scores = "The old disk in the box is full. Nobody knew why. The red door in the house was open.", []
    monkeypatch.setattr("lengthwise.shortening.shortener.rewrite", lambda *_: [[written(text)]])
    monkeypatch.setattr("lengthwise.shortening.shortener._is_sound", lambda *_: False)
    for nats in (0.0, -10.0):

        def likelihoods(engine, prompt, texts, nats=nats):
            assert (source in engine.tokenizer.decode(prompt)) == (text in texts) or not texts
            return [nats] * len(texts)

        monkeypatch.setattr("lengthwise.shortening.choosing._likelihoods", likelihoods)
        [one] = trained.shorten(source, "at most 70 chars", form=form)
        scores += [other.score for other in (one, *one.candidates) if other.text == text]
    assert scores[0] - scores[1] == pytest.approx(0.2 * (-3.0 - each), abs=1e-4)


def test_one_sentence_is_written_if_one_is_asked_for(trained, monkeypatch):
    texts = ["Disk full. Not completed.", "Disk full: operation not completed."]
    monkeypatch.setattr("lengthwise.shortening.shortener.rewrite", lambda *_: [[written(text) for text in texts]])
    for form, some in (("sentence", texts[1:]), ("text", texts)):
        [one] = trained.shorten(TEXTS[0], "at most 40 chars", form=form)
        assert {other.text for other in [one, *one.candidates] if other.route == "rewritten"} == set(some)


@pytest.mark.parametrize(("sound", "routes"), [(True, {"left out"}), (False, {"left out", "rewritten"})])
def test_a_sound_text_with_words_left_out_has_no_competitor(shortener, monkeypatch, sound, routes):
    monkeypatch.setattr("lengthwise.shortening.shortener.rewrite", lambda *_: [[written("Disk full.")]])
    monkeypatch.setattr("lengthwise.shortening.shortener._is_sound", lambda *_: sound)
    [one] = shortener.shorten(TEXTS[0], "at most 40 chars")
    assert {other.route for other in [one, *one.candidates]} == routes


def test_a_text_without_an_address_is_sound_and_one_without_a_format_is_not():
    for lost, sound in (("https://example.org/a", True), ("www.a.org", True), ("a.com/b", True), ("%s", False)):
        text = f"The tool is at {lost} now."
        source = Source(text, Budget.parse("at most 20 chars"), len, [split_pieces(text)])
        assert _is_sound(source, Candidate("The tool is now.", "left out", complete=True)) is sound


def test_unlikely_texts_of_several_sentences_are_not_rewritten():
    for text, settled in (("One is here. Two is here.", True), ("One is here, and two.", False)):
        source = Source(text, Budget.parse("at most 20 chars"), len, [*map(split_pieces, split_sentences(text))])
        unlikely = Candidate("One is here.", "left out", complete=True, likelihood=-50.0)
        assert _is_settled(source, [unlikely], "text") is settled
        assert not _is_settled(source, [unlikely], "sentence")
        assert not _is_settled(source, [], "text")


def test_progress_names_each_step(shortener, monkeypatch):
    monkeypatch.setattr("lengthwise.shortening.shortener.rewrite", lambda *_: [[written("Disk full.")]])
    for sound, last in ((True, []), (False, ["rewriting", "comparing"])):
        monkeypatch.setattr("lengthwise.shortening.shortener._is_sound", lambda *_, sound=sound: sound)
        steps = []
        shortener.shorten([TEXTS[0], TEXTS[3]], "at most 40 chars", progress=steps.append)
        assert steps == ["reading", "leaving words out", "comparing", *last]
    steps = []
    shortener.shorten(TEXTS[3], "at most 40 chars", progress=steps.append)
    assert steps == [], "it fits already"


def test_rewritten_texts_compete(shortener, monkeypatch):
    monkeypatch.setattr("lengthwise.shortening.shortener._is_sound", lambda *_: False)
    texts = ["Disk full: operation not completed.", "The big disk is full.", "The moon is made of cheese."]
    monkeypatch.setattr("lengthwise.shortening.shortener.rewrite", lambda *_: [[written(text) for text in texts]])
    [one] = shortener.shorten(TEXTS[0], "at most 40 chars")
    found = {other.text: other for other in [one, *one.candidates]}
    assert {other.route for other in found.values()} == {"left out", "rewritten"}
    assert found[texts[0]].note is None
    assert found[texts[1]].note == "left out: not; not in the source: big"
    assert texts[1] == one.candidates[-1].text, "it claims more than the source"
    assert texts[2] not in found  # it is about something else


@pytest.mark.parametrize(("source", "texts"), [("OK", {"OK"}), ("Some text.", {"Text."}), ("– –", {"–", "-", "– –"})])
def test_marks_and_letters_are_no_shorter_text(shortener, monkeypatch, source, texts):
    some = [written(text) for text in ("-", "S", "The", "–") if stems(source) or not text.isalpha()]
    monkeypatch.setattr("lengthwise.shortening.shortener.rewrite", lambda *_: [some])
    [one] = shortener.shorten(source, "at most 1 chars")
    assert {other.text for other in [one, *one.candidates]} == texts


@pytest.mark.parametrize("text", TEXTS[:3])
def test_the_model_rewrites_within_the_budget(shortener, monkeypatch, any_text, text):
    monkeypatch.setattr("lengthwise.shortening.shortener._is_sound", lambda *_: False)
    monkeypatch.setattr("lengthwise.shortening.shortener.claims_more", lambda *_: False)
    [one] = shortener.shorten(text, "at most 14 chars", candidates=2)
    assert one.fits
    rewritten = [other for other in [one, *one.candidates] if other.route == "rewritten"]
    assert rewritten
    assert all(other.length <= 14 for other in rewritten)


def test_no_text_begins_with_the_short_form_of_because(shortener):
    text = "Because calls are routed over the net, you do not need a phone company."
    [one] = shortener.shorten(text, "at most 60 chars", faithful=True)
    assert not [other.text for other in [one, *one.candidates] if other.text.startswith(":")]


def test_a_text_that_fits_comes_back_unchanged(shortener):
    [one] = shortener.shorten(TEXTS[0], "at most 100 chars")
    assert (one.text, one.route, one.coverage, one.note) == (TEXTS[0], "unchanged", 1.0, None)
    assert (one.as_json()["route"], one.as_json()["model"]) == ("unchanged", "")
    [one] = shortener.shorten(TEXTS[2], "at most 400 chars", form="sentence", faithful=True)
    assert one.route == "left out"  # it has three sentences


def test_budgets_for_each_text_and_relative_ones(shortener):
    found = shortener.shorten(TEXTS[:2], ["at most 0.5x", "at most 3 words"], faithful=True)
    assert [one.budget for one in found] == ["at most 31 chars", "at most 3 words"]
    with pytest.raises(ValueError, match="one budget for all texts or one for each; got 1 for 2 texts"):
        shortener.shorten(TEXTS[:2], ["at most 5 words"])
    for budget in (40, None):
        with pytest.raises(TypeError, match=f"a text such as 'at most 75 chars', or a Budget; got {budget}"):
            shortener.shorten(TEXTS[:1], budget)


def test_a_text_with_several_budgets_is_read_once(shortener, monkeypatch):
    budgets = ["at most 25 chars", "at most 40 chars", "at most 55 chars"]
    alone = [shortener.shorten(TEXTS[0], budget, faithful=True)[0].text for budget in budgets]
    prefilled = []
    prefill = type(shortener.model.engine).prefill
    monkeypatch.setattr(
        type(shortener.model.engine),
        "prefill",
        lambda engine, prompts, **options: prefilled.append(len(prompts)) or prefill(engine, prompts, **options),
    )
    together = shortener.shorten([TEXTS[0]] * 3, budgets, faithful=True)
    assert ([one.text for one in together], prefilled) == (alone, [1])


def test_errors_stay_with_their_text(shortener):
    bad, empty, good = shortener.shorten(["Some text.", " ", "Go."], ["short", "at most 3 chars", "at most 3 chars"])
    assert "cannot read 'short' as a budget" in bad.error
    assert empty.error == "the text is empty"
    assert good.text == "Go."


def test_a_minimum_above_the_length_of_the_text_is_an_error(shortener, monkeypatch):
    monkeypatch.setattr("lengthwise.shortening.shortener.rewrite", lambda *_: pytest.fail("it cannot become longer"))
    budgets = ["at least 500 words", "exactly 500 words", "at least 2x", "at least 3 words"]
    *refused, fits = shortener.shorten(["Some text here."] * 4, budgets)
    advice = "give a smaller one, or lengthwise write for a longer text"
    assert [one.error for one in refused] == [
        f"the text has 3 words and the minimum is 500; {advice}",
        f"the text has 3 words and the minimum is 500; {advice}",
        f"the text has 15 chars and the minimum is 30; {advice}",
    ]
    assert (fits.error, fits.route) == (None, "unchanged")


def test_what_cannot_fit_says_so(shortener):
    [one] = shortener.shorten("Incomprehensibilities notwithstanding.", "at most 4 chars", faithful=True)
    assert not one.fits
    assert one.text in ("Incomprehensibilities.", "Notwithstanding.", "Incomprehensibilities notwithstanding.")


def test_a_form_must_be_known(shortener):
    with pytest.raises(ValueError, match="a form is headline, sentence, text; got 'poem'"):
        shortener.shorten("Some text.", "at most 4 chars", form="poem")


def test_a_translator_cannot_leave_words_out(sp_unigram):
    from families import tiny

    with pytest.raises(ValueError, match="a model that has only a decoder"):
        lengthwise.Shortener(lengthwise.Writer(tiny("marian", sp_unigram), sp_unigram, name="marian"))


def test_another_model_may_rewrite(shortener, sp_unigram, any_text):
    from families import tiny

    summariser = lengthwise.Writer(tiny("marian", sp_unigram), sp_unigram, name="marian")
    [one] = lengthwise.Shortener(shortener.model, summariser).shorten(TEXTS[0], "at most 20 chars", candidates=2)
    assert "marian" in {other.model for other in [one, *one.candidates]}


def test_each_text_names_the_model_that_found_it(shortener, sp_unigram, monkeypatch):
    from families import tiny

    summariser = lengthwise.Writer(tiny("marian", sp_unigram), sp_unigram, name="marian")
    monkeypatch.setattr("lengthwise.shortening.shortener.rewrite", lambda *_: [[written("Disk full.")]])
    [one] = lengthwise.Shortener(shortener.model, summariser).shorten(TEXTS[0], "at most 40 chars")
    names = {"left out": shortener.model.name, "rewritten": "marian"}
    found = [one.as_json(), *one.as_json()["candidates"]]
    assert {row["route"] for row in found} == set(names)
    assert [row.get("model", one.model) for row in found] == [names[row["route"]] for row in found]
    assert all("source" not in row for row in found[1:])


@pytest.mark.real
def test_real_texts():
    found = lengthwise.shorten("The operation could not be completed because the disk is full.", "at most 40 chars")
    assert isinstance(found, Shortened)
    assert found.text == "Operation not completed: disk is full."
    assert (found.fits, found.complete, found.intact, found.note) == (True, True, True, None)


def test_a_summariser_rewrites_the_beginning_of_a_long_text(shortener, sp_unigram, any_text):
    from families import tiny

    summariser = lengthwise.Writer(tiny("marian", sp_unigram), sp_unigram, name="marian")
    text = " ".join(TEXTS[:2] * 40)
    assert len(summariser.engine.prompt_ids(text)) > summariser.engine.window
    [one] = lengthwise.Shortener(shortener.model, summariser).shorten(text, "at most 20 chars", candidates=2)
    assert "marian" in {other.model for other in [one, *one.candidates]}


def test_a_note_says_that_a_text_may_not_be_english(shortener):
    texts = ["Die Datei konnte nicht auf der Platte gespeichert werden.", TEXTS[0]]
    german, english = shortener.shorten(texts, "at most 40 chars", faithful=True)
    assert german.note.startswith("the text may not be English; left out: ")
    assert "English" not in (english.note or "")
    [unchanged] = shortener.shorten(texts[:1], "at most 90 chars")
    assert unchanged.note is None


def test_a_budget_that_cannot_be_read_is_an_error_of_the_text(shortener, monkeypatch):
    monkeypatch.setattr("lengthwise.shortening.shortener.load_shortener", lambda *_, **__: shortener)
    one = lengthwise.shorten(TEXTS[0], "30")
    assert (one.text, one.fits, one.source) == ("", False, TEXTS[0])
    assert one.error.startswith("cannot read '30' as a budget: the unit is missing; write for example 'at most 75")
