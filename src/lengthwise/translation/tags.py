"""Tags of markup in a line, such as <b>…</b>: which belong together, and whether a translation keeps them in place."""

import re
from collections import Counter
from collections.abc import Sequence

from .styled import Span, Styled

TAG = r"</?[A-Za-z][^<>]*>"
_TAG = re.compile(r"<(?P<close>/?)(?P<name>[A-Za-z][\w:.-]*)[^<>]*>")
_VOID = frozenset({"br", "hr", "img", "input", "wbr", "area", "col", "embed", "link", "meta", "source"})
_WORD = re.compile(r"[^\W_]")

Match = re.Match[str]
Pair = tuple[Match, Match]


def find_pairs(text: str) -> tuple[list[Pair], list[Match]]:
    """Return the pairs of tags around words, in the order of their first tags, and the other tags.

    <link> is a void element of HTML, but also a name that programs give to pairs of their own.
    """
    pairs: list[Pair] = []
    others: list[Match] = []
    opened: list[Match] = []
    tags = list(_TAG.finditer(text))
    closed = {tag["name"] for tag in tags if tag["close"]}
    for tag in tags:
        if not tag["close"]:
            is_void = tag[0].endswith("/>") or (tag["name"].lower() in _VOID and tag["name"] not in closed)
            (others if is_void else opened).append(tag)
        elif any(one["name"] == tag["name"] for one in opened):
            while (first := opened.pop())["name"] != tag["name"]:
                others.append(first)
            if _WORD.search(_TAG.sub("", text[first.end() : tag.start()])):
                pairs.append((first, tag))
            else:
                others += [first, tag]
        else:
            others.append(tag)
    return sorted(pairs, key=lambda pair: pair[0].start()), [*others, *opened]


def misplaced_tags(source: str, output: str) -> list[str]:
    """Return the tags that are a pair around words in only one of the two texts."""
    if "<" not in source:
        return []
    wanted, there = (Counter(tag[0] for tag in find_pairs(text)[1]) for text in (source, output))
    return [tag for tag in wanted | there if wanted[tag] != there[tag]]


def read_tags(text: str) -> Styled:
    """Return the text without its pairs of tags, which become spans. Other tags stay in it.

    >>> read_tags("Click <b>here</b>.")
    Styled(text='Click here.', spans=(Span(start=6, end=10, before='<b>', after='</b>'),))
    """
    pairs, _ = find_pairs(text)
    removed = sorted((tag for pair in pairs for tag in pair), key=lambda tag: tag.start())
    places: dict[int, int] = {}  # of a tag in the text, and of what follows it in the text without tags
    parts, at, length = [], 0, 0
    for tag in removed:
        parts.append(text[at : tag.start()])
        length, at = length + len(parts[-1]), tag.end()
        places[tag.start()] = length
    spans = (Span(places[a.start()], places[b.start()], a[0], b[0]) for a, b in pairs)
    return Styled("".join([*parts, text[at:]]), tuple(spans))


def inner_place(text: str, pairs: Sequence[Pair], start: int, end: int) -> tuple[int, int]:
    """Return the place of a sentence, or of several, without white space and tags at its ends that stay around it.

    These are pairs around all of it, and tags whose partner is in another sentence. `pairs`: those of the text.

    >>> text = "<p><b>Note:</b> It is late.</p>"
    >>> text[slice(*inner_place(text, find_pairs(text)[0], 0, len(text)))]
    '<b>Note:</b> It is late.'
    """
    first, last = ({pair[n].span()[n]: pair for pair in pairs} for n in (0, 1))
    while (inside := text[start:end]).strip():
        start, end = end - len(inside.lstrip()), start + len(inside.rstrip())
        if start in first and (closing := first[start][1]).end() >= end:
            start, end = first[start][0].end(), closing.start() if closing.end() == end else end
        elif end in last and last[end][0].start() < start:
            end = last[end][1].start()
        else:
            return start, end
    return end, end
