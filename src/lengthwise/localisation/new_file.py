"""The new file: its texts are built from the answers, put into the file, and measured there.

It is read again before it is written, so that lengths are measured as `lengthwise check` measures them, and so that it
is certain that no other text has changed.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..formats import Edit, Entry, FormatError, Limit, StringFile, read, splice
from ..formats.check import Finding, check_text, joined_units
from ..formats.file import written
from ..formats.icu import longest
from ..formats.limits import countable
from ..length.units import measure
from .drafts import Built, Draft
from .items import Item
from .plan import Answers, Row, notes_on


@dataclass(frozen=True)
class NewText:
    """What was built for an item, and how it is outside its limits. `built.error`: it is not in the file."""

    item: Item
    built: Built
    entry: Entry | None = None
    findings: Sequence[Finding] = ()

    @property
    def is_new(self) -> bool:
        """Whether the text differs from the one in the file, or could not be built."""
        return not self.item.kept and (self.built.error is not None or self.built.text != self.item.entry.text)

    @property
    def faults(self) -> tuple[bool, float, bool]:
        """What is wrong with the text, to compare it with another: an error, how far it is outside limits, gaps."""
        over = sum(abs(one.measured - one.allowed) / max(1, one.allowed) for one in self.findings)
        return self.built.error is not None, over, not self.built.complete

    def row(self) -> Row:
        """Return the line of the report."""
        item, built, findings = self.item, self.built, self.findings
        counted = [limit for limit in item.limits if _counts(limit)]
        smallest = min(counted, key=lambda one: one.high or 0, default=None)
        unit = smallest.unit if smallest and countable(smallest) else "chars"
        length = measure(longest(self.entry.shown).strip(), unit) if self.entry and not built.error else 0
        return Row(
            item.id,
            item.entry.place.line,
            item.source,
            item.entry.text if built.error else built.text,
            findings[0].measured if findings else length,
            findings[0].unit if findings else unit,
            _in_words(smallest, findings),
            not findings and not built.error,
            built.complete,
            "; ".join(self._notes()) or None,
            not built.error,
        )

    def _notes(self) -> list[str]:
        if self.built.error:
            return [self.built.error]
        said = [self.findings[0].message] if self.findings else [] if self.built.complete else ["not complete"]
        notes = notes_on(self.built.notes, fits=not self.findings)
        units = {limit.unit for limit in self.item.limits if not countable(limit) and (limit.high or limit.low)}
        return [*said, *notes, *(f"a limit in {unit} cannot be counted" for unit in sorted(units))]


@dataclass
class NewFile:
    """A file with new texts. `edits`: plural forms that it lacked."""

    file: StringFile
    texts: dict[Entry, str] = field(default_factory=dict)
    edits: list[Edit] = field(default_factory=list)

    def build(self, items: Sequence[Item], drafts: Sequence[Draft], answers: Answers) -> list[NewText]:
        """Put the new text of each item into the file, and return them, measured there."""
        new = [NewText(item, self._put(item, draft.build(answers))) for item, draft in zip(items, drafts, strict=True)]
        data = splice(self.file, self.texts, self.edits)
        encoding = None if self.file.document.bom else self.file.document.encoding
        again = read(self.file.path, data=data, encoding=encoding)
        entries = self._matched(again, items)
        units = joined_units({entry: entry.limits for entry in again.entries})
        return [self._measured(one, entries.get(_key(one.item)), units) for one in new]

    def _put(self, item: Item, built: Built) -> Built:
        """Put a text into the file, unless it has an error or the file cannot hold it."""
        if built.error:
            return built
        try:
            written(self.file, item.entry, built.text)  # raises
        except FormatError as fault:
            return Built(built.text, False, (), fault.reason)
        if not item.added:
            self.texts[item.entry] = built.text
        elif edits := self.file.format.add_form(self.file.document, item.entry, item.added, built.text):
            self.edits += edits
        else:
            return Built(built.text, False, (), f"the plural form {item.added!r} is missing; add it by hand")
        return built

    def _matched(self, new: StringFile, items: Sequence[Item]) -> dict[str, Entry]:
        """Return the entries of the new file by key, and check that all others have the texts that they had."""
        added: dict[str, list[str]] = {}  # keys by id; a file may have two messages with the same id
        for item in sorted((item for item in items if item.added), key=lambda item: item.entry.place.start):
            added.setdefault(item.id, []).append(_key(item))
        found: dict[str, Entry] = {}
        old = deque(self.file.entries)
        for entry in new.entries:
            if added.get(entry.id) and not (old and old[0].id == entry.id):
                found[added[entry.id].pop(0)] = entry
                continue
            before = old.popleft() if old else None
            if before is None or before.id != entry.id or (before not in self.texts and before.text != entry.text):
                reason = f"its new texts change another text, {entry.id!r}, so nothing is written; report this file"
                raise FormatError(self.file.path, before.place.line if before else 0, reason)
            found[str(before.place.start)] = entry
        return found

    def _measured(self, new: NewText, entry: Entry | None, units: Mapping[str, Entry]) -> NewText:
        """Return a new text with what is outside its limits; of a limit that it shares, with the texts of its unit."""
        if entry is None or new.built.error or new.item.kept:
            return new
        limits = [limit for limit in new.item.limits if _counts(limit) and not limit.shared_by]
        findings = [found for limit in limits for found in check_text(self.file.path, entry, limit)]
        for limit in entry.limits if any(limit.shared_by for limit in new.item.limits) else ():
            if limit.shared_by and _counts(limit):
                findings += check_text(self.file.path, units[limit.shared_by], limit)
        return NewText(new.item, new.built, entry, findings)


def _key(item: Item) -> str:
    return f"+{item.added} {item.entry.place.start}" if item.added else str(item.entry.place.start)


def _counts(limit: Limit) -> bool:
    return (countable(limit) and bool(limit.high or limit.low)) or limit.lines is not None


def _in_words(limit: Limit | None, findings: Sequence[Finding]) -> str:
    """Return the limit that counts: 'at most 20 chars'."""
    if findings:
        most = "at least" if findings[0].kind == "too-short" else "at most"
        return f"{most} {findings[0].allowed} {findings[0].unit}"
    if limit is None:
        return ""
    words = [f"at least {limit.low}"] if limit.low else []
    words += [f"at most {limit.high}"] if limit.high else []
    return f"{', '.join(words)} {limit.unit}" + (" a line" if limit.each_line else "")
