"""The length in words."""

from pathlib import Path

import pytest

from lengthwise.controls import PromptControl
from lengthwise.models.checkpoint import load_tokenizer
from marian_tokenizer import save_marian_tokenizer


def test_prompt() -> None:
    assert PromptControl().prefix("Where is Rome?", 40, "chars") == "Answer in 40 characters: Where is Rome?"
    assert PromptControl("[{target}] {text}").prefix("a {b}", 7, "words") == "[7] a {b}"


def test_a_share_of_the_source() -> None:
    control = PromptControl("[{percent}%] {text}")
    assert control.prefix("one two three four", 3, "words") == "[75%] one two three four"
    assert control.prefix("", 5, "chars") == "[150%] "


def test_the_code_of_a_language_stays_at_the_start(tmp_path: Path) -> None:
    save_marian_tokenizer(tmp_path, ["Where is Rome?"], ["Où est Rome ?"], pieces=30, more=[">>fr<<"])
    tokenizer, control = load_tokenizer(tmp_path), PromptControl("[{percent}%] {text}")
    edited = control.prefix(">>fr<< Where is Rome?", 14, "chars", tokenizer)
    assert edited == ">>fr<< [100%] Where is Rome?"
    assert tokenizer(edited)["input_ids"][0] == tokenizer.get_vocab()[">>fr<<"]
    assert control.prefix("1 >>2<< 3", 9, "chars") == "[100%] 1 >>2<< 3"


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
