"""Omissions: words of a source that its translation leaves out, found with the translator's own probabilities.

The translation is scored after the whole source and after the source without one of its content words. A word that is
translated explains a part of the translation, which is much less probable without it. One that is not translated
explains nothing. Most words need no score: the translation of the word alone stands in that of the sentence.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence

from ..length.weak_words import weak_words
from ..scoring.reverse import ReverseModel
from .alignment import alike
from .casing import to_sentence_case
from .compression import NEGATIONS, DroppedWords
from .placeholders import split_placeholders

MIN_NATS = 1.0  # that a translated word adds to the log-probability of the translation, at least
MIN_LETTERS, MIN_STEM = 3, 4  # of a word that is searched in a translation, and of what two forms of a word share
MIN_ALIKE = 0.8  # three fifths of the longer form
Translate = Callable[[list[str]], list[str]]
_WORD = re.compile(r"\S+")
_LETTERS = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


def content_words(text: str, language: str) -> list[DroppedWords]:
    """Return the places in `text.split()` of each content word, and of the negations as if they were one word.

    Articles, prepositions, conjunctions, pronouns, auxiliaries, numbers and placeholders are no content words. Without
    lists of the weak words of a language there are none.

    >>> [sorted(places) for places in content_words("Do not open the file or the {name} file.", "en")]
    [[1], [2], [4, 8]]
    """
    articles, prepositions, conjunctions, with_verb, _ = weak_words(language)
    weak = articles | prepositions | conjunctions | with_verb
    if not weak:
        return []
    pieces = split_placeholders(text)
    bare = "".join(" " * len(piece) if is_placeholder else piece for piece, is_placeholder in pieces)
    places = defaultdict(set)
    for place, found in enumerate(_WORD.finditer(text)):
        words = [word.casefold() for word in _LETTERS.findall(bare, *found.span())]
        if any(map(NEGATIONS.search, words)):
            places[""].add(place)
        elif not weak.issuperset(words):
            places[" ".join(words)].add(place)
    return [frozenset(some) for some in places.values()]


def find_omissions(
    translator: ReverseModel, pairs: Sequence[tuple[str, str]], language: str, translate: Translate
) -> list[DroppedWords]:
    """Return the places of the words that each translation leaves out, for pairs of a source and a translation.

    `translator`: scores translations given sources. `translate`: translates single words.
    """
    words = _doubtful([content_words(source, language) for source, _ in pairs], pairs, translate)
    rows = [(n, left_out) for n in range(len(pairs)) if words[n] for left_out in (frozenset[int](), *words[n])]
    sources = [to_sentence_case(_without(pairs[n][0], left_out)) for n, left_out in rows]
    outputs = [to_sentence_case(pairs[n][1]) for n, _ in rows]
    # `log_probs` is that of its first texts given its second ones.
    totals = {rows[row]: float(found.sum()) for row, found in translator.log_probs(outputs, sources)}
    return [
        frozenset().union(*(word for word in some if totals[n, frozenset()] - totals[n, word] < MIN_NATS))
        for n, some in enumerate(words)
    ]


def _doubtful(
    words: list[list[DroppedWords]], pairs: Sequence[tuple[str, str]], translate: Translate
) -> list[list[DroppedWords]]:
    """Return the words of each pair whose translation alone does not stand in the translation, and the negations."""
    spelled = {(n, word): _spelled(pairs[n][0], word) for n, some in enumerate(words) for word in some}
    asked = list(dict.fromkeys(text for text in spelled.values() if not NEGATIONS.search(text)))
    alone = dict(zip(asked, translate(asked), strict=True))
    return [
        [word for word in some if not stands_in(alone.get(spelled[n, word], ""), pairs[n][1])]
        for n, some in enumerate(words)
    ]


def _spelled(text: str, places: DroppedWords) -> str:
    """Return the word at these places without marks; of forms that differ in capitals, the first."""
    word = text.split()[min(places)]
    return " ".join(_LETTERS.findall(word)) or word


def stands_in(word: str, text: str) -> bool:
    """Return whether the words of three letters or more of `word` are in the text, perhaps in another form.

    >>> stands_in("enregistrer", "Enregistrez le fichier."), stands_in("vers le bas", "Allez vers la droite.")
    (True, False)
    """
    searched, there = (set(_LETTERS.findall(some.casefold())) for some in (word, text))
    searched = {one for one in searched if len(one) >= MIN_LETTERS}
    return bool(searched) and all(any(_same(one, other) for other in there) for one in searched)


def _same(one: str, other: str) -> bool:
    return one == other or (one[:MIN_STEM] == other[:MIN_STEM] and alike(one, other) >= MIN_ALIKE)


def _without(text: str, places: DroppedWords) -> str:
    return " ".join(word for place, word in enumerate(text.split()) if place not in places)
