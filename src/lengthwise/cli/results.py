"""Print texts as they are done, and count those that have a fault, for `translate`, `shorten` and `write`."""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from ..shortening.note_labels import CHECK, LEFT_OUT, NOT_ENGLISH
from . import terminal
from .input_lines import Reader

if TYPE_CHECKING:
    from ..generation.generator import Written
    from ..shortening.records import Shortened
    from ..translation.line_input import InputLine
    from ..translation.records import Translation

MAX_NAMED = 20  # incomplete lines whose numbers are printed
T = TypeVar("T")
W = TypeVar("W", bound="Written")


class Printer:
    """Prints texts one by one and counts those that do not fit, are not complete, or have another fault."""

    def __init__(self, as_json: bool, stream: TextIO | None = None) -> None:
        self.as_json, self.stream = as_json, stream or sys.stdout
        self.done = self.misfits = self.damaged = self.faulty = self.incomplete = self.errors = 0
        self.with_words_left_out = self.torn = self.foreign = 0

    @property
    def file(self) -> str:
        """The name of the file that is written; "" for stdout."""
        return "" if self.stream is sys.stdout else self.stream.name

    @property
    def all_well(self) -> bool:
        return not (self.faulty or self.incomplete or self.errors)

    def print(self, line: str) -> None:
        print(line, file=self.stream, flush=True)

    def show(self, one: "Written", **place: str) -> None:
        """Print a text after its `place`, such as the name of its file."""
        self._count(one)
        if self.as_json:
            self.print(json.dumps(place | one.as_json(), ensure_ascii=False))
        else:
            self.print("\t".join([*place.values(), one.text]))

    def show_alone(self, one: "Written", dim: bool, **place: str) -> None:
        """Print the result for one text, and its verdict. An error has no text, so only JSON shows it on stdout."""
        if one.error is None or self.as_json:
            self.show(one, **place)
        else:
            self._count(one)
        terminal.print_verdict(one, dim=dim)

    def _count(self, one: "Written") -> None:
        self.done += 1
        if one.error is not None:
            self.errors += 1
            return
        intact = getattr(one, "intact", True)
        self.misfits += not one.fits
        self.damaged += not intact
        self.faulty += not (one.fits and intact)
        self.incomplete += one.fits and not one.complete
        note = getattr(one, "note", None)
        self.with_words_left_out += one.fits and names_omissions(note)
        self.torn += one.fits and says_torn(note)
        self.foreign += says_foreign(note)


def show_all(
    batches: Iterable[tuple[Sequence[T], Iterable[W]]],
    reader: Reader,
    printer: Printer,
    words: tuple[str, str],
    show: Callable[[int, T, W], None],
    each: int = 1,
) -> None:
    """Call `show` with the number of each row, from 0, the row and its text. Show how many lines are done.

    `words`: such as "translating" and "translated". `each`: rows of a line.
    """
    number = 0
    hidden = printer.stream.isatty()  # on a terminal, the lines show the progress
    stopped = terminal.report_interrupt(lambda: reader.progress(printer.done // each, words[1], printer.file))
    with stopped, terminal.progress_bar(disable=hidden) as bar:
        task = bar.add_task(words[0], total=None)
        for rows, texts in batches:
            for row, one in zip(rows, texts, strict=True):
                show(number, row, one)
                number += 1
                bar.update(task, completed=number // each, total=reader.seen)


def print_lines(
    batches: "Iterable[tuple[Sequence[InputLine], Iterable[Translation | Shortened]]]",
    reader: Reader,
    printer: Printer,
    words: tuple[str, str],
    each: int = 1,
) -> list[int]:
    """Print the results of lines; messages name the lines that have a fault.

    Return the numbers of the lines whose text has no other fault than that it is not complete.
    """
    names, incomplete = getattr(reader, "names", []), []

    def show(number: int, line: "InputLine", one: "Translation | Shortened") -> None:
        n, again = divmod(number, each)
        where = names[n] if names else f"line {n + 1}"
        if line.is_header:
            if not (again or printer.as_json):
                printer.print(line.text)
            return
        place: dict[str, Any] = {"file": where} if len(names) > 1 else {}
        printer.show(one, **place)
        if not (one.fits and one.intact):
            if not printer.as_json:
                terminal.print_message(f"{where}: {one.error or terminal.verdict(one)}")
        elif not one.complete:
            incomplete.append(n + 1)

    show_all(batches, reader, printer, words, show, each)
    return incomplete


def name_incomplete(numbers: Sequence[int], reader: Reader, done: str) -> None:
    """Print how many of the texts that are `done` fit but are not complete, and their lines or files."""
    if not numbers:
        return
    lines, names = list(dict.fromkeys(numbers)), getattr(reader, "names", [])  # a line may have several texts
    places = [names[n - 1] if names else str(n) for n in lines[:MAX_NAMED]] + ["..."] * (len(lines) > MAX_NAMED)
    where = "" if names else "line " if len(lines) == 1 else "lines "
    what = "fits but is not complete" if len(numbers) == 1 else "fit but are not complete"
    terminal.print_message(f"of {done}, {len(numbers)} {what}: {where}{', '.join(places)}")


def names_omissions(note: str | None) -> bool:
    """Return whether a note says which words of the source are left out."""
    return _has_part(note, LEFT_OUT)


def says_torn(note: str | None) -> bool:
    """Return whether a note of `shorten` says which words may not belong together.

    >>> says_torn("left out: if; check: {n} and"), says_torn("left out: check: {n}")
    (True, False)
    """
    return _has_part(note, CHECK)


def says_foreign(note: str | None) -> bool:
    """Return whether a note of `shorten` says that the text may not be English."""
    return _has_part(note, NOT_ENGLISH)


def _has_part(note: str | None, label: str) -> bool:
    """Return whether a part of a note has this label, or is this label."""
    return any(part == label or part.startswith(f"{label}: ") for part in (note or "").split("; "))


def doubts(torn: int, foreign: int) -> list[str]:
    """Return the parts of a message for texts that may be ungrammatical, and for those that may not be English.

    >>> doubts(1, 0), doubts(0, 2)
    (['1 may be ungrammatical (--json says where: check)'], ['2 may not be English, for which shorten is made'])
    """
    parts = [f"{torn:,} may be ungrammatical (--json says where: check)"] if torn else []
    return parts + ([f"{foreign:,} may not be English, for which shorten is made"] if foreign else [])


def words_left_out(number: int) -> str:
    """Return the part of a message for texts whose notes name words that are left out.

    >>> words_left_out(1), words_left_out(1200)
    ('1 leaves words out (--json names them)', '1,200 leave words out (--json names them)')
    """
    return f"{number:,} {'leaves' if number == 1 else 'leave'} words out (--json names them)"


def name_words_left_out(printer: Printer, done: str) -> None:
    """Print how many of the texts that are `done` leave words of their source out."""
    if printer.with_words_left_out and not printer.as_json:
        terminal.print_message(f"of {done}, {words_left_out(printer.with_words_left_out)}")
