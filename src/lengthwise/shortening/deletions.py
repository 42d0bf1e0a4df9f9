"""Deletions: the parts of a sentence that can be left out or shortened, each with a cost.

Costs are in nats, beside the log-probabilities of the search. A part that a reader misses least costs least: a
bracket, an adverb, a clause between commas. Single words cost more, names and numbers much more, and a negation is left
out only with the clause that it belongs to. The rules need no parser; the language model decides between them.
"""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace

from . import words
from .pieces import CLOSING, OPENING, Piece
from .short_forms import HEADLINE_FORMS, SHORT_FORMS

MAX_PHRASE = 10  # words of a phrase that a preposition or a conjunction opens
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
ALTERNATIVE = 4.0  # "or old"
LEAD_IN = 0.3  # "Opens a dialog to"; in a headline, "This paper presents"
ANTECEDENT = 2.0  # added if what follows refers to it: "When Anna came, (she ...)"
# Costs of single words
ADVERB = 0.3
THAT = 0.8  # "Make sure (that) it works"
MODIFIER = 1.0  # a content word before another one
DEGREE = 4.0  # "almost all"
ARTICLE, INNER_ARTICLE, HEADLINE_ARTICLE = 2.5, 4.0, 0.0  # the first word; others
HEADLINE_AUXILIARY = 0.6
FUNCTION_WORD = 4.0
HEAD = 7.0  # the last content word of a phrase
SHORT_FORM, TELEGRAPHIC = 0.3, 1.5
# Added for each; for a whole clause at most MAX_ADDED
NAME, NUMBER, NEGATION, PLACEHOLDER, MAX_ADDED = 1.0, 1.5, 2.0, 12.0, 6.0
_PAUSE = (",", ";", ":", "-", "–", "—", "--")
_BE = ("am", "is", "are", "was", "were", "be", "been", "being")
_Part = tuple[int, int, float, bool]  # start, end, cost, whether it is a whole clause


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


def _parts(pieces: Sequence[Piece], headline: bool) -> Iterator[_Part]:
    """Yield the parts that the rules find, place by place."""
    ends = _clause_ends(pieces)
    for place, piece in enumerate(pieces):
        if piece.text in OPENING:
            yield _bracket(pieces, place)
        if piece.text in _PAUSE:
            yield from _after_pause(pieces, place, ends)
        elif piece.is_word:
            if place == 0:
                yield from _opening(pieces, ends)
            if headline:
                yield from _announcement(pieces, place)
            yield from _clauses(pieces, place, ends)
            yield from _phrases(pieces, place)
            yield from _items_before(pieces, place)
            yield place, place + 1, _word_cost(pieces, place, headline), False


def _clause_ends(pieces: Sequence[Piece]) -> list[int]:
    """Return where a clause can end: at each pause, and before the final mark of the sentence."""
    count = len(pieces)
    has_mark = count and not pieces[-1].is_word and pieces[-1].text not in CLOSING
    return [*(place for place in range(count) if pieces[place].text in _PAUSE), count - 1 if has_mark else count]


def _bracket(pieces: Sequence[Piece], place: int) -> _Part:
    """Return the bracket that opens here: "(old)"."""
    end = next((n + 1 for n in range(place, len(pieces)) if pieces[n].text in CLOSING), place)
    return place, end, BRACKET, True


def _after_pause(pieces: Sequence[Piece], place: int, ends: Sequence[int]) -> Iterator[_Part]:
    """Yield a clause or an item of a list with the pause before it or both, and all up to the end: ", which is old"."""
    last = ends[-1]
    opens = pieces[place + 1].lower if place + 1 < len(pieces) else ""
    is_relative = opens in words.RELATIVES or opens.endswith("ing")
    least = CONDITION if opens in words.CONDITIONS else ALTERNATIVE if opens == "or" else 0.0
    cost = max(RELATIVE if is_relative else ASIDE, least)
    for end in [n for n in ends if n > place][:2]:
        yield place, end, cost, True
        if end < last and pieces[end].text == pieces[place].text:
            yield place, end + 1, cost, True
    yield place, last, TRAILING + least, True


def _opening(pieces: Sequence[Piece], ends: Sequence[int]) -> Iterator[_Part]:
    """Yield what stands before the first comma, "On Monday, ", and words that only lead in, "Opens a dialog to"."""
    if ends[0] < ends[-1] and pieces[ends[0]].text == ",":
        word, after = pieces[0].lower, ends[0] + 1
        is_leading = word in words.PREPOSITIONS | words.SUBORDINATORS or words.is_adverb(pieces[0])
        refers = pieces[after].lower in words.REFERRING and any(map(words.is_content, pieces[: ends[0]]))
        added = (CONDITION if word in words.CONDITIONS else 0.0) + (ANTECEDENT if refers else 0.0)
        yield 0, after, (LEADING if is_leading else MAIN_CLAUSE) + added, True
    if size := words.lead_in(pieces):
        yield 0, size, LEAD_IN, False


