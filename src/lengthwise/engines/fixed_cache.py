"""A KV cache of a fixed size for models of transformers, and the attention that reads it.

No shape changes from step to step, so that a step can be recorded as a CUDA graph. Keys contain their rotary positions,
so a key may be in any column; a mask selects the keys of each row.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
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
    """Inside the block, compute attention, RMS norms and rotary positions as the functions below do."""
    before = model.config._attn_implementation
    if before == CONTROLLED_ATTENTION:
        raise ValueError(f"{type(model).__name__} has controls that change attention: no KV cache of a fixed size")
    model.set_attn_implementation(_ATTENTION)
    norms = [one for one in model.modules() if _is_rms_norm(one)]
    for norm in norms:
        norm.forward = partial(_rms_norm, norm)
    usual = [(module, module.apply_rotary_pos_emb) for module in _modules_with_rotary_positions(model)]
    for module, _ in usual:
        module.apply_rotary_pos_emb = _rotated
    try:
        if model.config._attn_implementation != _ATTENTION:
            raise ValueError(f"{type(model).__name__} has an attention that cannot be replaced here")
        yield
    finally:
        model.set_attn_implementation(before)
        for norm in norms:
            del norm.forward
        for module, function in usual:
            module.apply_rotary_pos_emb = function


def _is_rms_norm(module: Any) -> bool:
    """Return whether this is weight · x / rms(x), as in Llama. Norms that add 1 to the weight have other attributes."""
    named = type(module).__name__.endswith("RMSNorm") and hasattr(module, "variance_epsilon")
    return named and getattr(module, "weight", None) is not None and module.weight.dim() == 1


def _rms_norm(norm: Any, hidden: Tensor) -> Tensor:
    return torch.nn.functional.rms_norm(hidden, hidden.shape[-1:], norm.weight, norm.variance_epsilon)


def _modules_with_rotary_positions(model: Any) -> list[Any]:
    """Return the files of transformers that define layers of this model and rotate queries and keys as Llama does.

    The function is the file's, so other models of the same family also use `_rotated` inside the block.
    """
    files = {sys.modules[type(one).__module__] for one in model.modules()}
    return [one for one in files if (known := getattr(one, "apply_rotary_pos_emb", None)) and _is_as_in_llama(known)]


@cache
def _is_as_in_llama(function: Callable[..., Any]) -> bool:
    """Return whether the function gives what `_rotated` gives, and rotates all of a query or fails: it is tried out."""
    if function is _rotated:  # another thread is inside the block
        return False
    numbers = torch.linspace(-1, 1, 48)
    query, key, angle = numbers.view(2, 3, 1, 8), numbers[:32].view(2, 2, 1, 8), numbers[:8].view(2, 1, 4)
    try:
        function(query, key, angle.cos(), angle.sin())  # of half of its size
        return False
    except (RuntimeError, TypeError):
        pass
    cos, sin = angle.cos().repeat(1, 1, 2), angle.sin().repeat(1, 1, 2)
    try:
        found = function(query, key, cos, sin)
    except (RuntimeError, TypeError):
        return False
    return all(map(torch.allclose, found, _rotated(query, key, cos, sin)))


def _rotated(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> tuple[Tensor, Tensor]:
    """Return the rotated query and key, (batch, heads, time, size) if `unsqueeze_dim` is 1: five kernels, not ten."""
    heads, half = query.shape[unsqueeze_dim], query.shape[-1] // 2
    both = torch.cat((query, key), unsqueeze_dim)
    cos, sin = cos.unsqueeze(unsqueeze_dim), (sin * _signs(half, sin.device, sin.dtype)).unsqueeze(unsqueeze_dim)
    found = torch.addcmul(both * cos, both.roll(half, -1), sin)
    return found.narrow(unsqueeze_dim, 0, heads), found.narrow(unsqueeze_dim, heads, key.shape[unsqueeze_dim])


@cache
def _signs(half: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Return -1 `half` times, then 1 `half` times. Made before a recording, in one of its runs without a graph."""
    return torch.tensor([-1.0] * half + [1.0] * half, device=device, dtype=dtype)


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
    scores = (together @ key.transpose(2, 3)).view(batch, groups, -1, time, width)
    scores = torch.add(mask[:, :, None], scores, alpha=size**-0.5 if scaling is None else scaling)
    shares = scores.softmax(-1).view(batch, groups, -1, width)  # sums are in float32 in any case
    found = (shares @ value).view(batch, heads, time, -1)
    return found.transpose(1, 2).contiguous(), None


_ATTENTION = "lengthwise_grouped_attention"
AttentionInterface.register(_ATTENTION, _grouped_attention)
