"""Joining: which pieces may stand side by side where others were left out, and whether what is kept is a sentence."""

from collections.abc import Sequence
from dataclasses import replace

from . import words
from .pieces import CLOSING, FINAL, OPENING, Piece, capitalised

MAX_ITEM = 5  # pieces of an item of a list
Places = tuple[int | None, ...]  # of kept pieces in their sentence; None for a short form


def form_of(piece: Piece, place: int, kept: Sequence[Piece], next_place: int, source: Sequence[Piece]) -> Piece | None:
    """Return the form of a piece after those kept, or None if it cannot stand there.

    `next_place`: of the piece that would follow if none were left out.
    """
    if not kept:
        if place and ((not piece.is_word and piece.text not in OPENING) or piece.lower in words.NOT_FIRST):
            return None
        if piece.text == ":" != source[0].text:  # the short form of "because"
            return None
        return capitalised(piece) if source[0].text[:1].isupper() and place else piece
    before = kept[-1]
    skipped = place > next_place
    if skipped and not (_may_follow(before, piece) and _keeps_bounds(before, piece, source[next_place])):
        return None
    if piece.is_word or piece.text in OPENING:
        if skipped and not piece.spaced and before.text not in OPENING:
            return replace(piece, spaced=True)
        return piece
    follows_mark = not before.is_word and before.text not in CLOSING
    if follows_mark and (skipped or piece.text == ":"):
        return None
    if not skipped:
        return piece
    if piece.text in (*FINAL, ",", ";", ")") and before.lower in words.NOT_LAST:
        return None
    return piece


def _may_follow(before: Piece, piece: Piece) -> bool:
    """Return whether a piece may follow another after a deletion: no "the of", "into for", "a (", "of."."""
    is_article = before.lower in words.DETERMINERS - words.DEMONSTRATIVES
    if not is_article and before.lower not in words.PREPOSITIONS:
        return True
    after_preposition = not is_article and piece.lower in words.ARTICLES  # "of the"
    return piece.is_word and (after_preposition or piece.lower not in words.NOT_AFTER_OPENER)


def _keeps_bounds(before: Piece, piece: Piece, gone: Piece) -> bool:
    """Return whether a comparison keeps its number: no "at least weeks", "open than 6", "contain and one".

    `gone`: the first piece that was left out between the two.
    """
    if before.lower in words.COMPARING | words.LIMITS | {"than"}:
        return words.is_quantity(piece)
    if piece.lower in words.CONJUNCTIONS and (gone.lower == "at" or words.is_quantity(gone)):
        return False
    return piece.lower not in ("than", "least")


def may_end(last: Piece) -> bool:
    """Return whether a sentence may end with this piece after a deletion."""
    return last.lower.split()[-1] not in words.NOT_LAST and (last.is_word or last.text in FINAL + tuple(CLOSING))


def is_fragment(pieces: Sequence[Piece], source: Sequence[Piece], headline: bool = False) -> bool:
    """Return whether the main clause or the verb of the source is left out. A headline needs no verb."""
    lost_verb = words.has_subject_and_verb(source) and not any(map(words.may_be_verb, pieces))
    return words.lacks_main_clause(pieces, source) or (lost_verb and not headline)


def with_conjunction(
    pieces: tuple[Piece, ...], places: Places, source: Sequence[Piece]
) -> tuple[tuple[Piece, ...], Places]:
    """Return the sentence with "and" before the last item of a list whose last items were left out.

    >>> from .pieces import join_pieces, split_pieces
    >>> kept = tuple(split_pieces("Big cats, dogs."))
    >>> join_pieces(with_conjunction(kept, (0, 1, 2, 3, 6), split_pieces("Big cats, dogs or birds."))[0])
    'Big cats or dogs.'
    """
    end = len(pieces) - (pieces[-1].text in FINAL)
    commas = [n for n in range(2, end) if pieces[n].text == ","]
    place = places[end - 1]
    if not commas or place is None or pieces[0].lower in words.OPENERS:
        return pieces, places
    left_out = [piece for piece in source[place + 1 : place + 3] if piece.text != ","]
    item = pieces[commas[-1] + 1 : end]
    is_item = 0 < len(item) <= MAX_ITEM and not any(piece.lower in words.NOT_IN_ITEM for piece in item)
    if not left_out or left_out[0].lower not in ("and", "or") or not is_item:
        return pieces, places
    at = commas[-1]
    conjunction = replace(left_out[0], spaced=True)
    return (*pieces[:at], conjunction, *pieces[at + 1 :]), (*places[:at], None, *places[at + 1 :])
