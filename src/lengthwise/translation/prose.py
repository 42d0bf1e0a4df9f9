"""Prose: the paragraphs of a text or Markdown file that are translated, and the text between them that is copied.

Markdown is parsed by markdown-it-py. Its inline rules are wrapped, so that they record where in the source they match.
The file is read in chunks of lines: a chunk ends where a top-level block ends, so memory grows with the longest block.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, islice
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from .placeholders import translatable

MARKDOWN = (".md", ".markdown")
CHUNK = 1000  # lines that are parsed together
FRONT_MATTER = 1000  # lines that it can have
_LITERALS = ("backticks", "image", "autolink", "html_inline", "escape")
_FOOTNOTE = re.compile(r"\[\^[^\]\s]+\]:?")
_KINDS = {1: "open", -1: "close", 0: "half"}
_PLACEHOLDER = re.compile(r"\{\d+\}|</?a\d+>")
# Markdown does not read "** this **" as emphasis, so spaces inside a pair of tags are moved outside or removed.
_SPACED_TAGS = (
    (r"(?<=[\w.,;:!?])(<a\d+>)\s+", r" \1"),
    (r"(<a\d+>)\s+", r"\1"),
    (r"\s+(</a\d+>)(?=\w)", r"\1 "),
    (r"\s+(</a\d+>)", r"\1"),
)
_TASK = re.compile(r"\[[ xX]\][ \t]+")
# At the start of a line these would begin a list, a heading, a quotation, a rule, a fence or HTML.
_BLOCK_START = re.compile(r"(?:[-+*]|\d+[.)]|#{1,6})(?=\s|$)|>|<|=+\s*$|-{2,}\s*$|~{3}|`{3}")


@dataclass(frozen=True)
class Prose:
    """A paragraph, heading or table cell in one line, with placeholders for its markup.

    `breaks`: where `text` has one character for a line break, and the break in the source, with indentation and `>`.
    `markup`: the source of each placeholder. `long_markup`: its source if the text of a link differs from its label.
    """

    text: str
    breaks: dict[int, str] = field(default_factory=dict)
    markup: dict[str, str] = field(default_factory=dict)
    long_markup: dict[str, str] = field(default_factory=dict)
    is_markdown: bool = False
    is_cell: bool = False

    @cached_property
    def _places(self) -> list[int]:
        return list(self.breaks)  # in order

    def source(self, start: int, end: int) -> str:
        """Return the source of `text[start:end]`."""
        shown, at = [], start
        for place in self._places[bisect_left(self._places, start) : bisect_left(self._places, end)]:
            shown += [self.text[at:place], self.breaks[place]]
            at = place + 1
        return self.with_markup("".join([*shown, self.text[at:end]]))

    def received(self, start: int, end: int) -> str:
        """Return `text[start:end]` as the model receives it: it translates a word better if no tag adjoins it."""
        text = self.text[start:end]
        return re.sub(r"(?=</a\d+>)|(?<=<a)(\d+>)", r"\1 ", text) if self.markup else text

    def with_markup(self, text: str, changed: bool = False) -> str:
        markup = self.markup | self.long_markup if changed else self.markup
        return _PLACEHOLDER.sub(lambda found: markup.get(found[0], found[0]), text) if markup else text

    def restore(self, start: int, end: int, text: str) -> str:
        """Return the translation `text` of `text[start:end]` with line breaks and markup, as it is written to the file.

        A line break is put at the space that is nearest to its place in the source, in proportion.
        """
        if text == self.received(start, end):
            return self.source(start, end)
        text = re.sub(r"\s*[\r\n]\s*", " ", text.strip())
        for pattern, closed in _SPACED_TAGS if self.markup else ():
            text = re.sub(pattern, closed, text)
        if self.is_cell:
            text = re.sub(r"(?<!\\)\|", r"\\|", text)
        spaces = [found.start() for found in re.finditer(" ", text)]
        pieces, at = [], 0
        for place in self._places[bisect_right(self._places, start) : bisect_left(self._places, end)]:
            wanted = (place - start) / (end - start) * len(text)
            free = [space for space in spaces if space > at and not self._starts_block(text, space + 1)]
            if free:
                space = min(free, key=lambda space: abs(space - wanted))
                pieces += [text[at:space], self.breaks[place]]
                at = space + 1
        pieces.append(text[at:])
        starts_line = start == 0 or start - 1 in self.breaks
        if starts_line and self._starts_block(text, 0) and not self._starts_block(self.text, start):
            pieces[0] = re.sub(r"(?=[^\d\s])", r"\\", pieces[0], count=1)
        return self.with_markup("".join(pieces), changed=True)

    def _starts_block(self, text: str, place: int) -> bool:
        found = _BLOCK_START.match(text, place) if self.is_markdown and not self.is_cell else None
        return found is not None and not _PLACEHOLDER.match(text, place)


Mark = tuple[int, int, str]  # start, end, and what it is: a literal, or the mark that opens or closes a pair
Rule = Callable[[StateInline, bool], bool]
Piece = str | Prose  # a text that is copied, or prose


def read_pieces(path: Path, references: dict[str, Any]) -> Iterator[Piece]:
    """Yield the pieces of a file in order and without gaps. `references`: of Markdown links, from `link_references`."""
    is_markdown = path.suffix.lower() in MARKDOWN
    with path.open(encoding="utf-8", newline="") as stream:
        first = stream.read(1)
        if first == "\ufeff":
            yield first
        else:
            stream.seek(0)
        yield from _markdown(stream, references) if is_markdown else _paragraphs(stream)


def link_references(path: Path) -> dict[str, Any]:
    """Return the link definitions of a Markdown file, such as `[name]: address`. They may follow the links."""
    references: dict[str, Any] = {}
    if path.suffix.lower() in MARKDOWN:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            for _ in _chunks(stream, references):
                pass
    return references


def _paragraphs(lines: Iterator[str]) -> Iterator[Piece]:
    """Yield the paragraphs of a plain text: runs of lines that are not blank."""
    paragraph: list[str] = []
    for line in lines:
        if line.strip():
            paragraph.append(line)
            continue
        yield from _paragraph(paragraph)
        yield line
        paragraph = []
    yield from _paragraph(paragraph)


def _paragraph(lines: list[str]) -> Iterator[Piece]:
    breaks: dict[int, str] = {}
    parts: list[str] = []
    length, gap = 0, ""
    for number, line in enumerate(lines):
        body = line.strip()
        head, tail = line[: len(line) - len(line.lstrip())], line[len(line.rstrip()) :]
        if number:
            breaks[length] = gap + head
            parts.append(" ")
            length += 1
        elif head:
            yield head
        parts.append(body)
        length += len(body)
        gap = tail
    if parts:
        yield Prose("".join(parts), breaks)
        yield gap


def _markdown(lines: Iterator[str], references: dict[str, Any]) -> Iterator[Piece]:
    inline = _Inline(references)
    for chunk, tokens in _chunks(lines, references):
        at = (0, 0)  # line, column
        for span in _inline_spans(chunk, tokens):
            prose = inline.parse(span)
            if prose is None:
                continue
            yield _between(chunk, at, span.places[0])
            yield prose
            at = span.end
        yield _between(chunk, at, (len(chunk), 0))


def _between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    """Return the text between two places, each a line and a column."""
    if start[0] == end[0]:
        return lines[start[0]][start[1] : end[1]] if start[0] < len(lines) else ""
    last = lines[end[0]][: end[1]] if end[0] < len(lines) else ""
    return lines[start[0]][start[1] :] + "".join(lines[start[0] + 1 : end[0]]) + last


def _chunks(lines: Iterator[str], references: dict[str, Any]) -> Iterator[tuple[list[str], list[Token]]]:
    """Yield lines with their block tokens. Blocks do not depend on what follows, except for the last of a chunk."""
    parser, env = _parser(), {"references": references}
    chunk = list(islice(lines, FRONT_MATTER))
    if front := _front_matter(chunk):
        yield chunk[:front], []
        chunk = chunk[front:] or list(islice(lines, CHUNK))
    size = CHUNK
    while chunk:
        more = list(islice(lines, size))
        tokens: list[Token] = []
        parser.block.parse("".join(line.rstrip("\r\n") + "\n" for line in chunk), parser, env, tokens)
        if not more:
            yield chunk, tokens
            return
        starts = [token.map[0] for token in tokens if token.level == 0 and token.map and token.nesting >= 0]
        cut = starts[-1] if len(starts) > 1 else 0
        if cut:
            yield chunk[:cut], [token for token in tokens if token.map is None or token.map[0] < cut]
            chunk, size = chunk[cut:], CHUNK
        else:
            size = len(chunk)  # one long block: read twice as much
        chunk += more


def _front_matter(lines: list[str]) -> int:
    """Return how many lines the front matter has, between `---` or `+++` at the start of the file."""
    mark = lines[0].rstrip() if lines else ""
    if mark in ("---", "+++"):
        for number, line in enumerate(lines[1:], 2):
            if line.rstrip() in (mark, "..." if mark == "---" else mark):
                return number
    return 0


def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


@dataclass
class _Span:
    """The content of an inline token, and the line and column in the source where each of its lines begins."""

    content: str
    places: list[tuple[int, int]]
    source: list[str]
    is_cell: bool

    def __post_init__(self) -> None:
        self.starts = [0, *(found.end() for found in re.finditer("\n", self.content))]  # of the content's lines
        self.end = self.place(len(self.content))

    def line(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1

    def place(self, offset: int) -> tuple[int, int]:
        """Return the line and column of an offset in the content."""
        number = self.line(offset)
        line, column = self.places[number]
        return line, column + offset - self.starts[number]

    def source_of(self, start: int, end: int) -> str:
        return _between(self.source, self.place(start), self.place(end))

    def gap(self, line: int) -> str:
        """Return the source between the content's line `line` and the one before."""
        return self.source_of(self.starts[line] - 1, self.starts[line])


