"""Check texts against their limits: which are too long, too short, or have too many lines, and by how much."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..length.units import UNITS
from .base import Entry, Limit
from .file import StringFile
from .icu import longest
from .limits import countable
from .rules import Rule, limits_for
from .subtitles import Style, cue_limits

_NOT_CHECKED = frozenset({"fuzzy", "fixed"})


@dataclass(frozen=True)
class Finding:
    """A text outside a limit. `kind`: too-long, too-short or too-many-lines; `measured` and `allowed` are of `unit`."""

    kind: str
    file: str
    line: int
    id: str
    text: str
    measured: int
    allowed: int
    unit: str
    limit: Limit

    @property
    def message(self) -> str:
        """'34 chars, at most 30'"""
        most = "at least" if self.kind == "too-short" else "at most"
        what = "a line of " if self.limit.each_line and self.kind == "too-long" else ""
        return f"{what}{self.measured} {self.unit}, {most} {self.allowed}"


@dataclass
class Checker:
    """Checks files with the limits that they name and those given here, and counts what was checked.

    `length`: a rule that replaces all limits of the files. `rules`: those of lengthwise.toml, which replace the limits
    of the entries that they match. `style`: limits of subtitles. `source`: entries of the source file by id.
    """

    length: Rule | None = None
    rules: Sequence[Rule] = ()
    style: Style | None = None
    source: dict[str, Entry] | None = None
    texts: int = 0
    limited: int = 0
    uncounted: list[tuple[StringFile, Entry, Limit]] = field(default_factory=list)

    def check(self, file: StringFile) -> Iterator[Finding]:
        """Yield what is outside its limits, in the order of the file. Fuzzy and fixed entries are not checked."""
        checked = [entry for entry in file.entries if entry.text.strip() and not entry.flags & _NOT_CHECKED]
        limits = {entry: self.limits(file, entry) for entry in checked}
        units = joined_units(limits)
        for entry in checked:
            self.texts += 1
            self.limited += bool(limits[entry])
            for limit in limits[entry]:
                if not countable(limit) and (limit.high is not None or limit.low):
                    self.uncounted.append((file, entry, limit))
                elif not limit.shared_by:
                    yield from check_text(file.path, entry, limit)
                elif (unit := units[limit.shared_by]).id == entry.id:
                    yield from check_text(file.path, unit, limit)

    def limits(self, file: StringFile, entry: Entry) -> list[Limit]:
        """Return the limits of an entry: of --length, else of a rule, else of its file and of the source file."""
        original = self.source.get(entry.id) if self.source is not None else None
        source = original.text if original else entry.source
        if self.length and (source is not None or self.source is None or not self.length.budget.of_source):
            found = [self.length.limit(source)]
        elif not self.length:
            inherited = original.limits if original and not entry.limits else ()
            found = limits_for(file.path, entry, self.rules, source) or [*entry.limits, *inherited]
        else:  # the source file has no such entry
            found = []
        return [*found, *(cue_limits(entry, self.style) if self.style and entry.seconds is not None else [])]


def joined_units(limits: Mapping[Entry, Sequence[Limit]]) -> dict[str, Entry]:
    """Return the units whose texts share a limit, by name: their first entries, which show the texts of all."""
    found: dict[str, Entry] = {}
    for entry, some in limits.items():
        for name in {limit.shared_by for limit in some} - {""}:
            first = found.get(name)
            found[name] = replace(first, shown=first.shown + entry.gap + entry.shown) if first else entry
    return found


def check_text(path: str, entry: Entry, limit: Limit) -> Iterator[Finding]:
    """Yield what of an entry is outside one limit."""

    def found(kind: str, measured: int, allowed: int, unit: str = limit.unit) -> Finding:
        return Finding(kind, path, entry.place.line, entry.id, entry.shown, measured, allowed, unit, limit)

    # Tokens cannot be counted here; a limit in pixels may still have a number of lines.
    length = UNITS[limit.unit].measure if countable(limit) else len
    text = longest(entry.shown, length).strip()
    lines = text.split("\n")
    if limit.wraps and limit.high:
        lines = [row for line in lines for row in _wrapped(line, limit)]
    if limit.lines is not None and len(lines) > limit.lines:
        yield found("too-many-lines", len(lines), limit.lines, "lines")
    # A line break takes no time to read.
    whole = text.replace("\n", "") if entry.seconds is not None else text
    measured = max(map(length, lines)) if limit.each_line else length(whole)
    if limit.high is not None and measured > limit.high:
        yield found("too-long", measured, limit.high)
    if measured < limit.low:
        yield found("too-short", measured, limit.low)


def _wrapped(line: str, limit: Limit) -> list[str]:
    """Return the rows of a line on a display that breaks lines at spaces."""
    length, rows = UNITS[limit.unit].measure, [""]
    for word in line.split():
        longer = f"{rows[-1]} {word}".strip()
        if rows[-1] and length(longer) > (limit.high or 0):
            rows.append(word)
        else:
            rows[-1] = longer
    return rows
