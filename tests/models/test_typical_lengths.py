"""Where a budget lies among the lengths of a model's texts, from measured ones."""

import json

import pytest

from lengthwise import Budget
from lengthwise.models import typical_lengths
from lengthwise.models.typical_lengths import add, explain, read

SENTENCE = "The operation could not be completed because the disk is full, so free some space."


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LENGTHWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "lengths"


def text(length):
    return "x" * length


def verdict(budget, source, task="translate"):
    return explain("toy", task, Budget.parse(budget), source)


@pytest.fixture
def measured():
    """Sources of 20 characters have translations of 10 to 109; the shortest found has 8."""
    add("toy", "translate", "free", [(text(20), text(10 + n)) for n in range(100)])
    add("toy", "translate", "shortest", [(text(20), text(8)), (text(20), text(30)), (text(200), text(1))])


def test_below_the_usual_lengths(measured):
    found = verdict("at most 12 chars", text(20))
    assert (found.texts, found.usual, found.share, found.shortest) == (100, (15, 105), 3, 8)
    assert str(found) == (
        "at most 12 chars: below the 5th percentile of what toy writes for such a source "
        "(15 to 105 chars, 100 texts measured); the shortest found is 8"
    )


def test_above_the_usual_lengths(measured):
    assert "above the 95th percentile" in str(verdict("at least 150 chars", text(20)))


@pytest.mark.parametrize(
    ("budget", "share"), [("at most 60 chars", 50), ("20-40 chars", 20), ("at most 999 chars", 100)]
)
def test_within_the_usual_lengths_the_share_is_rounded(measured, budget, share):
    assert f"about {share} % of what toy writes" in str(verdict(budget, text(20)))


def test_lengths_are_scaled_to_the_source(measured):
    assert verdict("at most 12 chars", text(40)).usual == (30, 210)
    assert verdict("at most 12 chars", text(40)).shortest == 16


def test_a_ratio_is_resolved_with_the_source(measured):
    assert verdict("at most 0.6x", text(20)).budget == "at most 12 chars"


def test_sources_of_other_lengths_do_not_count(measured):
    found = verdict("at most 12 chars", text(50))
    assert found.texts == 0
    assert "too few" in str(found)


def test_the_lengths_of_answers_do_not_depend_on_the_prompt():
    add("toy", "write", "free", [("a prompt", text(100 + n)) for n in range(40)])
    found = verdict("at most 50 chars", "another and much longer prompt " * 9, "write")
    assert (found.texts, found.usual, found.shortest) == (40, (102, 138), 100)
    add("toy", "write", "shortest", [("a prompt", text(12))])
    assert str(verdict("at most 9 chars", "a prompt", "write")).endswith("; the shortest found is 12")


def test_units_that_were_not_measured_are_named(measured):
    assert "only in chars and words" in str(verdict("at most 12 bytes", text(20)))


def test_a_model_can_carry_its_lengths(tmp_path):
    add("toy", "translate", "free", [(text(20), text(25))] * 30, tmp_path / "model")
    assert verdict("at most 12 chars", text(20)).texts == 0
    assert explain(str(tmp_path / "model"), "translate", Budget.parse("at most 12 chars"), text(20)).texts == 30


@pytest.mark.parametrize(
    ("task", "budget", "source"),
    [("write", "at most 10 chars", "Describe a lighthouse."), ("shorten", "at most 2 words", SENTENCE)],
)
def test_lengths_ship_with_smollm2(task, budget, source):
    found = explain("smollm2", task, Budget.parse(budget), source)
    assert ("below the 5th percentile" if task == "write" else "this budget is below that") in str(found)
    assert found.texts == 60 if task == "write" else found.texts >= 20
    assert found.shortest <= found.usual[0]


def test_shorter_texts_are_compared_with_the_shortest():
    add("toy", "shorten", "shortest", [(text(50), text(20 + n)) for n in range(30)])
    assert "this budget is below that" in str(verdict("at most 15 chars", text(50), "shorten"))


def test_an_unknown_model_has_no_lengths():
    assert "0 texts of toy" in str(verdict("at most 12 chars", text(20)))
    assert "shortest" not in verdict("at most 12 chars", text(20)).as_json()


def test_the_cache_has_lengths_only_and_keeps_the_last(cache, monkeypatch):
    monkeypatch.setattr(typical_lengths, "MOST", 3)
    for n in range(5):
        add("org/toy", "translate", "free", [("a secret text", "geheim " * (n + 1)), ("", "no source")])
    [file] = cache.glob("*.json")
    assert "secret" not in file.read_text()
    assert json.loads(file.read_text())["free"]["words"] == [[3, 3], [3, 4], [3, 5]]
    assert read("org/toy", "translate")["free"]["chars"] == [(13, 20), (13, 27), (13, 34)]


def test_a_damaged_or_unwritable_cache_does_no_harm(cache, measured):
    [file] = cache.glob("*.json")
    for damaged in ("{", "[]", '{"free": 3}', '{"free": {"chars": [[1]]}}'):
        file.write_text(damaged)
        assert verdict("at most 12 chars", text(20)).texts == 0
    file.unlink()
    file.mkdir()
    add("toy", "translate", "free", [("a", "b")])
    assert verdict("at most 12 chars", text(20)).texts == 0
