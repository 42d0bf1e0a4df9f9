"""Rules of the user: limits for files and keys, from the tables [[limits]] of lengthwise.toml.

[[limits]]
files = "*/strings.xml"      # optional, as are keys
keys = "menu_*"
length = "at most 20 chars"
lines = 1                    # optional
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .base import Entry, Limit

if TYPE_CHECKING:
    from ..length.budget import Budget

NAME = "lengthwise.toml"
_FIELDS = {"files", "keys", "length", "lines"}


@dataclass(frozen=True)
class Rule:
    """A budget for the entries whose file and key match the patterns.

    `min_limit`: a budget relative to the source allows at least this length.
    """

    budget: "Budget"
    said: str
    file: str = ""
    line: int = 0
    files: str = "*"
    keys: str = "*"
    lines: int | None = None
    min_limit: int = 0

    def matches(self, path: str, key: str) -> bool:
        return fnmatchcase(key, self.keys) and any(fnmatchcase(path, form) for form in (self.files, f"*/{self.files}"))

    def limit(self, source: str | None) -> Limit:
        """Return the limit for an entry with this source text, which a budget such as 1.1x needs."""
        if self.budget.of_source and source is None:
            raise ValueError(f"{self.said} is relative to a source; give the source file with --against")
        if self.budget.of_source and not (source or "").strip():
            return Limit(None, self.budget.unit, self.said, self.file, self.line)
        budget = self.budget.resolve(source or "").widened(self.min_limit) if self.budget.of_source else self.budget
        high = None if budget.high is None else int(budget.high)
        return Limit(high, budget.unit, self.said, self.file, self.line, int(budget.low), self.lines)


def read_rules(path: Path) -> list[Rule]:
    """Return the rules of a file; the errors name the table that is wrong."""
    import tomllib

    text = path.read_text("utf-8-sig")
    try:
        tables = tomllib.loads(text).get("limits", [])
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: {error}") from None
    if not isinstance(tables, list):
        raise ValueError(f"{path}: limits must be tables, each with the head [[limits]]")
    heads = [
        text.count("\n", 0, found.start()) + 1 for found in re.finditer(r"^[ \t]*\[\[\s*limits\s*\]\]", text, re.M)
    ]
    lines = [*heads, *[0] * len(tables)]
    return [_rule(path, table, line) for table, line in zip(tables, lines, strict=False)]


def _rule(path: Path, table: Any, line: int) -> Rule:
    from ..length.budget import Budget  # here, because most projects have no rules and start faster without it

    where = f"{path}:{line}"
    if not isinstance(table, dict) or set(table) - _FIELDS or not isinstance(table.get("length"), str):
        raise ValueError(
            f"{where}: a table of limits has length, and may have {', '.join(sorted(_FIELDS - {'length'}))}"
        )
    if not all(isinstance(table.get(name, ""), str) for name in ("files", "keys")):
        raise ValueError(f'{where}: files and keys are patterns such as "menu_*"')
    lines = table.get("lines")
    if lines is not None and (not isinstance(lines, int) or lines < 1):
        raise ValueError(f"{where}: lines must be a whole number, at least 1; got {lines!r}")
    try:
        budget = Budget.parse(table["length"])
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    files, keys = table.get("files", "*"), table.get("keys", "*")
    return Rule(budget, f'length = "{table["length"]}"', path.as_posix(), line, files, keys, lines)


def limits_for(path: str, entry: Entry, rules: Sequence[Rule], source: str | None) -> list[Limit]:
    """Return the limit of the last rule that matches, or none."""
    matching = [rule for rule in rules if rule.matches(path, entry.id)]
    return [matching[-1].limit(source)] if matching else []
