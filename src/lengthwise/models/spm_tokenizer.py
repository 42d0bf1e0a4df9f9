"""Marian's tokenizer from source.spm, target.spm and vocab.json, without transformers, which takes seconds to import.

It has the methods of `protocols.Tokenizer` and returns what transformers' `MarianTokenizer` returns.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

_LANGUAGE = re.compile(r">>.*?<<", re.DOTALL)  # the target language, at the start of a text
_METASPACE = "▁"


class SpmTokenizer:
    """Two SentencePiece models, for sources and for targets, with one vocabulary."""

    chat_template = None

    def __init__(self, folder: Path) -> None:
        from sentencepiece import SentencePieceProcessor

        config = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
        if config.get("separate_vocabs"):
            raise ValueError(f"the tokenizer in {folder} has two vocabularies; use the engine transformers")
        self.name_or_path = str(folder)
        self._source, self._target = (
            SentencePieceProcessor(model_file=str(folder / name)) for name in ("source.spm", "target.spm")
        )
        self._ids: dict[str, int] = json.loads((folder / "vocab.json").read_text("utf-8"))
        self._tokens = {number: token for token, number in self._ids.items()}
        self.source_lang, self.target_lang = config.get("source_lang"), config.get("target_lang")
        self.supported_language_codes = [token for token in self._ids if token[:2] == ">>" and token[-2:] == "<<"]
        names = {name: _content(config.get(f"{name}_token", default)) for name, default in _SPECIAL.items()}
        self._special = {self._ids[token]: token for token in names.values() if token in self._ids}
        self._unknown = self._ids[names["unk"]]
        self.eos_token_id, self.pad_token_id = self._ids[names["eos"]], self._ids[names["pad"]]
        self.all_special_ids = list(self._special)
        self.added_tokens_decoder = {n: SimpleNamespace(content=t, special=True) for n, t in self._special.items()}
        self._split = re.compile("|".join(re.escape(token) for token in self._special.values()))
        self._tables = {}  # by SentencePiece model: the id of each of its pieces
        for model in (self._source, self._target):
            pieces = model.id_to_piece(list(range(len(model))))
            self._tables[model] = [self._ids.get(piece, self._unknown) for piece in pieces]

    def __len__(self) -> int:
        return len(self._ids)

    def __call__(
        self, text: Any = None, *, text_target: Any = None, add_special_tokens: bool = True, **options: Any
    ) -> dict[str, Any]:
        """Return the ids of a text, or of each text of a list, as {"input_ids": ...}. `text_target`: of targets."""
        if options:
            raise TypeError(f"this tokenizer has no option {next(iter(options))}")
        model, given = (self._source, text) if text_target is None else (self._target, text_target)
        end = [self.eos_token_id] if add_special_tokens else []
        if isinstance(given, str):
            return {"input_ids": self._encode(model, given) + end}
        return {"input_ids": [ids + end for ids in self._encode_all(model, list(given))]}

    def _encode_all(self, model: Any, texts: list[str]) -> list[list[int]]:
        """Return the ids of each text without its end: of most texts by one call of SentencePiece."""
        plain = [text for text in texts if not _LANGUAGE.match(text) and not self._split.search(text)]
        found = dict(zip(plain, model.encode(plain), strict=True))  # ids of SentencePiece
        table, unknown = self._tables[model], model.unk_id()
        return [
            self._encode(model, text) if ids is None or unknown in ids else [table[number] for number in ids]
            for text, ids in ((text, found.get(text)) for text in texts)
        ]

    def _encode(self, model: Any, text: str) -> list[int]:
        """Return the ids of a text without its end. Special tokens in the text stay whole."""
        found, start = [], 0
        for match in self._split.finditer(text):
            found += [*self._pieces(model, text[start : match.start()]), self._ids[match[0]]]
            start = match.end()
        return found + self._pieces(model, text[start:])

    def _pieces(self, model: Any, text: str) -> list[int]:
        code = [match[0]] if (match := _LANGUAGE.match(text)) else []
        pieces = [*code, *model.encode(text[len("".join(code)) :], out_type=str)] if text else []
        return [self._ids.get(piece, self._unknown) for piece in pieces]

    def decode(self, token_ids: Any, *, skip_special_tokens: bool = False, **options: Any) -> str:
        """Return the text of these ids."""
        text, first, special = "", 0, self._special
        numbers = list(map(int, token_ids))
        if skip_special_tokens:
            numbers = [number for number in numbers if number not in special]
        else:
            for place in [place for place, number in enumerate(numbers) if number in special]:
                text, first = f"{text}{self._joined(numbers[first:place])}{special[numbers[place]]} ", place + 1
        return (text + self._joined(numbers[first:])).replace(_METASPACE, " ").strip()

    def _joined(self, numbers: list[int]) -> str:
        """Return the text of ids that are not special."""
        tokens, unknown = self._tokens, self._special.get(self._unknown, "")
        return str(self._source.decode_pieces([tokens.get(number, unknown) for number in numbers]))

    def batch_decode(self, sequences: Any, **options: Any) -> list[str]:
        return [self.decode(ids, **options) for ids in sequences]

    def get_vocab(self) -> dict[str, int]:
        return dict(self._ids)

    def convert_ids_to_tokens(self, ids: Sequence[int]) -> list[str | None]:
        return [self._token(number) for number in ids]

    def _token(self, number: int) -> str:
        return self._tokens.get(number, self._special.get(self._unknown, ""))

    def apply_chat_template(self, conversation: Any, **options: Any) -> Any:
        raise ValueError("a translation model has no chat template")


_SPECIAL = {"eos": "</s>", "unk": "<unk>", "pad": "<pad>"}


def _content(token: Any) -> str:
    """Return the text of a token, which is given as a text or with properties."""
    return str(token["content"] if isinstance(token, dict) else token)
