"""Protocols for what other libraries make: the parts of a tokenizer and a model that Lengthwise uses."""

from collections.abc import Sequence
from typing import Any, Protocol


class Tokenizer(Protocol):
    """A tokenizer of transformers."""

    chat_template: Any
    eos_token_id: int | None
    pad_token_id: int | None
    all_special_ids: list[int]
    added_tokens_decoder: dict[int, Any]

    def __call__(self, text: Any = None, **options: Any) -> Any: ...
    def __len__(self) -> int: ...
    def decode(self, token_ids: Any, **options: Any) -> str: ...
    def batch_decode(self, sequences: Any, **options: Any) -> list[str]: ...
    def get_vocab(self) -> dict[str, int]: ...
    def convert_ids_to_tokens(self, ids: Sequence[int]) -> list[str | None]: ...
    def apply_chat_template(self, conversation: Any, **options: Any) -> Any: ...


class Model(Protocol):
    """A model of transformers, or of PEFT around one."""

    config: Any
    generation_config: Any
    device: Any
    dtype: Any

    def __call__(self, **inputs: Any) -> Any: ...
    def generate(self, **options: Any) -> Any: ...
