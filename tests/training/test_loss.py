"""The loss is Hugging Face's own, whatever a batch looks like."""

from random import Random
from typing import Any

import pytest
import torch

from families import CONTROLS, tiny
from lengthwise.controls.attach import attach
from lengthwise.training.batches import batches, collate
from lengthwise.training.examples import Example
from lengthwise.training.loss import summed_loss
from toy_training import examples_for, layout_for, response_logits


def hugging_face_loss(model: Any, examples: list[Example]) -> torch.Tensor:
    """The model's own loss, on rows padded and labelled in the usual way."""
    end, pad = model.config.eos_token_id, model.config.pad_token_id

    def filled(lists: list[list[int]], filler: int) -> torch.Tensor:
        width = max(map(len, lists))
        return torch.tensor([row + [filler] * (width - len(row)) for row in lists])

    if model.config.is_encoder_decoder:
        sources = [e.source for e in examples]
        labels = filled([[*e.target, end] for e in examples], -100)
    else:
        sources = [[*e.source, *e.target, end] for e in examples]
        labels = filled([[-100] * len(e.source) + [*e.target, end] for e in examples], -100)
    mask = filled([[1] * len(row) for row in sources], 0)
    return model(input_ids=filled(sources, pad), attention_mask=mask, labels=labels).loss


@pytest.mark.parametrize("family", ["llama", "qwen2", "gpt2", "marian", "bart", "m2m100", "t5"])
def test_loss_is_hugging_faces(family: str, byte_bpe: Any) -> None:
    model = tiny(family, byte_bpe)
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias.normal_()  # added by the loss, not by the model
    examples = examples_for(model, byte_bpe)
    batch = collate(examples, layout_for(model))
    ours = summed_loss(response_logits(model, batch), batch.labels) / batch.responses
    assert ours.item() == pytest.approx(hugging_face_loss(model, examples).item(), abs=1e-5)


@pytest.mark.parametrize("family", ["llama", "gpt2", "marian", "bart"])
@pytest.mark.parametrize("control", ["difference", "ratio", "whole", "progress+tokens", "units"])
def test_positions_are_those_the_model_would_count(family: str, control: str, byte_bpe: Any) -> None:
    model = tiny(family, byte_bpe)
    attach(model, CONTROLS[control](), byte_bpe)
    examples = examples_for(model, byte_bpe, *model.length_control.units)
    batch = collate(examples, layout_for(model, signal=True, mask=not model.config.is_encoder_decoder))
    counted = response_logits(model, batch)
    del batch.inputs["decoder_position"]
    assert torch.allclose(counted, response_logits(model, batch), atol=1e-5)


@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2", "gpt2"])
@pytest.mark.parametrize("control", ["difference", "ratio", "whole", "units", None])
def test_packed_is_unpacked(family: str, control: str | None, byte_bpe: Any) -> None:
    model = tiny(family, byte_bpe)
    units = ("chars",)
    if control:
        attach(model, CONTROLS[control](), byte_bpe)
        units = model.length_control.units
    examples = examples_for(model, byte_bpe, *units)
    plain = collate(examples, layout_for(model, signal=bool(control)))
    layout = layout_for(model, tokens=512, signal=bool(control), packing=128)
    packed = batches(examples, layout, Random(0))
    assert max(len(b.names) / len(b.inputs["input_ids"]) for b in packed) > 1.5
    expected = summed_loss(response_logits(model, plain), plain.labels).item()
    found = sum(summed_loss(response_logits(model, b), b.labels).item() for b in packed)
    assert found == pytest.approx(expected, rel=1e-5)
    assert sum(b.padded for b in packed) < plain.padded


def test_a_batch_without_labels_has_no_loss(byte_bpe: Any) -> None:
    model = tiny("llama", byte_bpe)
    batch = collate(examples_for(model, byte_bpe), layout_for(model)).without_labels()
    assert summed_loss(response_logits(model, batch), batch.labels).item() == 0
    assert batch.responses == 0
