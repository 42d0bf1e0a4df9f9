"""Length encodings (LDPE, LRPE, ORPE, absolute, relative): a sinusoid of the count, added to the decoder's input.

Takase & Okazaki 2019, Lakew et al. 2019, Butcher et al. 2024. The formulas are in `sinusoids.py`; here are the steps
that receive the vectors (`placement`) and their norm (`scale`, `gain`).
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, silu

from . import sinusoids
from .base import PLACEMENTS, Control, Signal, unit_names

KINDS = ("difference", "ratio", "ratio_of_first_row", "progress")
_TAG_GAIN = 0.5  # norm relative to the sinusoid


class EncodingControl(Control):
    """A sinusoid of the count at each step, added to the decoder's input.

    kind        difference: units left; ratio: units written, the length as base; progress: share written, in `steps`;
                ratio_of_first_row: Takase's published code, where all rows of a batch have the length of the first
    unit        what is counted, or several units: then each row of a batch has its own and gets a fixed vector for it
    at_most     a length can also be an upper limit, before which a text may end; such a row gets a fixed vector
    placement   answer: from the last prompt token on (an encoder-decoder: every decoder input, also called `decoder`);
                response: from the first answer token on (ORPE); whole: the count runs through the prompt as well (LDPE)
    end_index   the count at the step that must end the text: 0 Takase and Lakew, 1 Butcher, 2 Takase's published code
    scale       constant: sinusoid and embedding rows have equal norms on average, one number saved with the model;
                frobenius: ‖E‖/‖R‖ per sequence over the encoded rows of the call (the paper; differs between training
                and each cached step); or a number: 1.0 suits an encoder-decoder that is trained from scratch
    positions   add to the decoder's own absolute positions, or replace them
    gain        factor on the scale. At 1, as in the papers, the sinusoid has the norm of an embedding: that lowers the
                quality of a small pretrained model until it has been trained for long. At 0.25 it hardly does
    reader      hidden units of an MLP that also receives the sinusoid; its output is added. The output is zero at
                first, so with gain 0 training starts from the unchanged model. 0: no MLP, as in the papers
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
        layout: sinusoids.Layout = "interleaved",
        cosine: sinusoids.Cosine = "shared",
        at_most: bool = False,
        gain: float = 1.0,
        reader: int = 0,
    ) -> None:
        super().__init__()
        for option, value, choices in (
            ("kind", kind, KINDS),
            ("placement", placement, tuple(PLACEMENTS)),
            ("scale", scale if isinstance(scale, str) else "constant", ("constant", "frobenius")),
            ("positions", positions, ("add", "replace")),
        ):
            if value not in choices:
                raise ValueError(f"{option} must be one of {', '.join(choices)}; got {value!r}")
        if end_index not in (0, 1, 2):
            raise ValueError(f"end_index must be 0, 1 or 2; got {end_index}")
        if end_index and kind != "difference":
            raise ValueError(f"end_index shifts what remains, which {kind!r} does not encode; leave it at 0")
        if min(gain, reader) < 0 or not (gain or reader):
            raise ValueError(f"an encoding needs a gain or a reader above 0; got {gain} and {reader}")
        if scale == "frobenius" and (reader or gain != 1):
            raise ValueError("scale 'frobenius' sets the gain itself; leave gain at 1 and reader at 0")
        if steps < 1:
            raise ValueError(f"progress needs at least 1 step; got {steps}")
        sinusoids.difference(0, 4, layout=layout, cosine=cosine)  # a wrong option raises here, not in training

        self.units = unit_names(unit)
        self.unit = self.units[0] if len(self.units) == 1 else self.units
        self.kind, self.placement, self.end_index, self.positions = kind, placement, end_index, positions
        self.scale, self.gain, self.reader, self.at_most = scale, gain, reader, at_most
        self.steps, self.layout, self.cosine = steps, layout, cosine
        self.norm_of_example, self.can_shift = scale == "frobenius", kind == "difference"
        self.register_buffer("factor", torch.tensor(math.nan if isinstance(scale, str) else scale, dtype=torch.float32))
        self.inner: Tensor | None = None  # (reader, dim)
        self.outer: Tensor | None = None  # (dim, reader)

    def on_attach(self, row_norm: float, dim: int) -> None:
        if self.scale == "constant" and self.factor.isnan():
            self.factor.fill_(row_norm * math.sqrt(2 / dim))  # a row of sines and cosines has norm sqrt(dim / 2)
        if self.reader and self.inner is None:
            self.inner = nn.Parameter(torch.randn(self.reader, dim) / math.sqrt(dim / 2))
            self.outer = nn.Parameter(torch.zeros(dim, self.reader))
        if self.inner is not None and self.inner.shape[1] != dim:
            raise ValueError(f"this control was trained for a model of width {self.inner.shape[1]}; this one has {dim}")

    def encode(self, signal: Signal, inputs: Tensor) -> Tensor:
        mask = signal.placement_mask(self.placement).unsqueeze(-1)  # (batch, time, 1)
        dim = inputs.shape[-1]
        vectors = self._amplified(self.vectors(signal, dim) + self._tags(signal, dim)) * mask  # (batch, time, dim)
        if not self.norm_of_example:
            return vectors * self.factor
        norms = [x.float().norm(dim=(1, 2), keepdim=True) for x in (inputs * mask, vectors)]  # (batch, 1, 1)
        scale: Tensor = norms[0] / norms[1].clamp(min=1e-12)
        return vectors * scale

    def vectors(self, signal: Signal, dim: int) -> Tensor:
        """Return the sinusoids alone, at every step: (batch, time, dim)."""
        length = signal.length.unsqueeze(-1)  # (batch, 1)
        if self.kind == "difference":
            return sinusoids.difference(self.index(signal), dim, layout=self.layout, cosine=self.cosine)
        if self.kind == "ratio_of_first_row":  # a longer row counts on beyond that length
            first = signal.length[:1].expand_as(signal.length)
            return sinusoids.ratio(signal.position.clamp(min=0), first, dim, layout=self.layout, cosine=self.cosine)
        written = signal.position.clamp(min=0).minimum(length)  # 0 in the prompt; at most the length
        if self.kind == "ratio":
            return sinusoids.ratio(written, signal.length, dim, layout=self.layout, cosine=self.cosine)
        return sinusoids.progress(written, signal.length, dim, self.steps, layout=self.layout, cosine=self.cosine)

    def index(self, signal: Signal) -> Tensor:
        """Return the units that remain, plus `end_index`: (batch, time).

        Clamped at 0: the model was not trained on negative counts, so a text beyond its length would not end.
        """
        return (signal.length.unsqueeze(-1) - signal.position).clamp(min=0) + self.end_index

    def _amplified(self, vectors: Tensor) -> Tensor:
        scaled = vectors if self.gain == 1 else self.gain * vectors
        if self.inner is None or self.outer is None:
            return scaled
        return scaled + linear(silu(linear(vectors.to(self.inner.dtype), self.inner)), self.outer)

    def _tags(self, signal: Signal, dim: int) -> Tensor | float:
        """Return the sum of each row's fixed vectors for unit and upper limit: (batch, 1, dim), or 0 if none."""
        tags: Tensor | float = 0.0
        if len(self.units) > 1:
            number = torch.zeros_like(signal.length) if signal.unit is None else signal.unit
            tags = _TAG_GAIN * sinusoids.tag(number, dim)
        if self.at_most and signal.at_most is not None:
            limit = sinusoids.tag(torch.full_like(signal.length, len(self.units)), dim)
            tags = tags + _TAG_GAIN * limit * signal.at_most.unsqueeze(-1)
        return tags.unsqueeze(1) if isinstance(tags, Tensor) else tags