def _announcement(pieces: Sequence[Piece], place: int) -> Iterator[_Part]:
    """Yield all up to the verb that announces a topic, for headlines: "This paper presents (a)"."""
    if pieces[place].lower in words.PRESENTS and place < 12:
        yield 0, place + 1, LEAD_IN, True
        if place + 1 < len(pieces) and pieces[place + 1].lower in words.ARTICLES:
            yield 0, place + 2, LEAD_IN, True


def _clauses(pieces: Sequence[Piece], place: int, ends: Sequence[int]) -> Iterator[_Part]:
    """Yield the relative or subordinate clause that opens here: "because it is old"."""
    word = pieces[place].lower
    if word not in words.RELATIVES | words.SUBORDINATORS or _is_needed(pieces, place):
        return
    clause_end = next((n for n in ends if n > place), ends[-1])
    is_relative = word in words.RELATIVES
    yield place, clause_end, RELATIVE if is_relative else CONDITION if word in words.CONDITIONS else CLAUSE, True
    if is_relative:  # "The bridge that was built in 1911 is closed."
        verbs = [n for n in range(place + 3, clause_end) if pieces[n].lower in words.AUXILIARIES]
        for end in (n for n in verbs if pieces[n - 1].lower not in words.PRONOUNS | words.FUNCTION_WORDS):
            yield place, end, RELATIVE, True


def _phrases(pieces: Sequence[Piece], place: int) -> Iterator[_Part]:
    """Yield the phrases that a preposition or a conjunction opens here: "in the box", "and the box"."""
    word = pieces[place].lower
    if word in words.PREPOSITIONS | words.CONJUNCTIONS:
        cost = ALTERNATIVE if word == "or" else OF_PHRASE if word == "of" else PHRASE
        for end in _phrase_ends(pieces, place):
            yield place, end, cost, word in words.CONJUNCTIONS


def _items_before(pieces: Sequence[Piece], place: int) -> Iterator[_Part]:
    """Yield the item of a list before a conjunction, with it: "A and B" → "B"."""
    word = pieces[place].lower
    following = pieces[place + 1] if word in words.CONJUNCTIONS and place + 1 < len(pieces) else None
    if following is not None and words.is_content(following):
        for start in range(max(0, place - 3), place):
            if all(one.is_word and one.lower not in words.FUNCTION_WORDS for one in pieces[start:place]):
                yield start, place + 1, ALTERNATIVE if word == "or" else LISTED, False


def _is_needed(pieces: Sequence[Piece], place: int) -> bool:
    """Return whether the word before cannot do without the clause or the phrase that opens here."""
    if place == 0:
        return True
    word, before = pieces[place].lower, pieces[place - 1].lower
    if word == "to" and before in words.NEED_INFINITIVE:
        return True
    if word in words.CONJUNCTIONS and before == "than":  # "less than or equal to"
        return True
    if word == "than" or (word == "of" and (before in words.NEED_OF or words.is_number(pieces[place - 1]))):
        return True
    if word in words.PREPOSITIONS and before in words.AUXILIARIES:  # "is in the box"
        return True
    return word in words.RELATIVES | words.SUBORDINATORS and before in words.NEED_CLAUSE


def _phrase_ends(pieces: Sequence[Piece], start: int) -> Iterator[int]:
    """Yield where a phrase can end that opens at `start`: after each content word, up to the next function word.

    "of" does not end it ("at the end of the file"), and nothing that an infinitive can have after it does.
    """
    if _is_needed(pieces, start):
        return
    bound = tuple(piece.lower for piece in pieces[start + 1 : start + 3])
    begun_at = start + 3 if bound in words.BOUNDING else start + 1  # "for at least eleven weeks"
    infinitive = pieces[start].lower == "to"
    inside = words.PREPOSITIONS if infinitive else frozenset({"of", "such"})
    for end in range(begun_at + 1, min(start + MAX_PHRASE, len(pieces)) + 1):
        piece = pieces[end - 1]
        begun = any(words.is_content(one) for one in pieces[begun_at : end - 1])
        if piece.lower in inside and begun:
            begun_at = end
            continue
        second = begun and not infinitive and piece.lower in words.DETERMINERS
        if not piece.is_word or piece.lower in words.BOUNDARY or second:
            break
        if piece.lower not in words.DETERMINERS and _ends_phrase(pieces, start, end, inside):
            yield end


