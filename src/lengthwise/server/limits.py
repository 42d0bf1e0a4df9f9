"""Limits: how much one request may ask for, and how many may wait."""

from dataclasses import dataclass

from ..length.budget import Budget
from .errors import ApiError

_CHARS_PER_TOKEN = 8  # more than usual, so that no text that a model could write is refused


@dataclass(frozen=True)
class Limits:
    """What the server allows."""

    batch: int = 16  # rows that are decoded together
    queue: int = 128  # texts that may wait
    max_tokens: int = 1024  # of one text
    default_tokens: int = 256  # of a text without a length
    texts: int = 16  # of one request: prompts × n, or lines
    candidates: int = 8
    body: int = 256 * 1024  # bytes
    body_seconds: float = 30.0  # for a client to send its body
    grace: float = 30.0  # seconds after a signal for the texts that were accepted

    def check_budget(self, budget: Budget) -> None:
        """Raise an error if a budget in counts is longer than the server allows."""
        allowed = self.max_tokens * (1 if budget.unit in ("tokens", "words", "words-cjk") else _CHARS_PER_TOKEN)
        asked = max(budget.low, budget.high or 0)
        if asked > allowed:
            raise ApiError(
                400,
                f"'{budget}' is too long: this server writes at most {allowed:,} {budget.unit} (--max-tokens)",
                param="length",
                code="length_too_long",
            )

    def check_text(self, text: str, param: str) -> None:
        """Raise an error if a text that is counted or edited is no valid text, or longer than the server allows."""
        self.check_encoding(text, param)
        if len(text) > (allowed := self.max_tokens * _CHARS_PER_TOKEN):
            found = f"{param}: a text has {len(text):,} characters; this server allows {allowed:,} (--max-tokens)"
            raise ApiError(400, found, param=param, code="text_too_long")

    def check_encoding(self, text: str, param: str) -> None:
        """Raise an error if a text cannot be encoded, so that no tokenizer can read it."""
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ApiError(
                400, f"{param}: a text has half a surrogate pair", param=param, code="invalid_text"
            ) from None

    def check_count(self, name: str, asked: int, allowed: int) -> None:
        """Raise an error if a request asks for more than `allowed` of something."""
        if asked > allowed:
            raise ApiError(400, f"{name}: got {asked:,}; this server allows {allowed:,}", param=name)
