"""LC (Liu, Luo & Zhu 2018): the input of the decoder's first layer is multiplied by the length.

A baseline of Takase & Okazaki 2019. The model receives the whole length at every step, and has to count by itself how
much of it is written.
"""

from collections.abc import Sequence

from torch import Tensor

from .base import Control, Signal, unit_names


class MultipliedInput(Control):
    """The decoder's embeddings times length · `scale`; its positions are added after that.

    unit     what is counted, or several units, of which each row of a batch has one; they share the scale
    scale    one over a usual length, so that the factors are near 1: 75 chars, scale 0.01 → 0.75
    """

    name = "multiplied_input"

    def __init__(self, unit: str | Sequence[str] = "chars", scale: float = 0.01) -> None:
        super().__init__()
        if scale <= 0:
            raise ValueError(f"scale must be above 0; got {scale}")
        self.units = unit_names(unit)
        self.unit = self.units[0] if len(self.units) == 1 else self.units
        self.scale = scale

    def encode(self, signal: Signal, inputs: Tensor) -> Tensor:
        factor = (self.scale * signal.length)[:, None, None]  # (batch, 1, 1)
        return inputs * (factor - 1) * signal.placement_mask("answer").unsqueeze(-1)  # `attach` adds the inputs
