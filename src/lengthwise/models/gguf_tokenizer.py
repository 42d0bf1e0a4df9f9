"""The tokenizer and the chat template of a GGUF file, as llama.cpp reads them.

It has the methods of `protocols.Tokenizer`, and `pieces`, from which meters take the bytes of each token.
"""

import ctypes
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from .chat_template import ChatTemplate
from .llama_cpp_model import LlamaModel

_NONE = -1  # a special token that a vocabulary does not have


class GgufTokenizer:
    """The vocabulary of a model of llama.cpp. `chat_template` replaces that of the file."""

    def __init__(self, model: LlamaModel, chat_template: str | None = None) -> None:
        self._model, self._lib, self._vocab = model, model.library, model.vocab  # the vocabulary lives with the model
        self.name_or_path = str(model.path)
        self.chat_template = chat_template or model.setting("tokenizer.chat_template")
        if not self.chat_template:
            raise ValueError(
                f"{model.path} has no chat template (tokenizer.chat_template), like the files of base models; give one "
                "of a chat or instruct model"
            )
        self._bos = self._lib.llama_vocab_bos(self._vocab) if self._lib.llama_vocab_get_add_bos(self._vocab) else _NONE
        # SentencePiece writes a space before the first word of a text.
        self._spaced = self._lib.llama_vocab_type(self._vocab) == self._lib.LLAMA_VOCAB_TYPE_SPM
        ids = range(len(self))
        self.all_special_ids = [n for n in ids if self._lib.llama_vocab_is_control(self._vocab, n)]
        self.added_tokens_decoder: dict[int, Any] = {}
        self.eos_token_ids = self._ends([n for n in ids if self._lib.llama_vocab_is_eog(self._vocab, n)])
        self.eos_token_id: int | None = self.eos_token_ids[0]
        pad = self._lib.llama_vocab_pad(self._vocab)
        self.pad_token_id: int | None = None if pad == _NONE else pad

    def _ends(self, known: list[int]) -> list[int]:
        """Return the ids that end a text; the first is the one that the chat template writes after an answer."""
        if not known:
            raise ValueError(f"{self.name_or_path} names no token that ends a text (tokenizer.ggml.eos_token_id)")
        eos = self._lib.llama_vocab_eos(self._vocab)
        chat = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
        written = [n for n in self.apply_chat_template(chat)["input_ids"] if n in known]
        return list(dict.fromkeys([*written[-1:], *([eos] if eos in known else []), *known]))

    def __len__(self) -> int:
        return self._model.vocabulary

    def __call__(
        self, text: Any = None, *, text_target: Any = None, add_special_tokens: bool = True, **options: Any
    ) -> dict[str, Any]:
        """Return the ids of a text, or of each text of a list, as {"input_ids": ...}; sources and targets are equal."""
        if options:
            raise TypeError(f"this tokenizer has no option {next(iter(options))}")
        text = text if text_target is None else text_target
        if isinstance(text, str):
            return {"input_ids": self._encode(text, add_special_tokens)}
        return {"input_ids": [self._encode(one, add_special_tokens) for one in text]}

    def _encode(self, text: str, add_special_tokens: bool) -> list[int]:
        raw = text.encode()
        ids = (self._lib.llama_token * (len(raw) + 3))()  # a token has a byte or more; start, space, end may be added
        count = self._lib.llama_tokenize(self._vocab, raw, len(raw), ids, len(ids), add_special_tokens, True)
        if count < 0:
            raise ValueError(f"llama.cpp cannot tokenize a text of {len(raw)} bytes")
        return list(ids[:count])

    def decode(self, token_ids: Any, *, skip_special_tokens: bool = False, **options: Any) -> str:
        """Return the text of these ids. White space is never cleaned up."""
        special = set() if skip_special_tokens else set(self.all_special_ids)
        raw = b"".join(self._token(n).encode() if n in special else self._pieces[n] for n in map(int, token_ids))
        text = raw.decode("utf-8", "replace")
        return text.removeprefix(" ") if self._spaced else text

    def batch_decode(self, sequences: Any, **options: Any) -> list[str]:
        return [self.decode(ids, **options) for ids in sequences]

    def pieces(self) -> list[bytes]:
        """Return the bytes that each token adds in the middle of a text, by id; special tokens add none."""
        return list(self._pieces)

    @cached_property
    def _pieces(self) -> list[bytes]:
        size = 64
        buffer, found = ctypes.create_string_buffer(size), []
        for token in range(len(self)):
            count = self._lib.llama_token_to_piece(self._vocab, token, buffer, size, 0, False)
            if count < 0:  # a long token
                size = -count
                buffer = ctypes.create_string_buffer(size)
                count = self._lib.llama_token_to_piece(self._vocab, token, buffer, size, 0, False)
            found.append(buffer.raw[:count])
        return found

    def get_vocab(self) -> dict[str, int]:
        return {self._token(n): n for n in range(len(self))}

    def convert_ids_to_tokens(self, ids: Sequence[int]) -> list[str | None]:
        return [self._token(n) for n in ids]

    def _token(self, number: int) -> str:
        return self._lib.llama_vocab_get_text(self._vocab, number).decode("utf-8", "replace")

    def apply_chat_template(
        self, conversation: Any, *, add_generation_prompt: bool = False, **options: Any
    ) -> dict[str, Any]:
        """Return the ids of a conversation in the model's chat format, as {"input_ids": ...}.

        As in llama.cpp, a conversation has the start token once, if the file asks for it: some templates leave it out.
        """
        text = self._template.render(conversation, add_generation_prompt=add_generation_prompt)
        ids = self._encode(text, add_special_tokens=False)
        start = [self._bos] if self._bos != _NONE and ids[:1] != [self._bos] else []
        return {"input_ids": start + ids}

    @cached_property
    def _template(self) -> ChatTemplate:
        tokens = {"bos": self._lib.llama_vocab_bos(self._vocab), "eos": self._lib.llama_vocab_eos(self._vocab)}
        names = {f"{name}_token": "" if n == _NONE else self._token(n) for name, n in tokens.items()}
        return ChatTemplate(str(self.chat_template), **names)
