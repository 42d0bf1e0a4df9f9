"""Copied: what of a source stands in its translation as it was? A model that runs out of room may leave it so.

Names stay as they are, and so do words that both languages have; whatever the translator's best translation has put
into other words could have been. Knows words, not models.
"""

import re

_WORD = re.compile(r"[^\W\d_]{3,}")


def copies(source: str, text: str) -> bool:
    """Is it the source itself?"""
    return text.casefold() == source.casefold()


def untranslated(source: str, text: str, best: str) -> bool:
    """Is there a word of the source that the best translation has translated? It is easily read back, and often short.

    >>> untranslated("Open the file.", "Ouvrez le file.", "Ouvrez le fichier.")
    True
    """
    here, there, known = (set(_WORD.findall(some.casefold())) for some in (text, source, best))
    return bool(here & there - known)
