"""Findings of `check` as a table, JSON, SARIF 2.1.0 (code scanning) or annotations of GitHub Actions."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..version import __version__
from .terminal import counted

if TYPE_CHECKING:
    from ..formats.base import FormatError, Limit
    from ..formats.check import Finding

_RULES = {
    "too-long": "The text is longer than its limit.",
    "too-short": "The text is shorter than its limit.",
    "too-many-lines": "The text has more lines than its limit.",
    "unreadable": "The file cannot be read.",
}
_WIDTH = 40  # of a key in the table


@dataclass
class Report:
    """What was checked, and what was found. `uncounted`: limits in pixels and the like, with their files and keys."""

    files: int = 0
    texts: int = 0
    limited: int = 0
    findings: "list[Finding]" = field(default_factory=list)
    errors: "list[FormatError]" = field(default_factory=list)
    uncounted: "list[tuple[str, str, Limit]]" = field(default_factory=list)

    @property
    def summary(self) -> str:
        """'2 of 130 texts are outside their limits; 96 have a limit; 3 files'"""
        over = len({(found.file, found.line, found.id) for found in self.findings})
        limited = counted(self.limited, "text with a limit is", "texts with a limit are")
        return f"{over:,} of {limited} outside it ({counted(self.texts, 'text')}, {counted(self.files, 'file')})"


def table(report: Report) -> str:
    """Return one line for each finding: place, key, what was measured, and who says so."""
    rows = [(f"{one.file}:{one.line}", _short(one.id), one.message, one.limit.origin) for one in report.findings]
    if not rows:
        return ""
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = (
        "  ".join([*(cell.ljust(width) for cell, width in zip(row[:3], widths, strict=True)), row[3]]) for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def _short(key: str) -> str:
    line = " ".join(key.split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


def as_json(report: Report) -> str:
    """Return an object with the counts, the findings and the errors."""
    found = [
        {"kind": one.kind, "file": one.file, "line": one.line, "id": one.id, "text": one.text}
        | {"measured": one.measured, "allowed": one.allowed, "unit": one.unit, "limit": _limit(one.limit)}
        for one in report.findings
    ]
    value = {"files": report.files, "texts": report.texts, "limited": report.limited, "findings": found}
    value["errors"] = [{"file": error.path, "line": error.line, "reason": error.reason} for error in report.errors]
    value["uncounted"] = [{"file": file, "id": key, "limit": _limit(limit)} for file, key, limit in report.uncounted]
    return json.dumps(value, ensure_ascii=False)


def _limit(limit: "Limit") -> dict[str, Any]:
    numbers = {"low": limit.low, "high": limit.high, "unit": limit.unit, "lines": limit.lines}
    return numbers | {"each_line": limit.each_line, "said": limit.said, "file": limit.file, "line": limit.line}


def sarif(report: Report) -> str:
    """Return a log that GitHub, GitLab and editors show beside the lines."""
    results = [_result(one.kind, one.file, one.line, f"{one.id}: {_told(one)}") for one in report.findings]
    results += [_result("unreadable", error.path, error.line, error.reason) for error in report.errors]
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in _RULES.items()]
    driver = {"name": "lengthwise", "version": __version__, "rules": rules}
    log = {"version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps({"$schema": "https://json.schemastore.org/sarif-2.1.0.json"} | log, ensure_ascii=False, indent=1)


def _result(rule: str, file: str, line: int, message: str) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": file}, "region": {"startLine": max(line, 1)}}
    return {
        "ruleId": rule,
        "level": "error",
        "message": {"text": message},
        "locations": [{"physicalLocation": place}],
    }


def github(report: Report) -> str:
    """Return workflow commands, which GitHub Actions shows as annotations of the lines."""
    lines = [_command(one.file, one.line, one.kind, f"{one.id}: {_told(one)}") for one in report.findings]
    lines += [_command(error.path, error.line, "unreadable", error.reason) for error in report.errors]
    return "\n".join(lines)


def _command(file: str, line: int, title: str, message: str) -> str:
    data = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    path = file.replace("%", "%25").replace(",", "%2C").replace(":", "%3A")
    return f"::error file={path},line={max(line, 1)},title={title}::{data}"


def _told(one: "Finding") -> str:
    return f"{one.message}; {one.limit.origin}"


REPORTS: dict[str, Callable[[Report], str]] = {"table": table, "json": as_json, "sarif": sarif, "github": github}
