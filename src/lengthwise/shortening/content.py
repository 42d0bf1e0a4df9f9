"""Content: which words of a source a short text keeps, and which of its words the source does not have.

Words are compared by their stems, so that an inflection counts as the same word, and short forms as their long ones.
The stemmer is cruder than Porter's, which needs an optional library (nltk).
"""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import regex

from ..length.addresses import DOMAIN, WINDOWS_PATH
from . import words
from .pieces import Piece, split_pieces, split_sentences
from .short_forms import HEADLINE_FORMS, SHORT_FORMS

_SUFFIX = regex.compile(
    r"(?:ational|ations?|ators?|ated|ates?|ating|ities|ity|ments?|ness|ions?|ings?|ives?|ically|ical|ally|al|ers?|ors?"
    r"|able|ible|ance|ence|ies|ied|ily|ed|es|ly|e|y|s|['’]s)$"
)
_MIN_STEM = 3
FIRST, ANNOUNCES = 2.0, 3.0  # weights of the first sentence of a text and of one that announces its topic
# Each content word of a short form stands for those of the long one.
_SHORT = [*SHORT_FORMS.items(), *HEADLINE_FORMS.items()]
_LOWER = [([word.lower() for word in long], short.lower()) for long, short in _SHORT]
_LONG = {short.lower().rstrip("."): long for long, short in _SHORT if " " not in short}


def stem(word: str) -> str:
    """Return a form that the inflections of an English word share.

    >>> stem("completed"), stem("completion"), stem("files"), stem("is")
    ('complet', 'complet', 'fil', 'is')
    """
    word = word.lower().replace("’", "'").removesuffix("'s").rstrip(".")
    for _ in range(2):
        found = _SUFFIX.search(word)
        if found is None or found.start() < _MIN_STEM:
            break
        word = word[: found.start()]
    return word


def stems(text: str | Sequence[Piece]) -> list[str]:
    """Return the stems of the content words of a text, hyphenated words by their parts."""
    pieces = [piece for piece in (_pieces(text) if isinstance(text, str) else text) if words.is_content(piece)]
    return [stem(part) for piece in pieces for part in _parts(piece.text)]


def _parts(word: str) -> list[str]:
    """Return the parts of a hyphenated word, and those of "12%": the number and the short form of "percent"."""
    return [part for part in regex.split(r"[-/–]|(?<=\d)(?=%$)", word) if part]


