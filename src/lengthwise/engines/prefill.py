"""Prompts, read once for all texts that go on from them: sixteen ends of a text cost sixteen ends, not sixteen texts.

Knows caches of transformers; which can be shared, and how. What is written after them is no matter here.
"""

from typing import Any

from torch import Tensor
from transformers import DynamicLayer


def read(model: Any, inputs: dict[str, Tensor], each: int, options: dict[str, Any] | None = None) -> Any:
    """The cache of prompts (rows, time), all but their last token, `each` times; None if it cannot be shared.

    `options` of `generate` may forbid a cache, or ask for one of another kind.
    """
    how = vars(model.generation_config) | (options or {})
    other = how.get("use_cache") is False or how.get("cache_implementation")
    mask = inputs["attention_mask"]
    lone = mask.shape[1] == 1  # without its last token nothing of the prompt remains, and that cannot be repeated
    adapter = getattr(model, "active_peft_config", None)
    learnt = adapter is not None and adapter.is_prompt_learning  # its virtual tokens stand in no prompt
    if other or lone or learnt or model.config.is_encoder_decoder:
        return None
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    found = model(**inputs, position_ids=positions, use_cache=True, logits_to_keep=1)
    cache: Any = getattr(found, "past_key_values", None)
    if not all(type(layer) is DynamicLayer for layer in getattr(cache, "layers", [None])):
        return None  # a sliding window, a state
    cache.crop(-1)  # the last token is read when the first is written
    cache.batch_repeat_interleave(each)
    return cache
