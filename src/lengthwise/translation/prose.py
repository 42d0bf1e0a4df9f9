"""Prose: a paragraph as the translator receives it, on one line and with placeholders, and the way back to the file.

A plain text is read here, a Markdown file in markdown.py.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import NamedTuple

from .placeholders import count_placeholders

MAX_LINES = 1000  # lines of a plain text without a blank line that are one paragraph
_TAG = re.compile(r"</?a\d+>")
_PAIR = re.compile(r"<a(\d+)>(?:(?!</?a\d+>)\W)*+\w(?:(?!</?a\d+>).)*+</a\1>", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{\d+\}|</?a\d+>")
# Markdown does not read "** this **" as emphasis, so spaces inside a pair of tags are moved outside or removed.
_SPACED_TAGS = (
    (re.compile(r"(?<=[\w.,;:!?])(<a\d+>)\s+"), r" \1"),
    (re.compile(r"(<a\d+>)\s+"), r"\1"),
    (re.compile(r"\s+(</a\d+>)(?=\w)"), r"\1 "),
    (re.compile(r"\s+(</a\d+>)"), r"\1"),
)
# At the start of a line, a letter or an emphasis begins no list, heading or quotation.
_BEFORE_LETTER = re.compile(r" (?=(?:<a\d+>)?[^\W\d_])")
# In a plain text: a list item, and a line of "=====" below a heading.
_ITEM = re.compile(r"\s*([-*+•‣◦▪–—]|\(?\d{1,2}[.)]|\(?[a-z]\))\s+(?=\S)")
_FIRST_MARK = re.compile(r"1[.)]|[•‣◦▪]")  # no line of a sentence begins with it
_ENDED = re.compile(r".*[.!?…:。！？：][\"'”’»)\]]*", re.DOTALL)
_RULE = re.compile(r"[\W_]+")
_GOES_ON = (",", ";", ":", "-", "–", "(", "/")
_BLOCK_START = re.compile(r"(\d{0,9})(?:[-+*#=.)][-+*#=]*(?:\s|$)|>)")


class Part(NamedTuple):
    """A part of a paragraph: text, a line break or markup.

    `shown` is what the translator receives: the text itself, a space, or a placeholder ({1}, <a1>, </a1>). `source` is
    what the file has, and `translated` what the translated file will have.
    """

    shown: str
    source: str
    translated: str


class Prose:
    """A paragraph, heading or table cell. `begins_lines`: its lines must not begin like another block of Markdown."""

    def __init__(self, parts: Iterable[Part], begins_lines: bool = False, is_cell: bool = False) -> None:
        self.begins_lines, self.is_cell = begins_lines, is_cell
        self._marks: list[tuple[int, Part]] = []  # the parts that are not text, with their places in `text`
        texts, at = [], 0
        for part in parts:
            if part.shown != part.source:
                self._marks.append((at, part))
            texts.append(part.shown)
            at += len(part.shown)
        self.text = "".join(texts)

    def _between(self, start: int, end: int) -> list[tuple[int, Part]]:
        first, last = (bisect_left(self._marks, place, key=lambda mark: mark[0]) for place in (start, end))
        return self._marks[first:last]

    def changes(self, shown: str) -> bool:
        """Return whether this placeholder is another markup in a translation."""
        return any(part.shown == shown and part.source != part.translated for _, part in self._marks)

    def source(self, start: int, end: int) -> str:
        """Return what the file has for `text[start:end]`."""
        pieces, at = [], start
        for place, part in self._between(start, end):
            pieces += [self.text[at:place], part.source]
            at = place + len(part.shown)
        return "".join([*pieces, self.text[at:end]])

    def restore(self, start: int, end: int, translation: str) -> str:
        """Return a translation of `text[start:end]` as it is written to the file, with its line breaks and markup."""
        if translation == self.text[start:end]:
            return self.source(start, end)
        text = re.sub(r"\s*[\r\n]\s*", " ", translation.strip())
        for pattern, closed in _SPACED_TAGS:
            text = pattern.sub(closed, text)
        if self.is_cell:
            text = re.sub(r"(?<!\\)\|", r"\\|", text)
        found = _BLOCK_START.match(text) if self.begins_lines else None
        if found and not _BLOCK_START.match(self.text, start):
            text = f"{found[1]}\\{text[found.end(1) :]}"
        marks = self._between(start, end)
        breaks = [((place - start) / (end - start), part.source) for place, part in marks if part.shown == " "]
        markup = {part.shown: part.translated for _, part in marks}
        return _PLACEHOLDER.sub(lambda found: markup.get(found[0], found[0]), _broken(text, breaks))


def _broken(text: str, breaks: list[tuple[float, str]]) -> str:
    """Return the text with line breaks, each at the space that is nearest to the same share of the text."""
    length = limit = len(text)
    for share, line_break in reversed(breaks):
        spaces = [found.start() for found in _BEFORE_LETTER.finditer(text, 0, limit)]
        if spaces:
            limit = min(spaces, key=lambda space: abs(space - share * length))
            text = text[:limit].rstrip(" ") + line_break + text[limit + 1 :]  # two spaces would be a hard break
    return text


def keeps_markup(source: str, translation: str) -> bool:
    """Return whether the placeholders are those of the source, and the tags pair as there, with words between them."""
    same = count_placeholders(source) == count_placeholders(translation)
    return same and _unpaired(source) == _unpaired(translation)


def _unpaired(text: str) -> list[str]:
    """Return the tags of which the other one is in the next or the last sentence, or that are in the wrong order."""
    while (shorter := _PAIR.sub("x", text)) != text:
        text = shorter
    return _TAG.findall(text)


def read_paragraphs(lines: Iterable[str]) -> Iterator[str | Prose]:
    """Yield the paragraphs of a plain text, and the text around them that is copied: white space, marks of list items.

    A paragraph is what is between blank lines, without headings and list items, which are paragraphs of their own.
    """
    for is_blank, group in groupby(lines, key=lambda line: not line.strip()):
        while some := list(islice(group, MAX_LINES)):
            if is_blank:
                yield "".join(some)
                continue
            for block in _blocks(some):
                yield from _read_block("".join(block))


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Yield the lines of each heading, list item and paragraph, of lines without a blank one between them."""
    # A first line with room for more, before one that begins with a capital, was not broken to fit a width.
    short = 2 / 3 * max(len(line.strip()) for line in lines)
    block: list[str] = []
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if block:
            last = block[-1].strip()
            ended = len(block) == 1 and len(last) < short and line.strip()[:1].isupper() and not last.endswith(_GOES_ON)
            if ended or _begins_item(block, line, after) or any(_RULE.fullmatch(one) for one in (last, line.strip())):
                yield block
                block = []
        block.append(line)
    yield block


def _begins_item(block: list[str], line: str, after: str) -> bool:
    """Return whether a line below those of a block begins a list item: a sentence may go on with "12. " or "- "."""
    item = _ITEM.match(line)
    if not item:
        return False
    if _ITEM.match(block[0]) or _ENDED.fullmatch(block[-1].strip()) or _FIRST_MARK.fullmatch(item[1]):
        return True
    # A list below a line without a mark at its end: another item follows, or the item goes on with an indent.
    following = _ITEM.match(after)
    if following and _kind(following[1]) == _kind(item[1]):
        return True
    return bool(after.strip()) and _indent(after) > _indent(line)


def _kind(mark: str) -> str:
    return re.sub(r"\d+|[a-z]", "1", mark)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _read_block(source: str) -> Iterator[str | Prose]:
    body = source.strip()
    start = source.index(body)
    if mark := _ITEM.match(body):
        start, body = start + mark.end(), body[mark.end() :]
    yield source[:start]
    pieces = re.split(r"(\s*[\r\n]\s*)", body)  # every second one is a line break
    yield Prose(Part(" " if n % 2 else piece, piece, piece) for n, piece in enumerate(pieces))
    yield source[start + len(body) :]
