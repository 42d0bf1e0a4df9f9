"""LoRA that merges in its forward pass computes the same gradients."""

from typing import Any

import peft
import torch

from families import tiny
from lengthwise.training.batches import collate
from lengthwise.training.lora_merging import merge_in_forward
from lengthwise.training.loss import summed_loss
from toy_training import examples_for, layout_for, response_logits


def test_merged_lora_is_lora(byte_bpe: Any) -> None:
    model = tiny("llama", byte_bpe)
    config = peft.LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False)
    model = peft.get_peft_model(model, config)
    batch = collate(examples_for(model.get_base_model(), byte_bpe), layout_for(model.get_base_model()))

    def gradients() -> list[torch.Tensor]:
        model.zero_grad()
        summed_loss(response_logits(model, batch), batch.labels).backward()
        return [p.grad.clone() for p in model.parameters() if p.requires_grad]

    plain = gradients()
    assert merge_in_forward(model) == 14
    for expected, found in zip(plain, gradients(), strict=True):
        assert torch.allclose(expected, found, atol=1e-4, rtol=1e-3)
