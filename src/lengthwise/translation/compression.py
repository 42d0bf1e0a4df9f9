"""Abridge: a sentence without some of its words, for a translation that has less room.

A search within a limit writes as usual until the room runs out, and what it then leaves out stands at the end. Here it
may stand anywhere: every run of a few words is left out by itself, to see what room that saves and what it costs, and
then several together, of those that should save enough the ones that should cost least. Knows words; who translates
them, and who says what a translation is worth, it is not told.
"""

import re
from collections.abc import Callable, Mapping
from itertools import combinations

RUN = 4  # words
FEWEST = 4  # words of a sentence from which one can be left out
LONG = 60  # words of a sentence in which not every run is tried
TOGETHER = 3  # runs at most
TRIPLES_OF = 24  # the cheapest runs: threes of all of them are too many
_END = re.compile(r"[.!?…:;؟۔।。！？]+(?=[\"'”’»)\]]*$)")  # the marks with which a text ends
_PAUSES = ",;:—–-"
_LOWER = re.compile(r"[^\W\d_A-Z]+(?:['’-]\w+)?\W*")  # no name, address or placeholder
_PAIRS = (("(", ")"), ("[", "]"), ("{", "}"), ("«", "»"), ("“", "”"))
# What is never left out, since the rest would say the opposite: of English, and what is commonest in five languages.
_DENIALS = re.compile(
    r"\b(?:not|no|never|cannot|without|nor|neither|none|nothing|nobody|nowhere|unless|except|un\w*able"
    r"|ne|pas|jamais|sans|rien|aucun\w*|non|mai|senza|niente|nessun\w*|nunca|sin|nada"
    r"|nicht|nichts|kein\w*|nie|niemals|ohne)\b|\bn['’]|n['’]t\b",
    re.IGNORECASE,
)

DroppedWords = frozenset[int]  # the places of the words that are left out


def runs(text: str) -> list[DroppedWords]:
    """What can be left out in one piece: up to `RUN` words, never more than half of them, and none that denies.

    >>> [sorted(gone) for gone in runs("Do not open it.")]
    [[0], [2], [3], [2, 3]]
    """
    words = text.split()
    if len(words) < FEWEST:
        return []
    sizes, step = range(1, min(RUN, len(words) // 2) + 1), 1 + len(words) // LONG
    found = [range(first, first + size) for size in sizes for first in range(0, len(words) - size + 1, step)]
    return [frozenset(run) for run in found if not any(_DENIALS.search(words[place]) for place in run)]


def without(text: str, gone: DroppedWords) -> str:
    """The text without these words; it begins and ends as before.

    >>> without("Open the file, if you can.", frozenset([3, 4, 5]))
    'Open the file.'
    """
    words = text.split()
    left = [word for place, word in enumerate(words) if place not in gone]
    if 0 in gone and words[0][:1].isupper() and _LOWER.fullmatch(left[0]):
        left[0] = left[0][:1].upper() + left[0][1:]
    if len(words) - 1 in gone:
        while len(left) > 1 and not left[-1].strip(_PAUSES):
            left.pop()
        last = left[-1].rstrip(_PAUSES)
        left[-1] = last if _END.search(last) else last + "".join(_END.findall(words[-1]))
    return " ".join(left)


def balanced(text: str) -> bool:
    """Is every bracket and quotation mark closed?

    >>> balanced("Open it (now."), balanced('Open "it" (now).')
    (False, True)
    """
    return text.count('"') % 2 == 0 and all(text.count(start) == text.count(end) for start, end in _PAIRS)


def together(
    words: int,
    tried: Mapping[DroppedWords, tuple[int, float]],
    whole: tuple[int, float],
    fits: Callable[[int], bool],
    most: int,
) -> list[DroppedWords]:
    """Runs to leave out at once, the most promising first, `most` of them; half of the `words` stay.

    `tried`: the length and the score of the translation without each run; `whole`: those of the whole one. What two
    save and cost is taken for the sum of what each does.
    """
    length, score = whole
    saved = {gone: length - shorter for gone, (shorter, _) in tried.items() if shorter < length}
    cost = {gone: score - tried[gone][1] for gone in saved}
    cheap = sorted(saved, key=lambda gone: cost[gone] / saved[gone])
    found: dict[DroppedWords, float] = {}
    for number in range(2, TOGETHER + 1):
        for some in combinations(cheap if number == 2 else cheap[:TRIPLES_OF], number):
            gone = frozenset().union(*some)
            apart = len(gone) == sum(map(len, some))
            if apart and len(gone) <= words // 2 and fits(length - sum(saved[one] for one in some)):
                found[gone] = min(found.get(gone, float("inf")), sum(cost[one] for one in some))
    return [gone for gone in sorted(found, key=lambda gone: found[gone]) if gone not in tried][:most]
