"""Styled text: a text without its tags, and the tags as spans over it.

A pair of tags (<i>…</i>) is a span. A tag without a partner ({\\an8}, <v Mary>) is a point.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Span:
    """A tag from `start` to `end` of a text: what is written before and after it. A point has only `before`."""

    start: int
    end: int
    before: str
    after: str = ""

    @property
    def is_point(self) -> bool:
        return not self.after


@dataclass(frozen=True)
class Styled:
    """A text and its tags, in the order of the file."""

    text: str
    spans: tuple[Span, ...] = ()

    def cut(self, start: int, end: int) -> "Styled":
        """Return a part of the text. A span that continues beyond it is closed there."""
        kept = []
        for span in self.spans:
            first, last = max(span.start, start), min(span.end, end)
            inside = start <= span.start < end or span.start == end == len(self.text)
            if first < last or (span.is_point and inside):
                kept.append(replace(span, start=first - start, end=last - start))
        return Styled(self.text[start:end], tuple(kept))

    def written(self, escape: Callable[[str], str] = str) -> str:
        """Return the text with its tags. `escape` turns text into what the file writes for it."""
        events: list[tuple[int, int, int, str]] = []  # at one place: closing tags, the last opened first; then others
        for n, span in enumerate(self.spans):
            if span.is_point or span.start == span.end:
                events.append((span.start, 1, n, span.before + span.after))
            else:
                events += [(span.start, 1, n, span.before), (span.end, 0, -n, span.after)]
        parts, at = [], 0
        for place, _, _, tag in sorted(events):
            parts += [escape(self.text[at:place]), tag]
            at = place
        return "".join([*parts, escape(self.text[at:])])


def paired(tags: Sequence[tuple[int, str]], kind: Callable[[str], tuple[str, bool]]) -> list[Span]:
    """Return pairs of tags as spans, and tags without a partner as points, in the order of their first tag.

    `tags`: each with its place. `kind` returns the name of what a tag opens or closes, "" if neither, and whether it
    closes it.
    """
    spans: dict[int, Span] = {}
    opened: dict[str, list[int]] = {}
    for n, (place, tag) in enumerate(tags):
        name, closes = kind(tag)
        spans[n] = Span(place, place, tag)
        if closes and opened.get(name):
            first = opened[name].pop()
            spans[first] = Span(spans[first].start, place, spans[first].before, tag)
            del spans[n]
        elif name and not closes:
            opened.setdefault(name, []).append(n)
    return [spans[n] for n in sorted(spans)]
