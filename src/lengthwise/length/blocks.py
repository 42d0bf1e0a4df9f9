"""Blocks: find the offsets where a text may stop after a list item or a table row, which need no final punctuation.

An item is whole if another item follows it, a row if it has as many cells as the rule under the table's header.
In doubt the answer is no, as in `sentences.py`.
"""

from collections.abc import Iterable
from itertools import islice

import regex

_ITEM = regex.compile(r"([ \t>]*)(?:[-*+•–]|[(]?(?:\d{1,3}|\p{L})[.)])[ \t]+(?=\S)")
_RULE = regex.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")
_DANGLING = regex.compile(r"[:,;([{/&–—-]\Z|\.\.\.\Z|…\Z")
_PAIRS = ("()", "[]", "{}", "（）", "「」", "『』", "【】", "“”", "«»")
_EVEN = ("**", '"', "`")
_FENCE = "```"


def block_ends(text: str) -> list[int]:
    """Return the offsets after each whole list item that another one follows, and after each whole table row.

    >>> block_ends("- Flour\\n- Milk\\n- Eg")
    [7, 14]
    """
    ends, at, cells, in_fence = [], 0, 0, False
    lines = text.rstrip().split("\n")
    for n, line in enumerate(lines):
        bare, end = line.strip(), at + len(line.rstrip())
        at += len(line) + 1
        if in_fence or _FENCE in line:
            in_fence ^= in_code(line)
            continue
        if not bare.startswith("|"):
            cells = 0
            if _item_ends(line, islice(lines, n + 1, None)):
                ends.append(end)
        elif _RULE.fullmatch(bare):
            cells = bare.count("|")
        elif cells and bare.endswith("|") and bare.count("|") == cells:
            ends.append(end)
    return ends


def in_code(text: str) -> bool:
    """Return whether `text` ends inside a fenced block of code."""
    return text.count(_FENCE) % 2 == 1


def _item_ends(line: str, after: Iterable[str]) -> bool:
    """Return whether `line` is a whole item and the next line with a word is an item that is not inside it."""
    item = _ITEM.match(line)
    if item is None:
        return False
    following = next((_ITEM.match(other) for other in after if other.strip()), None)
    if following is None or len(following[1]) > len(item[1]):
        return False
    bare = line[item.end() :].rstrip()
    if _DANGLING.search(bare):
        return False
    paired = all(bare.count(pair[0]) == bare.count(pair[1]) for pair in _PAIRS)
    return paired and all(bare.count(mark) % 2 == 0 for mark in _EVEN)