def _inline_spans(lines: list[str], tokens: list[Token]) -> Iterator[_Span]:
    at = (0, 0)
    for place, token in enumerate(tokens):
        if token.type != "inline" or token.map is None:
            continue
        block, first = tokens[place - 1].type, token.map[0]
        content, places = [line.strip() for line in token.content.split("\n")], []
        if block == "paragraph_open" or len(content) > 1:  # each line of the content ends a line of the source
            for number, line in enumerate(content, first):
                column = len(lines[number].rstrip()) - len(line) if number < len(lines) else -1
                places.append((number, column))
        else:  # a heading or a cell: marks may follow it
            [line] = content
            start = at[1] if at[0] == first else 0
            for form in (line, line.replace("|", "\\|")):
                if (column := lines[first].find(form, start)) >= 0:
                    content, places = [form], [(first, column)]
                    break
        found = [
            column >= 0 and lines[number].startswith(line, column)
            for line, (number, column) in zip(content, places, strict=False)
        ]
        if places and all(found):
            if task := _TASK.match(content[0]):
                content[0] = content[0][task.end() :]
                places[0] = (places[0][0], places[0][1] + task.end())
            span = _Span("\n".join(content), places, lines, block in ("th_open", "td_open"))
            at = span.end
            yield span


class _Inline:
    """Parses the content of inline tokens: which parts are text, which are markup."""

    def __init__(self, references: dict[str, Any]) -> None:
        self.env, self.parser = {"references": references}, _parser()
        self.parser.inline.ruler2.disable("fragments_join")  # it would merge each `*` that is text with its neighbours
        self.state: StateInline | None = None
        self.found: list[Mark] = []
        self.delimiters: list[tuple[int, str, Token]] = []  # the place of each `*`, `_` or `~~`, itself, and its token
        rules = self.parser.inline.ruler
        for name, rule in zip(rules.get_active_rules(), rules.getRules(""), strict=True):
            rules.at(name, self._recorded(name, rule))

    def _recorded(self, name: str, rule: Rule) -> Rule:
        def recorded(state: StateInline, silent: bool) -> bool:
            if silent or state is not self.state:  # `silent`: a look ahead; another state: the text of an image
                return rule(state, silent)
            start = state.pos
            label = state.md.helpers.parseLinkLabel(state, start, True) if name == "link" else 0
            if not rule(state, silent):
                return False
            if name in _LITERALS:
                self.found.append((start, state.pos, "literal"))
            elif name == "link":
                self.found += [(start, start + 1, "open"), (label, state.pos, "close")]
            elif name in ("emphasis", "strikethrough"):
                at = state.pos
                for token in reversed(state.tokens):
                    if at <= start:
                        break
                    at -= len(token.content)
                    self.delimiters.append((at, token.content, token))
            return True

        return recorded

    def parse(self, span: _Span) -> Prose | None:
        """Return the prose of a span; None if there is nothing to translate in it."""
        if not translatable(span.content):
            return None
        self.found, self.delimiters = [], []
        self.state = state = StateInline(span.content, self.parser, self.env, [])
        self.parser.inline.tokenize(state)
        for rule in self.parser.inline.ruler2.getRules(""):
            rule(state)
        for start, mark, token in self.delimiters:
            if token.content != mark:  # it begins or ends emphasis
                self.found.append((start, start + len(mark), _KINDS[token.nesting]))
        for note in _FOOTNOTE.finditer(span.content):
            if not any(start < note.end() and note.start() < end for start, end, _ in self.found):
                self.found.append((*note.span(), "literal"))
        return _prose(span, _merged(sorted(self.found)))


