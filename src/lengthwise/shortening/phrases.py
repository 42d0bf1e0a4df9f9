"""Phrases: where a noun phrase ends, and which parts a sentence is whole without, such as an item of a list.

Judged by word lists and endings, for English; nothing here knows parts of speech.
"""

from collections.abc import Sequence

from . import words
from .pieces import Piece

_NOT_NOMINAL = words.FUNCTION_WORDS | words.FOCUSING | {"all", "else"}
_AFTER_VERB = words.PREPOSITIONS - {"of"} | words.DETERMINERS


def is_nominal(piece: Piece) -> bool:
    """Return whether the word can be part of a noun phrase after its determiner; a tag cannot."""
    if not piece.is_word or words.is_contraction(piece) or words.is_adverb(piece):
        return False
    return piece.lower not in _NOT_NOMINAL and not (piece.is_placeholder and piece.text[0] in "<&\\")


def head_of(source: Sequence[Piece], place: int) -> int:
    """Return the place of the last word of the phrase that the word at this place is in, without numbers after it."""
    head = place
    while place + 1 < len(source) and is_nominal(source[place + 1]):
        place += 1
        after = source[place + 1].lower if place + 1 < len(source) else ""
        participle = source[place].lower.endswith(("ing", "ed")) and source[place].lower not in words.NOT_PARTICIPLES
        if participle and after in _AFTER_VERB:
            break  # "the phone number (ending in)", "people (liked your)"
        if not words.is_quantity(source[place]):
            head = place
    return head


def has_verb(source: Sequence[Piece], end: int) -> bool:
    """Return whether the words before `end` surely have the verb of their clause."""
    opens = (n for n in range(end) if not n or not source[n - 1].is_word or source[n - 1].lower in ("please", "to"))
    has = any(one.lower in words.AUXILIARIES or words.is_contraction(one) for one in source[:end])
    return has or any(source[n].lower in words.IMPERATIVES for n in opens)


def is_part(source: Sequence[Piece], before: int, after: int) -> bool:
    """Return whether a sentence is surely whole without what is left out between two places; `before` is at least 0."""
    if before and source[before].lower == source[after - 1].lower and is_part(source, before - 1, after - 1):
        return True  # "with a (case and a) warranty" is "with (a case and) a warranty"
    return (
        _is_item(source, before, after)
        or _is_coordinated(source, before, after)
        or _is_first_verb(source, before, after)
        or _is_head_with_of(source, before, after)
        or _is_before_moment(source, before, after)
        or _is_bound(source, before, after)
    )


def is_clause_with_that(source: Sequence[Piece], start: int, head: int, after: int) -> bool:
    """Return whether a whole clause is left out that begins with *that*, not an object: "the cell (that has it)."

    `head`: of the phrase that *that* would begin if it were a demonstrative, before a noun in the singular.
    """
    plural = any(one.lower.endswith("s") and not one.lower.endswith("ss") for one in source[start + 1 : head + 1])
    whole = after == len(source) or not source[after].is_word or source[after].lower in words.FINITE
    return whole and (plural or _is_determiner(source, head + 1))


def _is_item(source: Sequence[Piece], before: int, after: int) -> bool:
    """Return whether what is left out is an item of a list and its conjunction: "of (cats and) dogs"."""
    *item, conjunction = source[before + 1 : after]
    with_article = bool(item) and _is_determiner(source, before + 1) and _is_determiner(source, after)
    if with_article and source[before].lower in words.PREPOSITIONS - words.SUBORDINATORS:  # "with (a case and) a"
        item = item[1:]
    elif not _is_plain(source, after) or words.is_quantity(source[before]):
        return False
    adjective = conjunction.text == "," and _is_determiner(source, before)  # "a (cool,) dry place"
    return (conjunction.lower in words.CONJUNCTIONS or adjective) and all(map(is_nominal, item))


