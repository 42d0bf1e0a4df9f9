"""Skip the attention masks that transformers would build; use only those in the batch.

transformers builds its masks in every call. To see whether they are needed (padding, several texts in a row) it reads
values from the GPU, which is a synchronisation in every training step. The batches of `training/batches.py` do not
need these masks: rows are padded on the right, so a causal model never attends to padding, and an
encoder's mask is part of the batch. This file lists the model families for which that is enough.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from ..controls.attention import CONTROLLED_ATTENTION, controlled_attention

# The same functions under other names: transformers builds masks only for attention functions whose masks it knows.
_WITHOUT_MASKS = {"sdpa": "lengthwise_without_masks", CONTROLLED_ATTENTION: "lengthwise_controls_without_masks"}
AttentionInterface.register(_WITHOUT_MASKS["sdpa"], sdpa_attention_forward)
AttentionInterface.register(_WITHOUT_MASKS[CONTROLLED_ATTENTION], controlled_attention)
# Not T5: it adds the mask to its position bias.
_ENCODER_DECODERS = {"marian", "marian_lstm", "bart", "mbart", "m2m_100", "pegasus"}
_DECODERS = {"llama", "mistral", "qwen2", "qwen3"}  # their masks are only causal


@contextmanager
def only_given_masks(model: Any, inputs: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the arguments of a call during which no mask is built. Other families are called as usual."""
    config = model.config
    encoder_decoder = config.model_type in _ENCODER_DECODERS
    packed = "position_ids" in inputs  # by which transformers separates the texts of a row
    decoder = config.model_type in _DECODERS and not getattr(config, "sliding_window", None) and not packed
    if config._attn_implementation not in _WITHOUT_MASKS or not (encoder_decoder or decoder):
        yield inputs
        return
    mask: Tensor | None = inputs.get("attention_mask")
    if encoder_decoder and mask is not None:
        inputs = inputs | {"attention_mask": mask.bool()[:, None, None, :]}  # (batch, heads, queries, keys)
    before = config._attn_implementation_internal
    config._attn_implementation_internal = _WITHOUT_MASKS[before]
    try:
        yield inputs
    finally:
        config._attn_implementation_internal = before
