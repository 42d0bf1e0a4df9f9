"""Prompts made of topics, and a model's own answers to them as examples."""

import json
import re
from pathlib import Path

import pytest

import lengthwise
from families import tiny
from lengthwise import Writer
from lengthwise.cli import main
from lengthwise.corpora import DataError, read
from lengthwise.distill import answers
from lengthwise.distill.answers import answer, fault
from lengthwise.distill.prompts import Question, combine, questions, sections
from lengthwise.engines.continuous import Completion

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "recipes/prompts"


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def file(path, text):
    path.write_text(text, encoding="utf-8")
    return path


# ---- prompts


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
        ("# nothing\n", "On {topic}.\n", 1, "holds no lines"),
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
    assert questions(named) == [Question("x", "Why?"), Question("3", "Who?")]
    assert questions(file(tmp_path / "a.txt", "Why?\n\nWho? \n")) == [Question("1", "Why?"), Question("3", "Who?")]
    assert [question.id for question in questions(named, each=2)] == ["x.1", "x.2", "3.1", "3.2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": 1, "prompt": "Why?"}\n{"id": 1, "prompt": "Who?"}\n', "a.jsonl:2: the id '1' was there"),
        ('{"question": "Why?"}\n', "a.jsonl:1: expected an object"),
        ("Why?\n", "a.jsonl:1: not JSON"),
        ("\n", "holds no prompts"),
    ],
)
def test_prompts_that_cannot_be_asked_are_told(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        questions(file(tmp_path / "a.jsonl", text))


# ---- what is a bad example?


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("A fox is a small wild dog.", None),
        ("Yes", None),
        ("Dear Ann,\n\nThank you.\n\nYours\tBob 🦊", None),
        ("", "empty"),
        ("...", "empty"),
        ("A fox is \ufffd small.", "broken characters"),
        ("A fox is\x00 small.", "broken characters"),
        ("A fox.\nuser\nAnd an owl?", "template"),
        ("A fox.\n\nAssistant:\nAn owl.", "template"),
        ("what IS a fox?", "template"),
        ("The fox is red. " * 3, "repetitive"),
        ("Foxes run away.\n" * 2 + "Then\n" * 3 + "one more, and after that no other fox was seen.", None),
        ("\n".join(f"The fox runs away.\n{n} hens {n} days {n} eggs {n} owls {n} cats" for n in "abc"), "repetitive"),
    ],
)
def test_bad_examples(text, reason):
    assert fault("What is a fox?", text.strip()) == reason


# ---- answers


@pytest.fixture(scope="module")
def writer(byte_bpe):
    return Writer(tiny("llama", byte_bpe), byte_bpe, name="tiny")


ASKED = [Question(str(n), f"Where is fox number {n}?") for n in range(9)]


def test_answers_are_kept_whole_or_cut_or_dropped(writer, byte_bpe, tmp_path, monkeypatch):
    said = [
        ("It is in the wood", True),
        ("It is in the wood. It sleeps. And then it", False),
        ("It is in the", False),
        ("It is. " * 9, True),
        (" ", True),
    ]
    ids = [byte_bpe(text, add_special_tokens=False)["input_ids"] for text, _ in said]
    ids.append([*ids[0], byte_bpe.bos_token_id, *ids[0]])
    ended = [*(end for _, end in said), True]
    script = [Completion(place, *done) for place, done in enumerate(zip(ids, ended, strict=True))][::-1]
    monkeypatch.setattr(answers, "generate_continuous", lambda *_, **__: iter(script))
    out = tmp_path / "new/answers.jsonl"
    report = answer(writer, ASKED[:6], out, most=20)
    assert sorted(rows(out), key=lambda row: row["id"]) == [
        {"id": "0", "prompt": ASKED[0].prompt, "response": "It is in the wood", "finished": True},
        {"id": "1", "prompt": ASKED[1].prompt, "response": "It is in the wood. It sleeps.", "finished": False},
    ]
    assert {row["id"]: row["reason"] for row in rows(tmp_path / "new/answers.dropped.jsonl")} == {
        "2": "no finished sentence",
        "3": "repetitive",
        "4": "empty",
        "5": "template",
    }
    assert {name: report[name] for name in ("kept", "finished", "cut", "dropped")} == {
        "kept": 2,
        "finished": 1,
        "cut": 1,
        "dropped": 4,
    }
    assert report["reasons"]["template"] == 1
    assert [document.segments[0][1] for document in read(out)] == ["It is in the wood. It sleeps.", "It is in the wood"]


