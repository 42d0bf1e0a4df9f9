"""bench/led.py, more_positions.py and attention_entropy.py on untrained models: what they write loads and is right."""

import json
import math
import sys
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
import torch

import lengthwise
from lengthwise.models.checkpoint import save
from lengthwise.training.fresh_model import fresh_model, train_tokenizer
from lengthwise.training.recipe import Fresh

BENCH = Path(__file__).parents[2] / "bench"
DOCUMENT = [(f"Word {n} of ten.", f"Wort {n} von zehn.") for n in range(10)]  # 40 words


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The folder of an untrained Marian."""
    tokenizer = train_tokenizer([text for pair in DOCUMENT for text in pair], 300)
    torch.manual_seed(0)
    return save(fresh_model(Fresh(size="tiny"), tokenizer), tokenizer, tmp_path / "model")


def run(monkeypatch: Any, name: str, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    run_path(str(BENCH / name))["main"]()


def test_an_led_loads_and_scores(model: Path, tmp_path: Path, monkeypatch: Any) -> None:
    run(monkeypatch, "led.py", model, tmp_path / "led")
    config = json.loads((tmp_path / "led/config.json").read_text())
    assert (config["model_type"], config["encoder_layers"], config["decoder_layers"]) == ("led", 4, 4)
    assert config["attention_window"] in (128, [128] * 4)
    engine = lengthwise.load(str(tmp_path / "led"), engine="transformers").engine
    assert engine.window == 4096
    found = engine.score([engine.prompt_ids(DOCUMENT[0][0])], [[3, 4, 5]])
    assert found.token.shape == (1, 3)
    assert (found.token < 0).all()


def test_a_copy_with_more_positions_is_the_same_model(model: Path, tmp_path: Path, monkeypatch: Any) -> None:
    before = lengthwise.load(str(model), engine="transformers").engine
    run(monkeypatch, "more_positions.py", model, tmp_path / "longer", 2 * before.window)
    after = lengthwise.load(str(tmp_path / "longer"), engine="transformers").engine
    assert after.window == 2 * before.window
    prompt, text = before.prompt_ids(DOCUMENT[0][0]), [3, 4, 5]
    torch.testing.assert_close(after.score([prompt], [text]).token, before.score([prompt], [text]).token)
    beyond = [3] * (before.window + 50)
    assert torch.isfinite(torch.as_tensor(after.score([prompt], [beyond]).token)).all()


def test_entropy_of_sentences_and_documents(model: Path, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    data = tmp_path / "dev.jsonl"
    rows = [{"id": "short", "segs": DOCUMENT[:2]}, {"id": "long", "segs": DOCUMENT}]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(monkeypatch, "attention_entropy.py", model, "--data", data, "--words", "20-60")
    [line] = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    assert (found["model"], found["documents"]) == (str(model), 1)  # the short one is not among them
    for kind in ("encoder", "cross", "decoder"):
        one = found[kind]
        assert 0 < one["sentences"] < one["documents"] < math.log(200)  # of an untrained model: nearly even attention
        assert one["gap"] == pytest.approx(one["documents"] - one["sentences"])
