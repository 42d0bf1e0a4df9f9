"""Seams: refuse forms without a part that the words beside it need, and forms that say something else.

The judges of `shorter_forms.py` miss these faults: both models find such forms probable.
"""

from collections import Counter
from difflib import SequenceMatcher

import regex

from ..shortening import words
from ..shortening.content import invented, stem, stems
from ..translation.placeholders import count_placeholders


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BARE = ".,;:!?()\"'“”‘’"
_DASHES = frozenset({"-", "–", "—", "/", ">", "->", "|", "="})
_NEED_NEXT = _words("how as so too such more less most half many few much per each every than very both")
# Nouns that say little without what follows: "the task of …", "the stuff that …".
_HEADS = _words(
    "stuff thing things task tasks one ones way ways fact case cases people person number amount kind type sort part "
    "process problem problems ability use purpose idea act form set area issue method role aim goal approach range "
    "representation value name version level state position result results effect effects need means something "
    "anything those that"
)
_BEGIN_OBJECT = _words("that which who whose of where when to for in on about between using used")
# Words that are broad enough to stand for a narrower one.
_BROAD = _words(
    "use uses used using make makes made get gets need needs needed help helps let lets allow allows allowed give "
    "gives show shows change changes set new many several few near while called named said says go goes went come "
    "comes came takes take took include includes included work works start starts started end ends ended main big "
    "small good bad like different various must can year years day days time part way full whole next last first"
)
_ING = regex.compile(r"\p{L}+ing")


def holds(sentence: str, form: str) -> bool:
    """Return whether no seam of the form shows one of the known faults."""
    if _repeats(sentence, form) or _lowers(sentence, form) or _loses_subject(sentence, form):
        return False
    if any(word.lower() not in _BROAD for word in invented(sentence, form)):
        return False
    old, new = ([word.lower().strip(_BARE) or word for word in text.split()] for text in (sentence, form))
    placeholders = {text.strip(_BARE).lower() for text in count_placeholders(sentence)}
    for kind, first, _, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind in ("equal", "insert"):
            continue
        before = old[first - 1] if first else ""
        after = new[end] if end < len(new) else ""
        if before in _NEED_NEXT and kind == "delete":
            return False
        if before in _DASHES or after in _DASHES:
            return False
        if before in words.DETERMINERS and after in placeholders:
            return False
        needs = old[first] in _BEGIN_OBJECT or _ING.fullmatch(old[first])
        if before in _HEADS and needs and start == end:
            return False
    return True


def _repeats(sentence: str, form: str) -> bool:
    """Return whether a content word is more often in the form than in the sentence, and twice."""
    there = Counter(stems(sentence))
    return any(count > max(1, there[one]) for one, count in Counter(stems(form)).items())


def _lowers(sentence: str, form: str) -> bool:
    """Return whether a capital letter inside the sentence became a small one: that of a name or of a title."""
    small = {word.strip(_BARE) for word in sentence.split()}
    names = {stem(word.strip(_BARE)) for word in sentence.split()[1:] if word.strip(_BARE)[:1].isupper()}
    inside = (word.strip(_BARE) for word in form.split()[1:])
    return any(word[:1].islower() and word not in small and stem(word) in names for word in inside)


def _loses_subject(sentence: str, form: str) -> bool:
    first = regex.split(r"['’\s]", sentence.lower(), maxsplit=1)[0]
    return first in words.SUBJECTS and bool(_ING.match(form.lower()))
