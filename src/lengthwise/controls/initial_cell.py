"""LenInit (Kikuchi, Neubig, Sasano, Takamura & Okumura 2016): the length is the initial memory of an LSTM decoder.

A baseline of Takase & Okazaki 2019. The LSTM has to count down by itself. The decoder is in `models/lstm_decoder.py`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .base import Control, Signal, unit_names


class InitialCell(Control):
    """The initial cell of the LSTM is length · b, with a trained vector b. Untrained, it is zero, as without a length.

    unit     what is counted, or several units, of which each row of a batch has one; they share the vector
    """

    name = "initial_cell"
    sets_cell = True

    def __init__(self, unit: str | Sequence[str] = "chars") -> None:
        super().__init__()
        self.units = unit_names(unit)
        self.unit = self.units[0] if len(self.units) == 1 else self.units
        self.vector: Tensor | None = None  # (dim,)

    def on_attach(self, row_norm: float, dim: int) -> None:
        if self.vector is None:
            self.vector = nn.Parameter(torch.zeros(dim))
        if len(self.vector) != dim:
            raise ValueError(f"this control was trained for a model of width {len(self.vector)}; this one has {dim}")

    def initial_cell(self, signal: Signal) -> Tensor:
        assert self.vector is not None
        return signal.length.unsqueeze(-1) * self.vector  # (batch, dim)
