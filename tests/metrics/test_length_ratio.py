"""Length ratios and compliance, counted by hand."""

import pytest

from lengthwise.metrics import score
from metric_texts import GOLDEN, value


def test_length_ratios_are_means_over_sentences():
    lengths, expected = GOLDEN["length_ratio_metrics"]["in"], GOLDEN["length_ratio_metrics"]["out"]
    hyps, refs, srcs = (["x" * n for n in lengths[key]] for key in ("hyp_chars", "ref_chars", "src_chars"))
    assert value("lr-src", hyps, srcs=srcs) == pytest.approx(expected["LRsrc=mean of sentence ratios"])
    assert value("lr-ref", hyps, refs=refs) == pytest.approx(expected["LRref"])
    assert value("lr-src-std", hyps, srcs=srcs) == pytest.approx(expected["std(LRsrc) population"])
    assert value("lr-src-median", hyps, srcs=srcs) == 1.0  # of 1.0, 1.2, 0.95


COMPLIANCE = [  # source, output, with spaces, isometric
    ("a" * 100, "b" * 110, True, True),
    ("a" * 100, "b" * 111, False, False),
    ("a" * 100, "b" * 90, True, True),
    ("a" * 100, "b" * 89, False, False),
    ("a" * 10, "b" * 11, True, True),
    ("a" * 9, "b" * 30, False, True),  # a short source passes
    ("a" * 30, "b" * 9, False, True),  # and a short output
    ("a " * 50, "b" * 55, False, True),  # 99 chars, 50 without spaces
    ("a b c d e f", "b" * 11, True, True),
]


def test_compliance():
    srcs, hyps, spaced, isometric = zip(*COMPLIANCE, strict=True)
    (a, b) = score(hyps, srcs=srcs, metrics=["compliance", "compliance-isometric"])
    assert a.per_item == list(spaced)
    assert b.per_item == list(isometric)
    assert a.name == "compliance:10"
    assert a.signature != b.signature
    assert value("compliance:20", ["x" * 12], srcs=["x" * 10]) == 1
