"""Omissions: which words of a source are asked for, and which of them a translation leaves out."""

import numpy as np
import pytest

from lengthwise.translation.omissions import content_words, find_omissions, stands_in


class Glossary:
    """In place of a translator's log-probabilities: `cost` nats for each word of an output that the source lacks."""

    def __init__(self, words, cost=2.0):
        self.words, self.cost, self.calls = words, cost, 0

    def log_probs(self, outputs, sources):
        for row, (output, source) in enumerate(zip(outputs, sources, strict=True)):
            self.calls += 1
            known = {self.words.get(word) for word in source.lower().split()}
            yield row, np.array([0.0 if word in known else -self.cost for word in output.lower().split()])


def unknown(words):
    return [""] * len(words)


GLOSSARY = {"last": "ultime", "ten": "dieci", "changes": "modifiche", "not": "non", "never": "non", "open": "aprire"}


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        ("Save the last ten changes", "en", ["Save", "last", "ten", "changes"]),
        ("Enregistrer le fichier dans un dossier", "fr", ["Enregistrer", "fichier", "dossier"]),
        ('Click <a href="help page.html">here</a> for 12 %s', "en", ["Click", 'page.html">here</a>']),
        ("Search the/cat and/or", "en", ["Search", "the/cat"]),
        ("Save the last ten changes", "ja", []),
        ("", "en", []),
    ],
)
def test_content_words(text, language, words):
    found = content_words(text, language)
    assert [text.split()[place] for places in found for place in sorted(places)] == words


@pytest.mark.parametrize(
    ("source", "output", "omitted"),
    [
        ("last ten changes", "ultime dieci modifiche", []),
        ("last ten changes", "ultime modifiche", [1]),
        ("not open or never open", "aprire", [0, 3]),  # negations together
        ("not open or never open", "non aprire", []),  # the same word at both places
    ],
)
def test_words_that_change_nothing_are_left_out(source, output, omitted):
    assert find_omissions(Glossary(GLOSSARY), [(source, output)], "en", unknown) == [frozenset(omitted)]


def test_a_word_that_costs_too_little_counts_as_left_out():
    [found] = find_omissions(Glossary(GLOSSARY, cost=0.9), [("last changes", "ultime modifiche")], "en", unknown)
    assert found == {0, 1}


def test_a_word_whose_translation_alone_stands_there_is_not_scored():
    """Whatever the score is. Negations are always scored: they are one word in some translations and two in others."""
    model, asked = Glossary({}), []

    def alone(words):
        asked.extend(words)
        return [{"ten,": "", "ten": "dieci", "changes": "modifica"}.get(word, word) for word in words]

    pairs = [("Do not save ten, changes", "Non dieci modifiche"), ("ten changes", "modifiche dieci")]
    assert find_omissions(model, pairs, "en", alone) == [frozenset([1, 2]), frozenset()]
    assert sorted(asked) == ["changes", "save", "ten"]
    assert model.calls == 3  # the whole first source, and those without "not" and "save"


@pytest.mark.parametrize(
    ("word", "text", "found"),
    [
        ("Commentaires", "Malgré ses commentaires.", True),
        ("signalé", "Elle a été signalée.", True),
        ("mer", "La merveille.", False),  # short words have one form
        ("couronne", "La Cour de Birmingham.", False),  # only a small part is alike
        ("les personnes", "Cinq personnes.", False),
        ("ça", "Ça va.", False),
        ("文件", "打开文件", False),
    ],
)
def test_forms_of_a_word(word, text, found):
    assert stands_in(word, text) == found


def test_nothing_is_scored_without_content_words():
    model = Glossary(GLOSSARY)
    assert find_omissions(model, [("12 %", "12 %"), ("of the", "del")], "en", unknown) == [frozenset(), frozenset()]
    assert model.calls == 0


def test_words_that_candidates_leave_out_are_named(translator):
    """Also those of fragments, and of free translations that are not the best one."""
    words = {"last": "ultime", "ten": "dieci", "changes": "modifiche"}
    entries = {"last ten changes": ["ultime dieci modifiche", "ultime modifiche", "dieci modifiche"]}
    lines, _ = translator(entries, forward=Glossary(words), candidates=4)
    [row] = lines.translate(["last ten changes"], "at most 17 chars")
    assert (row.text, row.note) == ("ultime modifiche", "left out: ten")
    assert [(one.text, one.note) for one in row.candidates] == [
        ("dieci modifiche", "left out: last"),
        ("ultime dieci modifiche", None),
    ]
    assert [one.get("note") for one in row.as_json()["candidates"]] == ["left out: last", None]
    [row] = lines.translate(["last ten changes"])
    assert [one.note for one in row.candidates] == [None, None]  # without a length, nothing is checked
