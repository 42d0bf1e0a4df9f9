"""The countdown head: it starts as the identity, edits only the answer, and is trained and saved without its model.

The laws of every control, with and without a cache, are in test_attach.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from families import tiny
from lengthwise.controls import CountdownHead
from lengthwise.controls.attach import attach, detach
from lengthwise.controls.attached import controls_of
from lengthwise.length.countdown import countdown_state
from lengthwise.models.checkpoint import load_model, save
from lengthwise.training import RecipeError, train
from lengthwise.training.recipe import parse_recipe
from lengthwise.training.run_state import checkpoints, read_weights
from toy_training import values

UNITS = ("tokens", "words", "chars")
FAMILIES = ["llama", "gpt2", "marian", "t5"]


def with_head(family: str, tokenizer: Any, *, trained: bool = True) -> Any:
    model = attach(tiny(family, tokenizer), CountdownHead(UNITS, at_most=True, hidden=8), tokenizer)
    if trained:
        torch.manual_seed(1)
        for weight in controls_of(model)[0].parameters():
            weight.data.normal_()
    return model.eval()


def asked(model: Any, tokenizer: Any, length: int, **more: Any) -> dict[str, Any]:
    ids = torch.tensor([tokenizer("It was a bright cold day.")["input_ids"]])
    start = {"decoder_start": torch.tensor([ids.shape[1]])}
    if model.config.is_encoder_decoder:
        ids = {"input_ids": ids, "decoder_input_ids": torch.tensor([[0, 7, 8, 9, 11]])}
        return {**ids, "decoder_length": torch.tensor([length]), **more}
    answer = torch.cat([ids, torch.tensor([[7, 8, 9, 11]])], 1)
    return {"input_ids": answer, "decoder_length": torch.tensor([length]), **start, **more}


def logits(model: Any, inputs: dict[str, Any]) -> torch.Tensor:
    with torch.no_grad():
        return model(**inputs).logits[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_untrained_it_changes_nothing_and_trained_only_the_answer(byte_bpe: Any, family: str) -> None:
    untrained, trained = with_head(family, byte_bpe, trained=False), with_head(family, byte_bpe)
    inputs = asked(trained, byte_bpe, 5)
    free = {key: value for key, value in inputs.items() if key not in ("decoder_length", "decoder_start")}
    plain = logits(tiny(family, byte_bpe).eval(), free)
    assert torch.allclose(logits(untrained, inputs), plain, atol=1e-5)
    assert torch.equal(logits(trained, free), plain)
    first = 0 if trained.config.is_encoder_decoder else int(inputs["decoder_start"]) - 1
    same = torch.isclose(logits(trained, inputs), plain, atol=1e-5).all(1)
    assert same[:first].all()
    assert not same[first:].any()
    assert torch.equal(logits(detach(trained), free), plain)


@pytest.mark.parametrize("more", [{"decoder_unit": torch.tensor([2])}, {"decoder_at_most": torch.tensor([True])}])
def test_unit_and_limit_change_the_logits(byte_bpe: Any, more: dict[str, torch.Tensor]) -> None:
    model = with_head("llama", byte_bpe)
    assert not torch.allclose(
        logits(model, asked(model, byte_bpe, 5)), logits(model, asked(model, byte_bpe, 5, **more))
    )


def test_large_counts_are_alike(byte_bpe: Any) -> None:
    """From 120 on all counts have one state, and so have those below 0."""
    model = with_head("llama", byte_bpe)
    far, further, short = (logits(model, asked(model, byte_bpe, length)) for length in (140, 9000, 7))
    assert torch.equal(far, further)
    assert not torch.equal(far, short)
    assert torch.equal(logits(model, asked(model, byte_bpe, 1))[-2:], logits(model, asked(model, byte_bpe, 2))[-2:])


def test_the_states_of_counts() -> None:
    found = countdown_state(torch.arange(-2, 300)).tolist()
    assert countdown_state(np.arange(-2, 300)).tolist() == found
    assert found[:19] == [0, 0, *range(16), 16]
    assert max(found) == found[-1] == found[122] == 39 > found[121]
    assert set(found) == set(range(40))
    assert found == sorted(found)


def test_a_folder_with_only_a_head(byte_bpe: Any, tmp_path: Path) -> None:
    save(tiny("llama", byte_bpe), byte_bpe, tmp_path / "base")
    model = with_head("llama", byte_bpe)
    save(model, byte_bpe, tmp_path / "head", base=str(tmp_path / "base"), weights=False)
    assert not list((tmp_path / "head").glob("*model*"))
    loaded, _ = load_model(tmp_path / "head")
    inputs = asked(model, byte_bpe, 5)
    assert torch.equal(logits(loaded, inputs), logits(model, inputs))
    save(model, byte_bpe, tmp_path / "upon", base=str(tmp_path / "head"), weights=False)
    with pytest.raises(ValueError, match="has a base itself"):
        load_model(tmp_path / "upon")
    with pytest.raises(ValueError, match="name it"):
        save(model, byte_bpe, tmp_path / "other", weights=False)
    (tmp_path / "head" / "lengthwise.safetensors").unlink()
    with pytest.raises(ValueError, match="missing or damaged"):
        load_model(tmp_path / "head")


HEAD = [{"control": "countdown_head", "hidden": 8}]


def test_only_the_head_is_trained(byte_bpe: Any, tmp_path: Path) -> None:
    save(tiny("llama", byte_bpe), byte_bpe, tmp_path / "base")
    base = {"base": str(tmp_path / "base"), "frozen": True}
    settings = values(tmp_path, controls=HEAD, train={"lr": 0.02, "average": 2, "save_every": 6, "half": True}) | {
        "model": base
    }
    folder = train(parse_recipe(settings))
    model, _ = load_model(folder)
    plain, _ = load_model(tmp_path / "base")
    assert all("length_control." in name for name in read_weights(checkpoints(tmp_path / "run")[-1]))
    assert all(weight.abs().sum() > 0 for weight in controls_of(model)[0].parameters())
    assert sum(file.stat().st_size for file in folder.glob("*.safetensors")) < 60_000

    settings |= {"out": str(tmp_path / "more"), "model": {"base": str(folder), "frozen": True}, "controls": []}
    more, _ = load_model(train(parse_recipe(settings)))  # training goes on from the trained head
    assert torch.equal(more.get_input_embeddings().weight, plain.get_input_embeddings().weight)
    old, new = (controls_of(one)[0].learnt["choice"] for one in (model, more))
    assert 0 < (new - old).norm() < old.norm()


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"controls": [{"control": "prompt"}]}, "nothing to train"),
        ({"controls": [*HEAD, {"control": "length_tokens"}]}, "cannot train length tokens"),
        ({"controls": HEAD, "batch": {"packing": True}}, "packing"),
        ({"controls": HEAD, "model": {"lora": {"rank": 4}}}, "leave fresh and lora out"),
    ],
)
def test_recipes_that_are_refused(byte_bpe: Any, tmp_path: Path, changes: dict[str, Any], match: str) -> None:
    save(tiny("llama", byte_bpe), byte_bpe, tmp_path / "base")
    settings = values(tmp_path, controls=changes["controls"], batch=changes.get("batch", {}))
    settings["model"] = {"base": str(tmp_path / "base"), "frozen": True, **changes.get("model", {})}
    with pytest.raises(RecipeError, match=match):
        train(parse_recipe(settings))


@pytest.mark.parametrize("options", [{"unit": ("chars", "chars")}, {"hidden": 0}, {"unit": "miles"}])
def test_bad_options(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="unit"):
        CountdownHead(**options)
