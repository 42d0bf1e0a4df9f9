"""A model's answers as examples: which are kept, which are rejected, and that an interrupted run is continued."""

import json
from pathlib import Path

import pytest

import lengthwise
from families import tiny
from lengthwise.cli import main
from lengthwise.corpora import DataError, read
from lengthwise.distill import answers
from lengthwise.distill.answers import answer, reject_reason
from lengthwise.distill.prompts import Prompt
from lengthwise.engines.continuous import Completion
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.settings_file import SettingsMismatch

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "recipes/prompts"


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def file(path, text):
    path.write_text(text, encoding="utf-8")
    return path


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
def test_reject_reason(text, reason):
    assert reject_reason("What is a fox?", text.strip()) == reason


# ---- answers


@pytest.fixture(scope="module")
def engine(byte_bpe):
    return TransformersEngine(tiny("llama", byte_bpe), byte_bpe, "tiny")


ASKED = [Prompt(str(n), f"Where is fox number {n}?") for n in range(9)]


def test_answers_are_kept_whole_or_cut_or_dropped(engine, byte_bpe, tmp_path, monkeypatch):
    said = [
        ("It is in the wood", True),
        ("It is in the wood. It sleeps. And then it", False),
        ("It is in the", False),
        ("It is. " * 9, True),
        (" ", True),
        ("- a fox\n- a dog\n- a", False),
    ]
    ids = [byte_bpe(text, add_special_tokens=False)["input_ids"] for text, _ in said]
    ids.append([*ids[0], byte_bpe.bos_token_id, *ids[0]])
    ended = [*(end for _, end in said), True]
    script = [Completion(place, *done) for place, done in enumerate(zip(ids, ended, strict=True))][::-1]
    monkeypatch.setattr(answers, "generate_continuous", lambda *_, **__: iter(script))
    out = tmp_path / "new/answers.jsonl"
    report = answer(engine, ASKED[:7], out, max_tokens=20)
    assert sorted(rows(out), key=lambda row: row["id"]) == [
        {"id": "0", "prompt": ASKED[0].text, "response": "It is in the wood", "finished": True},
        {"id": "1", "prompt": ASKED[1].text, "response": "It is in the wood. It sleeps.", "finished": False},
        {"id": "5", "prompt": ASKED[5].text, "response": "- a fox\n- a dog", "finished": False},
    ]
    assert {row["id"]: row["reason"] for row in rows(tmp_path / "new/answers.dropped.jsonl")} == {
        "2": "no whole sentence or item",
        "3": "repetitive",
        "4": "empty",
        "6": "template",
    }
    assert {name: report[name] for name in ("kept", "finished", "cut", "dropped")} == {
        "kept": 3,
        "finished": 1,
        "cut": 2,
        "dropped": 4,
    }
    assert report["reasons"]["template"] == 1
    assert [document.segments[0][1] for document in read(out)] == [
        "- a fox\n- a dog",
        "It is in the wood. It sleeps.",
        "It is in the wood",
    ]


def both(out):
    return {row["id"]: row for path in (out, out.with_name("a.dropped.jsonl")) for row in rows(path)}


def test_an_interrupted_run_is_continued(engine, tmp_path):
    out, calls = tmp_path / "a.jsonl", []
    options = {"max_tokens": 20, "rows": 3, "temperature": 2.0}
    answer(engine, ASKED, out, **options)
    first = both(out)
    assert set(first) == {prompt.id for prompt in ASKED}
    dropped = tmp_path / "a.dropped.jsonl"
    longest = max((out, dropped), key=lambda path: path.stat().st_size)
    lines = longest.read_bytes().splitlines(keepends=True)
    longest.write_bytes(b"".join(lines[:2]) + lines[2].rstrip(b"\n"))  # the third is whole but for its end
    report = answer(engine, ASKED, out, progress=calls.append, **options)
    again = both(out)
    assert set(again) == set(first)
    assert report["kept"] + report["dropped"] == len(ASKED)
    assert calls[0] == len(ASKED) - (len(lines) - 2)
    assert sum(calls) == len(ASKED)
    before = out.read_bytes(), dropped.read_bytes()
    answer(engine, ASKED, out, **options)
    assert (out.read_bytes(), dropped.read_bytes()) == before


