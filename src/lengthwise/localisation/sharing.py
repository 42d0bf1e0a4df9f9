"""Sharing: divide the translation of a sentence among the cues that its source runs over.

Each cue gets whole words, at least one. Of all ways to divide the text, the cheapest is taken: no cue beyond its room;
then borders near the places where the source has them, so that each part is read when it is said; then borders at good
places, such as after a comma.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from .borders import border_cost, split_atoms, width
from .line_breaks import fits_in_lines

OVER = 1000.0  # for each character beyond the room of a cue, and for a cue whose lines are too long
HOPELESS = 40  # characters too many, beyond which a cue is not filled further
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
        return over or (0 if fits_in_lines(self.before + text + self.after, self.line, self.lines) else 1)


def share(text: str, rooms: Sequence[Room], language: str = "") -> list[tuple[int, int]]:
    """Return the start and end of each cue's part of a text. A text of fewer words than cues is repeated in each.

    >>> text = "Sapevo che un giorno saresti tornata."
    >>> [text[a:b] for a, b in share(text, [Room(12), Room(24)], "it")]
    ['Sapevo', 'che un giorno saresti tornata.']
    """
    atoms = split_atoms(text)
    if len(atoms) < len(rooms) or len(rooms) == 1:
        return [(0, len(text))] * len(rooms)
    places, at = [], 0  # the start and end of each atom in the text
    for atom in atoms:
        at = text.index(atom.text, at)
        places.append((at, at + len(atom.text)))
        at += len(atom.text)
    total = max(1, sum(room.source for room in rooms))
    aims = [len(text) * sum(room.source for room in rooms[: n + 1]) / total for n in range(len(rooms))]
    costs = [0.0, *(border_cost(atoms, place, language) for place in range(1, len(atoms)))]

    @cache
    def rest(start: int, n: int) -> tuple[float, tuple[int, ...]]:
        """Return the cost of the atoms from `start` in the rooms from `n`, and where their parts end."""
        first = places[start][0]
        if n == len(rooms) - 1:
            return OVER * rooms[n].excess(text[first:]), (len(atoms),)
        options = []
        for end in range(start + 1, len(atoms) - (len(rooms) - n - 2)):
            last = places[end - 1][1]
            excess = rooms[n].excess(text[first:last])
            after, ends = rest(end, n + 1)
            distance = DISTANCE * abs(last - aims[n])
            options.append((OVER * excess + distance + costs[end] + after, (end, *ends)))
            if excess > HOPELESS:
                break  # later ends are worse
        return min(options)

    ends = rest(0, 0)[1]
    starts = (0, *ends[:-1])
    return [(places[start][0], places[end - 1][1]) for start, end in zip(starts, ends, strict=True)]
