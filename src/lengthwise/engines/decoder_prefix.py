"""Texts of an encoder-decoder that begin with given ids, of a different number in each row.

The ids are padded on the left, so that all rows are continued in the same column. Rotary and relative positions do not
depend on the padding. Absolute positions do: most decoders count columns, so the padding would move the text. While
`counting_from_the_text` is active, positions are counted from the first column that the mask shows. `last_logits_only`
saves the largest product of a search: a prefix needs no logits, nor does the text that is read again without a cache.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

from torch import Tensor

from ..controls.attached import controls_of


@contextmanager
def counting_from_the_text(model: Any) -> Iterator[None]:
    """Let the decoder's absolute positions follow its mask, in this thread."""
    decoder, thread = model.get_decoder(), get_ident()
    module = getattr(decoder, "embed_positions", None)
    if module is None or any(control.positions == "none" for control in controls_of(model)):
        yield
        return
    # M2M100 has a table of its own, whose first rows are for padding; the others are embeddings, some with an offset.
    own_table = not hasattr(module, "weight")
    offset = module.padding_idx + 1 if own_table else getattr(module, "offset", 0)
    positions: list[Tensor] = []

    def read_mask(decoder: Any, args: Any, kwargs: dict[str, Any]) -> None:
        if get_ident() == thread:
            mask = kwargs.get("attention_mask")
            positions[:] = [] if mask is None or mask.dim() != 2 else [(mask.long().cumsum(1) - 1).clamp(min=0)]

    def replace(module: Any, args: Any, output: Tensor) -> Tensor:
        if not positions or get_ident() != thread:
            return output
        table = module.weights if own_table else module.weight
        return table[positions[0][:, -output.shape[-2] :].to(table.device) + offset].to(output)

    handles = [decoder.register_forward_pre_hook(read_mask, with_kwargs=True), module.register_forward_hook(replace)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def last_logits_only(model: Any) -> Iterator[None]:
    """Let the output layer compute the last position alone, in this thread."""
    thread = get_ident()

    def cut(module: Any, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (args[0][:, -1:], *args[1:]) if get_ident() == thread else args

    handle = model.get_output_embeddings().register_forward_pre_hook(cut)
    try:
        yield
    finally:
        handle.remove()
