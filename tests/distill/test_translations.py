"""Translations as examples: the rows, their counts, an interrupted run, and the command."""

import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from families import tiny
from lengthwise import measure, save
from lengthwise.cli import main
from lengthwise.corpora import DataError, read
from lengthwise.distill import translations
from lengthwise.distill.prompts import Prompt
from lengthwise.distill.translations import Settings, gather
from lengthwise.settings_file import SettingsMismatch


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def file(path, text):
    path.write_text(text, encoding="utf-8")
    return path


# ---- files


class Book:
    """A sampler whose translations are the source in capitals with a Z first, cut to the requested length."""

    receives_length = True

    def __init__(self, name="book"):
        engine = SimpleNamespace(name=name, device=torch.device("cpu"))
        self.writer = SimpleNamespace(name=name, engine=engine, model=engine)
        self.asked, self.groups = [], []

    def best(self, texts, beams):
        self.groups.append(list(texts))
        return ["Z" + text[1:].upper() + "X." for text in texts]

    def draw(self, texts, lengths, costs, seeds):
        assert len(set(seeds)) == len(seeds)
        self.asked += list(zip(texts, lengths, costs, strict=True))
        cut = zip(texts, lengths, strict=True)
        return ["Z" + text[1:].upper()[: length - 2] + "." if length > 8 else "Lost" for text, length in cut]


class Judge:
    """A reverse model that assigns a low probability to as many letters of the source as the output lacks."""

    def __init__(self, engine=None):
        self.name = "judge"

    def log_probs(self, sources, outputs):
        for row, (source, output) in enumerate(zip(sources, outputs, strict=True)):
            missing = max(0, len(source) - len(output))
            yield row, np.array([-0.1] * (len(source) - missing) + [-3.0] * missing + [-0.1])


@pytest.fixture
def book(monkeypatch):
    monkeypatch.setattr(translations, "ReverseModel", Judge)
    return Book()


ASKED = [Prompt(f"n{n}", "abcdefghij" + "k" * n + ".") for n in range(9)]
SETTINGS = Settings(each=4, ratios=(0.5, 0.9, 1.0, 1.2), word_margin=99, margin=0.5, tail_margin=9, seed=1)


def test_rows_and_their_counts(book, tmp_path):
    out, done = tmp_path / "new/t.jsonl", []
    report = gather(book, Judge(), ASKED[:2], out, SETTINGS, rows=10, progress=done.append)
    found = {row["id"]: row for row in rows(out)}
    # n0 has 11 characters: asked for are 6 ("Lost"), 10, 11 and 13, of which 12 come; the best has 13
    assert found["n0.0"] == {
        "id": "n0.0",
        "source": "abcdefghij.",
        "target": "ZBCDEFGHIJ.X.",
        "ratio": round(13 / 11, 3),
        "score": -0.1,
        "tail": -0.1,
    }
    assert [found[f"n0.{n}"]["target"] for n in (1, 2, 3)] == ["ZBCDEFGHI.", "ZBCDEFGHIJ.", "ZBCDEFGHIJ.."]
    assert found["n0.1"]["score"] == pytest.approx(-(0.1 * 10 + 3) / 11, abs=1e-3)
    assert {text for text, _, _ in book.asked} == {sentence.text for sentence in ASKED[:2]}
    assert [length for text, length, _ in book.asked if text == ASKED[0].text] == [6, 10, 11, 13]
    journal = {row["id"]: row for row in rows(tmp_path / "new/t.dropped.jsonl")}
    assert journal["n0"] == {
        "id": "n0",
        "source": "abcdefghij.",
        "best": round(13 / 11, 3),
        "kept": 4,
        "reasons": {"ends otherwise": 1},
    }
    ratios = [row["ratio"] for row in found.values()]
    assert (report["sentences"], report["kept"], report["without"]) == (2, len(ratios), 0)
    assert report["ratio"] == pytest.approx(np.mean(ratios), abs=1e-3)
    assert report["below_1.0x"] == pytest.approx(np.mean([ratio < 1 for ratio in ratios]), abs=1e-3)
    assert report["reasons"]["ends otherwise"] >= 1
    assert sum(done) == 2
    assert json.loads((tmp_path / "new/t.settings.json").read_text())["ratios"] == [0.5, 0.9, 1.0, 1.2]
    assert len(list(read(out))) == report["kept"]  # and can be trained on


