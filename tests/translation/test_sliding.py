"""Documents longer than the window: an engine that copies its source shows what each method reads and keeps."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from families import tiny
from lengthwise import Budget, Writer, attach
from lengthwise.controls import SentenceSeparator
from lengthwise.engines.base import Engine
from lengthwise.engines.rows import SearchResult, TokenLogProbs
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.translation import Translator
from lengthwise.translation import document as document_module
from lengthwise.translation.records import ALONE, CONTEXTS, Translation
from lengthwise.translation.sliding import DECODINGS, DocumentDecoder, Draft, _best

SEP, END = 1, 2


class Letters:
    """A tokenizer with a token for each letter."""

    def __call__(self, text=None, text_target=None, add_special_tokens=True):
        text = text_target if text is None else text
        if isinstance(text, list):
            return {"input_ids": [self(one, None, add_special_tokens)["input_ids"] for one in text]}
        return {"input_ids": [SEP if letter == "|" else ord(letter) for letter in text] + [END] * add_special_tokens}

    def batch_decode(self, rows, skip_special_tokens=True):
        return ["".join(map(chr, row)) for row in rows]


class Copying(Engine):
    """Continues each text with the source that the prefix has not covered. `wrong` turns a source into another text."""

    name, eos, pad, window, encoder_decoder = "copying", [END], 0, 512, True
    tokenizer = Letters()

    def __init__(self, maximum, wrong=lambda ids: ids):
        self.controls_ = [SentenceSeparator("|", maximum)] if maximum else []
        self.wrong, self.calls = wrong, []

    @property
    def controls(self):
        return self.controls_

    def search(self, prompts, lengths=None, *, prefixes, max_new_tokens, beams, sequences, processors=(), **_):
        rows = []
        for prompt, prefix in zip(prompts, prefixes, strict=True):
            self.calls.append(("".join("|" if i == SEP else chr(i) for i in prompt[:-1]), len(prefix)))
            ids = self.wrong(prompt[:-1])[len(prefix) :]
            if processors:
                ids = ids[: ids.index(SEP) + 1] if SEP in ids else ids
            rows += [[*ids, END][:max_new_tokens]] * sequences
        return SearchResult(rows, [0.0] * len(rows))

    def score(self, prompts, texts, lengths=None, cache=None):
        return TokenLogProbs(*np.zeros((3, len(texts), max(map(len, texts)))))


def texts(decoder, drafts):
    return [decoder.texts(draft) for draft in drafts]


sentence = st.text("abcdefgh", min_size=1, max_size=12)
documents = st.lists(st.lists(sentence, min_size=1, max_size=9), min_size=1, max_size=3)


@given(documents, st.integers(1, 40), st.integers(0, 2), st.integers(1, 2))
def test_every_sentence_is_translated_once_and_in_order(documents, window, hold_back, candidates):
    decoder = DocumentDecoder(Copying(64), window=window)
    for drafts in (
        decoder.segments(documents),
        decoder.slide(documents, hold_back=hold_back, candidates=candidates),
        decoder.revise(documents, decoder.segments(documents)),
    ):
        assert texts(decoder, drafts) == documents
        assert not any(draft.alone for draft in drafts)


def test_the_window_keeps_the_translations_of_what_stays_in_it():
    engine = Copying(64)
    DocumentDecoder(engine, window=9).slide([["aa", "bb", "cc", "dddddddddddd", "ee"]])
    # A sentence counts with its separator: three fit. The long one is alone, and has no context.
    assert engine.calls == [("aa|bb|cc", 0), ("dddddddddddd", 0), ("ee", 0)]
    engine.calls.clear()
    DocumentDecoder(engine, window=9).slide([["aa", "bb", "cc", "dd"]])
    assert engine.calls == [("aa|bb|cc", 0), ("bb|cc|dd", len("bb|cc|"))]


def test_sentences_at_the_end_of_a_window_can_wait_for_what_follows_them():
    engine = Copying(64)
    DocumentDecoder(engine, window=9).slide([["aa", "bb", "cc", "dd"]], hold_back=1)
    assert engine.calls == [("aa|bb|cc", 0), ("bb|cc|dd", len("bb|"))]


def test_a_revision_sees_both_sides():
    engine = Copying(64)
    decoder = DocumentDecoder(engine, window=9)
    documents = [["aa", "bb", "cc", "dd"]]
    drafts = decoder.segments(documents)
    engine.calls.clear()
    decoder.revise(documents, drafts)
    assert engine.calls == [("aa|bb|cc", 0), ("aa|bb|cc", 3), ("bb|cc|dd", 3), ("bb|cc|dd", 6)]


@pytest.mark.parametrize("method", ["segments", "slide"])
def test_a_window_with_a_wrong_count_is_translated_sentence_by_sentence(method):
    lost = lambda ids: ids[: len(ids) - 3] if ids.count(SEP) == 2 else ids  # noqa: E731
    decoder = DocumentDecoder(Copying(64, lost), window=9)
    [draft] = getattr(decoder, method)([["aa", "bb", "cc", "dd"]])
    assert decoder.texts(draft) == ["aa", "bb", "cc", "dd"]
    assert draft.alone == ({0, 1, 2, 3} if method == "slide" else {0, 1, 2})


def test_known_translations_of_single_sentences_are_not_searched_again():
    def lost(ids):
        return [token for token in ids if token != SEP]

    known = {"aa": (ord("x"),)}
    decoder = DocumentDecoder(Copying(64, lost), window=9, alone=known)
    assert texts(decoder, decoder.slide([["aa", "bb", "cc", "bb"]], hold_back=1)) == [["x", "bb", "cc", "bb"]]
    assert [source for source, _ in decoder.engine.calls if "|" not in source] == ["bb", "cc"]
    assert known.keys() == {"aa", "bb", "cc"}


def test_without_repair_a_missing_sentence_is_empty():
    lost = lambda ids: ids[: len(ids) - 3]  # noqa: E731
    decoder = DocumentDecoder(Copying(64, lost), window=9, repair=False)
    assert texts(decoder, decoder.segments([["aa", "bb", "cc"]])) == [["aa", "bb", ""]]
    surplus = DocumentDecoder(Copying(64, lambda ids: [*ids, SEP, ord("x")]), window=9, repair=False)
    assert texts(surplus, surplus.segments([["aa", "bb", "cc"]])) == [["aa", "bb", "ccx"]]


def test_a_model_that_was_not_trained_on_documents_translates_single_sentences():
    engine = Copying(0)
    decoder = DocumentDecoder(engine)
    assert texts(decoder, decoder.slide([["aa", "bb"]])) == [["aa", "bb"]]
    assert engine.calls == [("aa", 0), ("bb", 0)]


def test_the_default_window_is_smaller_than_the_longest_training_segment():
    assert DocumentDecoder(Copying(100)).window == 50


def translator_of(model, tokenizer, monkeypatch, revised):
    """A translator whose revisions are `revised`: untrained models write nonsense."""
    translator = Translator(Writer(TransformersEngine(model, tokenizer, "tiny")), beams=2)
    monkeypatch.setattr(DocumentDecoder, "revise", lambda self, documents, drafts: [self.draft(revised)])
    return translator


def test_a_revision_is_taken_if_it_keeps_the_placeholders(sp_unigram, monkeypatch):
    model = attach(tiny("marian", sp_unigram), SentenceSeparator("the", 40), sp_unigram)
    sources = ["some fox {name}.", "SOME DOGS RUN.", "some dog."]
    old = [Translation(text, len(text), "chars", "", True, True, "tiny", 1, source=text) for text in sources]
    new = ["a fox {name}.", "a dog runs.", "a {name}."]
    found = translator_of(model, sp_unigram, monkeypatch, new).in_context(sources, old, "revise")
    assert [one.text for one in found] == ["a fox {name}.", "A DOG RUNS.", "some dog."]
    assert found[0].length == len("a fox {name}.")


def test_what_a_revision_does_not_touch(sp_unigram, monkeypatch):
    """A sentence with an error, one that contains the separator, and one whose revision stops early."""
    model = attach(tiny("marian", sp_unigram), SentenceSeparator("the", 40), sp_unigram)
    sources = ["a refused one.", "over the dog.", "a long sentence about a quick brown fox that runs away."]
    old = [Translation(text, len(text), "chars", "", True, True, "tiny", 1, source=text) for text in sources]
    old[0] = Translation("", 0, "", "", False, False, "tiny", 0, error="too long", source=sources[0], intact=False)
    translator = translator_of(model, sp_unigram, monkeypatch, ["over a dog.", "a fox."])
    assert translator.in_context(sources, old, "revise") == old
    assert translator.in_context(sources[:1], old[:1], "revise") == old[:1]


def test_equal_drafts_keep_the_best_rank():
    a, b = Draft(((1,),)), Draft(((2,),))
    assert _best([(-0.3, a), (-0.2, b), (-0.1, a)], 1) == [a]


def test_a_separator_in_a_text_is_not_one():
    engine = Copying(64)
    decoder = DocumentDecoder(engine, window=20)
    assert decoder.texts(decoder.draft(["a|b", "c"])) == ["ab", "c"]
    decoder.segments([["a|b", "c"]])
    assert engine.calls[0][0] == "a b|c"


def test_a_model_of_sentences_has_no_context(sp_unigram, monkeypatch, tmp_path):
    translator = translator_of(tiny("marian", sp_unigram), sp_unigram, monkeypatch, [])
    for context in CONTEXTS:
        with pytest.raises(ValueError, match="tiny was not trained on documents"):
            translator.document("One.\n", context=context)
    with pytest.raises(ValueError, match="context is one of sliding, segments, revise; got 'slide'"):
        translator.document("One.\n", context="slide")


@pytest.mark.parametrize("method", ["segments", "slide", "revise"])
def test_a_real_model(method, sp_unigram):
    """An untrained model writes nonsense and never stops: still, each sentence has a text."""
    model = attach(tiny("marian", sp_unigram), SentenceSeparator("the", 40), sp_unigram)
    decoder = DocumentDecoder(TransformersEngine(model, sp_unigram, "tiny"), beams=2, window=30)
    documents = [["The dog.", "A fox.", "Where is it?"], ["One more."]]
    drafts = decoder.slide(documents, candidates=2) if method == "slide" else decoder.segments(documents)
    if method == "revise":
        drafts = decoder.revise(documents, drafts)
    assert [len(draft.sentences) for draft in drafts] == [3, 1]
    assert all(all(draft.sentences) for draft in drafts)


def test_the_mask_gives_the_right_number_of_sentences(sp_unigram):
    """The scores of the separator and of the end are raised, so that without the mask each is written at once."""
    model = attach(tiny("marian", sp_unigram), SentenceSeparator("the", 40), sp_unigram)
    engine = TransformersEngine(model, sp_unigram, "tiny")
    documents = [["The dog.", "A fox.", "Where is it?"], ["One more."], ["A cat.", "It sleeps."]]
    [mark] = sp_unigram(text_target="the", add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        model.final_logits_bias[0, [mark, *engine.eos]] += 30
    free, counted = (DocumentDecoder(engine, beams=3, window=30, count=count).segments(documents) for count in (0, 1))
    assert [len(draft.alone) for draft in free] == [3, 0, 2]
    assert [len(draft.sentences) for draft in counted] == [3, 1, 2]
    assert not any(draft.alone for draft in counted)
    assert all(all(draft.sentences) for draft in counted)


class FewX(Copying):
    """Writes x for b, and c for x; a text is less probable the more letters x it has."""

    def __init__(self):
        letters = {ord("b"): ord("x"), ord("x"): ord("c")}
        super().__init__(64, lambda ids: [letters.get(one, one) for one in ids])

    def score(self, prompts, texts, lengths=None, cache=None):
        found = np.zeros((3, len(texts), max(map(len, texts))))
        for row, text in enumerate(texts):
            found[:, row, : len(text)] = -(np.array(text) == ord("x")).astype(float)
        return TokenLogProbs(*found)


def test_a_revision_replaces_only_what_is_less_probable():
    decoder = DocumentDecoder(FewX(), window=9)
    documents = [["aa", "bb", "xx"]]
    drafts = [decoder.draft(["aa", "bb", "xx"])]
    assert texts(decoder, decoder.revise(documents, drafts)) == [["aa", "xx", "cc"]]
    assert texts(decoder, decoder.revise(documents, drafts, compare=True)) == [["aa", "bb", "cc"]]


class TwoOptions(Copying):
    """Its best continuation has x for b; the second is the copy."""

    def search(self, prompts, lengths=None, *, sequences, **options):
        copies = super().search(prompts, sequences=1, **options).ids
        rows = [row for ids in copies for row in ([ord("x") if one == ord("b") else one for one in ids], ids)]
        return SearchResult(rows if sequences == 2 else rows[::2], [0.0] * sequences * len(prompts))


class NoX:
    """A reverse model that assigns low probability to sources of texts with the letter x."""

    def __init__(self):
        self.seen = []

    def likelihood(self, sources, outputs):
        self.seen += zip(sources, outputs, strict=True)
        return np.array(
            [(-9.0 if "x" in output else 0.0, len(source)) for source, output in self.seen[-len(outputs) :]]
        )


def test_a_reverse_model_scores_candidates():
    documents = [["aa", "bb", "cc", "dd"]]
    reverse = NoX()
    for scorer, expected in ((None, "xx"), (reverse, "bb")):
        decoder = DocumentDecoder(TwoOptions(64), window=9, reverse=scorer)
        [found] = texts(decoder, decoder.slide(documents, hold_back=1, candidates=2))
        assert found == ["aa", expected, "cc", "dd"]
    # The sentences of the prefix are scored with the new ones, each with its own source.
    assert reverse.seen[:3] == [("aa", "aa"), ("bb", "xx"), ("cc", "cc")]
    assert {len(source) for source, _ in reverse.seen} == {2}
    assert ("bb", "bb") in reverse.seen[6:]


class Copyist(Translator):
    """Ends what it translates alone in x, and cuts it to its budget; in context, `engine` translates."""

    def __init__(self, tokenizer, engine):
        super().__init__(Writer(TransformersEngine(tiny("marian", tokenizer), tokenizer, "tiny")), beams=2)
        self._engine, self.asked = engine, []

    def translate(self, texts, budgets=None):
        asked = list(zip(texts, budgets or [None] * len(texts), strict=True))
        self.asked += asked
        return [self.one(text, budget) for text, budget in asked]

    def one(self, source, budget):
        text = f"{source[:-1]}x"[: budget and budget.high]
        return Translation(text, len(text), "chars", str(budget or ""), True, True, "tiny", 1, source=source)


LETTERS = ["aaaaaaaa", "bbbbbbbb", "cccccccc", "dddddddd", "eeeeeeee", "ffffffff", "gggggggg"]
LINES = "\n\n".join(LETTERS) + "\n"


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_document_in_context(sp_unigram, monkeypatch, context):
    """Each five sentences are a window of the document: the translations are those of the decoder for these five."""
    monkeypatch.setattr(document_module, "WINDOW", 5)
    engine, direct = Copying(64), Copying(64)
    done = Copyist(sp_unigram, engine).document(LINES, context=context)
    decoder = DocumentDecoder(direct)
    expected = []
    for part in (LETTERS[:5], LETTERS[5:]):
        expected += decoder.texts(DECODINGS[context](decoder, part, decoder.draft([f"{text[:-1]}x" for text in part])))
    rows = list(done.rows())
    assert [row["text"].lower() for row in rows] == expected == LETTERS
    assert [row["window"] for row in rows] == [1, 1, 1, 1, 1, 2, 2]
    assert engine.calls == direct.calls
    assert not any("note" in row for row in rows)


def test_each_context_has_a_way_to_decode():
    assert tuple(DECODINGS) == CONTEXTS


def test_sliding_is_with_the_last_sentence_held_back(sp_unigram):
    engine = Copying(64)
    Copyist(sp_unigram, engine).document(LINES, context="sliding")
    assert engine.calls[1] == ("bbbbbbbb|cccccccc|dddddddd", len("bbbbbbbb|"))


@pytest.mark.parametrize("context", ["sliding", "segments"])
def test_sentences_of_a_window_with_a_wrong_count_are_translated_alone(sp_unigram, context):
    def lose(ids):
        return [one for one in ids if one != SEP] if ord("d") in ids else ids

    engine = Copying(64, lose)
    translator = Copyist(sp_unigram, engine)
    rows = list(translator.document(LINES, context=context).rows())
    alone = [row["source"][0] for row in rows if row.get("note") == ALONE]
    assert len(rows) == 7
    assert "d" in alone
    assert alone == [row["text"][0].lower() for row in rows if row["text"].endswith("x")]
    assert len(translator.asked) == 7
    assert not {source for source, _ in engine.calls} & {letter * 8 for letter in alone}  # none was searched again


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("page 12 of it", lambda ids: [one for one in ids if chr(one) not in "12"]),
        ("so it ends.", lambda ids: [one for one in ids if chr(one) != "."]),
        ("a short one", lambda ids: ids * 20),
    ],
)
def test_a_faulty_translation_in_context_is_not_taken(sp_unigram, source, wrong):
    old = [Translation(source.replace("it", "at"), 1, "chars", "", True, True, "tiny", 1, source=source)]
    translator = Copyist(sp_unigram, Copying(64, wrong))
    assert translator.in_context([source], old, "sliding") == old
    [taken] = Copyist(sp_unigram, Copying(64)).in_context([source], old, "sliding")
    assert taken.text == source


def test_sentences_over_their_share_are_translated_again_alone(sp_unigram):
    copyist = Copyist(sp_unigram, Copying(64))
    done = copyist.document(LINES, "at most 65 chars", context="sliding")
    assert done.fits
    assert {budget.high for _, budget in copyist.asked[7:]} == {7}
    assert [row["length"] for row in done.rows()] == [7] * 7
    assert done.budget == Budget.parse("at most 65 chars")


@pytest.mark.parametrize("context", CONTEXTS)
def test_an_interrupted_document_in_context_is_resumed(sp_unigram, monkeypatch, tmp_path, context):
    monkeypatch.setattr(document_module, "WINDOW", 3)
    whole, out = tmp_path / "whole.md", tmp_path / "out.md"
    Copyist(sp_unigram, Copying(64)).document(LINES, out=whole, context=context)

    def fail(ids):
        if ord("d") in ids:
            raise KeyboardInterrupt
        return ids

    with pytest.raises(KeyboardInterrupt):
        Copyist(sp_unigram, Copying(64, fail)).document(LINES, out=out, context=context)
    other = next(one for one in CONTEXTS if one != context)
    with pytest.raises(ValueError, match=r"other settings \(context"):
        Copyist(sp_unigram, Copying(64)).document(LINES, out=out, context=other)
    engine = Copying(64)
    Copyist(sp_unigram, engine).document(LINES, out=out, context=context)
    assert out.read_text() == whole.read_text()
    assert not any("a" in source for source, _ in engine.calls)
