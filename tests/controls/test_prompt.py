"""The length in words."""

import pytest

from lengthwise.controls import PromptControl


def test_prompt() -> None:
    assert PromptControl().prefix("Where is Rome?", 40, "chars") == "Answer in 40 characters: Where is Rome?"
    assert PromptControl("[{target}] {text}").prefix("a {b}", 7, "words") == "[7] a {b}"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PromptControl("Be brief: {text}"), "a template needs"),
        (lambda: PromptControl("{target} {text} {tone}"), "a template needs"),
        (lambda: PromptControl(plain_share=1.0), "plain_share must be at least 0 and below 1; got 1.0"),
    ],
)
def test_errors(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