def test_sentences_of_like_length_go_together(book, tmp_path):
    gather(book, Judge(), ASKED, tmp_path / "t.jsonl", SETTINGS, rows=15)
    assert sorted(map(len, book.groups)) == [3, 3, 3]
    assert all(max(map(len, group)) - min(map(len, group)) == 2 for group in book.groups)


def test_characters_have_a_cost_for_a_model_that_receives_no_length(book, tmp_path):
    book.receives_length = False
    gather(book, Judge(), ASKED[:1], tmp_path / "t.jsonl", replace(SETTINGS, char_cost=(0.0, 0.4)))
    assert [cost for _, _, cost in book.asked] == [0.0, 0.4, 0.0, 0.4]


def test_another_model_may_be_the_reference(book, tmp_path):
    other = Book("plain")
    gather(book, Judge(), ASKED[:2], tmp_path / "t.jsonl", SETTINGS, reference_model=other)
    assert (len(other.groups), book.groups, other.asked) == (1, [], [])
    known = json.loads((tmp_path / "t.settings.json").read_text())
    assert (known["model"], known["reference_model"], known["reverse"]) == ("book", "plain", "judge")


@pytest.mark.parametrize("torn", [0, 1, 7])
@pytest.mark.parametrize("done", [0, 3, 8])
def test_an_interrupted_run_is_continued(book, tmp_path, done, torn):
    """Killed after `done` sentences were in the journal, and in the middle of writing the rows of the next."""
    out, journal = tmp_path / "t.jsonl", tmp_path / "t.dropped.jsonl"
    gather(book, Judge(), ASKED, out, SETTINGS, rows=5)
    whole = sorted(map(json.dumps, rows(out))), sorted(map(json.dumps, rows(journal)))
    lines, kept = journal.read_bytes().splitlines(keepends=True), out.read_bytes().splitlines(keepends=True)
    owners = [json.loads(line)["id"] for line in lines[: done + 1]]
    there = [line for line in kept if json.loads(line)["id"].rpartition(".")[0] in owners]
    out.write_bytes(b"".join(there)[: -torn or None])
    journal.write_bytes(b"".join(lines[:done]) + lines[done][:torn])
    progress = []
    gather(book, Judge(), ASKED, out, SETTINGS, rows=5, progress=progress.append)
    assert (sorted(map(json.dumps, rows(out))), sorted(map(json.dumps, rows(journal)))) == whole
    assert (progress[0], sum(progress)) == (done, 9)
    before = out.read_bytes(), journal.read_bytes()
    gather(book, Judge(), ASKED, out, SETTINGS)
    assert (out.read_bytes(), journal.read_bytes()) == before


def test_other_files_are_not_changed(book, tmp_path):
    out = tmp_path / "t.jsonl"
    for text in ('{"my": "precious"}\n', '{"id": "n0.0", "source": "s", "target": "t", "ratio": 1}\n', "precious"):
        file(out, text)
        with pytest.raises(DataError, match="give another file"):
            gather(book, Judge(), ASKED, out, SETTINGS)
        assert out.read_text() == text
    for text in ('{"my": "precious"}\n', "precious"):
        file(tmp_path / "t.dropped.jsonl", text)
        with pytest.raises(DataError, match="is not a row of translations"):
            gather(book, Judge(), ASKED, out, SETTINGS)
    out, other = tmp_path / "u.jsonl", [Prompt("n0", "Another.")]
    gather(book, Judge(), ASKED[:1], out, SETTINGS)
    with pytest.raises(DataError, match=r"another sentence as id 'n0'.+found 'abcdefghij\.'"):
        gather(book, Judge(), other, out, SETTINGS)
    with pytest.raises(SettingsMismatch, match=r"made with each 4, now 5; give another file"):
        gather(book, Judge(), ASKED[:1], out, replace(SETTINGS, each=5))


