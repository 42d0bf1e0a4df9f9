"""Parts of cues: what is translated as one text, and what stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.localisation.cue_parts import split_parts


@pytest.mark.parametrize(
    ("text", "speech"),
    [
        ("Hello\nthere.", ["Hello\nthere."]),
        ("- Hello.\n- Hi.", ["Hello.", "Hi."]),
        ("-Hello.\n-Hi.", ["Hello.", "Hi."]),
        ("- Hello. - Hi.", ["Hello.", "Hi."]),
        ("Hello.\n– Hi, you.", ["Hello.", "Hi, you."]),
        ("-5 degrees", ["-5 degrees"]),
        ("Wait -- what?", ["Wait -- what?"]),
        ("[DOOR SLAMS]", ["DOOR SLAMS"]),
        ("[sighs] I know.", ["sighs", "I know."]),
        ("(SIGHS) I went (again) home.", ["SIGHS", "I went (again) home."]),
        ("I know. (laughs)", ["I know.", "laughs"]),
        ("JOHN: Go away.", ["Go away."]),
        ("DR. O'NEIL #2: Go.\nMAN: No.", ["Go.", "No."]),
        ("Listen: go.", ["Listen: go."]),
        (">> MARY: Hi.", ["Hi."]),
        ("♪ Happy birthday\nto you ♪", ["Happy birthday\nto you"]),
        ("# Happy birthday #", ["Happy birthday"]),
        ("♪ ♪", []),
        ("...", []),
        ("12:30", []),
        ("", []),
        ("【拍手】ありがとう", ["拍手", "ありがとう"]),
    ],
)
def test_speech(text, speech):
    parts = split_parts(text)
    assert [text[part.start : part.end] for part in parts if part.is_speech] == speech
    assert "".join(text[part.start : part.end] for part in parts) == text


def test_a_voice_begins_a_new_text():
    text = "Hi, I am Fred.\nHello."
    assert [text[p.start : p.end] for p in split_parts(text, frozenset({0, 15})) if p.is_speech] == [
        "Hi, I am Fred.",
        "Hello.",
    ]


@given(st.text("aB-–[]()♪#: .!\n>", max_size=30))
def test_parts_have_no_gaps(text):
    parts = split_parts(text)
    assert "".join(text[part.start : part.end] for part in parts) == text
    assert all(part.start < part.end for part in parts)
