"""Input lines: parse lines of text or of tab-separated columns into texts with their budgets."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..length.budget import Budget, as_budget
from ..length.units import unit_named

if TYPE_CHECKING:
    from .endpoint import EndpointTranslator
    from .records import Translation
    from .translator import Translator


HEADERS = ("length", "limit")  # of the column with the lengths


@dataclass(frozen=True)
class InputLine:
    """One line of input. A header is copied to the output."""

    text: str
    budget: Budget | str | None = None
    error: str | None = None
    is_header: bool = False


class LineParser:
    """Parses lines in order: each is a text, or with `in_columns` a text, a tab and its length.

    `length`: the budget of lines that have none. `unit`: "42" as a length means at most 42 of this unit.
    """

    def __init__(self, length: str, unit: str, in_columns: bool) -> None:
        self.unit = unit_named(unit).name if unit else ""
        self.budget = as_budget(self._with_unit(length)) if length else None
        self.in_columns, self.column = in_columns, 1
        self.started = False

    def parse(self, lines: Iterable[tuple[str, str | None]]) -> list[InputLine]:
        """Return one row per (line, error). A line that cannot be read is a row with an error: row n is line n."""
        return [InputLine(line, error=error) if error else self._parse(line) for line, error in lines]

    def _parse(self, line: str) -> InputLine:
        first, self.started = not self.started, True
        if not self.in_columns:
            return InputLine(line, self.budget)
        cells = line.split("\t")
        names = [cell.strip().lower() for cell in cells]
        if first and (known := next((name for name in HEADERS if name in names[1:]), None)):
            self.column = names.index(known, 1)
            return InputLine(cells[0], is_header=True)
        length = cells[self.column].strip() if len(cells) > self.column else ""
        try:
            return InputLine(cells[0], self._with_unit(length) if length else self.budget)
        except ValueError as error:
            return InputLine(cells[0], length, str(error))

    def _with_unit(self, length: str) -> str:
        """Return 'at most 42 chars' for '42' if the unit is chars, and other lengths unchanged."""
        if not length.strip().isdecimal():
            return length
        if not self.unit:
            raise ValueError(f"{length!r} has no unit; write 'at most {length} chars', or give --unit chars")
        return f"at most {length} {self.unit}"


def translate_lines(
    translator: "Translator | EndpointTranslator", lines: Sequence[InputLine]
) -> "Iterator[Translation]":
    """Yield one translation per line, as soon as it is found.

    Headers and lines with an error are translated as empty lines.
    """
    texts = ["" if line.error or line.is_header else line.text for line in lines]
    budgets = [None if line.error else line.budget for line in lines]
    size = translator.at_once(any(budgets))
    for start in range(0, len(lines), size):
        found = translator.translate(texts[start : start + size], budgets[start : start + size])
        for line, one in zip(lines[start : start + size], found, strict=True):
            if line.error is not None:
                text, asked = line.text, str(line.budget or "")
                one = replace(
                    one, source=text, budget=asked, error=line.error, fits=False, complete=False, intact=False
                )
            yield one
