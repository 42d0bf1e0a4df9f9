"""Log-probabilities of the words of many similar texts: each different word is tokenized once.

The units of a text are its words and its end: the mark that ends it and the end token. Tokenizers that join no
characters across a space, as SentencePiece and byte-level BPE, give each word the same ids in every text.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engines.base import Engine, Ids
from .log_likelihood import log_probs

Array = NDArray[np.float64]
MARKS = ".!?:;…"


def split_units(text: str) -> tuple[list[str], str]:
    """Return the words of a text and the mark that ends it, or "".

    >>> split_units("It works, etc.")
    (['It', 'works,', 'etc'], '.')
    """
    words = text.split()
    if words and len(words[-1]) > 1 and words[-1][-1] in MARKS:
        return [*words[:-1], words[-1][:-1]], words[-1][-1]
    return words, ""


class WordIds:
    """Token ids of words, which are kept. `encode`: returns those of new words."""

    def __init__(self, encode: Callable[[list[str]], list[list[int]]]) -> None:
        self.encode, self.known = encode, dict[str, list[int]]()

    def add(self, words: Iterable[str]) -> None:
        """Tokenize the words that are new, in one call."""
        if new := [word for word in dict.fromkeys(words) if word not in self.known]:
            self.known |= dict(zip(new, self.encode(new), strict=True))

    def __call__(self, words: Sequence[str]) -> list[list[int]]:
        self.add(words)
        return [self.known[word] for word in words]


class UnitScorer:
    """Scores the units of texts with a model: translations of sources, or texts after one prompt."""

    def __init__(self, engine: Engine) -> None:
        self.engine, tokenizer = engine, engine.tokenizer
        if engine.encoder_decoder:
            self.ids = WordIds(lambda words: [ids[:-1] for ids in tokenizer(text_target=words)["input_ids"]])
            self.space = ""
        else:
            self.ids = WordIds(lambda words: tokenizer(words, add_special_tokens=False)["input_ids"])
            self.space = " "  # of words that are not the first

    def scores(self, texts: Sequence[str], prompts: Sequence[Ids]) -> list[Array]:
        """Return log P of each unit of each text after its prompt (the source, for an encoder-decoder)."""
        split = [self._units(text) for text in texts]
        self.ids.add(word for words, _ in split for word in words)
        units = [[*self.ids(words), [*self._mark(mark), self.engine.eos[0]]] for words, mark in split]
        found: list[Array] = [np.zeros(0)] * len(texts)
        flat = [[token for ids in some for token in ids] for some in units]
        for row, scored in log_probs(self.engine, prompts, flat):
            ends = np.cumsum([len(ids) for ids in units[row]])
            sums = np.concatenate([[0.0], np.cumsum(scored.token)])[ends]
            found[row] = np.diff(sums, prepend=0.0)
        return found

    def _units(self, text: str) -> tuple[list[str], str]:
        words, mark = split_units(text)
        return [word if n == 0 else self.space + word for n, word in enumerate(words)], mark

    def _mark(self, mark: str) -> list[int]:
        if not mark:
            return []
        tokenizer: Any = self.engine.tokenizer
        known = tokenizer.convert_tokens_to_ids(mark)
        return [known] if isinstance(known, int) and known != tokenizer.unk_token_id else self.ids([mark])[0]
