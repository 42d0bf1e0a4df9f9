"""A KV cache of a fixed size for models of transformers, and the attention that reads it.

No shape changes from step to step, so that a step can be recorded as a CUDA graph. Keys contain their rotary positions,
so a key may be in any column; a mask selects the keys of each row.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, Cache, DynamicCache, EncoderDecoderCache

from ..controls.attention import CONTROLLED_ATTENTION


class FixedCache(Cache):  # type: ignore[misc]  # transformers is untyped
    """Keys and values (rows, heads, width, size) of each layer.

    A step writes to `column` of all rows, a prefill to the rows and columns that `filled` names. The cache starts as
    zeros: masked values are multiplied by zero, so they must not be NaN.
    """

    def __init__(self, rows: int, width: int, column: Tensor) -> None:
        super().__init__(layers=[])
        self.rows, self.width, self.column = rows, width, column
        self.filled: tuple[Tensor, Tensor] | None = None  # rows, columns
        self.kept: dict[int, tuple[Tensor, Tensor]] = {}

    def update(self, keys: Tensor, values: Tensor, layer: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        for kept, new in zip(self.layer(layer, keys, values), (keys, values), strict=True):
            if self.filled is None:
                kept.index_copy_(2, self.column, new)
            else:
                rows, columns = self.filled
                kept[rows[:, None], :, columns] = new.transpose(1, 2)
        return self.kept[layer] if self.filled is None else (keys, values)

    def layer(self, number: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and values of a layer, made on first use: as many heads as `keys` and `values`, as large."""
        if number not in self.kept:
            keys_, values_ = (t.new_zeros(self.rows, t.shape[1], self.width, t.shape[3]) for t in (keys, values))
            self.kept[number] = (keys_, values_)
        return self.kept[number]

    def get_seq_length(self, *_: Any, **__: Any) -> int:
        return 0  # used to compute positions, which are given here


class FixedSourceCache(EncoderDecoderCache):  # type: ignore[misc]  # transformers is untyped
    """The cache of an encoder-decoder: that of the text, and the keys and values of `width` source tokens.

    `like`: the keys and values of each layer in a usual cache, (batch, heads, time, size). The reported length is the
    column of the step, as a tensor: models add it to the positions, and a recorded step reads its present value.
    """

    def __init__(self, text: FixedCache, width: int, like: Any) -> None:
        source = DynamicCache()
        for number, layer in enumerate(like):
            new = (t.new_zeros(text.rows, t.shape[1], width, t.shape[3]) for t in (layer.keys, layer.values))
            source.update(*new, number)
        super().__init__(text, source)

    def get_seq_length(self, *_: Any, **__: Any) -> Any:
        return self.self_attention_cache.column[0]


def lowest(model: Any) -> float:
    """Return the lowest number. Not minus infinity: the softmax of a row of padding would be NaN."""
    return torch.finfo(model.dtype).min


@contextmanager
def fewer_kernels(model: Any) -> Iterator[None]:
    """Inside the block, compute attention as `_grouped_attention` does, and each RMS norm in one kernel."""
    before = model.config._attn_implementation
    if before == CONTROLLED_ATTENTION:
        raise ValueError(f"{type(model).__name__} has controls that change attention: no KV cache of a fixed size")
    model.set_attn_implementation(_ATTENTION)
    norms = [one for one in model.modules() if _is_rms_norm(one)]
    for norm in norms:
        norm.forward = partial(_rms_norm, norm)
    try:
        if model.config._attn_implementation != _ATTENTION:
            raise ValueError(f"{type(model).__name__} has an attention that cannot be replaced here")
        yield
    finally:
        model.set_attn_implementation(before)
        for norm in norms:
            del norm.forward


def _is_rms_norm(module: Any) -> bool:
    """Return whether this is weight · x / rms(x), as in Llama. Norms that add 1 to the weight have other attributes."""
    named = type(module).__name__.endswith("RMSNorm") and hasattr(module, "variance_epsilon")
    return named and getattr(module, "weight", None) is not None and module.weight.dim() == 1


def _rms_norm(norm: Any, hidden: Tensor) -> Tensor:
    return torch.nn.functional.rms_norm(hidden, hidden.shape[-1:], norm.weight, norm.variance_epsilon)


def _grouped_attention(
    module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float | None = None, **more: Any
) -> tuple[Tensor, None]:
    """Return grouped-query attention: heads that share a key are rows of one product, so keys are not repeated.

    query (batch, heads, time, size), key and value (batch, groups, width, size), mask (batch, 1, time, width) added.
    """
    if strange := [name for name in ("s_aux", "softcap") if more.get(name) is not None]:
        raise ValueError(f"{type(module).__name__} uses attention with {strange[0]}, not supported here")
    batch, heads, time, size = query.shape
    groups, width = key.shape[1:3]
    together = query.reshape(batch, groups, -1, size)  # (batch, groups, heads/groups * time, size)
    scores = together @ key.transpose(2, 3) * (size**-0.5 if scaling is None else scaling)
    scores = scores.view(batch, groups, -1, time, width) + mask[:, :, None]
    shares = scores.softmax(-1, dtype=torch.float32).to(value.dtype).view(batch, groups, -1, width)
    found = (shares @ value).view(batch, heads, time, -1)
    return found.transpose(1, 2).contiguous(), None


_ATTENTION = "lengthwise_grouped_attention"
AttentionInterface.register(_ATTENTION, _grouped_attention)