def _merged(found: list[Mark]) -> list[Mark]:
    """Return the marks with the two tokens of each `**` as one."""
    merged: list[Mark] = []
    for start, end, kind in found:
        last = merged[-1] if merged else (0, -1, "")
        if last[1] == start and last[2] == "half" and kind == "open":
            merged[-1] = (last[0], end, "open")
        elif last[1] == start and last[2] == "close" and kind == "half":
            merged[-1] = (last[0], end, "close")
        else:
            merged.append((start, end, kind))
    return merged


def _prose(span: _Span, marks: list[Mark]) -> Prose:
    content, parts, length = span.content, [], 0
    breaks: dict[int, str] = {}
    markup: dict[str, str] = {}
    long_markup: dict[str, str] = {}
    opened: list[tuple[int, int]] = []  # the number of each open tag, and the end of its mark
    numbers = (n for n in count(1) if f"{{{n}}}" not in content and f"a{n}>" not in content)
    at = 0
    for start, end, kind in [*marks, (len(content), len(content), "end")]:
        before = content[at:start]
        for line, text in enumerate(before.split("\n")):
            if line:
                gap = span.gap(span.line(at) + line)
                breaks[length] = gap
                parts.append("\n" if gap.startswith("  ") else " ")
                length += 1
            parts.append(text)
            length += len(text)
        at, source = end, span.source_of(start, end)
        if source.startswith("\\") and content[start:end].endswith("\n"):  # a hard break
            breaks[length], name = source, "\n"
        elif kind in ("open", "literal"):
            number = next(numbers)
            name = f"<a{number}>" if kind == "open" else f"{{{number}}}"
            if kind == "open":
                opened.append((number, end))
        elif kind == "close":
            number, label = opened.pop()
            name = f"</a{number}>"
            if source in ("]", "][]"):
                long_markup[name] = f"][{span.source_of(label, start)}]"
        else:
            break
        if name != "\n":
            markup[name] = source
        parts.append(name)
        length += len(name)
    return Prose("".join(parts), breaks, markup, long_markup, True, span.is_cell)
