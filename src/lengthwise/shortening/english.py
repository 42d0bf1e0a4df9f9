"""Whether a text is English, for which the rules on its grammar and the models are."""

import regex

from ..length.weak_words import WEAK_WORDS, language_of
from ..translation.placeholders import split_placeholders

_NAME = regex.compile(r"(?<=[\p{L}\p{N}\p{M},] )\p{Lu}\p{Ll}[\p{L}\p{M}'’]*")  # a capital inside a sentence


def may_be_foreign(text: str) -> bool:
    """Return whether a text has more articles, prepositions and the like of another language than of English.

    At least two, or one beside a letter such as "é"; or most of its letters are not Latin. Words with a capital inside
    a sentence are names ("La La Land") and do not count.

    >>> may_be_foreign("Le fichier n'est pas là."), may_be_foreign("The café is open."), may_be_foreign("保存")
    (True, False, True)
    """
    plain = " ".join(part for part, is_placeholder in split_placeholders(text) if not is_placeholder)
    letters = regex.findall(r"\p{L}", plain)
    if 2 * len(regex.findall(r"\p{Latin}", plain)) < len(letters):
        return True
    found = regex.findall(r"[\p{L}\p{M}'’]+", _NAME.sub("", plain).lower())
    language = language_of(found)
    known = sum(any(word in some for some in WEAK_WORDS[language][:4]) for word in found)
    return language != "en" and (known > 1 or not "".join(letters).isascii())
