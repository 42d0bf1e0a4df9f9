"""The registry of controls: from a config to a control and back, with the names of earlier versions."""

import json

import pytest

from lengthwise.controls import (
    CONTROLS,
    Alibi,
    CountdownHead,
    EncodingControl,
    GroupedAttention,
    InitialCell,
    LengthAwareAttention,
    LengthTokens,
    MultipliedInput,
    PromptControl,
    control_from,
    with_new_names,
)


@pytest.mark.parametrize(
    "control",
    [
        EncodingControl("ratio", "words", "whole", layout="fairseq"),
        EncodingControl(end_index=2, scale=0.5, positions="replace", cosine="lakew"),
        LengthTokens((0.9,), ("short", "long")),
        PromptControl("{text} ({target})"),
        CountdownHead(("tokens", "chars"), at_most=True, hidden=8),
        LengthAwareAttention(["cross"], "beyond", {"cross": 8.0}),
        Alibi(),
        GroupedAttention(3, "<end>"),
        MultipliedInput(("words", "chars"), 0.02),
        InitialCell("words"),
    ],
)
def test_config_round_trip(control: object) -> None:
    config = json.loads(json.dumps(control.config()))
    again = control_from(config)
    assert type(again) is CONTROLS[config["control"]] is type(control)
    assert again.config() == control.config()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: control_from({"control": "telepathy"}), "unknown control 'telepathy'"),
        (lambda: control_from({"control": "prompt", "tone": "warm"}), "does not take these options"),
    ],
)
def test_errors(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"control": "planner", "hidden": 8}, {"control": "countdown_head", "hidden": 8}),
        ({"control": "tokens", "names": ["a", "b", "c"]}, {"control": "length_tokens", "names": ["a", "b", "c"]}),
        (
            {"control": "encoding", "unit": "tokens", "volume": 0.25},
            {"control": "encoding", "unit": "tokens", "gain": 0.25},
        ),
    ],
)
def test_names_of_earlier_versions(old: dict, new: dict) -> None:
    assert with_new_names(old) == new
    assert control_from(old).config() == control_from(new).config()
