"""Packed weights: how near they are, that every engine reads them, and what happens to damaged ones."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from families import tiny
from lengthwise.cli import main
from lengthwise.models.checkpoint import load_model
from lengthwise.models.conversion.checkpoint import read_arrays
from lengthwise.models.packed import PACKED, pack, read_packed, save_packed


def test_weights_come_back_within_half_a_step(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    given = {
        "normal": rng.normal(size=(40, 96)).astype(np.float32),
        "one large": np.eye(32, 64, dtype=np.float32) * 1000,
        "zeros": np.zeros((2, 32), np.float32),
        "narrow": rng.normal(size=(3, 5)).astype(np.float32),
        "vector": rng.normal(size=7).astype(np.float32),
    }
    save_packed(given.items(), tmp_path / PACKED)
    found = dict(read_packed(tmp_path / PACKED))
    assert found.keys() == given.keys()
    for name in ("narrow", "vector"):
        assert np.array_equal(found[name], given[name].astype(np.float16).astype(np.float32)), name
    for name in ("one large", "zeros"):
        assert np.abs(found[name] - given[name]).max() <= 0.001 * np.abs(given[name]).max(), name
    off = np.abs(found["normal"] - given["normal"]).reshape(-1, 32)
    largest = np.abs(given["normal"]).reshape(-1, 32).max(1)
    assert (off.max(1) <= largest * 0.26).all()  # a step is an eighth of the largest; clipping costs at most a fifth
    assert off.mean() < 0.09
    assert (tmp_path / PACKED).stat().st_size < given["normal"].size * 0.6 + 3000


def test_every_reader_gives_the_same_model(sp_unigram: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tiny("marian", sp_unigram)
    model.save_pretrained(tmp_path / "model")
    sp_unigram.save_pretrained(tmp_path / "model")
    assert main(["export", str(tmp_path / "model"), str(tmp_path / "packed"), "--bits", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bits"] == 4
    loaded, tokenizer = load_model(tmp_path / "packed")
    assert len(tokenizer) == len(sp_unigram)
    arrays = dict(read_arrays(tmp_path / "packed"))
    weights = loaded.state_dict()
    assert {"model.shared.weight", "model.decoder.layers.0.fc1.weight"} <= arrays.keys()
    for name, values in arrays.items():
        assert torch.allclose(weights[name], torch.from_numpy(values)), name
    assert torch.equal(weights["lm_head.weight"], weights["model.shared.weight"])  # tied, as in the model itself
    assert torch.equal(weights["model.encoder.embed_positions.weight"], model.model.encoder.embed_positions.weight)
    ids = torch.tensor([[5, 6, 7]])
    with torch.inference_mode():
        scores = [one.eval()(input_ids=ids, decoder_input_ids=ids).logits for one in (model, loaded)]
    assert torch.corrcoef(torch.stack([one.flatten() for one in scores]))[0, 1] > 0.95


def test_damage_is_noticed(sp_unigram: Any, tmp_path: Path) -> None:
    tiny("marian", sp_unigram).save_pretrained(tmp_path / "model")
    sp_unigram.save_pretrained(tmp_path / "model")
    pack(tmp_path / "model", tmp_path / "packed")
    file = tmp_path / "packed" / PACKED
    whole = dict(read_packed(file))
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(ValueError, match="is damaged"):
        load_model(tmp_path / "packed")
    del whole["model.shared.weight"]
    save_packed(whole.items(), file)
    with pytest.raises(ValueError, match=r"model\.shared\.weight not in its weights"):
        load_model(tmp_path / "packed")


def test_only_whole_models_are_packed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "smollm2", str(tmp_path / "out"), "--bits", "4"]) == 2
    assert "only whole models are packed" in capsys.readouterr().err
    assert main(["export", "smollm2", str(tmp_path / "out"), "--bits", "5"]) == 2
    assert "--bits must be 4, 8 or 32; got 5" in capsys.readouterr().err
