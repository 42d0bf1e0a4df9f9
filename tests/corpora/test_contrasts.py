"""Contrastive test sets: both formats, ContraPro's context files, and what is refused."""

import json
from pathlib import Path

import pytest

from lengthwise.corpora.contrasts import Contrast, read_contrasts
from lengthwise.corpora.document import DataError

OURS = Path(__file__).parents[1] / "golden/contrasts.en-fr.jsonl"
CONTRAPRO = [
    {
        "src segment": "It is red .",
        "ref segment": "Er ist rot .",
        "errors": [{"contrastive": "Sie ist rot .", "replacement": "sie"}, {"contrastive": "Es ist rot ."}],
        "src pronoun": "it",
        "ref pronoun": "Er",
        "ante distance": 1,
        "document id": "12.de",
        "segment id": 7,
    },
    {
        "src segment": "I like it .",
        "ref segment": "Ich mag sie .",
        "errors": [{"contrastive": "Ich mag ihn ."}],
        "src pronoun": "it",
        "ref pronoun": "sie",
        "ante distance": 5,
    },
]


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_contrapro(tmp_path):
    file = written(tmp_path / "contrapro.json", json.dumps(CONTRAPRO, indent=1))
    first, second = read_contrasts(file)
    groups = {"pronoun": "it:er", "distance": "1"}
    assert first == Contrast("It is red .", "Er ist rot .", ("Sie ist rot .", "Es ist rot ."), groups=groups)
    assert second.groups == {"pronoun": "it:sie", "distance": ">3"}


def test_context_of_contrapro(tmp_path):
    """Two lines for each of five translations; the second item is the second sentence of its document."""
    file = written(tmp_path / "contrapro.json", json.dumps(CONTRAPRO))
    source = written(tmp_path / "context.en", "Look !\nA hat .\n" * 3 + "\nA cup .\n" * 2)
    target = written(tmp_path / "context.de", "Schau !\nEin Hut .\n" * 3 + "\nEine Tasse .\n" * 2)
    first, second = read_contrasts(file, (source, target))
    assert first.context == (("Look !", "Schau !"), ("A hat .", "Ein Hut ."))
    assert second.context == (("A cup .", "Eine Tasse ."),)
    short = written(tmp_path / "short.de", "Schau !\n" * 5)
    with pytest.raises(DataError, match=r"has 10 lines and .* has 5; for 5 translations they must be equally many"):
        read_contrasts(file, (source, short))


def test_our_own_set():
    """Every right translation of a pronoun is the wrong one of the same source in another context."""
    items = read_contrasts(OURS)
    assert len(items) == 32
    assert {item.groups["phenomenon"] for item in items} == {"pronoun", "cohesion", "formality"}
    for item in items:
        assert int(item.groups["distance"]) == len(item.context) > 0
        assert item.reference not in item.contrasts
    right = [(item.source, item.reference) for item in items if item.groups["phenomenon"] == "pronoun"]
    wrong = [(item.source, text) for item in items if item.groups["phenomenon"] == "pronoun" for text in item.contrasts]
    assert sorted(right) == sorted(wrong)  # without context, the best accuracy is one half


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.json", "{}", "must be a list of items, as ContraPro's JSON; got dict"),
        ("a.json", "[]", "has no items"),
        ("a.jsonl", "", "has no items"),
        ("a.json", '{"source": "x"}\n{"source": "y"}', "lines of JSON need a name that ends in .jsonl"),
        ("a.jsonl", '{"source": "x"}', "item 1 must be an object with source, reference and contrasts"),
        ("a.jsonl", '["x"]', "item 1 must be an object"),
        ("a.jsonl", '{"source": "x", "reference": "y", "contrasts": []}', "at least one wrong"),
        ("a.jsonl", '{"source": "x", "reference": "y", "contrasts": [3]}', "must have texts"),
        ("a.jsonl", '{"source": "x", "reference": "y", "contrasts": ["z"], "context": ["ab", "c"]}', "item 1"),
        ("a.jsonl", '{"source": "x", "reference": "y", "contrasts": "z"}', "a list of at least one"),
        ("a.jsonl", '{"source": "x", "reference": "y", "contrasts": ["z"], "distance": "far"}', "TypeError"),
    ],
)
def test_what_is_refused(tmp_path, name, text, says):
    with pytest.raises(DataError, match=says):
        read_contrasts(written(tmp_path / name, text))