OLD = {
    "reference_model": "standard",
    "char_cost": "thrift",
    "likelihood_margin": "doubt",
    "max_surprisal": "oddest",
}


def test_settings_of_older_versions_are_understood(book, tmp_path):
    out, settings = tmp_path / "t.jsonl", tmp_path / "t.settings.json"
    gather(book, Judge(), ASKED[:1], out, SETTINGS)
    current = json.loads(settings.read_text())
    assert OLD.keys() <= current.keys()
    settings.write_text(json.dumps({OLD.get(name, name): value for name, value in current.items()}))
    assert gather(book, Judge(), ASKED[:2], out, SETTINGS)["sentences"] == 2
    assert json.loads(settings.read_text()) == current


# ---- the command


@pytest.fixture
def ask(tmp_path):
    lines = file(tmp_path / "lines.txt", "\n".join(sentence.text for sentence in ASKED) + "\n")
    return ["data", "translations", str(lines), str(tmp_path / "t.jsonl"), "--samples", "4"]


def test_the_command(ask, book, monkeypatch, tmp_path, capfd):
    asked = []
    command = sys.modules["lengthwise.cli.data.translations"]
    monkeypatch.setattr(command, "load_in_bfloat16", lambda name, device: asked.append(name) or book.writer)
    monkeypatch.setattr("lengthwise.distill.sampler.Sampler", lambda writer, **options: book)
    monkeypatch.setattr("lengthwise.scoring.reverse.ReverseModel", Judge)
    ask += ["--model", "there", "--reverse", "back", "--reference-model", "plain", "--ratios", "0.9,1,1.2"]
    ask += ["--token-margin", "99", "--reverse-margin", "0.5", "--tail-margin", "9"]
    assert main([*ask, "--json"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert asked == ["there", "back", "plain"]
    found = rows(tmp_path / "t.jsonl")
    assert (report["sentences"], report["kept"]) == (9, len(found))
    assert len(found) > 9
    for row in found:
        assert row["ratio"] == round(measure(row["target"], "chars") / measure(row["source"], "chars"), 3)
    assert main(ask) == 0
    shown = capfd.readouterr().out
    assert f"{len(found)} translations of 9 sentences" in shown
    assert f"below 1.0x {report['below_1.0x']:.1%}" in shown


def test_the_command_with_a_model(ask, sp_unigram, tmp_path, capfd):
    model = tiny("marian", sp_unigram)
    torch.nn.init.zeros_(model.get_output_embeddings().weight)  # tied: all tokens have the same score …
    model.final_logits_bias[0, 2] = 2.5  # … but the end
    folder = str(save(model, sp_unigram, tmp_path / "model"))
    ask += ["--model", folder, "--reverse", folder]
    assert main([*ask, "--beams", "1", "--json"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert (report["sentences"], report["reasons"]) == (9, {"empty": 9})  # the best translation of each is empty
    assert main([*ask, "--beams", "1"]) == 0
    assert "0 translations of 9 sentences; 9 without\nleft out: 9 (empty 9)\n" in capfd.readouterr().out


def test_bad_usage(ask, tmp_path, capfd):
    ask += ["--model", "m", "--reverse", "r"]
    for more, said in [
        (["--ratios", "1.0;0.9"], "--ratios takes numbers"),
        (["--ratios", "0"], "above 0"),
        (["--samples", "0"], "at least 1"),
    ]:
        assert main([*ask, *more]) == 2
        assert said in capfd.readouterr().err
    ask[3] = str(tmp_path / "t.txt")
    assert main(ask) == 2
    assert "t.txt" in capfd.readouterr().err
