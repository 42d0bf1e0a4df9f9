"""A tokenizer from tokenizer.json and tokenizer_config.json, without transformers, which takes seconds to import.

It has the methods of `protocols.Tokenizer`.
"""

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from .chat_template import ChatTemplate


class JsonTokenizer:
    """A tokenizer of the library `tokenizers`, with the special tokens and the chat template of its model."""

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer

        config = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
        template = folder / "chat_template.jinja"
        self.name_or_path = str(folder)
        self.backend_tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.chat_template = template.read_text("utf-8") if template.exists() else config.get("chat_template")
        self._special = {name: _content(token) for name, token in config.items() if name.endswith("_token")}
        self.eos_token_id, self.pad_token_id = (self._id(f"{name}_token") for name in ("eos", "pad"))
        self.added_tokens_decoder = self.backend_tokenizer.get_added_tokens_decoder()
        self.all_special_ids = [n for n, token in self.added_tokens_decoder.items() if token.special]

    def _id(self, name: str) -> int | None:
        """Return the id of a special token, such as "eos_token"; None if there is none."""
        content = self._special.get(name)
        return None if content is None else self.backend_tokenizer.token_to_id(content)

    def __len__(self) -> int:
        return int(self.backend_tokenizer.get_vocab_size())

    def __call__(
        self, text: Any = None, *, text_target: Any = None, add_special_tokens: bool = True, **options: Any
    ) -> dict[str, Any]:
        """Return the ids of a text, or of each text of a list, as {"input_ids": ...}; sources and targets are equal."""
        if options:
            raise TypeError(f"this tokenizer has no option {next(iter(options))}")
        text = text if text_target is None else text_target
        if isinstance(text, str):
            return {"input_ids": self.backend_tokenizer.encode(text, add_special_tokens=add_special_tokens).ids}
        found = self.backend_tokenizer.encode_batch(list(text), add_special_tokens=add_special_tokens)
        return {"input_ids": [one.ids for one in found]}

    def decode(self, token_ids: Any, *, skip_special_tokens: bool = False, **options: Any) -> str:
        """Return the text of these ids. White space is never cleaned up."""
        return str(self.backend_tokenizer.decode([int(n) for n in token_ids], skip_special_tokens=skip_special_tokens))

    def batch_decode(self, sequences: Any, **options: Any) -> list[str]:
        return [self.decode(ids, **options) for ids in sequences]

    def get_vocab(self) -> dict[str, int]:
        return dict(self.backend_tokenizer.get_vocab())

    def convert_ids_to_tokens(self, ids: Sequence[int]) -> list[str | None]:
        return [self.backend_tokenizer.id_to_token(n) for n in ids]

    def apply_chat_template(
        self, conversation: Any, *, add_generation_prompt: bool = False, **options: Any
    ) -> dict[str, Any]:
        """Return the ids of a conversation in the model's chat format, as {"input_ids": ...}."""
        text = self._template.render(conversation, add_generation_prompt=add_generation_prompt)
        return self(text, add_special_tokens=False)

    @cached_property
    def _template(self) -> ChatTemplate:
        return ChatTemplate(self.chat_template, **self._special)


def _content(token: Any) -> Any:
    """Return the text of a token, which is given as a text or with properties."""
    return token["content"] if isinstance(token, dict) else token