def _is_coordinated(source: Sequence[Piece], before: int, after: int) -> bool:
    """Return whether what is left out are adjectives, or a verb, beside a conjunction.

    "the (fast and secure) browser", "a strong (and unique) password", "edit (and save) the file".
    """
    gone = source[before + 1 : after]
    joins = [place for place, one in enumerate(gone) if one.lower in words.CONJUNCTIONS]
    if joins not in ([0], [1]) or len(gone) != joins[0] + 2:
        return False
    one, other = source[before + joins[0]], gone[-1]  # what the conjunction joins
    if not (is_nominal(one) and is_nominal(other)) or any(map(words.is_quantity, (source[before], one, other))):
        return False
    if joins == [0] and (one.lower in words.IMPERATIVES or _same_form(one, other, opens=before == 0)):
        return _is_plain(source, after) or _is_determiner(source, after)
    verb = other.lower in words.IMPERATIVES or other.lower.endswith("ing")  # "scan documents (and read) codes"
    phrase = joins == [0] or not is_nominal(source[before])
    return phrase and _is_plain(source, after) and (not verb or _same_form(one, other))


def _is_first_verb(source: Sequence[Piece], before: int, after: int) -> bool:
    """Return whether what is left out is the first of two verbs, with its object: "they (played well but) lost"."""
    gone = source[before + 1 : after]
    if gone[-1].lower not in words.CONJUNCTIONS or after == len(source) or words.is_quantity(source[before]):
        return False
    return {gone[0].text, source[after].text} <= words.FINITE or _same_form(gone[0], source[after])


def _is_head_with_of(source: Sequence[Piece], before: int, after: int) -> bool:
    """Return whether the phrase that is left out ends in *of*: "in (the north of) Peru"."""
    *phrase, last = source[before + 1 : after]
    first = source[before]
    if last.lower != "of" or not phrase or words.is_quantity(first) or first.lower in words.DETERMINERS - {"the"}:
        return False
    return all(is_nominal(one) or one.lower in words.DETERMINERS for one in phrase) and _is_plain(source, after)


def _is_before_moment(source: Sequence[Piece], before: int, after: int) -> bool:
    """Return whether what is left out is a phrase before a time: "shown (in the hall) last week"."""
    gone = [one.lower for one in source[before + 1 : after]]
    if after == len(source) or gone[0] not in words.PREPOSITIONS or not words.FINITE.isdisjoint(gone):
        return False
    if source[before].lower in words.PREPOSITIONS | words.DETERMINERS or not is_nominal(source[after - 1]):
        return gone == ["on"] and source[after].lower in words.DAYS
    opens = source[after].lower in words.MOMENTS | {"last", "next"}
    return opens and source[head_of(source, after)].lower in words.MOMENTS


def _is_bound(source: Sequence[Piece], before: int, after: int) -> bool:
    """Return whether what is left out is a bound of a number: "lasts (up to) ten"."""
    gone = tuple(one.lower for one in source[before + 1 : after])
    return gone in words.BOUNDING and after < len(source) and words.is_quantity(source[after])


def _is_plain(source: Sequence[Piece], place: int) -> bool:
    """Return whether a word of a noun phrase is at this place, and not a number."""
    return place < len(source) and is_nominal(source[place]) and not words.is_quantity(source[place])


def _is_determiner(source: Sequence[Piece], place: int) -> bool:
    return place < len(source) and source[place].lower in words.DETERMINERS


def _same_form(one: Piece, other: Piece, opens: bool = False) -> bool:
    """Return whether both words can be verbs in the same form: "edit" and "save", "moved" and "sent".

    `opens`: the first one begins a sentence, so that it is no noun in the plural: "Shows" and "hides".
    """
    both = {one.lower, other.lower}
    if both <= words.IMPERATIVES or all(word.endswith("ed") or word in words.PAST for word in both):
        return True
    return any(all(word.endswith(ending) for word in both) for ending in (("ing", "s") if opens else ("ing",)))
