"""Masks: only those that a batch brings, as they are.

transformers makes its masks anew in every call, and asks the device whether it needs them: is anything padded, does a
row hold several texts? The processor then waits until the GPU has done all that it was given, in every step. Batches of
ours know: rows are padded on the right, so that a causal model never sees the padding, and an encoder's mask comes
ready made. Knows which families can do without the rest; what is computed is no matter here.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

# The same attention under another name: for one that it has no masks for, transformers makes none.
_UNASKED = "lengthwise_unasked"
AttentionInterface.register(_UNASKED, sdpa_attention_forward)
_BOTH = {"marian", "bart", "mbart", "m2m_100", "pegasus"}  # not T5: it adds the mask to its position bias
_DECODERS = {"llama", "mistral", "qwen2", "qwen3"}  # their masks say nothing but who comes first


@contextmanager
def ready_masks(model: Any, inputs: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The arguments of a call, inside which no mask is made; where that is not known to be right, all is as ever."""
    config = model.config
    both = config.model_type in _BOTH
    packed = "position_ids" in inputs  # by which transformers tells the texts of a row apart
    alone = config.model_type in _DECODERS and not getattr(config, "sliding_window", None) and not packed
    if config._attn_implementation != "sdpa" or not (both or alone):
        yield inputs
        return
    mask: Tensor | None = inputs.get("attention_mask")
    if both and mask is not None:
        inputs = inputs | {"attention_mask": mask.bool()[:, None, None, :]}  # (batch, heads, queries, keys)
    before = config._attn_implementation_internal
    config._attn_implementation_internal = _UNASKED
    try:
        yield inputs
    finally:
        config._attn_implementation_internal = before
