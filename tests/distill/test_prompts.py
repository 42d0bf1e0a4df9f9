"""Prompts made of topics and templates, and prompts and sentences read from files."""

import re
from pathlib import Path

import pytest

from lengthwise.corpora import DataError
from lengthwise.distill.prompts import Prompt, combine, questions, sections, sentences

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "recipes/prompts"


def file(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_templates_go_with_the_topics_of_their_heading(tmp_path):
    topics = file(tmp_path / "topics", "# a comment\n[animal]\nthe fox\nthe owl\n\n[place]\nRome\n")
    templates = file(tmp_path / "templates", "[any]\nOn {topic}.\n[animal]\nWhat does {topic} eat?\n")
    expected = {"On the fox.", "On the owl.", "On Rome.", "What does the fox eat?", "What does the owl eat?"}
    made = combine(topics, templates, 5)
    assert set(made) == expected
    assert combine(topics, templates, 5) == made
    assert {tuple(combine(topics, templates, 3, seed)) for seed in range(9)} != {tuple(made[:3])}


@pytest.mark.parametrize(
    ("topics", "templates", "count", "message"),
    [
        ("the fox\n", "On {topic}.\n", 2, "2 prompts were asked for; .+ make 1"),
        ("the fox\n", "On foxes.\n", 1, "On foxes"),
        ("[animal]\nthe fox\n", "[place]\nWhere is {topic}?\n", 1, "under .animal."),
        ("the fox\n", "[any]\nOn {topic}.\n[place]\nWhere is {topic}?\n", 1, "under .place."),
        ("# nothing\n", "On {topic}.\n", 1, "has no lines except comments"),
    ],
)
def test_files_that_do_not_go_together_are_told(tmp_path, topics, templates, count, message):
    with pytest.raises(DataError, match=message):
        combine(file(tmp_path / "topics", topics), file(tmp_path / "templates", templates), count)


def test_our_topics_keep_apart_from_those_that_are_measured_on():
    """Neither the prompts of bench/ nor those made of the held-out topics may be trained on."""
    topics = [topic for group in sections(RECIPES / "topics.txt").values() for topic in group]
    apart = [topic for group in sections(RECIPES / "topics.heldout.txt").values() for topic in group]
    assert len(set(topics)) == len(topics) > 400
    bench = (ROOT / "bench/prompts.txt").read_text(encoding="utf-8").lower()
    for topic in topics:
        name = re.sub("^(a|an|the) ", "", topic.lower())
        assert not re.search(rf"\b{re.escape(name)}\b", bench), topic
        assert not any(re.search(rf"\b{re.escape(name)}\b", other.lower()) for other in apart), topic
    assert len(combine(RECIPES / "topics.txt", RECIPES / "templates.txt", 20000)) == 20000


def test_prompts_are_read_from_rows_and_from_lines(tmp_path):
    named = file(tmp_path / "a.jsonl", '{"id": "x", "prompt": "Why?", "more": 1}\n\n{"prompt": "Who?"}\n')
    assert questions(named) == [Prompt("x", "Why?"), Prompt("3", "Who?")]
    assert questions(file(tmp_path / "a.txt", "Why?\n\nWho? \n")) == [Prompt("1", "Why?"), Prompt("3", "Who?")]
    assert [prompt.id for prompt in questions(named, each=2)] == ["x.1", "x.2", "3.1", "3.2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": 1, "prompt": "Why?"}\n{"id": 1, "prompt": "Who?"}\n', "a.jsonl:2: the id '1' occurs twice"),
        ('{"question": "Why?"}\n', "a.jsonl:1: expected an object"),
        ("Why?\n", "a.jsonl:1: not JSON"),
        ("\n", "holds no prompts"),
    ],
)
def test_prompts_that_cannot_be_asked_are_told(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        questions(file(tmp_path / "a.jsonl", text))


# ---- sentences to translate


def test_sentences_are_read_from_rows_and_from_lines(tmp_path):
    named = (
        '{"id": 7, "source": "One  two."}\n\n{"prompt": "Three?"}\n{"id": "d", "segs": [["A.", "B."], ["C.", "D."]]}\n'
    )
    found = sentences(file(tmp_path / "a.jsonl", named))
    assert found == [Prompt("7", "One two."), Prompt("3", "Three?"), Prompt("d.1", "A."), Prompt("d.2", "C.")]
    assert sentences(file(tmp_path / "a.txt", "One.\n\nTwo.\nOne.\n")) == [
        Prompt("1", "One."),
        Prompt("3", "Two."),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": 1, "source": "A."}\n{"id": 1, "source": "B."}\n', "a.jsonl:2: the id '1' occurs twice"),
        ('{"text": "A."}\n', 'a.jsonl:1: expected an object with "source"'),
        ('{"segs": [[1, 2]]}\n', 'a.jsonl:1: expected an object with "source"'),
        ("[1]\n", 'a.jsonl:1: expected an object with "source"'),
        ("A.\n", "a.jsonl:1: not JSON"),
        ("\n", "holds no sentences"),
    ],
)
def test_what_is_no_sentence_is_told(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        sentences(file(tmp_path / "a.jsonl", text))
