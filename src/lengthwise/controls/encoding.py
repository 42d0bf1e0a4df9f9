"""Length encodings: the decoder reads at every step how much is left to write.

Turns a signal into vectors by one of `encodings.py`'s formulas, at the rows that a placement names, at a scale that the
model can hear. It does not know tokens: positions come counted.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, silu

from . import sinusoids as encodings
from .base import PLACEMENTS, Control, Signal, units_named

KINDS = ("difference", "ratio", "progress")
_TAG = 0.5  # of the sinusoid's size: heard, and not louder than the word


class EncodingControl(Control):
    """A sinusoid of the count at each step, added to the decoder's input.

    kind        difference: what remains; ratio: what is written, the length as base; progress: the share, in `steps`
    unit        what is counted, or several units: then each row of a batch has its own, and hears which
    at_most     a length may also be a limit, below which a text may end by itself; the row hears that, too
    placement   answer: from the last prompt token on (an encoder-decoder: every decoder input, also called `decoder`);
                response: from the first answer token on (ORPE); whole: the count runs through the prompt as well (LDPE)
    end_index   the count at the step that must end the text: 0 as in the papers, 1 for LDPE/ORPE, 2 for Takase's code
    scale       constant: sinusoid and embedding rows have equal norms on average, one number saved with the model;
                frobenius: ‖E‖/‖R‖ per sequence over the encoded rows of the call (the paper; differs between training
                and each cached step); or a number: 1.0 suits an encoder-decoder that is trained from scratch
    positions   add to the decoder's own absolute positions, or replace them
    volume      times the scale: at 1, as in the papers, the sinusoid is as loud as the words: a small pretrained model
                pays with its words, and has to be trained for long; at 0.25 it hardly minds
    reader      hidden units of a small network that reads the sinusoid, too, and adds what it makes of it. It starts
                silent, so with volume 0 training starts from the model as it is; 0: none, as in the papers
    """

    name = "encoding"
    factor: Tensor

    def __init__(
        self,
        kind: str = "difference",
        unit: str | Sequence[str] = "chars",
        placement: str = "answer",
        end_index: int = 0,
        scale: str | float = "constant",
        positions: str = "add",
        steps: int = 5,
        layout: encodings.Layout = "interleaved",
        cosine: encodings.Cosine = "shared",
        at_most: bool = False,
        volume: float = 1.0,
        reader: int = 0,
    ) -> None:
        super().__init__()
        self.kind = _one_of("kind", kind, KINDS)
        self.units = units_named(unit)
        self.unit = self.units[0] if len(self.units) == 1 else self.units
        self.at_most = at_most
        self.volume = volume
        self.reader = reader
        self.inner: Tensor | None = None  # (reader, dim)
        self.outer: Tensor | None = None  # (dim, reader)
        self.placement = _one_of("placement", placement, tuple(PLACEMENTS))
        self.end_index = _end_index(end_index, kind)
        self.scale = scale if isinstance(scale, int | float) else _one_of("scale", scale, ("constant", "frobenius"))
        self.positions = _one_of("positions", positions, ("add", "replace"))
        self.steps = steps
        self.layout = layout
        self.cosine = cosine
        known = float(scale) if isinstance(scale, int | float) else math.nan
        self.register_buffer("factor", torch.tensor(known, dtype=torch.float32))
        if min(volume, reader) < 0 or not (volume or reader):
            raise ValueError(f"a control must be heard: volume or reader above 0; got {volume} and {reader}")
        if scale == "frobenius" and (reader or volume != 1):
            raise ValueError("scale 'frobenius' sets the volume itself; leave volume at 1 and reader at 0")
        if steps < 1:
            raise ValueError(f"progress needs at least 1 step; got {steps}")
        encodings.difference(0, 4, layout=layout, cosine=cosine)  # an impossible option fails here, not while training

    def settle(self, row_norm: float, dim: int) -> None:
        if self.scale == "constant" and self.factor.isnan():
            self.factor.fill_(row_norm * math.sqrt(2 / dim))  # a row of sines and cosines has norm sqrt(dim / 2)
        if self.reader and self.inner is None:
            self.inner = nn.Parameter(torch.randn(self.reader, dim) / math.sqrt(dim / 2))
            self.outer = nn.Parameter(torch.zeros(dim, self.reader))
        if self.inner is not None and self.inner.shape[1] != dim:
            raise ValueError(f"this control has learnt for a model of width {self.inner.shape[1]}; this one has {dim}")

    def encode(self, signal: Signal, inputs: Tensor) -> Tensor:
        carriers = signal.carriers(self.placement).unsqueeze(-1)  # (batch, time, 1)
        vectors = self.vectors(signal, inputs.shape[-1]) + self._tags(signal, inputs.shape[-1])
        vectors = self._read(vectors) * carriers  # (batch, time, dim)
        if self.scale != "frobenius":
            return vectors * self.factor
        norms = [x.float().norm(dim=(1, 2), keepdim=True) for x in (inputs * carriers, vectors)]  # (batch, 1, 1)
        scale: Tensor = norms[0] / norms[1].clamp(min=1e-12)
        return vectors * scale

    def vectors(self, signal: Signal, dim: int) -> Tensor:
        """The sinusoids alone, at every row: (batch, time, dim)."""
        length = signal.length.unsqueeze(-1)  # (batch, 1)
        if self.kind == "difference":
            return encodings.difference(self.index(signal), dim, layout=self.layout, cosine=self.cosine)
        written = signal.position.clamp(min=0).minimum(length)  # a prompt is not progress; an overrun stays at the end
        if self.kind == "ratio":
            return encodings.ratio(written, signal.length, dim, layout=self.layout, cosine=self.cosine)
        return encodings.progress(written, signal.length, dim, self.steps, layout=self.layout, cosine=self.cosine)

    def _read(self, vectors: Tensor) -> Tensor:
        loud = vectors if self.volume == 1 else self.volume * vectors
        if self.inner is None or self.outer is None:
            return loud
        return loud + linear(silu(linear(vectors.to(self.inner.dtype), self.inner)), self.outer)

    def _tags(self, signal: Signal, dim: int) -> Tensor | float:
        """What tells a row's unit, and a limit from a length: (batch, 1, dim), or nothing where there is one only."""
        tags: Tensor | float = 0.0
        if len(self.units) > 1:
            number = torch.zeros_like(signal.length) if signal.unit is None else signal.unit
            tags = _TAG * encodings.tag(number, dim)
        if self.at_most and signal.at_most is not None:
            limit = encodings.tag(torch.full_like(signal.length, len(self.units)), dim)
            tags = tags + _TAG * limit * signal.at_most.unsqueeze(-1)
        return tags.unsqueeze(1) if isinstance(tags, Tensor) else tags

    def index(self, signal: Signal) -> Tensor:
        """What remains, plus `end_index`: (batch, time). Without the clamp one overrun sends a text on without end."""
        return (signal.length.unsqueeze(-1) - signal.position).clamp(min=0) + self.end_index


def _one_of(option: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise ValueError(f"{option} must be one of {', '.join(choices)}; got {value!r}")
    return value


def _end_index(end_index: int, kind: str) -> int:
    if end_index not in (0, 1, 2):
        raise ValueError(f"end_index must be 0, 1 or 2; got {end_index}")
    if end_index and kind != "difference":
        raise ValueError(f"end_index shifts what remains, which {kind!r} does not encode; leave it at 0")
    return end_index
