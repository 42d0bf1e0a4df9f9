"""Plans: which texts of a file are to be translated or shortened, and what their results change in the file.

file ── planner ──> Plan.requests ── translator ──> Plan.finish(answers) ──> Outcome ── splice ──> bytes
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..formats.base import Edit, Entry
from ..formats.rules import Rule
from ..formats.subtitles import Style
from ..length.budget import Budget
from ..translation.records import NO_FIT


@dataclass(frozen=True)
class Task:
    """What is to be done with a file.

    `target`: the language to translate to; None: the texts are shortened in their own language, `source`.
    `length`: a limit that replaces those of the file and of `rules`, which are those of lengthwise.toml. `style`: the
    limits of subtitles, which apply beside them.
    `again`: texts that have a translation are translated again, unless they are approved.
    """

    target: str | None
    source: str = "en"
    length: Rule | None = None
    rules: Sequence[Rule] = ()
    style: Style | None = None
    again: bool = False


@dataclass(frozen=True)
class Request:
    """A text to translate or to shorten. `budget`: in counts, not relative to a source; None: any length."""

    text: str
    budget: Budget | None = None


@dataclass(frozen=True)
class Answer:
    """The result for a request; if nothing complete fits, its text is longer. With an `error` it is empty.

    `down`: the model behind an API could not be used; another run may get an answer.
    """

    text: str
    complete: bool = True
    note: str | None = None
    error: str | None = None
    down: bool = False


Answers = Mapping[Request, Answer]


def notes_on(notes: Iterable[str | None], fits: bool) -> list[str]:
    """Return a translator's notes, each once, for a text that `fits` its place or does not.

    The budget of a request may be tighter than the limits of the place. A text that fits the place must not be reported
    as one that does not fit.
    """
    kept = ("; ".join(p for p in (note or "").split("; ") if not (fits and p == NO_FIT)) for note in notes)
    return list(dict.fromkeys(filter(None, kept)))


@dataclass(frozen=True)
class Row:
    """What became of one text: a line of the report. `limit`: 'at most 20 chars', or empty.

    `note`: what is wrong, or what the translator did. `changed`: the text was written into the file.
    """

    id: str
    line: int
    source: str
    text: str
    length: int
    unit: str = "chars"
    limit: str = ""
    fits: bool = True
    complete: bool = True
    note: str | None = None
    changed: bool = True

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Outcome:
    """What a plan changes: new texts of entries, and other edits, such as flags and the language of the file.

    `rows`: one for each text that was asked for, in the order of the file. `notes`: messages about the file as a whole.
    """

    texts: Mapping[Entry, str]
    rows: Sequence[Row]
    edits: Sequence[Edit] = ()
    notes: Sequence[str] = ()

    @property
    def misfits(self) -> list[Row]:
        """The texts that do not fit, are not complete, or could not be written."""
        return [row for row in self.rows if not (row.fits and row.complete and row.changed)]


@dataclass(frozen=True)
class Plan:
    """The requests of a file, each once, and what to do with their answers.

    `finish` takes the answers to these requests, and to those of the plans before it. It returns the outcome, or a
    further plan if other texts must be asked for, such as a shorter form of one that is still too long.
    """

    requests: Sequence[Request]
    finish: Callable[[Answers], "Outcome | Plan"]


def unique(requests: Iterable[Request]) -> list[Request]:
    """Return the requests in order, each once, without texts that have nothing to translate."""
    return list(dict.fromkeys(request for request in requests if request.text.strip()))
