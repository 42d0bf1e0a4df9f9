"""Files: translate or shorten the texts of a file into another file, or in place.

read, plan, ask the model in batches with a journal beside the output, splice, write atomically. The format decides
which planner is used. A file that cannot be read raises an error with its line, and nothing is written.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from .. import atomic
from ..formats import StringFile, read, splice
from ..length.budget import Budget
from ..translation.journal import Journal, is_journal
from .plan import Answer, Outcome, Plan, Request, Task

Ask = Callable[[list[Request]], list[Answer]]
AtOnce = Callable[[bool], int]  # how many texts to ask for between two entries of the journal; whether within a length
Progress = Callable[[int, int], None]  # texts that are done, and all


class FileTranslator(Protocol):
    """What is needed of a translator."""

    @property
    def settings(self) -> dict[str, Any]: ...
    def at_once(self, limited: bool) -> int: ...
    def translate(self, texts: Sequence[str], budgets: Sequence[Budget | None]) -> Sequence[Any]: ...


class FileShortener(Protocol):
    """What is needed of a shortener."""

    model: Any
    writer: Any

    def at_once(self, limited: bool) -> int: ...
    @property
    def shorten(self) -> Callable[..., Sequence[Any]]: ...


@dataclass(frozen=True)
class Localised:
    """A file that was written: the file that was read, and what was changed."""

    file: StringFile
    out: Path
    outcome: Outcome


def translate_file(
    path: Path,
    out: Path,
    translator: FileTranslator,
    task: Task,
    *,
    encoding: str | None = None,
    progress: Progress = lambda done, total: None,
) -> Localised:
    """Translate the texts of a file, and write it to `out`. An interrupted run for the same `out` is resumed."""

    def ask(requests: list[Request]) -> list[Answer]:
        found = translator.translate([one.text for one in requests], [one.budget for one in requests])
        return _answers(found)

    return _localise(path, out, ask, translator.settings, task, encoding, progress, translator.at_once)


def shorten_file(
    path: Path,
    out: Path,
    shortener: FileShortener,
    task: Task,
    *,
    options: dict[str, Any] | None = None,
    encoding: str | None = None,
    progress: Progress = lambda done, total: None,
) -> Localised:
    """Shorten the texts of a file that are too long, and write it to `out`. `options`: those of `Shortener.shorten`."""
    given = options or {}

    def ask(requests: list[Request]) -> list[Answer]:
        budgets = [one.budget for one in requests if one.budget is not None]
        found = shortener.shorten([one.text for one in requests], budgets, **given)
        return _answers(found)

    settings = {"model": shortener.model.name, "writer": shortener.writer.name, **given}
    return _localise(path, out, ask, settings, task, encoding, progress, shortener.at_once)


def _answers(found: Sequence[Any]) -> list[Answer]:
    """Return the results of a model as answers."""
    return [Answer(one.text, one.complete, one.note, one.error, bool(getattr(one, "down", None))) for one in found]


def plan_file(file: StringFile, task: Task, out: Path, encoding: str | None = None) -> Plan:
    """Return the plan of a file, by the planner of its format. `out`: where it will be written."""
    if file.format.is_subtitles:
        from .cues import plan_cues

        return plan_cues(file, task)
    from .strings import plan_strings

    return plan_strings(file, task, out, encoding)


def _localise(
    path: Path,
    out: Path,
    ask: Ask,
    settings: dict[str, Any],
    task: Task,
    encoding: str | None,
    progress: Progress,
    at_once: AtOnce,
) -> Localised:
    before = _bytes(path), _bytes(out)
    file = read(path, data=before[0], encoding=encoding)
    step: Plan | Outcome = plan_file(file, task, out, encoding)
    with closing(_Answers(out, ask, settings, at_once)) as answers:
        while isinstance(step, Plan):
            answers.collect(step.requests, progress)
            step = step.finish(answers.known)
        data = splice(file, step.texts, step.edits)
        for one, old in zip((path, out), before, strict=True):
            if _bytes(one) != old:
                raise ValueError(f"{one} was changed during the run, so nothing is written; repeat the command")
        with atomic.file(out.resolve() if out.is_symlink() else out) as stream:
            stream.write(data)
        answers.forget()
    return Localised(file, out, step)


def _bytes(path: Path) -> bytes | None:
    """Return the content of a file, or None if there is none."""
    return path.read_bytes() if path.exists() else None


class _Answers:
    """The answers so far. They are also in a journal beside the output, from which a killed run is resumed."""

    def __init__(self, out: Path, ask: Ask, settings: dict[str, Any], at_once: AtOnce) -> None:
        self._at_once = at_once
        self.known: dict[Request, Answer] = {}
        self._ask, self._settings, self._path = ask, settings, out.with_name(f"{out.name}.texts.jsonl")
        self._journal: Journal | None = None
        self._rows = 0
        if is_journal(self._path):
            self._resume()

    def _resume(self) -> None:
        self._journal = Journal(self._path, self._settings, alone=True)
        for row in self._journal.rows():
            budget = Budget.parse(row["budget"]) if row["budget"] else None
            self.known[Request(row["source"], budget)] = Answer(**row["answer"])
            self._rows += 1

    def collect(self, requests: Sequence[Request], progress: Progress) -> None:
        """Ask for what is not known yet. If a model behind an API cannot be used, raise; what it answered is kept."""
        open_ = [request for request in requests if request not in self.known]
        total = len(self.known) + len(open_)
        progress(len(self.known), total)
        size = self._at_once(any(request.budget for request in open_))
        for start in range(0, len(open_), size):
            batch = open_[start : start + size]
            answers = dict(zip(batch, self._ask(batch), strict=True))
            if found := {request: answer for request, answer in answers.items() if not answer.down}:
                self._write(found)
            self.known |= found
            progress(len(self.known), total)
            if down := next((answer.error for answer in answers.values() if answer.down), None):
                raise ConnectionError(f"{down}; nothing is written, and the same command resumes")

    def _write(self, found: dict[Request, Answer]) -> None:
        if self._journal is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._journal = Journal(self._path, self._settings, alone=True)
        rows = [
            {"sentence": self._rows + n, "source": request.text, "budget": str(request.budget or "")}
            | {"answer": asdict(answer)}
            for n, (request, answer) in enumerate(found.items(), 1)
        ]
        self._rows += len(rows)
        self._journal.append(rows)

    def forget(self) -> None:
        """Delete the journal, because the output is written."""
        if self._journal is not None:
            self._journal.unlink()

    def close(self) -> None:
        """Let another run resume from the journal."""
        if self._journal is not None:
            self._journal.close()