def coverage(sentences: Sequence[Sequence[Piece]], information: Sequence[Sequence[float]], text: str) -> float:
    """Return the share of the source's information whose words are in the text.

    `information`: of each piece. The last quarter of a single sentence counts twice, because a cut loses it first. A
    source without content words has 1.
    """
    there = _with_long_forms(stems(text), text)
    for pieces, shorter in zip(sentences, _said_shorter(sentences, _pieces(text))[0], strict=True):
        there.update(stems([pieces[place] for place in shorter]))
    carrying = [
        (piece, nats)
        for pieces, some in zip(sentences, information, strict=True)
        for piece, nats in zip(pieces, some, strict=True)
        if nats > 0
    ]
    quarter = carrying[-max(1, len(carrying) // 4) :] if len(sentences) == 1 else []
    total = found = 0.0
    for piece, nats in [*carrying, *quarter]:
        parts = stems([piece])
        total += nats
        found += nats * sum(part in there for part in parts) / max(1, len(parts))
    return found / total if total else 1.0


def invented(source: str, text: str) -> list[str]:
    """Return the content words of the text that are neither in the source nor a form of a word that is.

    >>> invented("The operation was not completed.", "Completing the whole operation failed.")
    ['whole', 'failed']
    """
    lower = _joined(_pieces(source))
    known = (short for long, short in _SHORT if f" {' '.join(long).lower()} " in lower)
    there = {*stems(source), *(stem(part) for short in known for word in short.split() for part in _parts(word))}
    there |= {"%", stem("percent")} if "%" in source else set()
    found = [piece.text for piece in _pieces(text) if words.is_content(piece) and not piece.is_placeholder]
    return [word for word in found if not all(_known(stem(part), there) for part in _parts(word))]


def _known(one: str, there: set[str]) -> bool:
    return one in there or any(len(one) > 3 and other.startswith(one) for other in there)


def dropped(source: str, text: str) -> list[str]:
    """Return the names, numbers, negations, qualifiers ("if") and symbols that the text lacks, each once."""
    pieces = _pieces(text)
    there = {stem(form) for piece in pieces for form in (piece.text, piece.text.removesuffix("%"))}
    written = {piece.lower for piece in pieces}
    found: dict[str, None] = {}
    sentences = _sentences(source)
    said_shorter, forms = _said_shorter(sentences, pieces)
    # The text has the negations of these forms for those of the long ones, if any: "except", "unavailable".
    negations = [word for form in forms for word in form.split() if words.NEGATION.fullmatch(word)]
    for sentence, shorter in zip(sentences, said_shorter, strict=True):
        titled = sum(words.is_name(piece, False) for piece in sentence) > 0.6 * sum(piece.is_word for piece in sentence)
        for place, piece in enumerate(sentence):
            name = words.is_name(piece, place == 0) and not titled
            if place in shorter:
                continue
            if words.is_negation(piece):
                negations.append(piece.lower)
            elif (name or words.is_number(piece)) and not piece.is_placeholder and _is_gone(piece, there):
                found[piece.text] = None
            elif piece.lower not in written and (piece.lower in words.QUALIFIERS or _is_opposite(piece)):
                found[piece.lower] = None
    kept = [piece.lower for piece in pieces if words.is_negation(piece)]
    found |= dict.fromkeys(_missing_symbols(sentences, text))
    return [*found, *dict.fromkeys(_missing_negations(negations, kept))]


def _said_shorter(sentences: Sequence[Sequence[Piece]], text: Sequence[Piece]) -> tuple[list[set[int]], list[str]]:
    """Return, for each sentence, the places of words for which the text has a known short form; and these forms.

    A form is named as often as the text has it for a long one. Where the source has it too, it stands for itself.
    """
    source, short = (_joined(some) for some in ([piece for one in sentences for piece in one], text))
    counts = ((long, form, short.count(f" {form} ") - source.count(f" {form} ")) for long, form in _LOWER)
    new = [(long, form, count) for long, form, count in counts if count > 0]
    left = {form: count for _, form, count in new}
    found, forms = [], []
    for pieces in sentences:
        lower, places = [piece.lower for piece in pieces], set[int]()
        for long, form, _ in new:
            for start in range(len(lower) - len(long) + 1):
                if left[form] > 0 and lower[start : start + len(long)] == long:
                    left[form] -= 1
                    forms.append(form)
                    places.update(range(start, start + len(long)))
        found.append(places)
    return found, forms


def _joined(pieces: Sequence[Piece]) -> str:
    return f" {' '.join(piece.lower for piece in pieces)} "


def _missing_negations(source: list[str], text: list[str]) -> list[str]:
    """Return as many negations of the source as the text has fewer: first conditions ("unless"), then other words.

    "Don't" has the "not" of the source, and "not" its "cannot".
    """
    gone, new = Counter(source) - Counter(text), Counter(text) - Counter(source)
    contracted = sum(count for word, count in new.items() if words.is_not(word))
    missing = []
    for word in sorted(gone.elements(), key=lambda word: word not in words.CONDITIONS):
        if words.is_not(word) and contracted:
            contracted -= 1
        else:
            missing.append(word)
    return missing[: max(0, len(source) - len(text))]


def _missing_symbols(sentences: Sequence[Sequence[Piece]], text: str) -> list[str]:
    """Return the symbols that stand alone in the source ("{n} %", "2 × 3") and are fewer in the text."""
    alone = Counter(piece.text for one in sentences for piece in one if words.SYMBOL.fullmatch(piece.text))
    said = {"%": len(regex.findall(r"%|\bpercent\b", text))}
    return [mark for mark, count in alone.items() if said.get(mark, text.count(mark)) < count]


def claims_more(sentence: str, text: str) -> bool:
    """Return whether a shorter form of a sentence lacks a negation, a condition or another qualifier of it.

    >>> claims_more("The value must be smaller than or equal to $2.", "The value must be $2.")
    True
    """
    gone = (word.lower() for word in dropped(sentence, text))
    return any(word in words.QUALIFIERS - {"when"} or words.NEGATION.fullmatch(word) for word in gone)


def _is_opposite(piece: Piece) -> bool:
    return piece.lower in words.COMPARATIVES - words.COMPARING or words.OPPOSITE.fullmatch(piece.lower) is not None


def _is_gone(piece: Piece, there: set[str]) -> bool:
    return words.is_content(piece) and stem(piece.text) not in there


def is_empty(source: str, text: str) -> bool:
    """Return whether a short text has no letter and no digit, such as "-", while its source has some."""
    return not text.strip() or (any(map(str.isalnum, source)) and not any(map(str.isalnum, text)))


def is_format(placeholder: str) -> bool:
    """Return whether a program needs the placeholder: it is no address and no symbol."""
    if placeholder.startswith(("/", "~/", "./", "../")) or not any(map(str.isascii, placeholder)):
        return False
    if regex.match(WINDOWS_PATH, placeholder) or regex.fullmatch(DOMAIN, placeholder):
        return False
    return "://" not in placeholder and "@" not in placeholder.strip("%@")


@lru_cache(maxsize=64)  # a source is compared with each of its candidates
def _sentences(text: str) -> tuple[tuple[Piece, ...], ...]:
    return tuple(tuple(split_pieces(sentence)) for sentence in split_sentences(text))


def _pieces(text: str) -> list[Piece]:
    """Return the pieces of a text of several sentences: inside a sentence, a full stop belongs to its word."""
    return [piece for sentence in _sentences(text) for piece in sentence]


def _with_long_forms(found: list[str], text: str) -> set[str]:
    """Return the stems, and those of the long form of each short form."""
    parts = (part.lower().rstrip(".") for piece in _pieces(text) for part in _parts(piece.text))
    longer = [stem(word) for part in parts for word in _LONG.get(part, ())]
    return {*found, *longer}


def spread(sentences: Sequence[Sequence[Piece]], nats: list[list[float]]) -> list[list[float]]:
    """Return the information of a text's words, where all occurrences of a word count equally, and a topic counts more.

    A word that occurs n times carries √n times the nats of the occurrence with most, shared among all of them. A
    language model expects a word that it has read before, so only its first occurrence has many nats.
    """
    if len(sentences) == 1:
        return nats
    found: dict[str, list[float]] = {}
    for pieces, some in zip(sentences, nats, strict=True):
        for piece, one in zip(pieces, some, strict=True):
            found.setdefault(stem(piece.text), []).append(one)
    each = {word: max(some) / len(some) ** 0.5 for word, some in found.items()}
    return [
        [each[stem(piece.text)] if one else 0.0 for piece, one in zip(pieces, some, strict=True)]
        for pieces, some in zip(sentences, nats, strict=True)
    ]


def salience(number: int, sentence: Sequence[Piece]) -> float:
    """Return how much more a word of this sentence counts: the first sentence, and one that announces the topic."""
    lower = {piece.lower for piece in sentence}
    announces = bool(lower & words.PRESENTS) and bool(lower & {"we", "this", "paper", "i"})
    return ANNOUNCES if announces else FIRST if number == 0 else 1.0


def numbers_in_words(source: str, text: str) -> list[str]:
    """Return the numbers in words ("eight") of the source that the text lacks, each once."""
    written = {piece.lower for piece in _pieces(text)}
    return list(dict.fromkeys(piece.lower for piece in _pieces(source) if piece.lower in words.COUNTS - written))
