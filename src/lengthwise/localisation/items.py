"""Items: the texts of a string file that are to be translated or shortened, with their limits and plural forms.

Texts that are fixed, approved or final stay. So do texts that have a translation, in the file or in the one that will
be replaced, unless all are asked for again.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from ..formats import Entry, Limit, StringFile, read
from ..formats.icu import has_choices, longest
from ..formats.limits import countable
from ..formats.plurals import USUAL, categories, integer_forms, numbered_forms
from ..formats.po_edits import formula
from ..formats.rules import limits_for
from ..length.units import UNITS
from .drafts import NUMBER, Context, Draft, plain, sampled, shown, unchanged
from .earlier import earlier_texts
from .messages import message_draft
from .plan import Task

_FINISHED = frozenset({"fixed", "approved", "final"})
_DOUBLED = re.compile(r"\w''\w")  # it''s


@dataclass(frozen=True)
class Item:
    """A text that gets a new one. `first`: the first entry of its message.

    `added`: a plural form that the file lacks; its text is written beside that of `entry`. `kept`: the new text is one
    that was there before, and is not reported. `review`: that text was marked for a review.
    """

    entry: Entry
    first: Entry
    source: str
    context: Context
    make: Callable[[Context], Draft]
    added: str = ""
    kept: bool = False
    review: bool = False

    @property
    def id(self) -> str:
        if not self.added:
            return self.entry.id
        end = len(self.entry.form) + self.entry.id.endswith("]")
        return self.entry.id[:-end] + self.added + self.entry.id[-end:].removeprefix(self.entry.form)

    @property
    def limits(self) -> Sequence[Limit]:
        return self.context.limits(longest(shown(self.source, self.context.markup)).strip())


def _messages(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Return the texts in groups, one for each message. The forms of a plural may have other texts between them."""
    found: list[list[Entry]] = []
    plurals: dict[str, list[Entry]] = {}
    for entry in entries:
        group = plurals.get(entry.message) if entry.form else None
        if group is None or any(one.form == entry.form for one in group):
            group = []
            found.append(group)
            if entry.form:
                plurals[entry.message] = group
        group.append(entry)
    return found