def test_files_of_other_runs_are_refused(engine, tmp_path):
    out = file(tmp_path / "a.jsonl", '{"id": "0", "prompt": "Who?", "response": "He.", "finished": true}\n')
    with pytest.raises(DataError, match=r"answer to another prompt as id '0'.+found 'Who"):
        answer(engine, ASKED, out)
    with pytest.raises(DataError, match=r"a\.jsonl:1 is not a row of answers"):
        answer(engine, ASKED, file(out, '{"text": "Hello."}\n'))


def test_a_prompt_without_room_for_the_answer_is_dropped(engine, tmp_path):
    out = tmp_path / "a.jsonl"
    report = answer(engine, [Prompt("long", "word " * 200), ASKED[0]], out, max_tokens=20)
    assert report["reasons"]["prompt too long"] == 1
    assert set(both(out)) == {"long", "0"}


def test_a_translator_is_refused(sp_unigram, tmp_path):
    translator = TransformersEngine(tiny("marian", sp_unigram), sp_unigram, "marian")
    with pytest.raises(ValueError, match="a decoder-only model of transformers; got marian"):
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
    ask = ["data", "answers", str(prompts), str(out), "--model", str(folder), "--samples", "2", "--max-tokens", "30"]
    assert main([*ask, "--json"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert report["kept"] + report["dropped"] == 14
    assert sorted(row["prompt"] for row in both(out).values()) == sorted(made * 2)
    assert main(ask) == 0
    assert f"a.jsonl: {report['kept']} answers" in capfd.readouterr().out
    assert main(["data", "answers", str(prompts), str(tmp_path / "a.txt")]) == 2
    assert "a.txt" in capfd.readouterr().err


def test_other_files_are_not_changed(engine, tmp_path):
    asked = [Prompt("1", "Hello there")]
    for other in ('{"my": "precious"}', '{"id": "1", "prompt": "Hello there"}\n', "no newline at all"):
        file(tmp_path / "out.jsonl", other)
        with pytest.raises(DataError, match=r"give another"):
            answer(engine, asked, tmp_path / "out.jsonl", max_tokens=4)
        assert (tmp_path / "out.jsonl").read_text() == other


def test_a_run_is_continued_with_the_same_settings(engine, tmp_path):
    asked = [Prompt("1", "Hello there")]
    answer(engine, asked, tmp_path / "out.jsonl", max_tokens=4)
    with pytest.raises(SettingsMismatch, match=r"temperature 0.8, now 0.5; give another file"):
        answer(engine, asked, tmp_path / "out.jsonl", max_tokens=4, temperature=0.5)


def test_settings_of_older_versions_are_understood(engine, tmp_path):
    old = {"model": "tiny", "temperature": 0.8, "top_p": 0.95, "most": 8, "seed": 0}
    for settings, changed in [(old, None), (old | {"least": 2}, "min_tokens"), (old | {"most": 9}, "max_tokens")]:
        file(tmp_path / "out.jsonl", "")
        file(tmp_path / "out.settings.json", json.dumps(settings))
        if changed:
            with pytest.raises(SettingsMismatch, match=f"made with {changed} "):
                answer(engine, ASKED[:1], tmp_path / "out.jsonl", max_tokens=8)
        else:
            assert sum(answer(engine, ASKED[:1], tmp_path / "out.jsonl", max_tokens=8)[n] for n in ("kept", "dropped"))


def test_an_answer_that_could_not_end_earlier_is_not_finished(engine, byte_bpe, tmp_path, monkeypatch):
    ids = byte_bpe("It is in the wood.", add_special_tokens=False)["input_ids"]
    monkeypatch.setattr(answers, "generate_continuous", lambda *_, **__: iter([Completion(0, ids, True)]))
    answer(engine, ASKED[:1], tmp_path / "a.jsonl", max_tokens=20, min_tokens=2)
    assert [row["finished"] for row in rows(tmp_path / "a.jsonl")] == [False]
