"""One cue: its speech to translate, the room for it, and the cue's text with new speech in the place of the old.

Tags around the cue, dashes, labels and brackets stay where they are; the new text gets its own line breaks.
"""

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ..formats.base import Entry, Limit
from ..formats.check import Finding, check_text
from ..formats.subtitles import Style, cue_limits
from ..translation.styled import Span, Styled
from .borders import width
from .cue_parts import Part, split_parts, voices
from .cue_tags import read_tags
from .line_breaks import break_lines, fits_in_lines
from .sharing import Room

_LABEL_BREAK = re.compile(r"(?<=:)\n\Z")  # at the end of a part that stays
_NO_BREAK = "\u00a0\u202f"  # spaces that may indent a line
LINE_LOSS = 4  # characters that are not used in a line, because words are not divided; set by hand


@dataclass(frozen=True, eq=False)
class Cue:
    """An entry of a subtitle file, taken apart. `styled` has the tags inside each speech; `outer`: all others.

    `rule`: the limit of --length or of lengthwise.toml.
    """

    entry: Entry
    form: str
    styled: Styled
    parts: tuple[Part, ...]
    outer: tuple[Span, ...]
    notes: tuple[str, ...]
    rule: Limit | None = None

    @classmethod
    def of(cls, entry: Entry, form: str, rule: Limit | None = None) -> "Cue":
        """Return a cue taken apart. `form`: the name of its format."""
        styled, notes = read_tags(entry.text, form, form == "vtt" and entry.markup)
        parts = split_parts(styled.text, voices(styled))
        outer: list[Span] = []
        inner: list[Span] = []
        for span in styled.spans:
            for piece in _cut_at(span, [part for part in parts if part.is_speech]):
                holder = next((p for p in parts if p.is_speech and _within(piece, p)), None)
                (outer if holder is None else inner).append(piece)
        return cls(entry, form, Styled(styled.text, tuple(inner)), tuple(parts), tuple(outer), tuple(notes), rule)

    @cached_property
    def speech(self) -> dict[int, Styled]:
        """The texts to translate, by the numbers of their parts."""
        return {n: self.styled.cut(part.start, part.end) for n, part in enumerate(self.parts) if part.is_speech}

    @cached_property
    def first_voice(self) -> str:
        return next((span.before for span in self.outer if span.before.startswith("<v")), "")

    @cached_property
    def last_voice(self) -> str:
        return next((span.before for span in reversed(self.outer) if span.before.startswith("<v")), "")

    def fixed(self, n: int) -> str:
        part = self.parts[n]
        return self.styled.text[part.start : part.end]

    @cached_property
    def blocks(self) -> list[list[int]]:
        """The numbers of the parts in each block: what one speaker says, which begins a new line."""
        found: list[list[int]] = [[]]
        for n, part in enumerate(self.parts):
            if not part.is_speech and "\n" in self.fixed(n).rstrip() and found[-1]:
                found.append([])
            found[-1].append(n)
        return [block for block in found if any(n in self.speech for n in block)]

    def room(self, n: int, style: Style) -> Room:
        """Return the room for the speech in part `n`: its share of the cue's characters, and of its lines."""
        source = {m: width(text.text) for m, text in self.speech.items()}
        fixed = sum(width(self.fixed(m).replace("\n", "")) for m in range(len(self.parts)) if m not in self.speech)
        block = next(block for block in self.blocks if n in block)
        lines = None if style.lines is None else _lines_of(block, self.blocks, source, style.lines)
        rooms = []
        for limit in self.limits(style):
            if limit.unit != "chars":
                continue
            if not limit.each_line and limit.high is not None:
                rooms.append((limit.high - fixed) * source[n] / sum(source.values()))
            elif limit.each_line and limit.high is not None and lines is not None:
                beside = sum(width(self.fixed(m)) for m in block if m not in source)
                whole = lines * limit.high - (lines - 1) * LINE_LOSS - beside
                rooms.append(whole * source[n] / sum(source[m] for m in block if m in source))
        chars = max(1, int(min(rooms))) if rooms else None
        alone = sum(m in source for m in block) == 1
        before = "".join(self.fixed(m) for m in block if m < n).lstrip() if alone else ""
        after = "".join(self.fixed(m) for m in block if m > n).rstrip() if alone else ""
        return Room(source[n], chars, style.line if alone else None, lines if alone else None, before, after)

    def with_speech(self, texts: Mapping[int, Styled], style: Style, line: int | None, language: str) -> Styled:
        """Return the cue with new texts for its speech, and with new line breaks.

        A label alone on its line stays there if the rest fits below it.
        """
        text, starts, spans = "", [], []
        breaks = []  # line breaks after labels
        for n, part in enumerate(self.parts):
            starts.append(len(text))
            if n not in texts and (alone := _LABEL_BREAK.search(self.fixed(n))):
                breaks.append(len(text) + alone.start())
            if n in texts:
                spans += [_moved(span, len(text)) for span in texts[n].spans]
                text += texts[n].text
            else:
                text += self.styled.text[part.start : part.end]

        def moved(place: int) -> int:
            for n, part in enumerate(self.parts):
                if part.start <= place < part.end:
                    return starts[n] + (place - part.start if n not in texts else 0)
            return len(text)

        around = [replace(span, start=moved(span.start), end=moved(span.end)) for span in self.outer]
        found = _broken(Styled(text, (*around, *spans)), style, line, language)
        if not breaks or _fits(found.text, style, line):
            return found
        joined = "".join(" " if place in breaks else character for place, character in enumerate(text))
        return _broken(Styled(joined, (*around, *spans)), style, line, language)

    def written(self, styled: Styled) -> str:
        """Return a text of this cue as its entry has it, with tags."""
        entities = self.form == "vtt" and self.entry.markup
        return styled.written(lambda text: html.escape(text, quote=False) if entities else text)

    def limits(self, style: Style) -> list[Limit]:
        """Return all limits of the cue."""
        return [*([self.rule] if self.rule else []), *cue_limits(self.entry, style)]

    def findings(self, shown: str, style: Style) -> list[Finding]:
        """Return what is outside the limits of the cue if it shows this text."""
        entry = replace(self.entry, shown=shown)
        return [found for limit in self.limits(style) for found in check_text("", entry, limit)]


