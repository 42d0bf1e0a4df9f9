"""Length encodings: counts, placements and scales, against golden values."""

import json
from pathlib import Path

import pytest
import torch

from lengthwise.controls import EncodingControl, Signal
from lengthwise.controls.sinusoids import difference, progress, ratio

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/formulas.json").read_text("utf-8"))


def signal(position: list[list[int]], length: list[int], start: int = 0, live: list[list[int]] | None = None) -> Signal:
    """`start`: the column of the first answer token."""
    positions = torch.tensor(position)
    column = torch.arange(positions.shape[1]).expand_as(positions) - start
    return Signal(
        positions, torch.tensor(length), column, torch.tensor(live or torch.ones_like(positions).tolist()).bool()
    )


def placed(control: EncodingControl, given: Signal) -> list[list[int | None]]:
    """The index at each row, None where nothing is carried."""
    carriers = given.placement_mask(control.placement).tolist()
    rows = zip(control.index(given).tolist(), carriers, strict=True)
    return [[i if c else None for i, c in zip(*row, strict=True)] for row in rows]


@pytest.mark.parametrize("case", GOLDEN["reverse_index"])
def test_butcher_indices(case: dict) -> None:
    n, m = case["in"]["n"], case["in"]["m"]
    placement = {"LDPE": "whole", "ORPE": "response"}[case["in"]["mode"]]
    given = signal([list(range(1 - n, m + 1))], [m], start=n)
    assert placed(EncodingControl(unit="tokens", placement=placement, end_index=1), given) == [case["out"]]


def test_butcher_figure_1() -> None:
    given = signal([list(range(-4, 101))], [100], start=5)
    row = placed(EncodingControl(unit="tokens", placement="whole", end_index=1), given)[0]
    expected = GOLDEN["reverse_index_fig1"]["out"]
    assert [row[0], row[4], row[5], row[-1]] == expected["LDPE first,last prompt,first response,last"]
    row = placed(EncodingControl(unit="tokens", placement="response", end_index=1), given)[0]
    assert [row[5], row[-1]] == expected["ORPE first,last response"]
    assert row[:5] == [None] * 5


def test_butcher_left_padded() -> None:
    golden = GOLDEN["reverse_index_left_pad"]
    given = signal([[-4, -3, -2, -1, 0]] * 2, golden["in"]["target_response"], 5, golden["in"]["attention_mask"])
    row = placed(EncodingControl(unit="tokens", placement="whole", end_index=1), given)
    assert row == next(iter(golden["out"].values()))


@pytest.mark.parametrize("case", GOLDEN["takase_code_indices"])
def test_takase_code_indices(case: dict) -> None:
    length, steps = case["in"]["L_chars"], case["out"]["ldpe_index_per_step"]
    given = signal([list(range(length + 1))], [length], start=1)
    assert placed(EncodingControl(end_index=2), given) == [steps]


def test_default_placement_starts_where_the_answer_is_predicted_and_never_goes_below_zero() -> None:
    given = signal([[-3, 0, 2, 5, 6, 9]], [6], start=2, live=[[1, 1, 1, 1, 1, 0]])
    assert placed(EncodingControl(), given) == [[None, 6, 4, 1, 0, None]]


def test_ratio_and_progress_read_the_same_signal() -> None:
    given = signal([[-3, 0, 2, 6, 9]], [6], start=2)
    written = torch.tensor([[0, 0, 2, 6, 6]])  # prompt and overrun are clamped
    assert torch.equal(EncodingControl("ratio").vectors(given, 8), ratio(written, torch.tensor([6]), 8))
    assert torch.equal(EncodingControl("progress", steps=3).vectors(given, 8), progress(written, 6, 8, 3))
    assert torch.equal(EncodingControl().vectors(given, 8), difference(torch.tensor([[9, 6, 4, 0, 0]]), 8))


