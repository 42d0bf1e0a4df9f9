"""Translations for a student: the rows, the shorter beams, a resumed run, and the command."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from lengthwise import load
from lengthwise.cli import main
from lengthwise.controls import PromptControl
from lengthwise.corpora.document import DataError
from lengthwise.distill.prompts import Prompt
from lengthwise.distill.student_pairs import Settings, _asked, _chosen, gather
from lengthwise.engines.marian_beams import Hypothesis
from lengthwise.settings_file import SettingsMismatch

TEXTS = ["Open the file.", "Close the window and save all of the changes.", "The dog is quick."]


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def writer():
    return load("en-it", engine="transformers", device="cpu")


# The ids of these hypotheses are their texts.
SPELLER = SimpleNamespace(batch_decode=lambda ids, **_: ids)


@pytest.mark.parametrize(
    ("found", "cost", "texts"),
    [
        ([], 0.0, []),
        ([("", -0.1), ("Vai", -0.1)], 0.0, []),
        ([("Vai via subito", -0.1), ("Vai via", -0.15), ("Va'", -0.3)], 0.0, ["Vai via subito", "Vai via"]),
        ([("Vai via subito", -0.1), ("Vai via", -0.15)], 0.3, ["Vai via subito"]),
        ([("Questo è il nuovo testo", -0.1), ("Questo è il nuovo test", -0.1)], 0.0, ["Questo è il nuovo testo"]),
    ],
)
def test_a_shorter_translation_is_kept_if_it_is_nearly_as_probable(found, cost, texts):
    assert _chosen([Hypothesis(*one) for one in found], cost, 0.1, SPELLER) == texts


def test_a_resumed_run_translates_what_is_missing(writer, tmp_path):
    sentences = [Prompt(str(n), text) for n, text in enumerate(TEXTS, 1)]
    out, settings = tmp_path / "out.jsonl", Settings(beams=2, char_costs=(0.0, 0.3))
    report = gather(writer, sentences, out, settings, batch_tokens=64)
    whole = sorted(rows(out), key=lambda row: row["id"])
    assert (report.sentences, report.written, report.unfinished) == (3, len(whole), 0)
    assert [row["source"] for row in whole if row["id"] in "123"] == TEXTS
    assert whole[0]["target"] == "Apri il file."
    out.write_text(out.read_text(encoding="utf-8").splitlines(keepends=True)[0], encoding="utf-8")
    assert gather(writer, sentences, out, settings, batch_tokens=64).sentences == 2
    assert sorted(rows(out), key=lambda row: row["id"]) == whole
    with pytest.raises(SettingsMismatch, match="beams"):
        gather(writer, sentences, out, Settings(beams=3), batch_tokens=64)


def test_a_resumed_run_knows_an_id_that_ends_as_that_of_a_second_translation(writer, tmp_path):
    out = tmp_path / "out.jsonl"
    first, second = Prompt("7.short", TEXTS[0]), Prompt("7", TEXTS[2])
    for sentence in (first, second, first):
        gather(writer, [sentence], out, Settings(beams=2, margin=0.0), batch_tokens=64)
    assert [row["id"] for row in rows(out)] == ["7.short", "7"]
    with pytest.raises(DataError, match=r"the ids '7' and '7\.short'"):
        gather(writer, [first, second], tmp_path / "new.jsonl", Settings(), batch_tokens=64)


def test_translations_within_ratios_fit_and_are_chosen_by_the_reverse_model(writer, tmp_path):
    text = "This package contains the documentation of the library."

    class Reverse:  # understands a translation the better the longer it is
        name = "reverse"

        def log_probs(self, sources, outputs):
            return ((n, np.full(6, len(text) / 1000)) for n, text in enumerate(outputs))

    def within(margin):
        out = tmp_path / f"{margin}.jsonl"
        settings = Settings(beams=4, char_costs=(0.1, 0.3), ratios=(0.7,), reverse_margin=margin)
        gather(writer, [Prompt("1", text)], out, settings, reverse=Reverse(), batch_tokens=64)
        return {row["id"]: row["target"] for row in rows(out)}

    loose, strict = within(9.0), within(0.0)
    assert len(loose["1.0.7x"]) <= 0.7 * len(text) < len(loose["1"])
    assert loose["1.0.7x"].endswith("."), "as the source"
    assert "1.0.7x" not in strict, "every shorter translation says less"


def test_the_command(tmp_path, monkeypatch, capsys):
    (tmp_path / "in.txt").write_text("\n".join([TEXTS[0], "word " * 200]), encoding="utf-8")
    command = f"lengthwise data student {tmp_path}/in.txt {tmp_path}/out.jsonl --model en-it --beams 2 --device cpu"
    monkeypatch.setattr(sys, "argv", [*command.split(), "--json"])
    assert main() == 0
    report = json.loads(capsys.readouterr().out)
    assert report == {"sentences": 1, "written": 1, "unfinished": 0, "too_long": 1}
    monkeypatch.setattr(sys, "argv", [*command.split(), "--char-cost", "-1"])
    assert main() == 2
    assert "--char-cost must be at least 0" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", [*command.split(), "--ratios", "1.0"])
    assert main() == 2
    assert "--ratios and --reverse belong together" in capsys.readouterr().err


def test_sentences_without_some_words_are_translated_as_well(writer, tmp_path):
    text = "This very small package contains the complete documentation of the library."

    class Reverse:  # understands every translation
        name = "reverse"

        def log_probs(self, sources, outputs):
            return ((n, np.zeros(6)) for n, _ in enumerate(outputs))

    def within(abridged):
        out = tmp_path / f"{abridged}.jsonl"
        settings = Settings(beams=1, ratios=(0.6,), abridged=abridged)
        gather(writer, [Prompt("1", text)], out, settings, reverse=Reverse(), batch_tokens=64)
        return {row["id"]: row for row in rows(out)}

    few, many = within(0), within(24)
    assert "1.0.6x" not in few, "one beam within the limit breaks off"
    assert len(many["1.0.6x"]["target"]) <= 0.6 * len(text)
    assert (many["1"]["usual"], many["1.0.6x"]["usual"]) == (True, False)


def test_a_teacher_that_reads_the_length_is_asked_for_it(writer):
    controls = [PromptControl("[{percent}%] {text}", plain_share=0.5)]
    teacher = SimpleNamespace(tokenizer=writer.tokenizer, engine=SimpleNamespace(controls=controls))
    group = [(Prompt("1", TEXTS[1]), [7]), (Prompt("2", TEXTS[2]), [8])]
    asked = [f"[80%] {text}" for text in TEXTS[1:]]
    assert _asked(teacher, group, 0.8) == writer.tokenizer(asked)["input_ids"]
    teacher.engine.controls = []
    assert _asked(teacher, group, 0.8) == [[7], [8]]
