"""Prompts, read once for all texts that go on from them: sixteen ends of a text cost sixteen ends, not sixteen texts.

Knows caches of transformers; which can be shared, and how. What is written after them is no matter here.
"""

from typing import Any

from torch import Tensor
from transformers import DynamicLayer


def read(model: Any, inputs: dict[str, Tensor], each: int) -> Any:
    """The cache of prompts (rows, time), all but their last token, `each` times; None if it cannot be shared."""
    if model.config.is_encoder_decoder:
        return None
    positions = (inputs["attention_mask"].cumsum(1) - 1).clamp(min=0)
    cache = model(**inputs, position_ids=positions, use_cache=True, logits_to_keep=1).past_key_values
    if not all(type(layer) is DynamicLayer for layer in getattr(cache, "layers", [None])):
        return None  # a sliding window, a state
    cache.crop(-1)  # the last token is read when the first is written
    cache.batch_repeat_interleave(each)
    return cache