class Items:
    """Finds the items of a file that will be written to `out`. `encoding`: of both files, if they do not tell it.

    `earlier`: the texts in `out` that may be kept, by id. `lost`: ids of texts that are only in `out`.
    """

    def __init__(self, file: StringFile, task: Task, out: Path, encoding: str | None = None) -> None:
        self.file, self.task, self.out = file, task, out
        self.earlier: dict[str, Entry] = {}
        self.lost: list[str] = []
        another = out.is_file() and not (Path(file.path).exists() and out.samefile(file.path))
        if task.target and not task.again and another:
            replaced = read(out, encoding=encoding).entries
            self.earlier = earlier_texts(file.entries, replaced)
            self.lost = [entry.id for entry in replaced if entry.text.strip()]

    def find(self) -> Iterator[Item]:
        """Yield the items, in the order of the file by the first text of each message."""
        known = {entry.id for entry in self.file.entries}
        for item in self._find():
            known.add(item.id)
            yield item
        self.lost = [name for name in self.lost if name not in known]

    def _find(self) -> Iterator[Item]:
        for entries in _messages(self.file.entries):
            if entries[0].form and self.task.target and self._is_plural(entries):
                yield from self._plural(entries, self.task.target)
            else:
                for entry in entries:
                    if (source := self._source(entry)) is not None:
                        yield self._kept(entry) or self._item(entry, source)

    def _source(self, entry: Entry) -> str | None:
        """Return the source of a text that gets a new one, or None."""
        flags, text = entry.flags, entry.text
        if flags & _FINISHED or ("fuzzy" in flags and not self.task.again):
            return None
        if self.task.target is None:
            return text if text.strip() and "new" not in flags else None
        if entry.source is None:
            return text if text.strip() else None
        done = bool(text.strip()) and "new" not in flags and not self.task.again
        return None if done or not entry.source.strip() else entry.source

    def _kept(self, entry: Entry, added: str = "", first: Entry | None = None) -> Item | None:
        """Return the item of a text whose translation is in the file that will be replaced, or None."""
        new = Item(
            entry, first or entry, entry.text, self._context(entry, ""), lambda own: unchanged(""), added, kept=True
        )
        before = self.earlier.get(new.id)
        if before is None or before.source != entry.source or (added and before.markup != entry.markup):
            return None
        entry.markup, text = before.markup, before.text
        return replace(new, make=lambda own: unchanged(text), review=bool(before.flags & {"fuzzy", "unfinished"}))

    def _item(self, entry: Entry, source: str) -> Item:
        context = self._context(entry, source)
        # Java quotes braces with apostrophes; only a parser can tell them from arguments.
        quotes = context.doubled and re.search("'[{}]", source) is not None
        if (has_choices(source) or quotes) and self.file.format.has_icu:
            return Item(entry, entry, source, context, lambda own: message_draft(source, own, self.task.target))
        return Item(entry, entry, source, context, lambda own: plain(source, own))

    def _context(self, entry: Entry, source: str) -> Context:
        format = self.file.format
        doubled = _DOUBLED.search(source) is not None or (format.name == "properties" and "{0" in source)
        limits = partial(self._limits, entry)
        if self.task.target and entry.source is not None:
            entry.markup = entry.source_markup  # the new text is made from the source
        return Context(limits, entry.markup, format.mnemonics, self.task.target is None, doubled)

    def _limits(self, entry: Entry, source: str) -> Sequence[Limit]:
        """Return the limits of an entry: of --length, else of lengthwise.toml, else of its file."""
        task = self.task
        if task.length is None:
            paths = (self.out.as_posix(), self.file.path)
            found = [limits_for(path, entry, task.rules, source) for path in paths]
            return found[0] or found[1] or [self._share(limit, entry) for limit in entry.limits]
        return [task.length.limit(source)]

    def _share(self, limit: Limit, entry: Entry) -> Limit:
        """Return an entry's share of a limit that the texts of its unit have together, by the lengths of the sources.

        What stays as it is takes its length of the limit.
        """
        if not limit.shared_by or not countable(limit):
            return limit
        measure, unit = UNITS[limit.unit].measure, self._units[limit.shared_by]
        sources = {one: measure(source) for one in unit if (source := self._source(one)) is not None}
        # White space at the ends of a text does not count, but it is between texts here.
        stays = "".join(one.gap + ("" if one in sources else one.shown) for one in unit)
        taken = measure(f"x{stays}x") - measure("xx")
        part = sources.get(entry, 0) / max(1, sum(sources.values()))
        high = None if limit.high is None else max(1, int((limit.high - taken) * part))
        return replace(limit, high=high, low=max(0, int((limit.low - taken) * part)))

    @cached_property
    def _units(self) -> dict[str, list[Entry]]:
        """The entries that share a limit, by the names of their units."""
        found: dict[str, list[Entry]] = {}
        for entry in self.file.entries:
            for name in {limit.shared_by for limit in entry.limits} - {""}:
                found.setdefault(name, []).append(entry)
        return found

    # Plural forms

    def _is_plural(self, entries: list[Entry]) -> bool:
        """Return whether the texts are the forms of a plural. In JSON and YAML, `other` may also be any key."""
        format = self.file.format
        forms = {entry.form: entry for entry in entries}
        if format.numbers_plurals or not format.plurals_are_keys:
            return format.numbers_plurals or "other" in forms
        if "other" not in forms or (len(forms) == 1 and not NUMBER.search(forms["other"].text)):
            return False
        parent = entries[0].message + "."
        return not entries[0].id.startswith(parent) or self._keys[parent] <= set(forms)

    @cached_property
    def _keys(self) -> dict[str, set[str]]:
        """The last keys of the texts, by the keys before it."""
        found: dict[str, set[str]] = {}
        for entry in self.file.entries:
            head, dot, last = entry.id.rpartition(".")
            found.setdefault(head + dot, set()).add(last)
        return found

    def _plural(self, entries: list[Entry], target: str) -> Iterator[Item]:
        """Yield the forms of a message: those of the file, and those that the target needs and the file lacks."""
        sources = {entry.form: source for entry in entries if (source := self._source(entry)) is not None}
        if not sources:
            return
        if self.file.format.numbers_plurals:
            yield from self._numbered(entries, sources, target)
            return
        other = next(entry for entry in entries if entry.form == "other")
        examples = categories(target)
        for form in (form for form in examples if form not in {entry.form for entry in entries}):
            if "other" in sources:
                yield self._kept(other, form) or self._sampled(other, entries, other.text, examples[form], form)
        for entry in entries:
            if entry.form in sources:
                example = examples.get(entry.form, USUAL.get(entry.form, 5))
                yield self._kept(entry) or self._sampled(entry, entries, sources[entry.form], example)

    def _numbered(self, entries: list[Entry], sources: dict[str, str], target: str) -> Iterator[Item]:
        """Yield the forms of gettext and Qt, which have numbers. A form of the number 1 has the singular as source."""
        singular, plural = entries[0].source or "", entries[-1].plural or entries[-1].source or ""
        if self.file.format.name == "qt":
            examples = {entry.form: 5 for entry in entries}  # a file may have more forms, such as `many` of Italian
            examples |= {str(n): example for n, example in enumerate(integer_forms(target).values())}
            singular, plural = singular.replace("(s)", ""), plural.replace("(s)", "s")
        else:
            examples = numbered_forms(formula(self.file.document, self.task.source, target))
        for entry in entries:
            if entry.form in sources and entry.form in examples:
                source = singular if examples[entry.form] == 1 else plural
                kept = self._kept(entry, first=entries[0])
                yield kept or self._sampled(entry, entries, source, examples[entry.form])
        for form in (form for form in examples if form not in {entry.form for entry in entries}):
            kept = self._kept(entries[-1], form, entries[0])
            yield kept or self._sampled(entries[-1], entries, plural, examples[form], form)

    def _sampled(self, entry: Entry, entries: list[Entry], source: str, example: int, added: str = "") -> Item:
        context = self._context(entry, source)
        return Item(entry, entries[0], source, context, lambda own: sampled(source, example, own), added)
