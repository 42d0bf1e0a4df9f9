"""Contrastive test sets: a source, its translation, and wrong translations that differ in one point.

Two formats are read. ContraPro's JSON (Müller et al. 2018; Lopes et al. 2020 for French) is one list of objects:

    {"src segment": ..., "ref segment": ..., "errors": [{"contrastive": ...}, ...],
     "src pronoun": "it", "ref pronoun": "er", "ante distance": 1, ...}

Its context is in two other files, which its script json2text_and_context.pl writes: for the reference and again for
each error the same N lines, an empty one where the document has begun. JSON Lines of this project have one item a line:

    {"source": ..., "reference": ..., "contrasts": [...], "context": [[source, target], ...],
     "phenomenon": "pronoun", "distance": 1}
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .document import DataError
from .lines import Malformed, lines

Pair = tuple[str, str]  # source and target


@dataclass(frozen=True)
class Contrast:
    """A source with its right translation and wrong ones, the sentences before it, and the groups it belongs to."""

    source: str
    reference: str
    contrasts: tuple[str, ...]
    context: tuple[Pair, ...] = ()  # the nearest sentence is the last
    groups: dict[str, str] = field(default_factory=dict)  # {"pronoun": "it:er", "distance": "1"}


def read_contrasts(path: Path, context: tuple[Path, Path] | None = None) -> list[Contrast]:
    """Return the items of a test set. `context`: ContraPro's files with the context of the sources and the targets."""
    found = [_contrast(row, f"{path}, item {number}") for number, row in enumerate(_rows(path), 1)]
    if not found:
        raise DataError(f"{path} has no items")
    return found if context is None else _with_context(found, *context)


def _rows(path: Path) -> list[Any]:
    texts = [_text(line) for _, line in lines(path)]
    try:
        if path.name.removesuffix(".gz").endswith((".jsonl", ".ndjson")):
            return [json.loads(text) for text in texts if text.strip()]
        rows = json.loads("\n".join(texts))
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}; lines of JSON need a name that ends in .jsonl") from None
    if not isinstance(rows, list):
        raise DataError(f"{path} must be a list of items, as ContraPro's JSON; got {type(rows).__name__}")
    return rows


def _contrast(row: Any, where: str) -> Contrast:
    try:
        if "src segment" in row:
            wrong = [error["contrastive"] for error in row["errors"]]
            source, reference, context = row["src segment"], row["ref segment"], []
        else:
            source, reference, wrong, context = (
                row["source"],
                row["reference"],
                row["contrasts"],
                row.get("context", []),
            )
        pairs, groups = tuple((one, other) for one, other in context), _groups(row)
    except (KeyError, TypeError, ValueError) as error:
        expected = "source, reference and contrasts, or src segment, ref segment and errors"
        raise DataError(f"{where} must be an object with {expected}; {type(error).__name__}: {error}") from None
    texts = [source, reference, *wrong, *(text for pair in pairs for text in pair)]
    if not wrong or not isinstance(wrong, list) or not all(isinstance(text, str) for text in texts):
        raise DataError(f"{where} must have texts, and a list of at least one wrong translation")
    return Contrast(source.strip(), reference.strip(), tuple(map(str.strip, wrong)), pairs, groups)


def _groups(row: dict[str, Any]) -> dict[str, str]:
    """Return the groups of an item, those of ContraPro's evaluate.py: pronoun pair, distance 0, 1, 2, 3 or >3."""
    found = {"phenomenon": row["phenomenon"]} if "phenomenon" in row else {}
    if "ref pronoun" in row:
        found["pronoun"] = f"{row.get('src pronoun', 'it')}:{row['ref pronoun']}".lower()
    distance = row.get("ante distance", row.get("distance"))
    if distance is not None:
        found["distance"] = ">3" if distance > 3 else str(distance)
    return found


def _with_context(items: Sequence[Contrast], source: Path, target: Path) -> list[Contrast]:
    sides = [[_text(line).strip() for _, line in lines(path)] for path in (source, target)]
    scored = sum(1 + len(item.contrasts) for item in items)
    if len(sides[0]) != len(sides[1]) or len(sides[0]) % scored or not sides[0]:
        raise DataError(
            f"{source} has {len(sides[0])} lines and {target} has {len(sides[1])}; for {scored} translations they must "
            f"be equally many, N x {scored}: write them with json2text_and_context.pl --context N"
        )
    pairs, n, start, found = list(zip(*sides, strict=True)), len(sides[0]) // scored, 0, []
    for item in items:
        before = tuple(pair for pair in pairs[start : start + n] if all(pair))  # empty: the document has begun
        found.append(replace(item, context=before))
        start += n * (1 + len(item.contrasts))
    return found


def _text(line: str | Malformed) -> str:
    if isinstance(line, Malformed):
        raise DataError(str(line))
    return line
