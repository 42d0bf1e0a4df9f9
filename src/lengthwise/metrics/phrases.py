"""Whole phrases: does a title end as a phrase, or where its room ended? English only.

A title has no full stop, so `completeness` does not apply to it. Here a closed list of words decides: a text that ends
in an article, a preposition, a conjunction or a determiner has lost what follows. Some whole titles end so ("a library
to log in"), so report the share of the references beside it.
"""

import regex

from .tally import Tally, mean_of
from .texts import Texts

_ARTICLES = "a an the"
_CONJUNCTIONS = "and or nor but if because while whereas although though unless whether than that as when where"
_DETERMINERS = "its their our your his her my this these those each every which whose"
_PREPOSITIONS = (
    "of in on at by for from with without within into onto to toward towards through throughout over under between "
    "among amongst across against about above below behind beside beyond during except per via upon after before since "
    "until till like unlike near amid along around inside outside versus vs despite concerning regarding using based"
)
NOT_LAST = frozenset(f"{_ARTICLES} {_CONJUNCTIONS} {_DETERMINERS} {_PREPOSITIONS}".split())
_LAST_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+(?=[^\p{L}\p{N}]*$)")
_DANGLING = regex.compile(r"[-–—,:;/&([{]$")
_BRACKETS = {"(": ")", "[": "]", "{": "}"}


def whole_phrase(texts: Texts, _: str = "") -> Tally:
    """Return the share of outputs that end as a whole phrase."""
    return mean_of([is_whole(text) for text in texts.hyps], f"whole-phrase|en|words:{len(NOT_LAST)}|v1")


def is_whole(text: str) -> bool:
    """Return whether a title ends as a phrase.

    >>> [is_whole(text) for text in ("Learning to rank", "Learning to", "A model for (neural", "Two models:", "")]
    [True, False, False, False, False]
    """
    text = text.strip()
    word = _LAST_WORD.search(text)
    if word is None or _DANGLING.search(text) or word[0].lower() in NOT_LAST:
        return False
    return all(text.count(opening) <= text.count(closing) for opening, closing in _BRACKETS.items())
