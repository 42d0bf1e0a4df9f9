"""Formulas of the length encodings: LDPE, LRPE (Takase & Okazaki 2019), LEabs, LErel (Lakew et al. 2019), ORPE.

Pure functions that turn the units left to write, or written, into a vector (..., dim) that is added to a decoder's
input. Vectors are computed, not looked up, so there is no largest count.

Options of all three: `layout="fairseq"` puts the sines before the cosines and spaces the frequencies as fairseq and
Takase's code do, exponent k/(d/2 − 1) in place of 2k/d; `cosine="lakew"` gives the cosines the exponent (2k+1)/d that
Lakew et al. print. Vectors are float32; angles are reduced in float64, so a count of 100,000 is as exact as 1.
"""

import math
from typing import Literal

import torch
from torch import Tensor

Count = Tensor | int | float
Layout = Literal["interleaved", "fairseq"]
Cosine = Literal["shared", "lakew"]


def difference(remaining: Count, dim: int, *, layout: Layout = "interleaved", cosine: Cosine = "shared") -> Tensor:
    """Return a sinusoid of the units left to write: LDPE, LEabs, ORPE.

    Takase & Okazaki 2019 (eq. 2, 3); Lakew et al. 2019 (eq. 3, 4); Butcher et al. 2024.
        v[2k] = sin(remaining · 10000^(−2k/d)),  v[2k+1] = cos(remaining · 10000^(−2k/d))
    budget 5 → remaining 5 4 3 2 1 0; at 0, where the text must end, the vector is 0 1 0 1 …
    """
    return _sinusoid(torch.as_tensor(remaining), 10000.0, dim, layout, cosine)


def ratio(
    position: Count, length: Count, dim: int, *, layout: Layout = "interleaved", cosine: Cosine = "shared"
) -> Tensor:
    """Return a sinusoid of the units written, at frequencies that depend on the length: LRPE.

    Takase & Okazaki 2019 (eq. 5, 6), with each row's own length (their code takes row 0's for all).
        v[2k] = sin(position / length^(2k/d)),  v[2k+1] = cos(position / length^(2k/d))
    budget 5 → position 0 1 2 3 4 5; the first pair turns by 1 radian per unit, the last by about 1 in all.
    `length` may lack the last dimensions of `position`: (batch,) goes with (batch, time).
    """
    position = torch.as_tensor(position)
    return _sinusoid(position, _lengths(length, position).unsqueeze(-1), dim, layout, cosine)


def progress(
    position: Count,
    length: Count,
    dim: int,
    steps: int = 5,
    *,
    layout: Layout = "interleaved",
    cosine: Cosine = "shared",
) -> Tensor:
    """Return a sinusoid of the share of the length that is written, in `steps` equal steps: LErel.

    Lakew et al. 2019 (eq. 5, 6).
        v = sinusoid(q),  q = ⌊steps · position / length⌋, at most `steps`, floored in whole numbers
    budget 12, 5 steps → position 0 1 2 3 4 5 6 7 8 9 10 11 12 becomes 0 0 0 1 1 2 2 2 3 3 4 4 5.
    """
    return difference(step_reached(position, length, steps), dim, layout=layout, cosine=cosine)


def step_reached(position: Count, length: Count, steps: int = 5) -> Tensor:
    """Return q_N of Lakew et al.: ⌊steps · position / length⌋, within 0..steps.

    In whole numbers: in floating point, 29 of 50 in 100 steps would be 57.
    """
    position = torch.as_tensor(position)
    length = _lengths(length, position)
    if position.is_floating_point() or length.is_floating_point():
        raise TypeError(f"progress counts in whole units; got position {position.dtype} and length {length.dtype}")
    return torch.div(position.long() * steps, length.long(), rounding_mode="floor").clamp(0, steps)


def tag(number: Count, dim: int) -> Tensor:
    """Return a fixed vector (..., dim) for a category (a unit, a kind of limit): a row of the cosine basis.

        v[k] = cos(π · (number + 1) · (k + ½) / d)
    Rows of different numbers are orthogonal, so a sum of tags can be separated. They have the norm of a sinusoid.
    """
    row = torch.as_tensor(number).float().unsqueeze(-1) + 1
    return torch.cos(math.pi / dim * row * (torch.arange(dim, device=row.device) + 0.5))


def _lengths(length: Count, position: Tensor) -> Tensor:
    """Return `length` with as many dimensions as `position`; an error names the first row shorter than one unit.

    Not checked on a GPU, where each step would wait for the result: `generate` and training have checked it before.
    """
    length = torch.as_tensor(length, device=position.device)
    rows = length.reshape(length.shape or (1,))
    if not rows.is_cuda and (rows < 1).any():
        where = (rows < 1).nonzero()[0]
        raise ValueError(f"length must be at least 1; got {rows[tuple(where)].item()} for row {int(where[0])}")
    return length[(..., *[None] * (position.dim() - length.dim()))]


def _sinusoid(x: Tensor, base: float | Tensor, dim: int, layout: Layout, cosine: Cosine) -> Tensor:
    """Return sin and cos of x · base^(−exponent): (...) -> (..., dim); a tensor `base` is (..., 1)."""
    # Computed on the device of x, without a transfer; MPS has no float64.
    device = torch.device("cpu") if x.device.type == "mps" else x.device
    for_sin, for_cos = _exponents(dim, layout, cosine, device)
    waves = _angle(x, base, for_sin).sin(), _angle(x, base, for_cos).cos()  # each (..., dim/2)
    return torch.cat(waves, -1) if layout == "fairseq" else torch.stack(waves, -1).flatten(-2)


def _exponents(dim: int, layout: str, cosine: str, device: torch.device) -> tuple[Tensor, Tensor]:
    if dim % 2 or dim < 4:
        raise ValueError(f"an encoding needs an even dimension of at least 4; got {dim}")
    k = torch.arange(dim // 2, dtype=torch.float64, device=device)
    match layout, cosine:
        case "interleaved", "shared":
            return 2 * k / dim, 2 * k / dim
        case "interleaved", "lakew":
            return 2 * k / dim, (2 * k + 1) / dim
        case "fairseq", "shared":
            return k / (dim // 2 - 1), k / (dim // 2 - 1)
    raise ValueError(
        f"no encoding has layout {layout!r} with cosine {cosine!r}; "
        "layout is 'interleaved' or 'fairseq', cosine is 'shared' or (interleaved only) 'lakew'"
    )


def _angle(x: Tensor, base: float | Tensor, exponent: Tensor) -> Tensor:
    """Return x · base^(−exponent), reduced to one turn in float64, then rounded to float32: (..., dim/2)."""
    base = base.to(exponent.device).double() if isinstance(base, Tensor) else base
    angle = x.to(exponent.device).double().unsqueeze(-1) * base**-exponent
    return torch.remainder(angle, 2 * math.pi).float().to(x.device)
