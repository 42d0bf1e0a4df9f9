"""Padding: rows of different lengths, on either side, up to a width."""

import pytest

from lengthwise.engines.padding import padded

ROWS = [[1, 2, 3], [], [4]]


@pytest.mark.parametrize(
    ("options", "ids", "mask"),
    [
        ({}, [[1, 2, 3], [9, 9, 9], [4, 9, 9]], [[1, 1, 1], [0, 0, 0], [1, 0, 0]]),
        ({"side": "left"}, [[1, 2, 3], [9, 9, 9], [9, 9, 4]], [[1, 1, 1], [0, 0, 0], [0, 0, 1]]),
        ({"width": 4}, [[1, 2, 3, 9], [9] * 4, [4, 9, 9, 9]], [[1, 1, 1, 0], [0] * 4, [1, 0, 0, 0]]),
        ({"width": 2}, [[1, 2, 3], [9, 9, 9], [4, 9, 9]], [[1, 1, 1], [0, 0, 0], [1, 0, 0]]),
    ],
)
def test_rows_are_padded(options, ids, mask):
    found = padded(ROWS, 9, **options)
    assert [one.tolist() for one in found] == [ids, mask]


def test_there_may_be_no_rows():
    assert [one.shape for one in padded([], 0)] == [(0, 0), (0, 0)]
