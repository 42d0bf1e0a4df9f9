"""String files: the plan of a file: ask for its texts, ask again for those that still do not fit, set their states."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ..formats import Edit, Entry, StringFile
from ..formats.limits import countable
from ..length.units import UNITS
from .drafts import Draft
from .items import Item, Items
from .new_file import NewFile, NewText
from .plan import Answers, Outcome, Plan, Task, unique

TIGHTER = (0.85, 0.7)  # of the room, in later rounds, for a text that does not wrap into the rows of a display

MAX_NAMED = 20  # texts that are dropped, in a message


def plan_strings(file: StringFile, task: Task, out: Path, encoding: str | None = None) -> Plan:
    """Return the plan of a string file that will be written to `out`."""
    finder = Items(file, task, out, encoding)
    items = list(finder.find())
    drafts = [item.make(item.context) for item in items]
    return _plan(_Strings(file, task, items, _lost(finder.lost, out)), drafts, drafts, 0)


@dataclass(frozen=True)
class _Strings:
    """A file, its items, and messages about the file as a whole."""

    file: StringFile
    task: Task
    items: list[Item]
    notes: list[str]


def _lost(names: list[str], out: Path) -> list[str]:
    """Return a message about the texts that are only in the file that will be replaced."""
    if not names:
        return []
    some = ", ".join(names[:MAX_NAMED]) + (", ..." if len(names) > MAX_NAMED else "")
    lost = f"1 text of {out} is" if len(names) == 1 else f"{len(names):,} texts of {out} are"
    return [f"{lost} not in the file that is translated, and dropped: {some}"]


def _plan(strings: _Strings, drafts: list[Draft], best: list[Draft], rounds: int) -> Plan:
    """Return the plan of a round, after this number of rounds. `best`: the drafts of the best texts so far."""
    requests = unique(request for draft in drafts for request in draft.requests)
    return Plan(requests, partial(_finish, strings, drafts, best, rounds))


def _finish(strings: _Strings, drafts: list[Draft], best: list[Draft], rounds: int, answers: Answers) -> Outcome | Plan:
    """Return what the answers change, or a plan with tighter budgets for some of the texts."""
    file, task, items = strings.file, strings.task, strings.items
    new_file = NewFile(file)
    new = new_file.build(items, drafts, answers)
    if rounds:
        before = NewFile(file).build(items, best, answers)
        pairs = zip(zip(new, drafts, strict=True), zip(before, best, strict=True), strict=True)
        best = [draft if one.faults < old.faults else earlier for (one, draft), (old, earlier) in pairs]
    if rounds < len(TIGHTER):
        tighter = [
            draft if _is_over(draft, answers) else _tighter(one, draft, TIGHTER[rounds])
            for one, draft in zip(new, drafts, strict=True)
        ]
        if any(draft is not before for draft, before in zip(tighter, drafts, strict=True)):
            return _plan(strings, tighter, best, rounds + 1)
    if best != drafts:
        new_file = NewFile(file)
        new = new_file.build(items, best, answers)
    kept = sum(item.kept for item in items)
    were = "translation that was there before was" if kept == 1 else "translations that were there before were"
    notes = [f"{kept:,} {were} kept"] if kept else []
    reported = [one for one, draft in zip(new, best, strict=True) if draft.requests or one.is_new]
    edits = [*new_file.edits, *_states(file, task, new)]
    if task.target and (kept or any(not one.built.error for one in reported)):
        edits += file.format.label(file.document, task.source, task.target)
    return Outcome(new_file.texts, [one.row() for one in reported], edits, [*notes, *strings.notes])


def _is_over(draft: Draft, answers: Answers) -> bool:
    """Return whether an answer is longer than its budget: nothing complete was found within, nor will be with less."""
    known = [(request.budget, answers[request].text) for request in draft.requests]
    return any(
        budget is not None and budget.high is not None and UNITS[budget.unit].measure(text.strip()) > budget.high
        for budget, text in known
    )


def _tighter(new: NewText, draft: Draft, share: float) -> Draft:
    """Return another draft for a text that is outside a limit which its budget did not express; else the same draft."""
    over = [one.limit for one in new.findings if one.kind != "too-short" and countable(one.limit)]
    if not over or not draft.requests or (len(new.item.limits) == 1 and not over[0].wraps):
        return draft
    limit = over[0]
    others = [one for one in new.item.limits if one is not limit and one.unit == limit.unit]
    if limit.each_line and limit.high:
        limit = replace(limit, high=max(1, int(limit.high * share)))
    return new.item.make(replace(new.item.context, limits=lambda source: [limit, *others]))


def _states(file: StringFile, task: Task, new: list[NewText]) -> list[Edit]:
    """Return the edits of the state of each message that has a new text: it is translated, or needs a review.

    A shortened text keeps its state, unless it needs a review. A kept one needs it if it needed it before.
    """
    if file.format.mark is None:
        return []
    messages: dict[Entry, list[NewText]] = {}
    for one in new:
        messages.setdefault(one.item.first, []).append(one)
    edits: list[Edit] = []
    for forms in messages.values():
        rows = [one.row() for one in forms]
        faults = [row.note or "" for row in rows if not (row.fits and row.complete)]
        faults += ["needs a review" for one in forms if one.item.review]
        if any(row.changed for row in rows) and (faults or task.target):
            edits += file.format.mark(file.document, forms[0].item.entry, faults[0] if faults else None)
    return edits