def _ends_phrase(pieces: Sequence[Piece], start: int, end: int, inside: Container[str]) -> bool:
    """Return whether a phrase may end here: before a mark, a function word or the verb of its subject."""
    following = pieces[end] if end < len(pieces) else None
    if following is None or not following.is_word:
        return True
    if following.lower in inside:
        return False
    if following.lower in words.DETERMINERS and pieces[end - 1].lower.endswith("ed"):
        return False  # "after residents signed a petition"
    has_verb = any(one.lower in words.AUXILIARIES or one.lower.endswith("ed") for one in pieces[:start])
    has_verb = has_verb or _is_verb(pieces, 0)
    opens = pieces[start].lower
    if following.lower in words.AUXILIARIES:  # "and the old bridge is closed"
        return not (opens in words.CONJUNCTIONS and has_verb)
    if following.lower in words.BOUNDARY or words.is_adverb(following):
        return True
    if opens == "to":  # an infinitive ends with its object
        return False
    # If the verb is still to come, it may be the next word: "The disk in drive C failed."
    return not words.is_content(following) or not has_verb


def _word_cost(pieces: Sequence[Piece], place: int, headline: bool) -> float:
    word = pieces[place].lower
    before = pieces[place - 1] if place else None
    following = pieces[place + 1] if place + 1 < len(pieces) else None
    if word in words.ARTICLES or (place == 0 and word in words.DEMONSTRATIVES):
        return HEADLINE_ARTICLE if headline else ARTICLE if place == 0 else INNER_ARTICLE
    if word in words.AUXILIARIES:  # "must (be) smaller" is no English, "(must) be accepted" means something else
        return HEADLINE_AUXILIARY if headline and word in _BE else NEVER
    if word in words.COMPARING or (word == "equal" and before is not None and before.lower == "or"):
        return NEVER
    if words.is_adverb(pieces[place]):
        return DEGREE if word in words.DEGREES else ADVERB
    if word in words.FUNCTION_WORDS:
        subject = following is not None and following.lower in words.DETERMINERS | words.PRONOUNS | {"all"}
        return THAT if word == "that" and subject else FUNCTION_WORD if word in words.DETERMINERS else NEVER
    if word in words.DEGREES | words.NUMBER_WORDS:
        return DEGREE
    if following is not None and following.lower in words.OBJECTS:
        return NEVER  # "{user} (invited) you"
    modifies = following is not None and following.is_word and words.is_content(following)
    if _is_verb(pieces, place) and not (modifies and before is not None and before.lower in _BE):
        return NEVER  # "has (found) cracks"
    if following is not None and following.lower in words.AUXILIARIES and not headline:
        return NEVER  # "Only (administrators) can change it"
    return MODIFIER if modifies else HEAD


def _is_verb(pieces: Sequence[Piece], place: int) -> bool:
    """Return whether a content word must be the verb or what follows "is": it is the first, or follows a subject."""
    word = pieces[place].lower
    if place == 0:  # "Saves the file", "Delete messages"
        return len(pieces) > 1 and (pieces[1].lower in words.DETERMINERS | {"all"} or word in words.IMPERATIVES)
    at = place - 1
    while at and (words.is_adverb(pieces[at]) or words.is_negation(pieces[at])):
        at -= 1
    before = pieces[at].lower
    if before in words.AUXILIARIES or words.is_contraction(pieces[at]) or before in words.SUBJECTS:
        return True
    if before == "to":
        return not pieces[place].text[:1].isupper()
    return word.endswith("ing") and before in words.PREPOSITIONS | words.SUBORDINATORS


def _protection(pieces: Sequence[Piece], start: int, end: int, is_clause: bool) -> float:
    """Return what is added to the cost for names, numbers, placeholders and negations."""
    cost = 0.0
    if (
        end < len(pieces)
        and words.is_quantity(pieces[end])
        and any(one.lower in words.BOUNDS for one in pieces[start:end])
    ):
        return NEVER  # "at least 8"
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
    """Yield the words that have a short form; "not ..." has none in "whether or not available"."""
    for start, piece in enumerate(pieces):
        if piece.lower == "not" and start and pieces[start - 1].lower in ("or", "whether"):
            continue
        for size in range(1, 6):
            part = tuple(
                one.text if one.text[:1].isupper() and start else one.lower for one in pieces[start : start + size]
            )
            for forms, cost in ((SHORT_FORMS, SHORT_FORM), (HEADLINE_FORMS, SHORT_FORM if headline else TELEGRAPHIC)):
                if len(part) == size and part in forms:
                    short = forms[part]
                    spaced = piece.spaced and short not in (":", "%")
                    one = Piece(short, spaced, short not in (":", "%", "&"))
                    one = replace(one, text=short[:1].upper() + short[1:]) if piece.text[:1].isupper() else one
                    yield Deletion(start, start + size, cost, one)
