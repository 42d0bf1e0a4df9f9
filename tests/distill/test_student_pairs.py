"""Translations of a teacher as training data: each sentence once, short ones beside the best, resumed after a stop."""

import json

import pytest
import torch

from families import tiny
from lengthwise import Writer
from lengthwise.distill.prompts import Prompt
from lengthwise.distill.student_pairs import Settings, gather

SENTENCES = [Prompt(str(n), f"word {n} and " * (1 + n % 3) + "end") for n in range(9)]


@pytest.fixture
def writer(sp_bpe):
    model = tiny("marian", sp_bpe)
    positions = model.model.decoder.embed_positions.weight
    with torch.no_grad():  # the longer a text is, the likelier it ends
        model.final_logits_bias[0, model.config.pad_token_id] = -1e4
        positions += torch.arange(len(positions))[:, None] / 2 * model.lm_head.weight[model.config.eos_token_id]
    return Writer(model, sp_bpe)


def rows(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_each_sentence_is_translated_once(writer, tmp_path):
    out = tmp_path / "pairs.jsonl"
    report = gather(writer, SENTENCES, out, Settings(char_costs=(0.0, 0.2)), batch_tokens=128)
    found = rows(out)
    best = [row for row in found if not row["id"].endswith(".short")]
    assert report.sentences == len(SENTENCES)
    assert report.written == len(found)
    assert len(best) + report.unfinished == len(SENTENCES)
    assert {row["source"] for row in best} <= {sentence.text for sentence in SENTENCES}
    assert len({row["id"] for row in found}) == len(found)
    by_id = {row["id"]: row for row in found}
    for row in found:
        if row["id"].endswith(".short"):
            assert len(row["target"]) <= 0.95 * len(by_id[row["id"].removesuffix(".short")]["target"])


def test_a_stopped_run_goes_on(writer, tmp_path):
    whole, stopped = tmp_path / "whole.jsonl", tmp_path / "stopped.jsonl"
    gather(writer, SENTENCES, whole, Settings(), batch_tokens=64)
    gather(writer, SENTENCES[:4], stopped, Settings(), batch_tokens=64)
    with stopped.open("a") as stream:
        stream.write('{"id": "5", "sou')  # killed while writing
    report = gather(writer, SENTENCES, stopped, Settings(), batch_tokens=64)
    assert report.sentences <= len(SENTENCES) - len([row for row in rows(whole) if int(row["id"][0]) < 4]) + 4
    assert sorted(map(str, rows(stopped))) == sorted(map(str, rows(whole)))


def test_other_settings_are_refused(writer, tmp_path):
    out = tmp_path / "pairs.jsonl"
    gather(writer, SENTENCES[:2], out, Settings(), batch_tokens=64)
    with pytest.raises(ValueError, match="beams"):
        gather(writer, SENTENCES, out, Settings(beams=2), batch_tokens=64)
