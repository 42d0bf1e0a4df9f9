"""What decoders of all families have in common: the sizes that the onnx engine reads, and how others are refused."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class DecoderShape:
    """The sizes of a decoder."""

    vocabulary: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    window: int  # positions


def refuse(unsupported: Mapping[str, bool]) -> None:
    """Raise a `ValueError` for the first property that a model has, of those that the engine does not support."""
    if found := [name for name, given in unsupported.items() if given]:
        raise ValueError(f"the onnx engine cannot run a model with {found[0]}")
