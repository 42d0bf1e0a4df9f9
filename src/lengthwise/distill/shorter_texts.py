"""Shorter texts of several sentences: each sentence is kept, shortened or left out."""

import random
from collections.abc import Mapping, Sequence

from ..shortening import words
from ..shortening.content import salience
from ..shortening.pieces import split_pieces
from ..shortening.variants import LONGEST

EACH = 3  # shorter texts of a text of several sentences
LEFT_OUT, KEPT = 0.3, 0.25  # chances of a sentence; the others are shortened
OPENING = 30  # characters of a first sentence that may be left out: "Now for Japan."


def shorter_texts(sentences: Sequence[str], forms: Mapping[str, Sequence[str]], rng: random.Random) -> list[str]:
    """Return shorter texts of a text with these sentences. `forms`: shorter forms of each."""
    if len(sentences) == 1:
        return list(forms.get(sentences[0], ()))
    weights = [salience(number, split_pieces(sentence)) for number, sentence in enumerate(sentences)]
    found: dict[str, None] = {}
    for _ in range(4 * EACH):
        parts = []
        for number, sentence in enumerate(sentences):
            chance = rng.random()
            needed = (number == 0 and len(sentence) > OPENING) or sentence.endswith("?")
            if chance < LEFT_OUT / weights[number] and not needed and not _refers(sentences[number + 1 : number + 2]):
                continue
            options = () if chance > 1 - KEPT else forms.get(sentence, ())
            parts.append(rng.choice(options) if options else sentence)
        text = " ".join(parts)
        if text and len(text) <= LONGEST * len(" ".join(sentences)):
            found[text] = None
    return list(found)[:EACH]


def _refers(following: Sequence[str]) -> bool:
    """Return whether the next sentence, if there is one, refers to the one before it."""
    return any(sentence.split()[0].lower().rstrip(",") in words.REFERRING | words.ADVERBS for sentence in following)
