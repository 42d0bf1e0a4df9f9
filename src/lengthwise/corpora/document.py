"""Documents: parallel segments, and the JSON rows they are read from.

A translated text is a document of (source, target) segments in order. A sentence pair, an instruction (prompt,
response) and a title (text, title) are documents of one segment.
"""

from dataclasses import dataclass
from typing import Any

PAIRS = (("source", "target"), ("prompt", "response"), ("text", "title"))
_REVERSED = ("target", "source")  # as fields of a row with "segs": swap the two sides


class DataError(ValueError):
    """A corpus cannot be read, or should not be used as it is."""


class NoFile(DataError):
    """A corpus file does not exist."""


class RowError(ValueError):
    """A row cannot be read as a document. The message is the reason; the file reader adds file and line."""


@dataclass(frozen=True)
class Document:
    """Segments (source, target) that belong together, in order.

    >>> Document("greeting", (("Hello!", "Ciao!"), ("How are you?", "Come stai?"))).row()
    {'id': 'greeting', 'segs': [['Hello!', 'Ciao!'], ['How are you?', 'Come stai?']]}
    """

    id: str
    segments: tuple[tuple[str, str], ...]
    finished: bool = True  # False if the target was cut before its end
    usual: bool = True  # False if the target is shorter than it would be without a length

    def row(self) -> dict[str, Any]:
        """Return the row of this document in a JSON Lines file."""
        return {"id": self.id, "segs": [list(pair) for pair in self.segments]}


def document(row: Any, fields: tuple[str, str] | None, default_id: str) -> Document:
    """Return the document in a row (a JSON object), from the named `fields` or else from the first known pair."""
    if not isinstance(row, dict):
        raise RowError(f"expected an object with named fields; got {_kind(row)}")
    name = row.get("id")
    if not isinstance(name, str | int | None) or isinstance(name, bool):
        raise RowError(f"id must be a string or a number; got {_kind(name)}")
    id_ = default_id if name is None else str(name)
    reverse = fields == _REVERSED and "target" not in row
    if "segs" in row and (fields is None or reverse):
        segments = _segments(row["segs"])
        return Document(id_, tuple((target, source) for source, target in segments) if reverse else segments)
    names = fields or next((pair for pair in PAIRS if pair[0] in row and pair[1] in row), None)
    if names is None:
        known = ", ".join(" + ".join(pair) for pair in (*PAIRS, ("segs",)))
        raise RowError(f"found the fields {', '.join(map(str, row)) or '(none)'}; expected {known}, or name them")
    marks = {mark: row.get(mark) is not False for mark in ("finished", "usual")}
    return Document(id_, ((_field(row, names[0]), _field(row, names[1])),), **marks)


def _segments(value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, list) or not value:
        raise RowError(f"segs must be a list of [source, target] pairs; got {_kind(value)}")
    for number, pair in enumerate(value, 1):
        if not isinstance(pair, list) or len(pair) != 2:
            found = f"a list of {len(pair)}" if isinstance(pair, list) else _kind(pair)
            raise RowError(f"segment {number} must be [source, target]; got {found}")
    return tuple((_text(s, f"segment {n}"), _text(t, f"segment {n}")) for n, (s, t) in enumerate(value, 1))


def _field(row: dict[str, Any], name: str) -> str:
    """Return the text called `name`. "translation.en" is the field en of the object translation, as in hub corpora."""
    value: Any = row
    for part in [name] if name in row else name.split("."):
        if not isinstance(value, dict) or part not in value:
            raise RowError(f"no field {name!r}; found {', '.join(map(str, row)) or '(none)'}")
        value = value[part]
    return _text(value, name)


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise RowError(f"{what} must be a string; got {_kind(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:  # JSON can contain half of a surrogate pair
        raise RowError(f"{what} contains half a character (a lone surrogate)") from None
    return value


def _kind(value: Any) -> str:
    if value in ([], {}):
        return "an empty list" if value == [] else "an empty object"
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
