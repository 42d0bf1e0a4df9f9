"""Markdown: the paragraphs, headings and table cells of a file as prose, and everything between them as it is.

Parsed by markdown-it-py as CommonMark with tables and strikethrough. Its inline tokens have no places in the source, so
its inline rules are wrapped to record where they match. The file is read in chunks of lines that end where a top-level
block ends, so memory grows with the longest block.
"""

import re
from array import array
from collections.abc import Callable, Iterator
from itertools import accumulate, count, islice, pairwise
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from .placeholders import translatable
from .prose import Part, Prose

CHUNK = 1000  # lines that are parsed together
FRONT_MATTER = 1000  # lines that it can have
_COPIED = ("backticks", "image", "autolink", "html_inline", "escape", "verbatim")  # inline rules
# Inline rules that CommonMark lacks. A footnote would else become a link if its definition is one word or an address.
_EXTENSIONS = {
    "verbatim": re.compile(r"\[\^[^\]\s]+\]:?|\$\$.+?\$\$", re.DOTALL),  # footnotes and formulas
    # A line such as `:::note`, `+++` or `[!NOTE]`, and the `:` before the text of a definition.
    "directive": re.compile(r"\n?^(?::::.*|\+\+\+[ \t]*$|\[!\w+\][-+]?[ \t]*$)\n?|\n:[ \t]+", re.MULTILINE),
}
_TASK = re.compile(r"\[[ xX]\][ \t]+")  # the box of a list item

References = dict[str, Any]  # link definitions, as markdown-it stores them
Rule = Callable[[StateInline, bool], bool]


class Mark(NamedTuple):
    """Markup in a paragraph: "copied" is one placeholder, "open" and "close" a pair of tags, "break" a line break."""

    start: int
    end: int
    kind: str


def read_markdown(lines: Iterator[str], references: References) -> Iterator[str | Prose]:
    """Yield the pieces of a Markdown file in order and without gaps."""
    inline = _InlineParser(references)
    for chunk, tokens in _chunks(lines, references):
        source, at = "".join(chunk), 0
        for content, places, opening in _inline_contents(chunk, source, tokens):
            if translatable(content):
                yield source[at : places[0]]
                parts = _parts(content, inline.marks(content), source, places)
                begins_lines = opening.type == "paragraph_open" or opening.markup in ("=", "-")  # or a setext heading
                yield Prose(parts, begins_lines, opening.type in ("th_open", "td_open"))
                at = places[-1]
        yield source[at:]


def plain_paragraphs(text: str) -> list[str]:
    """Return the paragraphs and list items of a Markdown text without markup, headings, tables and code.

    >>> plain_paragraphs("# News\\n\\nA *short* [text](a.html).\\n")
    ['A short text.']
    """
    lines = text.splitlines(keepends=True)
    tokens = _parser().parse("".join(lines[_front_matter(lines) :]))
    found = []
    for before, token in pairwise(tokens):
        if before.type == "paragraph_open":
            parts = (
                " " if part.type == "softbreak" else part.content
                for part in token.children or ()
                if part.type != "image"
            )
            found.append("".join(part for part in parts if not part.startswith("<")).strip())
    return [paragraph for paragraph in found if paragraph]


def link_references(lines: Iterator[str]) -> References:
    """Return the link definitions of a file, such as `[name]: address`. They may follow the links."""
    references: References = {}
    for _ in _chunks(lines, references):
        pass
    return references


def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def _chunks(lines: Iterator[str], references: References) -> Iterator[tuple[list[str], list[Token]]]:
    """Yield lines with their block tokens. Only the last block of a chunk can depend on the lines that follow."""
    parser, env, size = _parser(), {"references": references}, CHUNK
    chunk = list(islice(lines, FRONT_MATTER))
    if front := _front_matter(chunk):
        yield chunk[:front], []
        chunk = chunk[front:] or list(islice(lines, CHUNK))
    while chunk:
        more = list(islice(lines, size))
        tokens: list[Token] = []
        parser.block.parse("".join(line.rstrip("\r\n") + "\n" for line in chunk), parser, env, tokens)
        starts = [token.map[0] for token in tokens if token.level == 0 and token.map and token.nesting >= 0]
        cut = starts[-1] if more and len(starts) > 1 else len(chunk)
        if more and cut in (0, len(chunk)):
            size = len(chunk)  # one long block: read twice as much
            chunk += more
            continue
        yield chunk[:cut], [token for token in tokens if token.map is None or token.map[0] < cut]
        chunk, size = chunk[cut:] + more, CHUNK


def _front_matter(lines: list[str]) -> int:
    """Return how many lines the front matter has, between `---` or `+++` at the start of the file."""
    mark = lines[0].rstrip() if lines else ""
    if mark in ("---", "+++"):
        for number, line in enumerate(lines[1:], 2):
            if line.rstrip() in (mark, "..." if mark == "---" else mark):
                return number
    return 0


