"""Consistency on a small corpus in a made-up language: each word is spelt backwards."""

import random

import pytest

from lengthwise.metrics import compare, score
from lengthwise.metrics.consistency import _ibm1, _terms
from metric_texts import value

TERMS = ["macro", "table", "footn", "slide", "query", "chart", "index", "label"]
COMMON = ["the", "on", "from", "shows", "opens", "here", "every", "again", "with", "also"]
DOCS = [doc for doc in range(len(TERMS)) for _ in range(5)]


def backwards(text: str) -> str:
    return " ".join(word[::-1] for word in text.split())


def corpus() -> tuple[list[str], list[str]]:
    """Return sources of five sentences per document, four of them with the document's term, and their references."""
    rng = random.Random(0)
    sources = []
    for row, doc in enumerate(DOCS):
        words = rng.sample(COMMON, 6)
        sources.append(" ".join([*words, TERMS[doc]] if row % 5 else words))
    return sources, [backwards(text) for text in sources]


SOURCES, REFERENCES = corpus()


def outputs(change: dict[int, tuple[str, str]]) -> list[str]:
    """Return the references with a word replaced in some rows."""
    return [text.replace(*change[row]) if row in change else text for row, text in enumerate(REFERENCES)]


def test_terms_are_the_words_that_few_documents_have():
    documents = [" ".join(SOURCES[5 * doc : 5 * doc + 5]).split() for doc in range(len(TERMS))]
    assert _terms(documents) == set(TERMS)
    assert _terms([["a", "b"]]) == _terms([[]]) == set()  # one document is no corpus


def test_ibm1_finds_the_translations():
    table = _ibm1([text.split() for text in SOURCES], [text.split() for text in REFERENCES])
    for word in TERMS + COMMON:
        assert max((p, e) for (f, e), p in table.items() if f == word)[1] == word[::-1]
    for word in ("", *TERMS):
        assert sum(p for (f, _), p in table.items() if f == word) == pytest.approx(1)


@pytest.mark.parametrize(
    ("change", "alike"),
    [
        ({}, 24),  # 8 terms in 4 sentences each: 3 repetitions
        ({1: ("orcam", "madeup")}, 23),  # a translation that no reference has
        ({1: ("orcam", "")}, 23),  # none
        (dict.fromkeys((1, 2), ("orcam", "madeup")), 22),
        (dict.fromkeys((1, 2, 3, 4), ("orcam", "madeup")), None),  # none is known: the term is left out
    ],
)
def test_by_hand(change, alike):
    (found,) = score(outputs(change), REFERENCES, SOURCES, docs=DOCS, metrics=["consistency"])
    assert found.value == (1.0 if alike is None else pytest.approx(alike / 24))
    assert found.n == len(TERMS)
    assert found.per_item[1:] == [1.0] * 7
    assert value("consistency-ref", outputs(change), REFERENCES, SOURCES, docs=DOCS) == 1


def test_two_translations_of_the_references():
    """Documents 0 and 1 have the same term, each with its own translation; an output that mixes them is less alike."""
    sources = [text.replace("table", "macro") for text in SOURCES]
    mixed = outputs({1: ("orcam", "elbat"), 2: ("orcam", "elbat"), 6: ("elbat", "orcam")})
    one = [text.replace("elbat", "orcam") for text in REFERENCES]
    rest = {"refs": REFERENCES, "srcs": sources, "docs": DOCS}
    assert value("consistency", REFERENCES, **rest) == value("consistency", one, **rest) == 1
    assert value("consistency", mixed, **rest) == pytest.approx(21 / 24)  # 1 of 3 and 2 of 3 are alike
    found = compare(REFERENCES, mixed, **rest, metric="consistency")
    assert found.delta == pytest.approx(-3 / 24)


def test_inflected_forms_are_alike():
    mixed = [text.replace("xedni", "xednis" if row % 2 else "xedni") for row, text in enumerate(REFERENCES)]
    assert value("consistency", mixed, REFERENCES, SOURCES, docs=DOCS) == 1


def test_texts_without_words_or_terms():
    assert value("consistency", ["1", "2"], ["1", "2"], ["3", ""], docs=[0, 1]) == 0
