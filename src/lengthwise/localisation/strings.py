"""String files: which texts are to be translated or shortened, within which limits, and what the results change.

The new file is read again before it is written, so that lengths are measured as `lengthwise check` measures them, and
so that no other text has changed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import groupby
from pathlib import Path

from ..formats import Edit, Entry, FormatError, Limit, StringFile, read, splice
from ..formats.check import Finding, check_text
from ..formats.file import written
from ..formats.icu import has_choices, longest
from ..formats.limits import countable
from ..formats.plurals import categories, numbered_forms
from ..formats.po_edits import formula
from ..formats.rules import limits_for
from ..length.units import measure
from .drafts import Context, Draft, plain, sampled, shown
from .messages import message_draft
from .mnemonics import MARKS
from .plan import Answers, Outcome, Plan, Row, Task, unique

_FINISHED = frozenset({"approved", "final"})
_ICU_FORMATS = ("arb", "json", "properties", "yaml", "po", "xliff", "strings", "android", "chrome")
_NUMBERED = ("po", "qt")  # formats whose plural forms have numbers
TIGHTER = 0.85  # of the room, if a text that has it does not wrap into the rows of a display


@dataclass(frozen=True)
class Item:
    """A text that gets a new one. `added`: it is a plural form that the file lacks, beside the form of `entry`."""

    entry: Entry
    source: str
    context: Context
    make: Callable[[Context], Draft]
    added: str = ""

    @property
    def id(self) -> str:
        return self.entry.id.replace(self.entry.form, self.added) if self.added else self.entry.id

    @property
    def limits(self) -> Sequence[Limit]:
        return self.context.limits(longest(shown(self.source, self.context.markup)).strip())


def plan_strings(file: StringFile, task: Task, out: Path) -> Plan:
    """Return the plan of a string file that will be written to `out`.

    Texts with a translation stay. In a file with one language they may be in `out`, if it exists: those are kept.
    """
    planner = _Planner(file, task, out)
    items = list(planner.items())
    return planner.plan(items, [item.make(item.context) for item in items])


class _Planner:
    def __init__(self, file: StringFile, task: Task, out: Path) -> None:
        self.file, self.task, self.out = file, task, out
        self.notes: list[str] = []
        self.kept: dict[Entry, str] = {}
        self.earlier: dict[str, Entry] = {}
        one_language = all(entry.source is None for entry in file.entries)
        another = out.is_file() and not out.samefile(file.path)
        if task.target and not task.again and one_language and another:
            self.earlier = {entry.id: entry for entry in read(out).entries}

    # What is to be done

    def items(self) -> Iterator[Item]:
        """Yield the texts to translate, in the order of the file."""
        for _, group in groupby(self.file.entries, lambda entry: (bool(entry.form), entry.message)):
            entries = list(group)
            if entries[0].form and self.task.target and self._is_plural(entries):
                yield from self._plural(entries)
            else:
                for entry in entries:
                    if (source := self._wanted(entry)) is not None:
                        yield self._item(entry, source)
        if self.kept:
            self.notes.append(f"{len(self.kept):,} translations that {self.out} has were kept")

    def _is_plural(self, entries: list[Entry]) -> bool:
        return self.file.format.name in _NUMBERED or any(entry.form == "other" for entry in entries)

    def _wanted(self, entry: Entry) -> str | None:
        """Return the source of a text that is to be translated or shortened, or None."""
        flags, text = entry.flags, entry.text
        if "fixed" in flags or flags & _FINISHED or ("fuzzy" in flags and not self.task.again):
            return None
        if self.task.target is None:
            return text if text.strip() and "new" not in flags else None
        if entry.source is not None:
            done = bool(text.strip()) and "new" not in flags and not self.task.again
            return None if done or not entry.source.strip() else entry.source
        before = self.earlier.get(entry.id)
        if before and before.text.strip() and before.text != text and before.markup == entry.markup:
            self.kept[entry] = before.text
            return None
        return text if text.strip() else None

    def _item(self, entry: Entry, source: str) -> Item:
        if has_choices(source) and self.file.format.name in _ICU_FORMATS:
            forms = None if self.task.target is None else partial(_forms, self.task.target)
            return Item(entry, source, self._context(entry, source), lambda own: message_draft(source, own, forms))
        return Item(entry, source, self._context(entry, source), lambda own: plain(source, own))

    def _context(self, entry: Entry, source: str) -> Context:
        name = self.file.format.name
        in_java = name == "properties" and ("''" in source or "{0}" in source)
        marks = MARKS.get(name, "")
        return Context(partial(self._limits, entry), entry.markup, marks, self.task.target is None, in_java)

    def _limits(self, entry: Entry, source: str) -> Sequence[Limit]:
        """Return the limits of an entry: of --length, else of lengthwise.toml, else of its file."""
        task = self.task
        if task.length is not None:
            limits: Sequence[Limit] = [task.length.limit(source)]
        else:
            paths = (self.out.as_posix(), self.file.path)
            found = [limits_for(path, entry, task.rules, source) for path in paths]
            limits = found[0] or found[1] or entry.limits
        relative = task.length is not None and task.length.budget.of_source
        if relative and (limits[0].high or task.min_limit) < task.min_limit:
            return [replace(limits[0], high=task.min_limit, low=0)]
        return limits

    # Plural forms

    def _plural(self, entries: list[Entry]) -> Iterator[Item]:
        """Yield the forms of a message: those of the file, and those that the target needs and the file lacks."""
        assert self.task.target is not None
        sources = {entry.form: source for entry in entries if (source := self._wanted(entry)) is not None}
        if not sources:
            return
        if self.file.format.name in _NUMBERED:
            yield from self._numbered(entries, sources)
            return
        have = {entry.form: entry for entry in entries}
        other = have["other"]
        examples = categories(self.task.target)
        for form in examples:
            if form not in have and other.text.strip() and "fixed" not in other.flags:
                yield self._sampled(other, other.text, examples[form], form)
        for entry in entries:
            if entry.form in sources:
                example = examples.get(entry.form, {"zero": 0, "one": 1, "two": 2}.get(entry.form, 5))
                yield self._sampled(entry, sources[entry.form], example)

    def _numbered(self, entries: list[Entry], sources: dict[str, str]) -> Iterator[Item]:
        """Yield the forms of gettext and Qt, which have numbers. A form of the number 1 has the singular as source."""
        assert self.task.target is not None
        singular, plural = entries[0].source or "", entries[-1].source or ""
        if self.file.format.name == "qt":
            examples = {str(n): example for n, example in enumerate(_integer_forms(self.task.target).values())}
            singular, plural = singular.replace("(s)", ""), plural.replace("(s)", "s")
        else:
            examples = numbered_forms(formula(self.file.document, self.task.source, self.task.target))
        for entry in entries:
            if entry.form in sources and entry.form in examples:
                source = singular if examples[entry.form] == 1 else plural
                yield self._sampled(entry, source, examples[entry.form])
        for form in (form for form in examples if form not in {entry.form for entry in entries}):
            yield self._sampled(entries[-1], plural, examples[form], form)

    def _sampled(self, entry: Entry, source: str, example: int, added: str = "") -> Item:
        context = self._context(entry, source)
        return Item(entry, source, context, lambda own: sampled(source, example, own), added)

    # What the answers change

    def plan(self, items: list[Item], drafts: list[Draft], last: bool = False) -> Plan:
        requests = unique(request for draft in drafts for request in draft.requests)
        return Plan(requests, partial(self.finish, items, drafts, last))

    def finish(self, items: list[Item], drafts: list[Draft], last: bool, answers: Answers) -> Outcome | Plan:
        result = _Result(self.file, self.kept)
        for item, draft in zip(items, drafts, strict=True):
            result.add(item, draft, answers)
        result.measure()
        tighter = drafts if last else list(map(self._tighter, items, drafts, result.findings))
        if any(new is not old for new, old in zip(tighter, drafts, strict=True)):
            return self.plan(items, tighter, last=True)
        rows = result.rows()
        edits = [*result.edits, *self._marks(items, rows)]
        if (items or self.kept) and self.task.target:
            edits += self.file.format.label(self.file.document, self.task.source, self.task.target)
        return Outcome(result.texts, rows, edits, [*self.notes, *result.notes])

    def _tighter(self, item: Item, draft: Draft, findings: list[Finding]) -> Draft:
        """Return the draft of a text that is outside a limit which its budget did not express; else the same draft."""
        long = [one for one in findings if one.kind != "too-short" and countable(one.limit)]
        if not long or not draft.requests or (len(item.limits) == 1 and not long[0].limit.wraps):
            return draft
        limit = long[0].limit
        if limit.each_line and limit.high:
            limit = replace(limit, high=max(1, int(limit.high * TIGHTER)))
        return item.make(replace(item.context, limits=lambda source: [limit]))

    def _marks(self, items: list[Item], rows: list[Row]) -> list[Edit]:
        """Return the edits of the state of each message that has a new text."""
        mark = self.file.format.mark
        if mark is None or self.task.target is None:
            return []
        faults: dict[str, tuple[Entry, list[str]]] = {}
        for item, row in zip(items, rows, strict=True):
            _, notes = faults.setdefault(item.entry.message, (item.entry, []))
            if row.changed and not (row.fits and row.complete):
                notes.append(row.note or "not complete")
        changed = {item.entry.message for item, row in zip(items, rows, strict=True) if row.changed}
        unchanged = {item.entry.message for item, row in zip(items, rows, strict=True) if not row.changed}
        edits: list[Edit] = []
        for message, (entry, notes) in faults.items():
            if message in changed and (notes or message not in unchanged):
                edits += mark(self.file.document, entry, notes[0] if notes else None)
        return edits


class _Result:
    """The new texts of a file, measured in the new file."""

    def __init__(self, file: StringFile, kept: dict[Entry, str]) -> None:
        self.file, self.texts, self.edits = file, dict(kept), list[Edit]()
        self.notes: list[str] = []
        self.findings: list[list[Finding]] = []
        self._built: list[tuple[Item, str, bool, tuple[str, ...], str | None]] = []
        self._new: dict[str, Entry] = {}

    def add(self, item: Item, draft: Draft, answers: Answers) -> None:
        """Build a text. One that the file cannot hold is not written."""
        built, error = draft.build(answers), None
        try:
            if not built.error:
                self._put(item, built.text)
        except FormatError as fault:
            error = fault.reason
        self._built.append((item, built.text, built.complete, built.notes, built.error or error))

    def _put(self, item: Item, text: str) -> None:
        written(self.file, item.entry, text)  # raises
        if not item.added:
            self.texts[item.entry] = text
        elif edits := self.file.format.add_form(self.file.document, item.entry, item.added, text):
            self.edits += edits
        else:
            raise FormatError(
                self.file.path, item.entry.place.line, f"the plural form {item.added} must be added by hand"
            )

    def measure(self) -> None:
        """Read the new file, and find the texts that are outside their limits."""
        new = read(self.file.path, data=splice(self.file, self.texts, self.edits), encoding=self.file.document.encoding)
        self._new = self._matched(new)
        for item, _, _, _, error in self._built:
            entry = self._new.get(_key(item))
            limits = [] if error or entry is None else [one for one in item.limits if _checked(one)]
            self.findings.append([found for one in limits for found in check_text(self.file.path, entry, one)])  # type: ignore[arg-type]

    def _matched(self, new: StringFile) -> dict[str, Entry]:
        """Return the entries of the new file by key, and check that all others have the texts that they had."""
        added = {_key(item): item for item, *_ in self._built if item.added}
        found: dict[str, Entry] = {}
        old = iter(self.file.entries)
        for entry in new.entries:
            if (key := f"+{entry.id}") in added and key not in found:
                found[key] = entry
                continue
            before = next(old, None)
            if before is None or before.id != entry.id or (before not in self.texts and before.text != entry.text):
                line = before.place.line if before else 0
                raise FormatError(
                    self.file.path, line, f"the new texts change another text: {entry.id!r}; report this file"
                )
            found[str(before.place.start)] = entry
        return found

    def rows(self) -> list[Row]:
        return [self._row(*one, found) for one, found in zip(self._built, self.findings, strict=True)]

    def _row(
        self,
        item: Item,
        text: str,
        complete: bool,
        notes: tuple[str, ...],
        error: str | None,
        findings: list[Finding],
    ) -> Row:
        counted = [limit for limit in item.limits if _checked(limit)]
        limit = findings[0].limit if findings else min(counted, key=lambda one: one.high or 0, default=None)
        uncounted = {one.unit for one in item.limits if not countable(one) and (one.high or one.low)}
        said = [
            *notes,
            *(f"a limit in {unit} cannot be counted" for unit in sorted(uncounted)),
            *([error] if error else []),
        ]
        unit = limit.unit if limit and countable(limit) else "chars"
        new = self._new.get(_key(item))
        length = 0 if error or new is None else measure(longest(new.shown).strip(), unit)
        said[:0] = [findings[0].message] if findings else [] if complete or error else ["not complete"]
        return Row(
            item.id,
            item.entry.place.line,
            item.source,
            item.entry.text if error else text,
            findings[0].measured if findings else length,
            findings[0].unit if findings else unit,
            _said(limit, findings),
            not findings and error is None,
            complete,
            "; ".join(said) or None,
            error is None,
        )


def _key(item: Item) -> str:
    return f"+{item.id}" if item.added else str(item.entry.place.start)


def _checked(limit: Limit) -> bool:
    return (countable(limit) and bool(limit.high or limit.low)) or limit.lines is not None


def _said(limit: Limit | None, findings: list[Finding]) -> str:
    """Return the limit in words: 'at most 20 chars'."""
    if findings:
        most = "at least" if findings[0].kind == "too-short" else "at most"
        return f"{most} {findings[0].allowed} {findings[0].unit}"
    if limit is None:
        return ""
    words = [f"at least {limit.low}"] if limit.low else []
    words += [f"at most {limit.high}"] if limit.high else []
    return f"{', '.join(words)} {limit.unit}"


@cache
def _forms(language: str, ordinal: bool) -> dict[str, int]:
    return categories(language, ordinal)


def _integer_forms(language: str) -> dict[str, int]:
    """Return the categories of whole numbers, which are the forms of Qt, in its order."""
    from ..formats.plurals import category_of

    rule = category_of(language)
    return {form: example for form, example in categories(language).items() if rule(example) == form}
