"""The ids of texts that come again in every epoch: each text is tokenised once, as far as memory allows.

Tokenising takes two thirds of a worker's time. Documents are cut differently in each epoch, but their sentences are the
same: if the separator between them is a token of its own, which the tokenizer looks for before anything else, the
ids of a segment are those of its sentences.
"""

from array import array
from collections.abc import Callable, Sequence

Ids = list[int]
_TOKENS = 16_000_000  # of known texts, at most: 64 MB


class KnownIds:
    """Returns the ids of texts without special tokens, tokenised by `ids_of`, and keeps those of single sentences."""

    def __init__(self, ids_of: Callable[[list[str]], list[Ids]], separator: str, mark: int | None) -> None:
        """`mark`: the id of the separator, if texts beside it are tokenised as if they were alone; else None."""
        self._ids_of, self._separator, self._mark = ids_of, separator, mark
        self._known: dict[str, array[int]] = {}
        self._tokens = 0

    def __call__(self, texts: Sequence[str]) -> list[Ids]:
        rows = [[text] if self._mark is None else text.split(self._separator) for text in texts]
        missing = list(dict.fromkeys(part for row in rows for part in row if part not in self._known))
        new = dict(zip(missing, self._ids_of(missing), strict=True)) if missing else {}
        found = [self._joined(row, new) for row in rows]
        for text, ids in new.items():
            if self._tokens + len(ids) <= _TOKENS and not (self._separator.strip() and self._separator in text):
                self._known[text] = array("i", ids)
                self._tokens += len(ids)
        return found

    def _joined(self, parts: list[str], new: dict[str, Ids]) -> Ids:
        ids: Ids = []
        for number, part in enumerate(parts):
            if number and self._mark is not None:
                ids.append(self._mark)
            ids += known if (known := new.get(part)) is not None else self._known[part]
        return ids
