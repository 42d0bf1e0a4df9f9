"""Sentences: one side of corpora, or both, as different sentences, for a teacher to translate.

Texts are split at the ends that `length.sentences` finds and at line breaks. A sentence is kept once, in any case of
letters, if it has words and is not mostly digits and symbols.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path

import regex

from ..corpora.filters import HashSet
from ..corpora.lines import well_formed_lines
from ..corpora.readers import format_of, read
from ..length.sentences import finished_ends

_WORD = regex.compile(r"\p{L}{2}|\p{Lo}")  # \p{Lo}: a letter without case, as in Chinese
_LETTERS = regex.compile(r"[\p{L}\p{M} ]")
_LEAST_LETTERS = 0.6  # of the characters, in sentences longer than a label
_LABEL = 12  # characters


def sentences(
    corpora: Iterable[Path],
    *,
    fields: tuple[str, str] | None = None,
    both: bool = False,
    without: Iterable[Path] = (),
    max_chars: int = 400,
) -> Iterator[str]:
    """Yield the different sentences of the sources of `corpora`, or of `both` sides; none that is in `without`.

    `fields`: of source and target, as `read` takes them.
    """
    seen = HashSet()
    for path in without:
        for text in _texts(path, None, both=True):
            seen.add(_key(text))
            for sentence in split(text):
                seen.add(_key(sentence))
    for path in corpora:
        for text in _texts(path, fields, both):
            for sentence in split(text):
                if len(sentence) <= max_chars and has_words(sentence) and seen.add(_key(sentence)):
                    yield sentence


def split(text: str) -> Iterator[str]:
    """Yield the sentences of a text, without line breaks and repeated spaces."""
    for line in text.splitlines():
        start = 0
        for end in [*finished_ends(line), len(line)]:
            if sentence := " ".join(line[start:end].split()):
                yield sentence
            start = end


def has_words(sentence: str) -> bool:
    """Return whether a sentence has a word, and is not mostly digits and symbols."""
    letters = len(_LETTERS.findall(sentence))
    return bool(_WORD.search(sentence)) and (len(sentence) <= _LABEL or letters >= _LEAST_LETTERS * len(sentence))


def _texts(path: Path, fields: tuple[str, str] | None, both: bool) -> Iterator[str]:
    if format_of(path) is None:  # a text, one sentence or paragraph per line
        yield from (line for _, line in well_formed_lines(path))
        return
    for document in read(path, fields=fields):
        for source, target in document.segments:
            yield source
            if both:
                yield target


def _key(sentence: str) -> int:
    """Return a hash that is not 0."""
    return int.from_bytes(blake2b(sentence.lower().encode(), digest_size=8).digest()) | 1
