"""The sizes of a Marian encoder-decoder that the onnx engine reads."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """The sizes of an encoder-decoder."""

    vocabulary: int
    width: int
    layers: int  # of the decoder
    heads: int  # of the decoder
    window: int  # positions
    activation: str

    @property
    def head_size(self) -> int:
        return self.width // self.heads