def both(out):
    return {row["id"]: row for path in (out, out.with_name("a.dropped.jsonl")) for row in rows(path)}


def test_a_run_that_broke_off_goes_on(writer, tmp_path):
    out, calls = tmp_path / "a.jsonl", []
    options = {"most": 20, "rows": 3, "temperature": 2.0}
    answer(writer, ASKED, out, **options)
    first = both(out)
    assert set(first) == {question.id for question in ASKED}
    dropped = tmp_path / "a.dropped.jsonl"
    longest = max((out, dropped), key=lambda path: path.stat().st_size)
    lines = longest.read_bytes().splitlines(keepends=True)
    longest.write_bytes(b"".join(lines[:2]) + lines[2].rstrip(b"\n"))  # the third is whole but for its end
    report = answer(writer, ASKED, out, progress=calls.append, **options)
    again = both(out)
    assert set(again) == set(first)
    assert report["kept"] + report["dropped"] == len(ASKED)
    assert calls[0] == len(ASKED) - (len(lines) - 2)
    assert sum(calls) == len(ASKED)
    before = out.read_bytes(), dropped.read_bytes()
    answer(writer, ASKED, out, **options)
    assert (out.read_bytes(), dropped.read_bytes()) == before


def test_files_of_others_are_not_gone_on_with(writer, tmp_path):
    out = file(tmp_path / "a.jsonl", '{"id": "0", "prompt": "Who?", "response": "He.", "finished": true}\n')
    with pytest.raises(DataError, match=r"answer to another prompt as id '0'.+found 'Who"):
        answer(writer, ASKED, out)
    with pytest.raises(DataError, match=r"a\.jsonl:1 is no row of answers"):
        answer(writer, ASKED, file(out, '{"text": "Hello."}\n'))


def test_a_prompt_that_leaves_no_room_is_dropped(writer, tmp_path):
    out = tmp_path / "a.jsonl"
    report = answer(writer, [Question("long", "word " * 200), ASKED[0]], out, most=20)
    assert report["reasons"]["prompt too long"] == 1
    assert set(both(out)) == {"long", "0"}


def test_a_translator_answers_nothing(sp_unigram, tmp_path):
    translator = Writer(tiny("marian", sp_unigram), sp_unigram, name="marian")
    with pytest.raises(ValueError, match="marian translates"):
        answer(translator, ASKED, tmp_path / "a.jsonl")


def test_the_two_commands(byte_bpe, tmp_path, capfd):
    folder = lengthwise.save(tiny("llama", byte_bpe), byte_bpe, tmp_path / "model")
    files = ["--topics", f"{RECIPES}/topics.txt", "--templates", f"{RECIPES}/templates.txt"]
    prompts, out = tmp_path / "prompts.jsonl", tmp_path / "a.jsonl"
    assert main(["data", "prompts", str(prompts), "--count", "7", *files]) == 0
    assert main(["data", "prompts", str(tmp_path / "prompts.txt"), "--count", "7", *files]) == 0
    made = [row["prompt"] for row in rows(prompts)]
    assert (tmp_path / "prompts.txt").read_text().splitlines() == made
    capfd.readouterr()
    ask = ["data", "answers", str(prompts), str(out), "--model", str(folder), "--each", "2", "--most", "30"]
    assert main([*ask, "--json"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert report["kept"] + report["dropped"] == 14
    assert sorted(row["prompt"] for row in both(out).values()) == sorted(made * 2)
    assert main(ask) == 0
    assert f"a.jsonl: {report['kept']} answers" in capfd.readouterr().out
    assert main(["data", "answers", str(prompts), str(tmp_path / "a.txt")]) == 2
    assert "a.txt" in capfd.readouterr().err


def test_what_is_somebody_elses_is_left_alone(writer, tmp_path):
    asked = [Question("1", "Hello there")]
    for other in ('{"my": "precious"}', '{"id": "1", "prompt": "Hello there"}\n', "no newline at all"):
        file(tmp_path / "out.jsonl", other)
        with pytest.raises(DataError, match=r"name another"):
            answer(writer, asked, tmp_path / "out.jsonl", most=4)
        assert (tmp_path / "out.jsonl").read_text() == other


def test_a_run_goes_on_with_its_settings(writer, tmp_path):
    asked = [Question("1", "Hello there")]
    answer(writer, asked, tmp_path / "out.jsonl", most=4)
    with pytest.raises(DataError, match=r"temperature 0.8, now 0.5; name another file"):
        answer(writer, asked, tmp_path / "out.jsonl", most=4, temperature=0.5)
