"""`lengthwise discriminator`: the file that it writes steers, and what it refuses."""

import json
import os

import pytest

from families import tiny as tiny_model
from lengthwise import CountdownHead, attach, load
from lengthwise.generation import steering
from lengthwise.models.checkpoint import save
from lengthwise.models.description import DISCRIMINATOR
from lengthwise.training import future_discriminator as training


@pytest.fixture
def folder(tiny, byte_bpe, tmp_path):
    """A folder with only a countdown head, upon the tiny model."""
    head = CountdownHead(("tokens", "words", "chars"), at_most=True, hidden=8)
    model = attach(load(tiny, engine="transformers").model, [head], byte_bpe)
    return save(model, byte_bpe, tmp_path / "head", base=tiny, weights=False)


@pytest.fixture
def answers(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "_WIDTH", 64)
    rows = [{"id": str(n), "prompt": f"Say {n}.", "response": f"The cat {n} sleeps. It runs."} for n in range(70)]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_generation_steers_by_what_it_writes(cli, folder, answers, monkeypatch):
    code, out, _ = cli("discriminator", answers, folder, "--epochs", "2", "--answers", "60", "--json")
    assert code == 0
    found = json.loads(out)
    assert (found["file"], found["answers"], found["held_out"], found["steps"]) == (
        str(folder / DISCRIMINATOR),
        60,
        1,
        2,
    )
    assert found["loss"].keys() == found["loss_of_rates"].keys() == {"tokens", "words", "chars"}
    assert found["seconds"] > 0
    writer, steered = load(str(folder), device="cpu"), []
    apply = steering.Steering.apply
    monkeypatch.setattr(steering.Steering, "apply", lambda *given: steered.append(1) or apply(*given))
    assert [text.length for text in writer.write("Say it.", "exactly 30 chars")] == [30]
    assert steered


def test_the_losses_are_printed(cli, folder, answers):
    code, out, _ = cli("discriminator", answers, folder, "--epochs", "1")
    lines = out.splitlines()
    assert (code, len(lines)) == (0, 4)
    assert lines[0].startswith(f"{folder / DISCRIMINATOR}: 70 answers, 1 steps, ")
    assert [line.split()[0] for line in lines[1:]] == ["tokens", "words", "chars"]


def test_a_new_folder_has_the_plain_model(cli, tiny, answers, tmp_path):
    code, out, _ = cli("discriminator", answers, tmp_path / "new", "--model", tiny, "--epochs", "1", "--json")
    assert (code, json.loads(out)["file"]) == (0, str(tmp_path / "new" / DISCRIMINATOR))
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [DISCRIMINATOR, "lengthwise.json"]
    engine = load(str(tmp_path / "new"), device="cpu").engine
    assert (engine.discriminator.units, list(engine.controls)) == (("tokens", "words", "chars"), [])
    ask = ("write", "Say it.", "--length", "exactly 30 chars", "--model", tmp_path / "new", "--json")
    assert json.loads(cli(*ask)[1])["length"] == 30
    again = cli("discriminator", answers, tmp_path / "new", "--epochs", "1")  # now it is the folder of a model
    assert again[0] == 0


def test_what_it_refuses(cli, folder, answers, tiny, byte_bpe, tmp_path):
    def error(*args):
        code, out, err = cli("discriminator", *args)
        assert (code, out) == (2, "")
        return err

    assert "--model is for a new folder" in error(answers, folder, "--model", tiny)
    (tmp_path / "empty").mkdir()
    assert "exists and has no model" in error(answers, tmp_path / "empty")
    own = error(answers, tmp_path / "new", "--model", folder)
    assert f"those of {folder} are those of {tiny}; give that" in own
    assert "no file 'nowhere.jsonl'" in error("nowhere.jsonl", folder)
    assert "--answers must be at least 50" in error(answers, folder, "--answers", "49")
    few = tmp_path / "few.jsonl"
    few.write_text("".join(answers.read_text().splitlines(keepends=True)[:3]))
    assert "3 of the 3 answers can be used" in error(few, folder)
    assert "3 of the 3 answers can be used" in error(few, tmp_path / "new", "--model", tiny)
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"source": "a", "target": "b"}\n')
    assert "no field 'prompt'" in error(pairs, folder)
    translator = attach(tiny_model("bart", byte_bpe), [CountdownHead("chars", hidden=8)], byte_bpe)
    assert "needs a decoder-only model" in error(answers, save(translator, byte_bpe, tmp_path / "bart"))
    assert not (folder / DISCRIMINATOR).exists()
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_written_to(cli, folder, answers, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode, **_: mode != os.W_OK)
    code, _, err = cli("discriminator", answers, folder)
    assert (code, f"no permission to write to {folder}" in err) == (2, True)
