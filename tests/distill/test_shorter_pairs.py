"""Shorter pairs: the rows, a resumed run, texts of several sentences, and the command. The models are not good ones."""

import json
import random
import sys
from dataclasses import replace

import pytest

from families import tiny
from lengthwise import Writer, load
from lengthwise.cli import main
from lengthwise.corpora.document import DataError
from lengthwise.distill import shorter_forms
from lengthwise.distill.marian import Marian
from lengthwise.distill.prompts import Prompt
from lengthwise.distill.shorter_pairs import Models, Settings, gather
from lengthwise.distill.shorter_texts import shorter_texts
from lengthwise.settings_file import SettingsMismatch

TEXTS = [
    "This package contains the documentation of the library (in English).",
    "Save",
    "Close the window in the middle of the screen. Then save all of the changes that are new.",
]


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def models(byte_bpe):
    writer = load("en-it", engine="transformers", device="cpu")
    language_model = Writer(tiny("llama", byte_bpe), byte_bpe, name="tiny").engine
    return Models(Marian(writer, 2, 256), Marian(writer, 2, 256), language_model)


@pytest.fixture
def lenient(monkeypatch):
    """Let every form pass: a random language model finds none sound."""
    monkeypatch.setattr(shorter_forms, "MAX_STRAIN", 1e9)
    monkeypatch.setattr(shorter_forms, "MAX_UNSUPPORTED", 1e9)


def test_marian_translates_in_the_order_of_the_texts(models):
    texts = ["Open the file.", "This package contains the documentation of the library.", "word " * 200]
    first, second, third = models.there.translate(texts)
    assert first.endswith("il file.")
    assert "documentazione" in second
    assert third == "", "too long"
    assert models.there.encode(texts[:2]) == models.there.tokenizer(texts[:2])["input_ids"]


def test_rows_are_shorter_and_a_resumed_run_adds_what_is_missing(models, lenient, tmp_path):
    texts = [Prompt(str(number), text) for number, text in enumerate(TEXTS)]
    out = tmp_path / "out.jsonl"
    report = gather(models, texts, out, Settings())
    whole = rows(out)
    assert (report.texts, report.written, report.without) == (3, len(whole), 1)
    assert {row["source"] for row in whole} == {TEXTS[0], TEXTS[2]}
    assert all(len(row["target"]) <= 0.9 * len(row["source"]) for row in whole)
    counts = [sum(row["source"] == text for row in whole) for text in TEXTS]
    assert [row["id"] for row in whole] == [f"{text}.{form}" for text in (0, 2) for form in range(counts[text])]
    out.write_text("".join(json.dumps(row) + "\n" for row in whole if row["id"].startswith("0.")), encoding="utf-8")
    assert rows(tmp_path / "out.dropped.jsonl") == [{"id": "1", "source": "Save"}]
    assert gather(models, texts, out, Settings()).texts == 1
    assert rows(out) == whole
    assert gather(models, texts, out, Settings()).texts == 0, "all are done"
    for place in (0, 1):  # one with rows, one without
        changed = [replace(text, text="Open the file.") if text is texts[place] else text for text in texts]
        with pytest.raises(DataError, match=f"another text as id '{place}'"):
            gather(models, changed, out, Settings())
    with pytest.raises(SettingsMismatch, match="char_cost"):
        gather(models, texts, out, Settings(char_cost=0.3))


def test_draws_do_not_depend_on_the_other_texts(models, monkeypatch, tmp_path):
    texts = [Prompt(str(number), text) for number, text in enumerate(TEXTS)]
    drawn = []
    monkeypatch.setattr("lengthwise.distill.shorter_pairs.variants", lambda *seeded: drawn.append(seeded) or [])
    gather(models, texts, tmp_path / "all.jsonl", Settings())
    whole, drawn = drawn, []
    gather(models, texts[2:], tmp_path / "last.jsonl", Settings())
    assert drawn
    assert set(drawn) <= set(whole)


def test_sentences_of_a_text_are_kept_shortened_or_left_out():
    sentences = ["The first one is long.", "It has a second one.", "There is a third one here."]
    forms = {sentences[0]: ["The first is long."], sentences[2]: ["There is a third."]}
    found = [text for seed in range(40) for text in shorter_texts(sentences, forms, random.Random(seed))]
    assert "The first is long. It has a second one. There is a third." in found
    assert any(sentences[2] not in text and "third" not in text for text in found)
    assert all(text.startswith("The first") for text in found if "It has" in text), "it refers to the first"
    assert all(len(text) <= 0.9 * len(" ".join(sentences)) for text in found)
    assert shorter_texts(sentences[:1], forms, random.Random(0)) == ["The first is long."]


def test_the_command(tmp_path, monkeypatch, capsys):
    (tmp_path / "in.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    command = f"lengthwise data shorter {tmp_path}/in.txt {tmp_path}/out.jsonl --model en-it --back en-it --device cpu"
    monkeypatch.setattr(sys, "argv", [*command.split(), "--language-model", "en-it"])
    assert main() == 2
    assert "--language-model must have only a decoder" in capsys.readouterr().err
