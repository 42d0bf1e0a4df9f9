"""Sharing: divide the translation of a sentence among the cues that its source runs over.

Each cue gets whole words, at least one. Of all ways to divide the text, the cheapest is taken: no cue beyond its room;
then borders near the places where the source has them, so that each part is read when it is said; then borders at good
places, such as after a comma.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from .borders import border_cost, join_atoms, split_atoms, width
from .line_breaks import fits_in_lines

OVER = 1000.0  # for each character beyond the room of a cue, and for a cue whose lines are too long
DISTANCE = 0.7  # for each character between a border and its place in the source


class Room(NamedTuple):
    """What a cue can hold of a text. `source`: the length of its part of the source; None: no limit.

    `before` and `after`: what else stands in the same lines.
    """

    source: int
    chars: int | None = None
    line: int | None = None
    lines: int | None = None
    before: str = ""
    after: str = ""

    def excess(self, text: str) -> float:
        """Return how much a text is beyond this room."""
        over = 0 if self.chars is None else max(0, width(text) - self.chars)
        return over + (0 if fits_in_lines(self.before + text + self.after, self.line, self.lines) else 1)


def share(text: str, rooms: Sequence[Room], language: str = "") -> list[tuple[int, int]]:
    """Return the start and end of each cue's part of a text. A text of fewer words than cues is repeated in each.

    >>> [text[a:b] for text in ["Sapevo che un giorno saresti tornata."] for a, b in share(text, [Room(12), Room(24)])]
    ['Sapevo che', 'un giorno saresti tornata.']
    """
    atoms = split_atoms(text)
    if len(atoms) < len(rooms) or len(rooms) == 1:
        return [(0, len(text))] * len(rooms)
    total = max(1, sum(room.source for room in rooms))
    aims = [width(text) * sum(room.source for room in rooms[: n + 1]) / total for n in range(len(rooms))]
    reached = [width(join_atoms(atoms[:end])) for end in range(len(atoms) + 1)]

    @cache
    def rest(start: int, n: int) -> tuple[float, tuple[int, ...]]:
        """Return the cost of the atoms from `start` in the rooms from `n`, and where their parts end."""
        if n == len(rooms) - 1:
            return OVER * rooms[n].excess(join_atoms(atoms[start:])), (len(atoms),)
        options = []
        for end in range(start + 1, len(atoms) - (len(rooms) - n - 2)):
            cost = OVER * rooms[n].excess(join_atoms(atoms[start:end]))
            cost += DISTANCE * abs(reached[end] - aims[n]) + border_cost(atoms, end, language)
            after, ends = rest(end, n + 1)
            options.append((cost + after, (end, *ends)))
        return min(options)

    places, at = [], 0
    for atom in atoms:
        at = text.index(atom.text, at)
        places.append((at, at + len(atom.text)))
        at += len(atom.text)
    ends = rest(0, 0)[1]
    starts = (0, *ends[:-1])
    return [(places[start][0], places[end - 1][1]) for start, end in zip(starts, ends, strict=True)]
