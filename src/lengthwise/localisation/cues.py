"""Subtitles: which texts of a subtitle file are asked for, and the cues that are made of the answers.

A sentence over several cues is asked for whole, with the room of all its cues, and shared out again. If a cue is still
too long, its sentence is asked for again with less room. The best answer is kept; a cue that does not fit is listed.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ..formats.base import Entry, FormatError, Limit
from ..formats.check import Finding
from ..formats.file import StringFile, written
from ..formats.limits import countable
from ..formats.rules import limits_for
from ..formats.subtitles import Style, is_dense
from ..length.budget import Budget
from ..length.sentences import finished
from ..length.units import UNITS
from ..translation.alignment import phrases
from ..translation.placeholders import changed_placeholders
from ..translation.styled import Styled
from .borders import split_atoms, width
from .cue import Cue
from .cue_tags import place_tags
from .plan import Answer, Answers, Outcome, Plan, Request, Row, Task, notes_on, unique
from .runs import Piece, Run, find_runs
from .sharing import Room, share

BORDER_LOSS = 5  # characters that are not used in a cue, so that the next one can begin at a good place
MAX_TRIES = 3  # answers for one text
LESS = 0.05  # of its room, times the number of tries, is taken from a text that does not fit
REPEATED = "the text has fewer words than cues, so each cue repeats it"
_AMOUNT = re.compile(r"\$\d")  # a placeholder in string files, but money in speech


def plan_cues(file: StringFile, task: Task) -> Plan:
    """Return the plan of a subtitle file. To be shortened are only the texts of cues that are too long."""
    return _Subtitles(file, task).plan()


@dataclass(eq=False)
class _Text:
    """A run, its requests so far, and the answer that is used: None if all had an error."""

    run: Run
    rooms: Sequence[Room]
    request: Request
    tries: int = 1
    answer: Answer | None = None
    pieces: Sequence[Styled] = ()
    notes: list[tuple[int, str]] = field(default_factory=list)  # with the numbers of their pieces
    error: str | None = None

    @property
    def is_repeated(self) -> bool:
        """Whether the answer has fewer words than cues, so that each of them shows all of it."""
        return self.answer is not None and len(split_atoms(self.answer.text)) < len(self.run.pieces)


class _Subtitles:
    def __init__(self, file: StringFile, task: Task) -> None:
        self.file, self.task, self.style = file, task, task.style or Style()
        self.language = task.target or task.source
        self.cues = [
            Cue.of(entry, file.format.name, self._rule(file.path, entry))
            for entry in file.entries
            if "fixed" not in entry.flags
        ]
        self.line = self.style.line or self._usual_line()
        self.texts = [self._text(run) for run in find_runs(self.cues, task.source) if self._is_wanted(run)]
        self.by_part = {(piece.cue, piece.part): text for text in self.texts for piece in text.run.pieces}

    def _usual_line(self) -> int:
        """Return where lines are broken if there is no limit: as in the source, if its lines are longer than usual."""
        if is_dense(self.language):
            return 16
        return max([42, *(width(line) for cue in self.cues for line in cue.entry.shown.split("\n"))])

    def _rule(self, path: str, entry: Entry) -> Limit | None:
        """Return the limit of --length, else of lengthwise.toml, for the whole text of a cue."""
        rules = self.task.rules if self.task.length is None else [self.task.length]
        found = next(iter(limits_for(path, entry, rules, " ".join(entry.shown.split()))), None)
        return found if found is not None and countable(found) else None

    def _is_wanted(self, run: Run) -> bool:
        if self.task.target is not None:
            return True
        found = (one for piece in run.pieces for one in piece.cue.findings(piece.cue.entry.shown, self.style))
        return any(one.kind != "too-short" for one in found)

    def _text(self, run: Run) -> _Text:
        rooms = []
        for piece in run.pieces:
            room = piece.cue.room(piece.part, self.style)
            dots = width(piece.before) + width(piece.after)
            chars = None if room.chars is None else max(1, room.chars - dots)
            before, after = room.before + piece.before, piece.after + room.after
            rooms.append(room._replace(chars=chars, before=before, after=after))
        return _Text(run, rooms, Request(" ".join(run.styled.text.split()), self._budget(run, rooms)))

    def _budget(self, run: Run, rooms: Sequence[Room]) -> Budget | None:
        """Return the room of all cues of a run; in the unit of --length or lengthwise.toml if that is tighter."""
        chars, rules = self._chars(rooms), [piece.cue.rule for piece in run.pieces]
        known = [(rule, _share(piece)) for rule, piece in zip(rules, run.pieces, strict=True) if rule is not None]
        units = {rule.unit for rule, _ in known}
        if len(known) < len(rules) or len(units) > 1:
            return None if chars is None else Budget(0, chars)
        low = sum(int(rule.low * share) for rule, share in known)
        if units == {"chars"}:
            low = low if chars is None else min(low, chars)
            return Budget(low, chars) if low or chars else None
        highs = [int(rule.high * share) for rule, share in known if rule.high is not None]
        high = max(1, sum(highs)) if len(highs) == len(known) else None
        [unit], text = units, run.styled.text
        expected = None if high is None else high * width(text) / max(1, UNITS[unit].measure(text))
        if chars is not None and (expected is None or expected >= chars):
            return Budget(0, chars)
        low = low if high is None else min(low, high)
        return Budget(low, high, unit=unit) if low or high else None

    def _chars(self, rooms: Sequence[Room]) -> int | None:
        """Return the characters of all rooms. A text that is shortened need not be longer than it is."""
        if all(room.chars is None for room in rooms):
            return None
        chars = [room.source if room.chars is None else room.chars for room in rooms]
        if self.task.target is not None and any(room.chars is None for room in rooms):
            return None
        return max(1, sum(chars) - BORDER_LOSS * (len(rooms) - 1))

    def plan(self) -> Plan:
        """Ask for the texts, and for translations of the words inside tags, with which they are found again."""
        tagged = [Request(phrase) for text in self.texts for phrase in phrases(text.run.styled)]
        asked = [text.request for text in self.texts if self._is_asked(text)]
        return Plan(unique(asked + (tagged if self.task.target is not None else [])), self._finish(self.texts))

    def _is_asked(self, text: _Text) -> bool:
        """Return whether a text needs an answer. One that is shortened without a budget only gets other lines."""
        return self.task.target is not None or text.request.budget is not None

    def _finish(self, asked: Sequence[_Text]) -> Callable[[Answers], Outcome | Plan]:
        def finish(answers: Answers) -> Outcome | Plan:
            for text in asked:
                self._take(text, answers)
            again = [text for text in self.texts if self._ask_for_less(text)]
            if again:
                return Plan(unique(text.request for text in again), self._finish(again))
            return self._outcome()

        return finish

    def _take(self, text: _Text, answers: Answers) -> None:
        """Use an answer, if it is better than the one before it."""
        answer = answers[text.request] if self._is_asked(text) else Answer(text.request.text)
        if answer.error is not None or not answer.text.strip():
            text.error = answer.error or "the answer is empty"
            return
        changed = changed_placeholders(text.request.text, answer.text)
        if lost := [mark for mark in changed if not _AMOUNT.fullmatch(mark)]:
            text.error = f"placeholders were lost, doubled or misplaced: {', '.join(lost)}"
            return
        before = (text.answer, text.pieces, text.notes)
        excess = self._excess(text) if text.answer is not None else None
        line = " ".join(answer.text.split())
        places = share(line, text.rooms, self.language)

        def known(phrase: str) -> list[str]:
            found = answers.get(Request(phrase))
            return [found.text] if found else []

        styled, moved = place_tags(text.run.styled, line, lambda span: places[text.run.piece_at(span.start)], known)
        pieces = zip((styled.cut(start, end) for start, end in places), text.run.pieces, strict=True)
        text.answer, text.notes = answer, [(text.run.piece_at(span.start), note) for span, note in moved]
        text.pieces = _with_dots(list(pieces))
        if excess is not None and self._excess(text) >= excess:
            text.answer, text.pieces, text.notes = before

    def _cue(self, cue: Cue) -> Styled:
        """Return the text of a cue with the answers so far. If it has the same words and fits, it stays as it is."""
        texts = {}
        for n in cue.speech:
            text = self.by_part.get((cue, n))
            if text is not None and text.answer is not None:
                place = next(k for k, piece in enumerate(text.run.pieces) if (piece.cue, piece.part) == (cue, n))
                texts[n] = text.pieces[place]
            else:
                texts[n] = cue.speech[n]
        new = cue.with_speech(texts, self.style, self.line, self.language)
        same = new.text.split() == cue.styled.text.split() and not cue.notes
        return cue.styled if same and not cue.findings(cue.entry.shown, self.style) else new

    def _excess(self, text: _Text) -> int:
        """Return by how much the cues of a text are outside their limits."""
        return sum(max(1, one.measured - one.allowed) for one in self._found(text))

    def _found(self, text: _Text) -> list[Finding]:
        return [f for piece in text.run.pieces for f in piece.cue.findings(self._cue(piece.cue).text, self.style)]

    def _ask_for_less(self, text: _Text) -> bool:
        """Give the text a request with less room, if that may help: it is over, and the last answer was within."""
        budget, answer = text.request.budget, text.answer
        if budget is None or budget.high is None or answer is None or text.tries >= MAX_TRIES:
            return False
        excess, length = self._excess(text), width(answer.text)
        high = int(min(budget.high, length) - max(excess, text.tries * LESS * budget.high))
        over = any(one.kind != "too-short" for one in self._found(text))
        if not over or budget.unit != "chars" or length > budget.high or high < max(1, budget.low):
            return False
        text.request, text.tries = replace(text.request, budget=Budget(budget.low, high)), text.tries + 1
        return True

    def _outcome(self) -> Outcome:
        changed: dict[Cue, list[_Text]] = {}
        for text in self.texts:
            for piece in text.run.pieces:
                changed.setdefault(piece.cue, []).append(text)
        new, rows = {}, []
        for cue, texts in changed.items():
            styled = self._cue(cue)
            failed = next((text.error for text in texts if text.answer is None), None)
            if failed is None and styled is not cue.styled:
                new[cue.entry] = cue.written(styled)
                failed = self._refused(cue, new)
            rows.append(self._row(cue, texts, styled, failed))
        return Outcome(new, rows, notes=self._notes(list(changed)))

    def _refused(self, cue: Cue, new: dict[Entry, str]) -> str | None:
        """Leave the cue as it is if the file cannot hold its new text, and return why."""
        try:
            written(self.file, cue.entry, new[cue.entry])
        except FormatError as fault:
            del new[cue.entry]
            return fault.reason
        return None

    def _notes(self, cues: Sequence[Cue]) -> list[str]:
        """Return messages on tags that are not where they were, and on repeated texts; the rows name them."""
        timed = sum(bool(cue.notes) for cue in cues)
        moved = {text.run.pieces[n].cue for text in self.texts for n, _ in text.notes}
        notes = [f"the times of single words are left out in {_cues(timed)}"] if timed else []
        notes += [f"tags inside of {_cues(len(moved))} have a new place; --json names them"] if moved else []
        repeated = sum(text.is_repeated for text in self.texts)
        return notes + ([f"texts with fewer words than cues: {repeated:,}; --json names them"] if repeated else [])

    def _row(self, cue: Cue, texts: Sequence[_Text], styled: Styled, error: str | None) -> Row:
        found = cue.findings(styled.text, self.style)
        answers = [text.answer for text in texts if text.answer is not None]
        notes = [error] if error else [one.message for one in found]
        moved = (note for text in texts for n, note in text.notes if text.run.pieces[n].cue is cue)
        notes += [*cue.notes, *dict.fromkeys(moved)]
        notes += notes_on((one.note for one in answers), fits=not found)
        notes += [REPEATED] if any(text.is_repeated for text in texts) else []
        limits = [cue.rule.said] if cue.rule else []
        limits += [f"{style} characters/s" for style in [self.style.cps] if style]
        return Row(
            id=cue.entry.id,
            line=cue.entry.place.line,
            source=cue.entry.shown,
            text=styled.text,
            length=width(styled.text.replace("\n", "")),
            limit=found[0].limit.said if found else ", ".join(limits),
            fits=not found,
            complete=all(one.complete for one in answers),
            note="; ".join(notes) or None,
            changed=error is None,
        )


def _share(piece: Piece) -> float:
    """Return which share of its cue's speech a piece has."""
    whole = sum(width(text.text) for text in piece.cue.speech.values())
    return width(piece.cue.speech[piece.part].text) / max(1, whole)


def _with_dots(pieces: list[tuple[Styled, Piece]]) -> list[Styled]:
    """Return the parts of a text with the dots at their borders, except where the new border ends a sentence."""
    found, ended = [], False
    for text, piece in pieces:
        before = "" if ended else piece.before
        ended = bool(piece.after) and finished(text.text)
        moved = tuple(replace(span, start=span.start + len(before), end=span.end + len(before)) for span in text.spans)
        found.append(Styled(before + text.text + ("" if ended else piece.after), moved))
    return found


def _cues(number: int) -> str:
    return f"{number:,} cue" if number == 1 else f"{number:,} cues"