def _inline_contents(lines: list[str], source: str, tokens: list[Token]) -> Iterator[tuple[str, "array[int]", Token]]:
    """Yield the content of each inline token, the place of each of its characters in the source, and its block's token.

    Lines of the content lack the indentation and the `>` of the source. The last place is that of the content's end.
    """
    starts, at = [0, *accumulate(map(len, lines))], 0
    for opening, token in pairwise(tokens):
        if token.type != "inline" or token.map is None:
            continue
        content = [line.strip() for line in token.content.split("\n")]
        if opening.type in ("th_open", "td_open"):
            first = token.map[0]
            content = content if content[0] in lines[first][max(0, at - starts[first]) :] else [_escaped(content[0])]
            found = [source.find(content[0], max(at, starts[first]), starts[first + 1])]
        else:  # nothing but closing marks of a heading follows the content in a line
            rows = range(token.map[0], min(token.map[0] + len(content), len(lines)))
            found = [source.rfind(line, starts[row], starts[row + 1]) for line, row in zip(content, rows, strict=False)]
        if len(found) < len(content) or min(found) < 0:
            continue
        at = found[-1] + len(content[-1])
        if task := _TASK.match(content[0]):
            content[0] = content[0][task.end() :]
            found[0] += task.end()
        places = array("q")
        for line, place in zip(content, found, strict=True):
            places.extend(range(place, place + len(line) + 1))
        yield "\n".join(content), places, opening


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


class _InlineParser:
    """Parses the content of inline tokens, and records which parts of it are markup."""

    def __init__(self, references: References) -> None:
        self._env, self._parser = {"references": references}, _parser()
        self._parser.inline.ruler2.disable("fragments_join")  # it would merge a `*` that is text with its neighbours
        self._state: StateInline | None = None
        self._marks: list[Mark] = []
        self._delimiters: list[tuple[int, int, Token]] = []  # the start and end of each `*`, `_` or `~~`, and its token
        rules = self._parser.inline.ruler
        for name, pattern in _EXTENSIONS.items():
            rules.before("newline", name, _matching(pattern))
        for name, rule in zip(rules.get_active_rules(), rules.getRules(""), strict=True):
            rules.at(name, self._recorded(name, rule))

    def _recorded(self, name: str, rule: Rule) -> Rule:
        def recorded(state: StateInline, silent: bool) -> bool:
            if silent or state is not self._state:  # `silent`: a look ahead; another state: the text of an image
                return rule(state, silent)
            start = state.pos
            label_end = state.md.helpers.parseLinkLabel(state, start, True) if name == "link" else 0
            if not rule(state, silent):
                return False
            if name == "directive" or (name == "escape" and state.src[state.pos - 1] == "\n"):  # or a hard break
                self._marks.append(Mark(start, state.pos, "break"))
            elif name in _COPIED:
                self._marks.append(Mark(start, state.pos, "copied"))
            elif name == "link":
                self._marks += [Mark(start, start + 1, "open"), Mark(label_end, state.pos, "close")]
            elif name in ("emphasis", "strikethrough"):
                at = state.pos
                for token in reversed(state.tokens):
                    if at <= start:
                        break
                    self._delimiters.append((at - len(token.content), at, token))
                    at -= len(token.content)
            return True

        return recorded

    def marks(self, content: str) -> list[Mark]:
        """Return the markup of the content in order."""
        self._marks, self._delimiters = [], []
        self._state = state = StateInline(content, self._parser, self._env, [])
        self._parser.inline.tokenize(state)
        for rule in self._parser.inline.ruler2.getRules(""):
            rule(state)
        for start, end, token in self._delimiters:
            size = len(token.markup)  # `**` is two delimiters, of which the inner one has the token
            if token.nesting:
                self._marks.append(
                    Mark(end - size, end, "open") if token.nesting > 0 else Mark(start, start + size, "close")
                )
        return sorted(self._marks)


def _matching(pattern: re.Pattern[str]) -> Rule:
    """Return an inline rule that takes what the pattern matches."""

    def rule(state: StateInline, silent: bool) -> bool:
        found = pattern.match(state.src, state.pos, state.posMax)
        if found:
            state.pos = found.end()
        return found is not None

    return rule


def _parts(content: str, marks: list[Mark], source: str, places: "array[int]") -> Iterator[Part]:
    """Yield the text, the line breaks and the markup of a paragraph."""
    numbers = (n for n in count(1) if f"{{{n}}}" not in content and f"a{n}>" not in content)
    opened: list[tuple[int, int]] = []  # the number of each open tag, and where its text begins
    at = 0
    for mark in [*marks, Mark(len(content), len(content), "end")]:
        for piece in re.split("(\n)", content[at : mark.start]):
            raw = source[places[at] : places[at + len(piece)]]
            hard = piece == "\n" and raw.startswith("  ")
            shown = " " if piece == "\n" and not hard else piece
            yield Part(shown, raw, raw)
            at += len(piece)
        raw, at = source[places[mark.start] : places[mark.end]], mark.end
        if mark.kind == "open":
            opened.append((next(numbers), mark.end))
            yield Part(f"<a{opened[-1][0]}>", raw, raw)
        elif mark.kind == "close":
            number, begin = opened.pop()
            label = source[places[begin] : places[mark.start]]
            # A link that is named by its text must keep the name when the text is translated.
            yield Part(f"</a{number}>", raw, f"][{label}]" if raw in ("]", "][]") else raw)
        elif mark.kind == "break":
            yield Part("\n", raw, raw)
        elif mark.kind == "copied":
            yield Part(f"{{{next(numbers)}}}", raw, raw)
