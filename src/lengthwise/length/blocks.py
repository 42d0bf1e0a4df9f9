"""Blocks: find the offsets where a text may stop after a list item, a table row or the signature of a letter.

They need no final punctuation. An item is whole if another item follows it and its last word needs no next one
("- Flour and" does), a row if it has as many cells as the rule under the table's header, a line of a signature if any
line follows it. Of the last item or signature, only the model's scores can tell (`may_end_line`).
In doubt the answer is no, as in `sentences.py`.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

import regex

from .fences import in_code, without_code
from .sentences import finished, finished_ends, left_open
from .weak_words import WEAK_WORDS, language_of

_ITEM = regex.compile(r"([ \t>]*)(?:[-*+•–]|[(]?(?:\d{1,3}|\p{L})[.)])[ \t]+(?=\S)")
_RULE = regex.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")
_DANGLING = regex.compile(r"[:,;([{/&=–—-]\Z|\.\.\.\Z|…\Z")
_OPEN_LINE = regex.compile(
    r"[ \t>]*(?:\#{1,6}[ \t].*|\|.*|(?:[-*+•–]|[(]?(?:\d{1,3}|\p{L})[.)])[ \t]*)"
)  # a heading, a row, a mark
_LINES = 40  # by which a language is recognised
_PAIRS = ("()", "[]", "{}", "（）", "「」", "『』", "【】", "“”", "«»")
_EVEN = ("**", '"', "`")
_WORD = regex.compile(r"\p{L}[\p{L}\p{M}'’]*")
# The closing formulas of letters. A comma follows them; in German it may be absent.
_CLOSING_FORMULAS = {
    "en": "sincerely|yours sincerely|sincerely yours|yours truly|yours faithfully|respectfully|cordially|warmly|cheers|"
    "regards|best regards|kind regards|warm regards|warmest regards|with kind regards|best|all the best|best wishes|"
    "warm wishes|thanks|many thanks|thanks again|thank you|with thanks|with gratitude|with appreciation|with love",
    "fr": "cordialement|bien cordialement|bien à vous|bien à toi|sincèrement|respectueusement|amicalement|amitiés|"
    "salutations distinguées|meilleures salutations|avec mes salutations distinguées|avec mes meilleures salutations",
    "de": "mit freundlichen grüßen|mit besten grüßen|mit herzlichen grüßen|freundliche grüße|beste grüße|viele grüße|"
    "herzliche grüße|liebe grüße|hochachtungsvoll",
    "it": "cordiali saluti|distinti saluti|saluti|un saluto|un caro saluto|un abbraccio|cordialmente|con affetto",
    "es": "atentamente|saludos|un saludo|saludos cordiales|un cordial saludo|un abrazo|cordialmente|con cariño",
}
_FORMULAS = {name: frozenset(found.casefold().split("|")) for name, found in _CLOSING_FORMULAS.items()}
_CLOSING_LINES = frozenset(f"{one}," for found in _FORMULAS.values() for one in found) | _FORMULAS["de"]
_LONGEST_CLOSING = max(map(len, _CLOSING_LINES))
_NAME = regex.compile(r"(?:\p{Lu}|[\[(]).*[^\s.!?…]")  # the first and the last character of a line of a signature
_NAME_WORDS = 6
_LONG_WORD = 4  # letters from which each word of a name or a title has a capital
_SIGNATURE_LINES = 8  # at most, with the closing formula and blank lines
_HANGING = frozenset[str]().union(*(words.hanging for words in WEAK_WORDS.values()))


def block_ends(text: str) -> list[int]:
    """Return the offsets after each whole table row, and each item or line of a signature that another one follows.

    >>> block_ends("- Flour\\n- Milk\\n- Eg")
    [7, 14]
    """
    ends, at, cells, formula = [], 0, 0, -_SIGNATURE_LINES  # `formula`: the last line with one
    lines = without_code(text.rstrip()).split("\n")
    for n, line in enumerate(lines):
        bare, end = line.strip(), at + len(line.rstrip())
        at += len(line) + 1
        if "```" in line:
            continue
        if not bare.startswith("|"):
            cells = 0
            if len(bare) <= _LONGEST_CLOSING and bare.casefold() in _CLOSING_LINES:
                formula = n
            whole = _item_ends(line, islice(lines, n + 1, None)) and not _hangs(lines[: n + 1])
            near = n - formula < _SIGNATURE_LINES and bare and n + 1 < len(lines)
            if whole or (near and _signs(lines[formula : n + 1])):
                ends.append(end)
        elif _RULE.fullmatch(bare):
            cells = bare.count("|")
        elif cells and bare.endswith("|") and bare.count("|") == cells:
            ends.append(end)
    return ends


def may_end_block(text: str) -> bool:
    """Return whether `text` ends in a whole table row, or in a line that may be whole; see `may_end_line`."""
    return may_end_line(text) or block_ends(text)[-1:] == [len(text.rstrip())]


def may_end_line(text: str) -> bool:
    """Return whether `text` ends in a list item or a signature that is whole if nothing but another line follows it.

    >>> may_end_line("- Flour\\n- Milk"), may_end_line("- Flour\\n- Milk and"), may_end_line("Milk")
    (True, False, False)
    """
    lines = text.rstrip().split("\n")
    return (_is_whole(lines[-1]) and not _hangs(lines) and not in_code(text)) or is_signed(text)


def is_signed(text: str) -> bool:
    """Return whether `text` ends in a line of a signature, below the closing formula of a letter.

    >>> is_signed("Best regards,\\n\\nJane Smith"), is_signed("Dear Jane Smith"), is_signed("Best regards,")
    (True, False, False)
    """
    return _signs(text.rstrip().split("\n")[-_SIGNATURE_LINES:]) and not in_code(text)


def breaks_off(text: str) -> bool:
    """Return whether the end of `text` shows that it goes on: an open bracket, a comma, a heading, a part of a row.

    >>> breaks_off("Yes"), breaks_off("Yes,"), breaks_off("Yes\\n\\n## Why"), breaks_off("1. Milk\\n2.")
    (False, True, True, True)
    """
    text = text.rstrip()
    last = text.rpartition("\n")[2]
    if in_code(text) or left_open(text) or _DANGLING.search(text):
        return True
    return last != text and _OPEN_LINE.fullmatch(last) is not None and not may_end_block(text)


def _hangs(lines: Sequence[str]) -> bool:
    """Return whether the last line ends in a word that needs a next one, such as an article.

    The language is that of the other words up to here: "car" is a conjunction in French and a noun in English.
    """
    words = lines[-1].split()[1:]  # without the mark of the item
    if len(words) < 2 or words[-1] not in _HANGING:
        return False
    others = (word for line in lines[-_LINES:] for word in _WORD.findall(line.rpartition(" ")[0].lower()))
    return words[-1] in WEAK_WORDS[language_of(others)].hanging


def _item_ends(line: str, after: Iterable[str]) -> bool:
    """Return whether `line` is a whole item and the next line with a word is an item that is not inside it."""
    item = _ITEM.match(line)
    if item is None:
        return False
    following = next((_ITEM.match(other) for other in after if other.strip()), None)
    return following is not None and len(following[1]) <= len(item[1]) and _is_whole(line)


def _is_whole(line: str) -> bool:
    """Return whether nothing in this item shows that it continues: a comma at its end, a bracket that is open."""
    item = _ITEM.match(line)
    if item is None:
        return False
    bare = line[item.end() :].rstrip()
    if bare.endswith((".", "!", "?")) and not finished(bare):
        return False
    return _is_closed(bare)


def _signs(lines: Sequence[str]) -> bool:
    """Return whether the last of these lines is one of a signature: blank lines may follow the closing formula only."""
    signed = blank = False
    for line in map(str.strip, reversed(lines)):
        if line.casefold() in _CLOSING_LINES:
            return signed
        if line and (blank or not _may_be_name(line)):
            return False
        signed, blank = True, blank or not line
    return False


def _may_be_name(line: str) -> bool:
    """Return whether a signature may have this line: a name, a title, a company."""
    words = line.split()
    if _NAME.fullmatch(line) is None or len(words) > _NAME_WORDS or words[-1] in _HANGING:
        return False
    # "I really" begins a sentence; "Head of Sales" and "[Your name]" do not.
    named = not line[0].isupper() or all(word[0].isupper() or len(word) < _LONG_WORD for word in words)
    return named and _is_closed(line) and not finished_ends(line)


def _is_closed(bare: str) -> bool:
    """Return whether nothing in this line shows that it continues: a comma at its end, a bracket that is open."""
    if _DANGLING.search(bare):
        return False
    paired = all(bare.count(pair[0]) == bare.count(pair[1]) for pair in _PAIRS)
    return paired and all(bare.count(mark) % 2 == 0 for mark in _EVEN)
