"""Packed weights: how near they are, that every engine reads them, and what happens to damaged ones."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from families import tiny
from lengthwise.cli import main
from lengthwise.models.checkpoint import load_model, save
from lengthwise.models.conversion.checkpoint import read_arrays
from lengthwise.models.conversion.packing import pack
from lengthwise.models.packed import PACKED, read_packed, save_packed


def test_weights_come_back_within_half_a_step(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    given = {
        "normal": rng.normal(size=(40, 96)).astype(np.float32),
        "one large": np.eye(32, 64, dtype=np.float32) * 1000,
        "zeros": np.zeros((2, 32), np.float32),
        "narrow": rng.normal(size=(3, 5)).astype(np.float32),
        "vector": rng.normal(size=7).astype(np.float32),
        "one row": rng.normal(size=(1, 64)).astype(np.float32),  # such as the bias of Marian's logits
    }
    save_packed(given.items(), tmp_path / PACKED)
    found = dict(read_packed(tmp_path / PACKED))
    assert found.keys() == given.keys()
    for name in ("narrow", "vector", "one row"):
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


def packed(model: Any, tokenizer: Any, folder: Path) -> Path:
    """Return a new folder with the packed model."""
    model.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    pack(folder / "model", folder / "packed")
    return folder / "packed"


def test_settings_of_generation_are_read(sp_unigram: Any, tmp_path: Path) -> None:
    model = tiny("marian", sp_unigram)
    model.generation_config.bad_words_ids = [[7]]
    model.generation_config.num_beams = 3
    loaded, _ = load_model(packed(model, sp_unigram, tmp_path))
    assert (loaded.generation_config.bad_words_ids, loaded.generation_config.num_beams) == ([[7]], 3)


def test_names_without_a_prefix(byte_bpe: Any, tmp_path: Path) -> None:
    """As in OpenAI's checkpoints of GPT-2."""
    folder = packed(tiny("gpt2", byte_bpe), byte_bpe, tmp_path)
    expected = load_model(folder)[0].state_dict()
    bare = [(name.removeprefix("transformer."), values) for name, values in read_packed(folder / PACKED)]
    save_packed(bare, folder / PACKED)
    found = load_model(folder)[0].state_dict()
    for name, values in expected.items():
        assert torch.allclose(found[name], values, atol=1e-2), name


def test_a_folder_that_exists_is_left_alone(sp_unigram: Any, tmp_path: Path) -> None:
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="packed exists; name a new folder"):
        packed(tiny("marian", sp_unigram), sp_unigram, tmp_path)
    assert (tmp_path / "packed" / "notes.txt").read_text() == "mine"


def test_a_model_that_is_saved_over_a_packed_one_replaces_its_weights(sp_unigram: Any, tmp_path: Path) -> None:
    model = tiny("marian", sp_unigram)
    save(model, sp_unigram, tmp_path / "model")
    pack(tmp_path / "model", tmp_path / "packed")
    save(model, sp_unigram, tmp_path / "packed")
    weights = load_model(tmp_path / "packed")[0].state_dict()
    assert torch.equal(weights["model.shared.weight"], model.state_dict()["model.shared.weight"])


def test_damage_is_noticed(sp_unigram: Any, tmp_path: Path) -> None:
    file = packed(tiny("marian", sp_unigram), sp_unigram, tmp_path) / PACKED
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
