"""The sentences of a document: a text or Markdown file as sentences to translate, and the text between them.

A document is read several times and never as a whole, so memory grows with its longest paragraph.
"""

import hashlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, TextIO

import regex

from .markdown import References, link_references, read_markdown
from .placeholders import translatable
from .prose import Prose, read_paragraphs
from .segments import Segment, split

MARKDOWN = (".md", ".markdown")
MAX_CHARS = 400  # a longer sentence is translated in parts
_UNSPACED_COMMAS = "、，；："
# A part is all that is left; else it ends after a comma, after a space, or anywhere but inside a placeholder. The last
# alternative matches what only begins like a placeholder, such as "{".
_PART = regex.compile(
    rf".{{1,{MAX_CHARS}}}\Z|.{{100,{MAX_CHARS}}}(?:(?<=[,;:]\s)|(?<=[{_UNSPACED_COMMAS}]))|.{{1,{MAX_CHARS}}}(?<=\s)"
    rf"|.{{1,{MAX_CHARS}}}(?<![{{<]/?a?\d*)|.{{1,{MAX_CHARS}}}",
    regex.DOTALL,
)

_LAST_TAGS, _FIRST_TAGS = regex.compile(r"(?:<a\d+>)*\Z"), regex.compile(r"\A(?:</a\d+>)*")
_TAG_NAME = regex.compile(r"a\d+")


@dataclass(frozen=True)
class Document:
    """A file, or a text in memory, which is read as Markdown."""

    source: Path | str

    @classmethod
    def of(cls, source: str | Path) -> "Document":
        """Return the document at a path. A string with a line break is the text of a document."""
        if isinstance(source, str) and "\n" in source:
            return cls(source)
        if not Path(source).is_file():
            is_name = isinstance(source, Path) or Path(source).suffix
            advice = "" if is_name else "; if it is the text itself, end it with a line break"
            raise ValueError(f"there is no file {str(source)!r}{advice}")
        return cls(Path(source))

    @property
    def name(self) -> str:
        return str(self.source) if isinstance(self.source, Path) else "the text"

    @property
    def is_markdown(self) -> bool:
        return isinstance(self.source, str) or self.source.suffix.lower() in MARKDOWN

    def open(self) -> BinaryIO:
        return self.source.open("rb") if isinstance(self.source, Path) else io.BytesIO(self.source.encode())

    def lines(self) -> TextIO:
        return io.TextIOWrapper(self.open(), encoding="utf-8-sig", newline="")

    @cached_property
    def references(self) -> References:
        with self.lines() as lines:
            return link_references(lines) if self.is_markdown else {}

    def check(self, count: Callable[[str], int]) -> tuple[str, int]:
        """Return a digest of the source and its length; raise if it is not a text in UTF-8."""
        digest, length, blank = hashlib.sha256(), 0, ""  # `blank`: white space, which counts if a word follows
        with self.open() as stream:
            for number, data in enumerate(stream, 1):
                digest.update(data)
                if b"\0" in data:
                    found = f"{self.name} has a zero byte in line {number}"
                    raise ValueError(f"{found}: it is binary, or UTF-16; give a text in UTF-8")
                try:
                    line = data.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    found = f"byte {data[error.start]:#x} at {error.start + 1} in line {number}"
                    raise ValueError(f"{self.name} is not UTF-8: {found}; convert it") from None
                if body := line.rstrip():
                    length, blank = length + count(blank + body if length else body.lstrip()), ""
                blank += line[len(body) :]
        if not length:
            raise ValueError(f"{self.name} is empty" + (": it has only white space" if blank else ""))
        return digest.hexdigest(), length

    def pieces(self) -> "Iterator[str | Sentence]":
        """Yield the sentences, and the text between them, in order and without gaps."""
        number = paragraph = 0
        line = 1
        with self.lines() as lines:
            for piece in read_markdown(lines, self.references) if self.is_markdown else read_paragraphs(lines):
                first = number
                for one in [piece] if isinstance(piece, str) else _split(piece, number, paragraph):
                    yield one if isinstance(one, str) else replace(one, line=line)
                    line += (one if isinstance(one, str) else one.source).count("\n")
                    number += isinstance(one, Sentence)
                paragraph += number > first

    def sentences(self) -> "Iterator[Sentence]":
        return (one for one in self.pieces() if isinstance(one, Sentence))


@dataclass(frozen=True)
class Sentence:
    """`prose.text[start:end]`, with its number and its paragraph's number in the document, from 0.

    `line`: where it begins in the file, from 1.
    """

    number: int
    paragraph: int
    prose: Prose
    start: int
    end: int
    adjoins: bool = False  # no space is before it in the source, as after 。
    part_of: int = 0  # the length of the long sentence that it is a part of
    goes_on: bool = False  # a part, but not the first one
    line: int = 1

    @property
    def text(self) -> str:
        """What the translator receives."""
        return self.prose.text[self.start : self.end]

    @property
    def source(self) -> str:
        return self.prose.source(self.start, self.end)


def _split(prose: Prose, number: int, paragraph: int) -> Iterator[str | Sentence]:
    """Yield the sentences of a paragraph. A sentence of more than `MAX_CHARS` is yielded in parts."""
    at, adjoins = 0, False
    for segment in _with_link_tags(prose, split(prose.text)):
        begin, at = at, at + len(segment.text)
        is_long = len(segment.text) > MAX_CHARS
        spans = [found.span() for found in _PART.finditer(prose.text, begin, at)] if is_long else [(begin, at)]
        for start, stop in spans:
            end = start + len(prose.text[start:stop].rstrip())
            if segment.is_sentence and (not is_long or translatable(prose.text[start:end])):
                length = len(segment.text) if is_long else 0
                joined = adjoins if start == begin else prose.text[start - 1] in _UNSPACED_COMMAS
                yield Sentence(number, paragraph, prose, start, end, joined, length, start > begin)
                yield prose.source(end, stop)
                number += 1
            else:
                yield prose.source(start, stop)
        adjoins = segment.is_sentence


def _with_link_tags(prose: Prose, segments: list[Segment]) -> list[Segment]:
    """Return the segments with the tags of `[text][]` in the sentence that is its text.

    Tags around a sentence are copied, but such a link gets a label when its text is translated.
    """
    found = list(segments)
    for n in range(1, len(found) - 1):
        before, sentence, after = found[n - 1 : n + 2]
        if not sentence.is_sentence or before.is_sentence or after.is_sentence:
            continue
        opening, closing = _LAST_TAGS.findall(before.text)[0], _FIRST_TAGS.findall(after.text)[0]
        names, ends = _TAG_NAME.findall(opening)[::-1], _TAG_NAME.findall(closing)
        taken = 0  # pairs of tags, from the inner one, up to the outermost link with a label
        for pairs, (name, end) in enumerate(zip(names, ends, strict=False), 1):
            if name != end:
                break
            taken = pairs if prose.changes(f"</{name}>") else taken
        tags = ["".join(f"<{name}>" for name in names[:taken][::-1]), "".join(f"</{name}>" for name in names[:taken])]
        found[n - 1] = before._replace(text=before.text.removesuffix(tags[0]))
        found[n] = sentence._replace(text=tags[0] + sentence.text + tags[1])
        found[n + 1] = after._replace(text=after.text.removeprefix(tags[1]))
    return found
