"""Length tokens: classes of the ratio of target and source."""

import json
from pathlib import Path

import pytest

from lengthwise.controls import LengthTokens, control_from

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/formulas.json").read_text("utf-8"))


@pytest.mark.parametrize("case", GOLDEN["len_token"])
def test_length_classes(case: dict) -> None:
    assert LengthTokens().kind_of(case["in"]["src"], case["in"]["tgt"]) == case["out"]
    text = LengthTokens().prefix("x" * case["in"]["src"], case["in"]["tgt"], "chars")
    assert text.startswith(f"<len:{case['out']}> x")


def test_length_classes_from_a_corpus() -> None:
    pairs = [("x" * 10, "y" * n) for n in range(5, 20)]
    control = LengthTokens.from_corpus(pairs)
    kinds = [control.kind_of(10, len(target)) for _, target in pairs]
    assert {kind: kinds.count(kind) for kind in control.names} == {"short": 5, "normal": 5, "long": 5}
    assert control_from(control.config()).thresholds == control.thresholds
    halves = LengthTokens.from_corpus(pairs, names=("short", "long"))
    assert len(halves.thresholds) == 1
    with pytest.raises(ValueError, match="thresholds must increase"):
        LengthTokens.from_corpus([("aa", "bb")] * 9)
    with pytest.raises(ValueError, match="got none"):
        LengthTokens.from_corpus([])


def test_thresholds_left_to_a_corpus_are_no_thresholds_yet() -> None:
    control = LengthTokens("quantiles")
    assert control_from(control.config()).config() == control.config()
    with pytest.raises(ValueError, match="has not been read"):
        control.prefix("Where is it?", 11, "chars")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LengthTokens((1.2, 1.0)), "thresholds must increase"),
        (lambda: LengthTokens((1.0,)), "1 thresholds make 2 classes"),
    ],
)
def test_errors(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
