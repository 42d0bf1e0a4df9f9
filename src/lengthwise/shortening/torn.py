"""Torn places: words of a short text that need a word between them which was left out.

    "{n} unread messages and {m} pending requests"  →  "{n} unread and {m} requests"      an adjective without its noun
    "will take effect the next time you start it"   →  "will take effect it"              an object without its verb
    "the start date is before the end date"         →  "the date is before the end date"  what is compared is the same

The short text is aligned with its source, so the rules hold for a model's words as well. They know no grammar but the
word lists, and are for English: a search prefers texts that have none, and a note names the others. Without parts of
speech they cannot find an adjective without its noun before a verb ("The new failed.", "Fast and secure blocks ads.").
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from . import words
from .alignment import Span, aligned
from .content import stem
from .english import may_be_foreign
from .phrases import has_verb, head_of, is_clause_with_that, is_nominal, is_part
from .pieces import FINAL, Piece, split_pieces, split_sentences

MAX_NEW = 0.3  # share of the words of a sentence that its source lacks
_NOT_AFTER_MODAL = frozenset({"is", "are", "was", "were", "been", "being", "has", "had"})
_WHEN = frozenset({"on", "in", "last", "this", "late", "early"})  # before a time
_NEED_NOUN = words.DETERMINERS - words.DEMONSTRATIVES - {"any", "each", "some", "another", "his", "her"}


@lru_cache(maxsize=4096)  # a text is compared for its score and again for its note
def torn(source: str, text: str) -> list[str]:
    """Return, for each torn place, the words of the text around it.

    >>> torn("You have {n} unread messages and {m} pending requests.", "You have {n} unread and {m} requests.")
    ['unread and']
    >>> torn("You have {n} unread messages and {m} pending requests.", "You have {n} messages and {m} requests.")
    []
    """
    sentences = [split_pieces(one) for one in split_sentences(source)]
    if may_be_foreign(source) or (len(sentences) > 1 and not text.rstrip().endswith(FINAL)):
        return []  # or a headline of several sentences
    found: dict[str, None] = {}
    for pieces in map(split_pieces, split_sentences(text)):
        if pieces in sentences:
            continue
        lower = {piece.lower for piece in pieces if piece.is_word}
        nearest = max(sentences, key=lambda one: len(lower & {piece.lower for piece in one}))
        found |= dict.fromkeys(_torn(nearest, pieces))
    return list(found)


def is_torn(source: Sequence[Piece], before: int, after: int, *, telegraphic: bool = False) -> bool:
    """Return whether the words at two places of a sentence cannot stand side by side without those between them.

    `before` is −1 at the start, `after` the number of pieces at the end. `telegraphic`: a headline, where articles and
    auxiliaries may be left out.
    """
    if after - before < 2 or (before >= 0 and is_part(source, before, after)):
        return False
    first = source[before] if before >= 0 else None
    last = source[after] if after < len(source) else None
    gone = source[before + 1 : after]
    ends = last is None or last.text in FINAL
    return (
        (ends and first is not None and first.lower in words.NOT_LAST and gone[0].is_word)
        or _lost_noun(source, before, after)
        or _lost_start(source, before, after, gone)
        or (first is not None and _lost_complement(source, before, after))
        or (last is not None and last.is_word and _lost_before(source, first, after, gone))
        or (last is not None and last.text == "," and _lost_item(source, after, gone))
        or (ends and _lost_limit(source, before, gone[0]))
        or (not telegraphic and _lost_verb(first, last, gone))
    )


def _lost_noun(source: Sequence[Piece], before: int, after: int) -> bool:
    """Return whether the last kept word needs the noun that ends its phrase: "unread (messages)", "open (the file) in".

    A verb and its object without an article are such a phrase as well: "grant (access)".
    """
    if before < 0 or not source[before].is_word:
        return False
    first, gone = source[before], source[before + 1]
    if is_nominal(gone):
        head = head_of(source, before)
        if is_nominal(first):
            is_day = source[head].lower in words.DAYS and not words.is_quantity(first)
            return before < head < after and not is_day
        if first.lower in _NEED_NOUN | words.PREPOSITIONS - words.SUBORDINATORS:
            verb = after == head and _is_verb(source, after)  # "the (report) covers the"
            return head < after or (verb and first.lower in _NEED_NOUN)
    if gone.lower in words.DETERMINERS and (is_nominal(first) or first.lower in words.PREPOSITIONS):
        head = head_of(source, before + 1)
        if gone.lower == "that" and is_clause_with_that(source, before + 1, head, after):
            return False
        phrase_gone = before + 1 < head < after
        clause = any(one.lower in words.FINITE | words.SUBJECTS for one in source[head:after])
        return phrase_gone and not clause and source[head].lower not in words.MOMENTS
    return False


def _is_verb(source: Sequence[Piece], place: int) -> bool:
    """Return whether what follows shows that the word is a verb: "covers the", "show that"."""
    follows = source[place + 1].lower if place + 1 < len(source) else ""
    if follows == "that":
        return source[place].lower in words.NEED_CLAUSE
    return follows in words.DETERMINERS - words.RELATIVES


def _lost_complement(source: Sequence[Piece], before: int, after: int) -> bool:
    """Return whether the last kept word needs what follows: "different (from)", "10 minutes (before)", "even (if)"."""
    gone = source[before + 1 : after]
    word, opens = source[before].lower, gone[0].lower
    if word in words.NEED_PREPOSITION.get(opens, ()):
        return True
    if opens in words.AFTER_MEASURE and before and words.is_quantity(source[before - 1]):
        return True
    if word in words.MODALS:  # "can (read and) all your data"
        at = next((one for one in source[after:] if not (words.is_adverb(one) or words.is_negation(one))), None)
        return is_nominal(gone[0]) and (at is None or not (is_nominal(at) or at.lower in words.AUXILIARIES))
    if opens == "that":  # "said on Tuesday (that it works)"
        verb = next((n for n in range(before, -1, -1) if source[n].lower not in words.MOMENTS | _WHEN), before)
        return verb < before and source[verb].lower in words.NEED_CLAUSE
    if word == "how":
        return opens in ("often", "many", "much", "long", "far")
    return word in words.FOCUSING and opens in words.SUBORDINATORS | words.PREPOSITIONS | words.RELATIVES


def _lost_before(source: Sequence[Piece], first: Piece | None, after: int, gone: Sequence[Piece]) -> bool:
    """Return whether the next word needs what stood before it: "(size) of", "(start) it", "(when it rains) or when"."""
    last, just = source[after].lower, source[after - 1]
    nominal = first is not None and is_nominal(first)
    follows = source[after + 1] if after + 1 < len(source) else None
    if words.is_quantity(source[after]) and len(gone) == 1 and words.may_be_verb(just):
        return nominal and not words.is_quantity(just)  # "the file (contains) %d rows"
    if last in words.COMPARATIVES and follows is not None and follows.lower == "than":
        return is_nominal(just) and not nominal  # "all (files) older than"
    if last == "of" or (last in words.PREPOSITIONS and just.lower in words.WITH_PREPOSITION):
        return just.is_word
    if last in words.CONJUNCTIONS:
        return follows is not None and _splits_list(gone, follows)
    if first is None:
        return False
    if last in words.SUBJECTS and is_nominal(just):
        return nominal  # "the data (on the pages) you see"
    if last in words.FINITE and just.lower in words.SUBJECTS:
        return True  # ", (and you) will be charged"
    if last in words.FINITE and is_nominal(just):
        if gone[0].lower in words.RELATIVES and nominal:  # "select the folder (where the files) should be"
            return has_verb(source, after - len(gone))
        return words.is_adverb(first) or first.lower in words.FOCUSING  # "Only (filling in fields) is"
    phrase = last in words.DETERMINERS or is_nominal(source[after])
    return phrase and not _needs_nothing(source, first, after, gone) and _lost_governor(source, first, after, gone)


def _needs_nothing(source: Sequence[Piece], first: Piece, after: int, gone: Sequence[Piece]) -> bool:
    """Return whether the next word begins a phrase, or is a verb, and can do without what is left out before it."""
    place, last, opens = after - len(gone), source[after].lower, gone[0].lower
    if opens in words.RELATIVES and last.endswith(("ed", "en", "ing")):
        return True  # "the file (that was) saved"
    if last not in words.DETERMINERS:
        verb = source[after].text == last and not words.is_quantity(source[after]) and not has_verb(source, place)
        return verb and opens not in words.DETERMINERS  # "The disk (in drive C) failed"
    clause = any(one.lower in words.SUBJECTS | words.FINITE for one in gone)
    phrase = opens in words.PREPOSITIONS and gone[-1].lower not in words.PREPOSITIONS
    return phrase and not clause  # "opens (in a window) the file"


def _lost_governor(source: Sequence[Piece], first: Piece, after: int, gone: Sequence[Piece]) -> bool:
    """Return whether a phrase has lost its verb or preposition: "take effect (the next time you start) it"."""
    start = after  # of the phrase
    while start > after - len(gone) and source[after].lower not in words.DETERMINERS and is_nominal(source[start - 1]):
        start -= 1
    while start > after - len(gone) and source[start - 1].lower in words.DETERMINERS | {"all"}:
        start -= 1
    if start == after - len(gone):
        return False  # "the (old) file"
    governor, before = source[start - 1], first.lower
    counts = words.is_quantity(first) and gone[0].lower == "of"  # "{n} (of {m}) files"
    if governor.lower == "of" and (not is_nominal(first) or counts or gone[0].lower in words.DETERMINERS):
        return False  # "all (of) the files", "open (a list of) files"
    if governor.lower in words.CONJUNCTIONS and words.is_quantity(source[after]):
        return first.is_word  # "were (copied and) %d files"
    if not governor.is_word or before in words.PREPOSITIONS or words.is_adverb(governor):
        return False
    if governor.lower in words.AUXILIARIES:
        return False
    if before in words.CONJUNCTIONS or not first.is_word:
        return governor.lower in words.PREPOSITIONS and len(gone) == 1
    return governor.lower in words.PREPOSITIONS or is_nominal(first)


def _after_modal(before: Sequence[Piece]) -> bool:
    """Return whether a modal comes before, or a modal and *not*: "could not (been)"."""
    return before[-1].lower in words.MODALS or (words.is_not(before[-1].lower) and before[-2:][0].lower in words.MODALS)


def _lost_item(source: Sequence[Piece], after: int, gone: Sequence[Piece]) -> bool:
    """Return whether a list has lost its first item and what it depends on: "(for a page), frame, or section"."""
    end = next((n for n in range(after + 1, len(source)) if not is_nominal(source[n])), after)
    follows = end > after + 1 and (source[end].text == "," or source[end].lower in words.CONJUNCTIONS)
    return follows and is_nominal(gone[-1]) and any(one.lower in words.PREPOSITIONS for one in gone)


def _splits_list(gone: Sequence[Piece], second: Piece) -> bool:
    """Return whether a conjunction has lost what stood before it, and not a clause or a phrase between the two.

    "(when it rains) or when", "(to send messages) and mentions", "(between 2) and 3".
    """
    if gone[0].lower == second.lower and second.lower in words.BOUNDARY:
        return True
    if words.is_quantity(second) and words.is_quantity(gone[-1]):
        return True
    finite = any(one.lower in {"to"} | words.FINITE | words.SUBJECTS for one in gone)
    clause = second.lower in words.IMPERATIVES or second.lower.endswith("ed")
    return finite and is_nominal(gone[-1]) and is_nominal(second) and not clause and gone[0].text != ","


def _lost_limit(source: Sequence[Piece], before: int, opens: Piece) -> bool:
    """Return whether what *only* says of a verb is lost: "can only be changed (by an administrator)"."""
    limited = (n for n in range(before) if source[n].lower == "only")
    verb = any(source[n + 1].lower in words.AUXILIARIES | words.IMPERATIVES for n in limited)
    return verb and opens.lower in words.PREPOSITIONS | words.SUBORDINATORS


def _lost_verb(first: Piece | None, last: Piece | None, gone: Sequence[Piece]) -> bool:
    """Return whether a subject is kept without its auxiliary, or a participle: "response and (it was) cancelled"."""
    if last is not None and (words.is_negation(last) or words.is_contraction(last)):
        return False  # "operation (could) not (be) completed"
    if gone[0].lower == "do" and all(words.is_not(one.lower) for one in gone[1:]):
        return False  # "You (do not) have"
    past = last is not None and (last.lower.endswith("ed") or last.lower in words.PAST)
    if past and len(gone) == 1 and gone[0].lower in ("have", "has", "had"):
        return False  # "You (have) used"
    if first is not None and gone[0].text in words.FINITE and (is_nominal(first) or first.lower in words.SUBJECTS):
        return True
    if last is None or not last.lower.endswith("ed") or first is None or first.lower not in words.CONJUNCTIONS:
        return False
    return gone[-1].lower in words.AUXILIARIES and len(gone) > 1


def _lost_start(source: Sequence[Piece], before: int, after: int, gone: Sequence[Piece]) -> bool:
    """Return whether the beginning is lost that a question or a verb is: "(Do) you want", "(Deleted) 5 files"."""
    if before >= 0 or after == len(source):
        return False
    if source[-1].text == "?" and gone[0].lower in words.AUXILIARIES:
        return source[after].lower in words.SUBJECTS | words.DETERMINERS
    if after == 1 and gone[0].lower.endswith(("ed", "ing")) and words.is_quantity(source[1]):
        return True
    has_object = is_nominal(gone[0]) and source[1].lower in words.DETERMINERS
    return has_object and after <= head_of(source, 1) and not words.lead_in(source)  # "(Uses the) format"


def alike(source: Sequence[Piece], kept: set[int]) -> Iterator[int]:
    """Yield the places of kept nouns that the source tells apart and the text does not: "(start) date ... end date".

    Each has words of its own before it, or a phrase after it: "the width (of the image) ... the width of the page".
    """
    own: dict[str, dict[int, set[int]]] = {}
    for place, piece in enumerate(source):
        if place in kept and is_nominal(piece) and not words.is_quantity(piece) and head_of(source, place) == place:
            start, end = place, place + 1
            while start and is_nominal(source[start - 1]) and not words.is_quantity(source[start - 1]):
                start -= 1
            if end < len(source) and source[end].lower in ("of", "in", "for", "from", "on"):
                end += 1
                while end < len(source) and (is_nominal(source[end]) or source[end].lower in words.DETERMINERS):
                    end += 1
            places = {n for n in range(start, end) if is_nominal(source[n]) and not words.is_quantity(source[n])}
            own.setdefault(piece.lower, {})[place] = places - {place}
    for same in own.values():
        if len({frozenset(source[n].lower for n in places) for places in same.values()}) > 1:
            yield from (place for place, places in same.items() if places and not places & kept)


def _torn(source: Sequence[Piece], pieces: Sequence[Piece]) -> Iterator[str]:
    """Yield the words around each torn place of a short sentence, unless it has many words of its own."""
    spans = aligned(source, pieces)
    if sum(span is None for span in spans) > MAX_NEW * len(spans):
        return
    telegraphic = pieces[-1].text not in FINAL and source[-1].text in FINAL
    for n, span in enumerate(spans):
        if span is None and pieces[n].lower in _NOT_AFTER_MODAL and n and _after_modal(pieces[:n]):
            yield f"{pieces[n - 1].text} {pieces[n].text}"
    kept = {n for span in spans if span for n in range(*span)}
    new = {stem(piece.text) for piece, span in zip(pieces, spans, strict=True) if not span and words.is_content(piece)}
    ends: list[Span | None] = [(-1, 0), *spans, (len(source), len(source))]
    for n, (one, other) in enumerate(pairwise(ends)):  # other: of pieces[n]
        if not one or not other or max(one[1] - one[0], other[1] - other[0]) > 1:
            continue  # beside a new word, or beside a short form, which may stand for what is missing
        finite = n < len(pieces) and pieces[n].lower != source[other[0]].lower  # "The app (will restart) restarts"
        elsewhere = any(
            stem(source[place].text) in new for place in range(one[1], other[0])
        )  # "while (it was) loading"
        if not elsewhere and is_torn(source, one[1] - 1, other[0], telegraphic=telegraphic or finite):
            yield " ".join(piece.text for piece in pieces[max(0, n - 1) : n + 1] if piece.text not in FINAL)
    places = {place: n for n, span in enumerate(spans) if span for place in range(*span)}
    for place in alike(source, kept):
        n = places[place]
        yield " ".join(piece.text for piece in pieces[max(0, n - 1) : n + 1])