def test_published_lrpe_takes_the_length_of_the_first_row() -> None:
    given = signal([[0, 2, 6], [0, 4, 9], [0, 1, 3]], [6, 9, 3], start=1)
    right, published = (EncodingControl(kind).vectors(given, 8) for kind in ("ratio", "ratio_of_first_row"))
    assert torch.equal(published, ratio(given.position, torch.tensor([6, 6, 6]), 8))
    assert torch.equal(published[0], right[0])
    assert not torch.allclose(published[1:], right[1:])


@pytest.mark.parametrize(
    ("placement", "rows", "key"),
    [
        ("whole", slice(0, 9), "scale LDPE, whole sequence (training)"),
        ("whole", slice(0, 5), "scale LDPE, prompt only (prefill)"),
        ("whole", slice(5, 6), "scale LDPE, one decode step with KV cache (token 6)"),
        ("response", slice(0, 9), "scale ORPE, E over response rows only"),
    ],
)
def test_frobenius_scale(placement: str, rows: slice, key: str) -> None:
    golden = GOLDEN["frobenius"]
    inputs = torch.tensor(golden["in"]["E"])[None, rows]
    given = signal([list(range(-4, 5))], [4], start=5)
    given = Signal(given.position[:, rows], given.length, given.column[:, rows], given.live[:, rows])
    control = EncodingControl(unit="tokens", placement=placement, end_index=1, scale="frobenius")
    added = control.encode(given, inputs)
    bare = control.vectors(given, 8) * given.placement_mask(placement)[..., None]
    torch.testing.assert_close(added, bare * golden["out"][key], atol=1e-5, rtol=0)
    if key.endswith("(training)"):
        first = golden["out"]["first row of E+R' (LDPE, whole-sequence scale)"]
        torch.testing.assert_close((inputs + added)[0, 0], torch.tensor(first), atol=1e-5, rtol=0)


def test_frobenius_scale_does_not_see_padding_or_other_rows() -> None:
    control = EncodingControl(scale="frobenius", placement="whole")
    inputs = torch.randn(2, 4, 8)
    both = signal([[0, 1, 2, 3]] * 2, [3, 9], start=1, live=[[1, 1, 1, 0], [1, 1, 1, 1]])
    alone = signal([[0, 1, 2]], [3], start=1)
    torch.testing.assert_close(control.encode(both, inputs)[:1, :3], control.encode(alone, inputs[:1, :3]))
    assert control.encode(both, inputs)[0, 3].count_nonzero() == 0


def test_constant_scale_gives_sinusoids_the_norm_of_embedding_rows() -> None:
    rows = torch.tensor(GOLDEN["frobenius"]["in"]["E"])
    control = EncodingControl()
    control.on_attach(rows.pow(2).sum(1).mean().sqrt().item(), 8)
    golden = GOLDEN["frobenius"]["out"]["recommended constant: sqrt(2/d)*RMS row norm (here of these 9 rows)"]
    assert control.factor.item() == pytest.approx(golden, abs=1e-6)
    control.on_attach(99.0, 8)  # once
    assert control.factor.item() == pytest.approx(golden, abs=1e-6)
    assert EncodingControl(scale=0.5).factor == 0.5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: EncodingControl("distance"),
            "kind must be one of difference, ratio, ratio_of_first_row, progress; got 'distance'",
        ),
        (lambda: EncodingControl(unit="pages"), "unknown unit 'pages'"),
        (lambda: EncodingControl(placement="encoder"), "placement must be one of"),
        (lambda: EncodingControl(end_index=3), "end_index must be 0, 1 or 2; got 3"),
        (lambda: EncodingControl("ratio", end_index=1), "which 'ratio' does not encode"),
        (lambda: EncodingControl(scale="big"), "scale must be one of"),
        (lambda: EncodingControl(positions="drop"), "positions must be one of"),
        (lambda: EncodingControl(layout="fairseq", cosine="lakew"), "no encoding has layout"),
        (lambda: EncodingControl(steps=0), "at least 1 step"),
        (lambda: EncodingControl(unit=("chars", "chars")), "several different ones"),
        (lambda: EncodingControl(gain=0), "a gain or a reader above 0"),
        (lambda: EncodingControl(scale="frobenius", gain=0.5), "sets the gain itself"),
    ],
)
def test_errors(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
