"""Line breaks: share a text out over the lines of a subtitle, balanced and at good places.

Text stays on one line if it fits there. Else it has as few lines as possible. Among the ways to break it, the one with
the lowest cost is taken: lines of similar length, the lower one rather longer, broken after punctuation or before a
conjunction, and not after an article or a preposition.
"""

from functools import cache, lru_cache

from .borders import Atom, border_cost, join_atoms, split_atoms, width

TOP_HEAVY = 1.3  # a longer upper line hides more of the picture
ONE_LINE_SHORT = 12.0  # TED: a line must not be shorter than half of the other
OVERLONG = 1000.0  # for each character beyond the line length


def break_lines(text: str, line: int | None, lines: int | None = None, language: str = "") -> list[str]:
    """Return the lines of a text: at most `line` characters each and at most `lines` of them, if that is possible.

    If it is not possible, the lines are as few as asked and as little too long as can be. Without `line`, a text has
    one line.

    >>> break_lines("Non so se questa sia la casa che cercavi.", 26, 2, "it")
    ['Non so se questa sia', 'la casa che cercavi.']
    """
    atoms = split_atoms(text)
    if line is None or width(join_atoms(atoms)) <= line or lines == 1:
        return [join_atoms(atoms)] if atoms else []
    needed = len(_filled(atoms, line))
    count = min(needed, lines or needed, len(atoms))
    return _best(atoms, line, count, language)


@lru_cache(maxsize=4096)
def fits_in_lines(text: str, line: int | None, lines: int | None) -> bool:
    """Return whether the text can be broken into at most `lines` lines of at most `line` characters."""
    if line is None:
        return True
    filled = _filled(split_atoms(text), line)
    return all(width(one) <= line for one in filled) and (lines is None or len(filled) <= lines)


def _filled(atoms: list[Atom], line: int) -> list[str]:
    """Return the lines if each takes as many atoms as it can: the fewest possible."""
    rows: list[list[Atom]] = []
    for atom in atoms:
        if rows and width(join_atoms([*rows[-1], atom])) <= line:
            rows[-1].append(atom)
        else:
            rows.append([atom])
    return [join_atoms(row) for row in rows]


def _best(atoms: list[Atom], line: int, count: int, language: str) -> list[str]:
    """Return the lines of the cheapest way to break the atoms into `count` lines."""
    even = width(join_atoms(atoms)) / count

    @cache
    def row(start: int, end: int) -> tuple[str, float]:
        text = join_atoms(atoms[start:end])
        length = width(text)
        last = end == len(atoms)
        uneven = abs(length - even) * (TOP_HEAVY if (length > even) != last else 1.0)
        cost = uneven + OVERLONG * max(0, length - line) + (ONE_LINE_SHORT if length < even * 2 / 3 else 0.0)
        return text, cost + (0.0 if last else border_cost(atoms, end, language))

    @cache
    def rest(start: int, left: int) -> tuple[float, tuple[str, ...]]:
        if left == 1:
            text, cost = row(start, len(atoms))
            return cost, (text,)
        options = []
        for end in range(start + 1, len(atoms) - left + 2):
            text, cost = row(start, end)
            after, others = rest(end, left - 1)
            options.append((cost + after, (text, *others)))
        return min(options)

    return list(rest(0, count)[1])
