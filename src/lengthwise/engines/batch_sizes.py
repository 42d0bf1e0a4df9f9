"""Batch sizes of a transformers model: small on a CPU, and on a GPU what a share of its memory holds."""

from dataclasses import dataclass
from typing import Any

import torch

_SHARE = 16  # of the memory, for the logits of a pass, and for the rows of a search
_COPIES = 8  # of the scores of a row, in float32, that a step of a constrained search makes
_TEXT, _PROMPT = 256, 768  # tokens of a text and of a prompt, for the estimate of a KV cache
_MAX_TOKENS, _MAX_ROWS, _MAX_TEXTS = 32768, 640, 64  # on an H200; with 1536 rows a search recorded for too long
_MIN_TOKENS, _MIN_ROWS, _MIN_TEXTS = 4096, 40, 16  # those of a CPU


@dataclass(frozen=True)
class BatchSizes:
    """`tokens`: of a pass that scores texts. `rows`: of a search. `texts`: that a writer decodes together."""

    tokens: int = _MIN_TOKENS
    rows: int = _MIN_ROWS
    texts: int = _MIN_TEXTS

    @staticmethod
    def of(model: Any) -> "BatchSizes":
        """Return the sizes for a model on its device."""
        if model.device.type != "cuda":
            return BatchSizes()
        memory = torch.cuda.get_device_properties(model.device).total_memory
        return BatchSizes.within(memory - model.get_memory_footprint(), model.config, model.dtype.itemsize)

    @staticmethod
    def within(memory: int, config: Any, itemsize: int) -> "BatchSizes":
        """Return the sizes for this many bytes beside the weights. `itemsize`: the bytes of a number of the model."""
        try:
            text = config if hasattr(config, "num_attention_heads") else config.get_text_config(decoder=True)
            heads, width, vocabulary = text.num_attention_heads, text.hidden_size, text.vocab_size
            shared = (getattr(text, "num_key_value_heads", None) or heads) / heads  # of the keys, among heads
        except (AttributeError, RuntimeError):  # no attention, or sizes that are elsewhere or differ by layer
            return BatchSizes()
        layers = getattr(text, "decoder_layers", None) or text.num_hidden_layers
        token = 2 * layers * width * shared * itemsize  # keys and values
        columns = _TEXT if text.is_encoder_decoder else _PROMPT + _TEXT
        row = columns * token + _COPIES * vocabulary * 4
        part = max(0, memory) // _SHARE
        rows = int(part // row)
        return BatchSizes(
            tokens=min(_MAX_TOKENS, max(_MIN_TOKENS, part // (vocabulary * itemsize))),
            rows=min(_MAX_ROWS, max(_MIN_ROWS, rows)),
            texts=min(_MAX_TEXTS, max(_MIN_TEXTS, rows)),
        )
