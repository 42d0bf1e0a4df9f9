"""Scores by position: quarters of documents by sentence index."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.metrics import Texts, score_positions
from lengthwise.metrics.position import positions


def test_scores_of_each_quarter():
    refs = [f"This is sentence number {n} of the text." for n in range(8)] + ["Alone."]
    hyps = [*refs[:6], "Something else", "here", "Alone!"]
    found = score_positions(Texts(hyps, refs, docs=["a"] * 8 + ["b"]), metrics=["chrf"], bootstrap=0)
    assert [(label, scores[0].n) for label, scores in found.items()] == [(f"{n}/4", 2) for n in (1, 2, 3, 4)]
    values = [scores[0].value for scores in found.values()]
    assert values[:3] == [100.0] * 3
    assert values[3] < 30


@given(st.lists(st.integers(1, 30), min_size=1, max_size=5), st.integers(1, 6))
def test_each_sentence_of_a_long_document_is_in_one_part(sizes, parts):
    docs = [name for name, size in enumerate(sizes) for _ in range(size)]
    kept = [row for row, name in enumerate(docs) if sizes[name] >= parts]
    if not kept:
        with pytest.raises(ValueError, match=f"no document has {parts} sentences"):
            positions(docs, parts)
        return
    found = positions(docs, parts)
    assert sorted(row for rows in found.values() for row in rows) == kept
    part_of = {row: label for label, rows in found.items() for row in rows}
    for before, after in pairwise(kept):
        assert docs[before] != docs[after] or part_of[before] <= part_of[after]
    sizes_of_parts = [len(rows) for rows in found.values()]
    assert max(sizes_of_parts) - min(sizes_of_parts) <= len(sizes)  # at most one sentence more in each document


def test_what_is_refused():
    with pytest.raises(ValueError, match="need docs"):
        score_positions(Texts(["a"]))
    with pytest.raises(ValueError, match="at least 1; got 0"):
        positions(["a"], 0)
