"""Deletions: the parts of a sentence that can be left out or shortened, each with a cost.

Costs are in nats, beside the log-probabilities of the search. A part that a reader misses least costs least: a
bracket, an adverb, a clause between commas. Single words cost more, names and numbers much more, and a negation is left
out only with the clause that it belongs to. The rules need no parser; the language model decides between them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from . import words
from .pieces import CLOSING, OPENING, Piece
from .short_forms import HEADLINE_FORMS, SHORT_FORMS

MAX_PHRASE = 8  # words of a phrase that a preposition or a conjunction opens
MAX_COST = 14.0  # of all that is left out between two kept words
NEVER = 1000.0
# Costs of whole parts
BRACKET = 0.0  # "(old)"
LEADING = 0.5  # "On Monday, "
MAIN_CLAUSE = 8.0  # what stands before the first comma but opens with no preposition, adverb or conjunction
RELATIVE = 0.8  # ", which is old"
TRAILING = 0.8  # ", and so on" up to the end
ASIDE = 1.0  # anything else between two commas
CLAUSE = 1.5  # "because it is old"
CONDITION = 3.0  # "if it is old"
PHRASE = 1.0  # "in the box"
OF_PHRASE = 2.0  # "of the box"
LISTED = 1.7  # "old and"
LEAD_IN = 0.3  # "This paper presents", in a headline
# Costs of single words
ADVERB = 0.3
THAT = 0.8  # "Make sure (that) it works"
MODIFIER = 1.0  # a content word before another one
ARTICLE, HEADLINE_ARTICLE = 2.0, 0.0
AUXILIARY, HEADLINE_AUXILIARY = 3.0, 0.6
FUNCTION_WORD = 4.0
HEAD = 6.0  # the last content word of a phrase
SHORT_FORM, TELEGRAPHIC = 0.3, 1.5
# Added for each; for a whole clause at most MAX_ADDED
NAME, NUMBER, NEGATION, PLACEHOLDER, MAX_ADDED = 1.0, 1.5, 2.0, 12.0, 6.0
_PAUSE = (",", ";", ":", "-", "–", "—", "--")
_BE = ("am", "is", "are", "was", "were", "be", "been", "being")


@dataclass(frozen=True)
class Deletion:
    """The pieces from `start` to before `end` are left out; `instead` takes their place."""

    start: int
    end: int
    cost: float
    instead: Piece | None = None


def deletions(pieces: Sequence[Piece], headline: bool = False) -> list[Deletion]:
    """Return everything that can be left out of the sentence or shortened."""
    found: dict[tuple[int, int], float] = {}
    for start, end, cost, is_clause in _parts(pieces, headline):
        cost += _protection(pieces, start, end, is_clause)
        if cost < NEVER and end > start and (end - start < len(pieces)) and _closed(pieces[start:end]):
            found[start, end] = min(cost, found.get((start, end), NEVER))
    return [Deletion(*span, cost) for span, cost in found.items()] + list(_shortened(pieces, headline))


def skips(pieces: Sequence[Piece], found: Sequence[Deletion]) -> list[dict[int, float]]:
    """Return, for each place, the later places that deletions lead to, with the least cost of all deletions between."""
    starting: list[list[Deletion]] = [[] for _ in range(len(pieces) + 1)]
    for one in found:
        if one.instead is None:
            starting[one.start].append(one)
    table = []
    for start in range(len(pieces) + 1):
        cost = {start: 0.0}
        for place in range(start, len(pieces)):
            if place in cost:
                for one in starting[place]:
                    total = cost[place] + one.cost
                    if total < min(MAX_COST, cost.get(one.end, MAX_COST)):
                        cost[one.end] = total
        table.append(cost)
    return table


def _parts(pieces: Sequence[Piece], headline: bool) -> Iterator[tuple[int, int, float, bool]]:
    """Yield (start, end, cost, whether it is a whole clause)."""
    count = len(pieces)
    last = count - 1 if count and not pieces[-1].is_word and pieces[-1].text not in CLOSING else count
    pauses = [place for place in range(count) if pieces[place].text in _PAUSE]
    for place, piece in enumerate(pieces):
        word, first = piece.lower, place == 0
        if piece.text in OPENING:
            end = next((n + 1 for n in range(place, count) if pieces[n].text in CLOSING), place)
            yield place, end, BRACKET, True
        if piece.text in _PAUSE:
            following = [n for n in (*pauses, last) if n > place]
            opens = pieces[place + 1].lower if place + 1 < count else ""
            cost = RELATIVE if opens in words.RELATIVES or opens.endswith("ing") else ASIDE
            cost = max(cost, CONDITION) if opens in words.CONDITIONS else cost
            for end in following[:2]:
                yield place, end, cost, True  # a clause or an item of a list, with the pause before it
                if end < last and pieces[end].text == piece.text:
                    yield place, end + 1, cost, True  # with both pauses
            yield place, last, TRAILING + (CONDITION if opens in words.CONDITIONS else 0), True
            continue
        if not piece.is_word:
            continue
        clause_end = next((n for n in pauses if n > place), last)
        if first and pauses and clause_end < last and pieces[clause_end].text == ",":
            opener = word in words.PREPOSITIONS | words.SUBORDINATORS | words.ADVERBS or word.endswith("ly")
            cost = LEADING if opener else MAIN_CLAUSE
            yield 0, clause_end + 1, cost + (CONDITION if word in words.CONDITIONS else 0), True
        if headline and word in words.PRESENTS and place < 12:
            yield 0, place + 1, LEAD_IN, True
            if place + 1 < count and pieces[place + 1].lower in words.ARTICLES:
                yield 0, place + 2, LEAD_IN, True
        if word in words.RELATIVES and not first:
            yield place, clause_end, RELATIVE, True
        if word in words.SUBORDINATORS and not first:
            yield place, clause_end, CONDITION if word in words.CONDITIONS else CLAUSE, True
        if word in words.PREPOSITIONS or word in words.CONJUNCTIONS:
            cost = OF_PHRASE if word == "of" else PHRASE
            for end in _phrase_ends(pieces, place):
                yield place, end, cost, word in words.CONJUNCTIONS
        if word in words.CONJUNCTIONS:
            for start in range(max(0, place - 3), place):  # "A and B" → "B"
                if all(one.is_word and one.lower not in words.FUNCTION_WORDS for one in pieces[start:place]):
                    yield start, place + 1, LISTED, False
        yield place, place + 1, _word_cost(pieces, place, headline), False


def _phrase_ends(pieces: Sequence[Piece], start: int) -> Iterator[int]:
    """Yield where a phrase can end that opens at `start`: after each content word, up to the next function word."""
    boundary = words.PREPOSITIONS | words.CONJUNCTIONS | words.SUBORDINATORS | words.RELATIVES | words.AUXILIARIES
    for end in range(start + 2, min(start + MAX_PHRASE, len(pieces)) + 1):
        piece = pieces[end - 1]
        begun = any(words.is_content(one) for one in pieces[start + 1 : end - 1])
        if not piece.is_word or piece.lower in boundary or (begun and piece.lower in words.DETERMINERS):
            break
        if piece.lower not in words.DETERMINERS:
            yield end


def _word_cost(pieces: Sequence[Piece], place: int, headline: bool) -> float:
    word = pieces[place].lower
    if word in words.ARTICLES or (place == 0 and word in words.DEMONSTRATIVES):
        return HEADLINE_ARTICLE if headline else ARTICLE
    if word in words.AUXILIARIES:
        if headline and word in _BE:
            return HEADLINE_AUXILIARY
        return AUXILIARY if place else 2 * AUXILIARY  # "Do you ...?"
    if word in words.ADVERBS or (word.endswith("ly") and len(word) > 4):
        return ADVERB
    following = pieces[place + 1] if place + 1 < len(pieces) else None
    if word in words.FUNCTION_WORDS:
        subject = following is not None and following.lower in words.DETERMINERS | words.PRONOUNS | {"all"}
        return THAT if word == "that" and subject else FUNCTION_WORD
    modifies = following is not None and following.is_word and words.is_content(following)
    return MODIFIER if modifies else HEAD


def _protection(pieces: Sequence[Piece], start: int, end: int, is_clause: bool) -> float:
    """Return what is added to the cost for names, numbers, placeholders and negations."""
    cost = 0.0
    for place in range(start, end):
        piece = pieces[place]
        if words.is_negation(piece):
            cost += NEGATION if is_clause else NEVER
        if piece.is_placeholder:
            cost += PLACEHOLDER
        elif words.is_number(piece):
            cost += NUMBER
        elif words.is_name(piece, place == 0):
            cost += NAME
    return min(cost, MAX_ADDED) if is_clause and cost < PLACEHOLDER else cost


def _closed(part: Sequence[Piece]) -> bool:
    """Return whether each bracket and quotation mark in the part is closed in it."""
    marks = [piece.text for piece in part]
    pairs = all(marks.count(a) == marks.count(b) for a, b in zip(OPENING, CLOSING, strict=False))
    return pairs and marks.count('"') % 2 == 0


def _shortened(pieces: Sequence[Piece], headline: bool) -> Iterator[Deletion]:
    """Yield the words that have a short form."""
    forms = SHORT_FORMS | HEADLINE_FORMS
    for start, piece in enumerate(pieces):
        for size in range(1, 6):
            part = tuple(
                one.text if one.text[:1].isupper() and start else one.lower for one in pieces[start : start + size]
            )
            if len(part) == size and part in forms:
                short = forms[part]
                spaced = piece.spaced and short not in (":", "%")
                one = Piece(short, spaced, short not in (":", "%", "&"))
                one = replace(one, text=short[:1].upper() + short[1:]) if piece.text[:1].isupper() else one
                telegraphic = part in HEADLINE_FORMS and not headline
                yield Deletion(start, start + size, TELEGRAPHIC if telegraphic else SHORT_FORM, one)
