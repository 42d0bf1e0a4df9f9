"""transformers' tokenizer of Marian, which splits and joins texts as `SpmTokenizer` does, in less time.

Texts and lists of texts are split as in transformers, and ids of the vocabulary are joined so. The class has the name
of transformers' own, because `save_pretrained` writes it.
"""

import json
from functools import cached_property
from pathlib import Path
from typing import Any

import transformers
from transformers import BatchEncoding

from .spm_tokenizer import SpmTokenizer


class MarianTokenizer(transformers.MarianTokenizer):  # type: ignore[misc]  # transformers is untyped
    """A tokenizer of transformers. Calls with options that `SpmTokenizer` does not have are left to its base class."""

    @staticmethod
    def can_read(folder: Path) -> bool:
        """Return whether the tokenizer in `folder` is Marian's, with one vocabulary."""
        own = [(folder / name).exists() for name in ("source.spm", "tokenizer_config.json", "tokenizer.json")]
        if own != [True, True, False]:
            return False
        config = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
        named = config.get("tokenizer_class", "MarianTokenizer") == "MarianTokenizer"
        return named and not config.get("separate_vocabs")

    @cached_property
    def _faster(self) -> SpmTokenizer | None:
        folder = Path(self.spm_files[0]).parent
        return SpmTokenizer(folder) if self.can_read(folder) else None  # None: the files are gone

    @property
    def _has_own_tokens(self) -> bool:
        """Whether tokens were added to those of the files, or these are gone."""
        return self._faster is None or len(self.added_tokens_decoder) > len(self._faster.added_tokens_decoder)

    def __call__(self, text: Any = None, *args: Any, **options: Any) -> BatchEncoding:
        target = options.get("text_target")
        usual = not args and options.keys() <= {"text_target", "add_special_tokens"}
        one_side = (text is None) != (target is None)
        if not usual or not one_side or not _are_texts(text if target is None else target) or self._has_own_tokens:
            return super().__call__(text, *args, **options)
        assert self._faster is not None
        found = self._faster(text, **options)["input_ids"]
        single = isinstance(text if target is None else target, str)
        mask = [1] * len(found) if single else [[1] * len(ids) for ids in found]
        return BatchEncoding({"input_ids": found, "attention_mask": mask})

    def decode(self, token_ids: Any, skip_special_tokens: bool = False, **options: Any) -> Any:
        ids = token_ids.tolist() if hasattr(token_ids, "tolist") else token_ids
        if isinstance(ids, list | tuple):
            ids = [one.tolist() if hasattr(one, "tolist") else one for one in ids]  # arrays, or their numbers
        clean = options.get("clean_up_tokenization_spaces")
        cleans = self.clean_up_tokenization_spaces if clean is None else clean
        usual = options.keys() <= {"clean_up_tokenization_spaces"} and not isinstance(ids, int)
        if not usual or cleans or self._has_own_tokens:
            return super().decode(token_ids, skip_special_tokens=skip_special_tokens, **options)
        assert self._faster is not None
        if ids and isinstance(ids[0], list | tuple):
            return self._faster.batch_decode(ids, skip_special_tokens=skip_special_tokens)
        return self._faster.decode(ids, skip_special_tokens=skip_special_tokens)


def _are_texts(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list | tuple) and all(isinstance(one, str) for one in value))