def _within(span: Span, part: Part) -> bool:
    """Return whether a tag is inside a speech, and not around all of it."""
    if span.is_point:
        return part.start < span.start < part.end
    return part.start <= span.start and span.end <= part.end and (span.start, span.end) != (part.start, part.end)


def _cut_at(span: Span, speech: list[Part]) -> list[Span]:
    """Return a span in pieces, so that none begins or ends inside a speech and goes on outside of it."""
    for part in speech:
        starts_inside = part.start < span.start < part.end < span.end
        ends_inside = span.start < part.start < span.end < part.end
        if not span.is_point and (starts_inside or ends_inside):
            place = part.end if starts_inside else part.start
            first, second = replace(span, end=place), replace(span, start=place)
            return [*_cut_at(first, speech), *_cut_at(second, speech)]
    return [span]


def _lines_of(block: list[int], blocks: list[list[int]], source: Mapping[int, int], lines: int) -> int:
    """Return how many of the cue's lines a block gets: one each, and the rest for the longest."""
    spare = max(0, lines - len(blocks))
    longest = max(blocks, key=lambda some: sum(source.get(n, 0) for n in some))
    return 1 + (spare if block is longest else 0)


def _moved(span: Span, by: int) -> Span:
    return replace(span, start=span.start + by, end=span.end + by)


def _broken(cue: Styled, style: Style, line: int | None, language: str) -> Styled:
    """Return the cue with line breaks. Breaks between speakers stay, and other white space is one space."""
    blocks = [block for block in cue.text.split("\n") if block.strip()]
    counts = [1] * len(blocks)
    spare = None if style.lines is None else max(0, style.lines - len(blocks))
    for n in sorted(range(len(blocks)), key=lambda n: -width(blocks[n])):
        if line is not None and not fits_in_lines(blocks[n], line, 1):
            needed = len(break_lines(blocks[n], line, None, language))
            extra = needed - 1 if spare is None else min(needed - 1, spare)
            counts[n] += extra
            spare = None if spare is None else spare - extra
    rows: list[tuple[int, int]] = []  # the start and end of each line in the old text
    at = 0
    for block, count in zip(blocks, counts, strict=True):
        for row in break_lines(block, line, count, language):
            rows.append(_row_in(cue.text, row, at))
            at = rows[-1][1]
    text = "\n".join(cue.text[start:end] for start, end in rows)

    news = [sum(end - start + 1 for start, end in rows[:n]) for n in range(len(rows))]

    def opening(old: int) -> int:
        found = ((new, start) for new, (start, end) in zip(news, rows, strict=True) if old < end)
        new, start = next(found, (len(text), old))
        return new + max(0, old - start)

    def closing(old: int) -> int:
        found = [(new, row) for new, row in zip(news, rows, strict=True) if row[0] < old]
        return found[-1][0] + min(old, found[-1][1][1]) - found[-1][1][0] if found else 0

    spans = []
    for span in cue.spans:
        start = opening(span.start)
        end = start if span.is_point else closing(span.end)
        if span.is_point or start < end:
            spans.append(replace(span, start=start, end=end))
    return Styled(text, tuple(spans))


def _fits(text: str, style: Style, line: int | None) -> bool:
    """Return whether a cue has not too many lines, and none that is too long."""
    rows = text.split("\n")
    few = style.lines is None or len(rows) <= style.lines
    return few and (line is None or all(width(row) <= line for row in rows))


def _row_in(text: str, row: str, at: int) -> tuple[int, int]:
    """Return where a line is in a text that may have more or other white space between its words."""
    while text[at].isspace() and text[at] not in _NO_BREAK:
        at += 1
    start = at
    for character in row:
        if not character.isspace():
            at = text.index(character, at) + 1
    while text[at : at + 1] and text[at] in _NO_BREAK:
        at += 1
    return start, at
