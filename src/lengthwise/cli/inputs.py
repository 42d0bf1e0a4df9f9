"""What `translate`, `shorten` and `write` are given: a text, lines, articles, string files, or a document."""

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from . import localise, terminal
from .input_lines import FileLines, Reader, StdinLines, WholeFiles

# A sentence of a script without spaces may have a slash and a full stop, so the name in a folder is of ASCII letters.
_FILE_NAME = re.compile(r"\S+\.(?:txt|md|markdown|tsv|tab|gz)|[!-~]*/[!-~]*\.[a-z][a-z0-9]{0,7}", re.IGNORECASE)


@dataclass(frozen=True)
class Input:
    """What the argument of a command names. `path`: its file or folder; None for a text and for stdin.

    `kind`: "whole" is one or more articles, "files" string or subtitle files. `in_columns`: lines have a length each.
    """

    kind: Literal["text", "lines", "whole", "files", "document"]
    text: str
    path: Path | None = None
    in_columns: bool = False

    @property
    def files(self) -> Path | None:
        """The string file, or the folder of string files."""
        return self.path if self.kind == "files" else None

    def lines(self) -> Reader | None:
        """Return what reads the lines, or None if there are none. From now on stdin is read, while a model loads."""
        if self.kind == "whole":
            return WholeFiles(self.text)
        if self.kind == "lines":
            return FileLines(self.path) if self.path else StdinLines()
        return None


def read_argument(text: str, out: Path | None, *, tsv: bool, folders: bool) -> Input:
    """Return what an argument names. `tsv`: no string file; `folders`: a folder is one of string files."""
    need_text(text)
    if text == "-":
        return Input("lines", text, in_columns=tsv)
    need_file(text, out)
    if not tsv and (strings := localise.string_files(text, folders)):
        return Input("files", text, strings)
    if (file := terminal.existing_file(text)) is None:
        return Input("text", text)
    return Input("lines", text, file, tsv or file.name.endswith((".tsv", ".tsv.gz")))


def need_text(text: str) -> None:
    """Raise if an argument is empty or not UTF-8."""
    if not text.strip():
        raise terminal.UsageError("the text is empty; give a text, a file, or - to read stdin")
    need_utf8(text)


def need_utf8(argument: str) -> None:
    """Raise if an argument is not UTF-8."""
    terminal.decode(argument.encode("utf-8", "surrogateescape"), "an argument")


def need_file(text: str, out: Path | None = None, meant: str = "text") -> None:
    """Raise if an argument looks like the name of a file or of a folder, but is none. `meant`: "text" or "prompt"."""
    if terminal.existing_file(text) is None and _is_name(text, out):
        raise terminal.UsageError(f"there is no file {text!r}; if it is a {meant}, give - and the {meant} on stdin")


def _is_name(text: str, out: Path | None) -> bool:
    """Return whether a text looks like the name of a file or of a folder, but no such folder exists."""
    if "://" in text or len(text.split()) != 1:
        return False
    is_folder = text.endswith("/") or ("/" in text and out is not None and not out.suffix)
    with suppress(OSError, ValueError):  # the text is too long for a name
        named = _FILE_NAME.fullmatch(text) or localise.is_string_file(Path(text))
        return bool(is_folder or named) and not Path(text).is_dir()
    return False
