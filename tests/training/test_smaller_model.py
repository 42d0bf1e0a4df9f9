"""A smaller copy of a Marian translator: the tokens and layers that are kept, and a run that starts from it."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from lengthwise.models.checkpoint import load_model
from lengthwise.training import RecipeError, train
from lengthwise.training.model import build
from lengthwise.training.recipe import parse_recipe
from toy_corpora import PAIRS


def recipe(base: Path, tmp_path: Path, **smaller: int) -> Any:
    corpus = tmp_path / "corpus.jsonl"
    rows = [{"id": str(n), "segs": [pair]} for n, pair in enumerate(PAIRS)]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    values = {
        "name": "smaller",
        "paper": "none",
        "out": str(tmp_path / "run"),
        "unit": "chars",
        "model": {"base": str(base), "smaller": {"vocabulary": 80, "decoder_layers": 2, "documents": 8} | smaller},
        "controls": [{"control": "encoding", "kind": "difference", "placement": "decoder", "gain": 0.5}],
        "data": {"train": str(corpus), "dev": str(corpus), "max_tokens": 128},
        "batch": {"tokens": 256, "pool": 8, "workers": 0},
        "train": {"steps": 2, "lr": 0.001, "warmup": 1, "evaluate_every": 2, "save_every": 2, "precision": "no"},
    }
    return parse_recipe(values)


def test_tokens_keep_their_vectors_and_layers_their_weights(toy_marian: Path, tmp_path: Path) -> None:
    base, old = load_model(toy_marian)
    built = build(recipe(toy_marian, tmp_path))
    new, weights = built.tokenizer, built.model.state_dict()
    assert len(new) <= 80 < len(old)
    assert "never written" not in new.get_vocab()
    for token, n in new.get_vocab().items():
        expected = base.state_dict()["model.shared.weight"][old.convert_tokens_to_ids(token)]
        assert torch.equal(weights["model.shared.weight"][n], expected), token
    for kept, layer in enumerate((0, 3)):
        name = "model.decoder.layers.{}.fc1.weight"
        assert torch.equal(weights[name.format(kept)], base.state_dict()[name.format(layer)])
    config = built.model.config
    assert (config.decoder_layers, config.vocab_size) == (2, len(new))
    assert config.pad_token_id == config.decoder_start_token_id == new.pad_token_id


def test_texts_of_the_corpus_have_no_unknown_tokens(toy_marian: Path, tmp_path: Path) -> None:
    tokenizer = build(recipe(toy_marian, tmp_path)).tokenizer
    for source, target in PAIRS:
        for ids in (tokenizer(source)["input_ids"], tokenizer(text_target=target)["input_ids"]):
            assert tokenizer.unk_token_id not in ids
        assert tokenizer.decode(tokenizer(text_target=target)["input_ids"], skip_special_tokens=True) == target


def test_a_run_writes_a_model_that_loads(toy_marian: Path, tmp_path: Path) -> None:
    folder = train(recipe(toy_marian, tmp_path))
    model, tokenizer = load_model(folder)
    assert len(tokenizer) == model.config.vocab_size <= 80
    assert (folder / "source.spm").stat().st_size < (toy_marian / "source.spm").stat().st_size


def test_what_cannot_be_made_smaller(toy_marian: Path, toy_base: Path, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"decoder_layers is 5; the base has 4"):
        build(recipe(toy_marian, tmp_path, decoder_layers=5))
    with pytest.raises(RecipeError, match=r"for Marian translators; .* has no source\.spm"):
        build(recipe(toy_base, tmp_path))
    values = recipe(toy_marian, tmp_path).model_dump(mode="json")
    with pytest.raises(RecipeError, match="leave fresh, lora, frozen out"):
        parse_recipe(values | {"model": values["model"] | {"frozen": True}})
