"""Translate a text or Markdown file as a whole, for the command `translate`: the document, its rows, and its counts."""

import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from . import terminal
from .progress import TextProgress
from .results import names_omissions, words_left_out

if TYPE_CHECKING:
    from ..length.budget import Budget
    from ..scoring.reverse import ReverseModel
    from ..translation import Translator
    from ..translation.document import TranslatedDocument

STDIN = Path("-")
MAX_NAMED = 20  # sentences with a fault that are printed
_TEXTS = ("", ".txt", ".text")
BATCH_SIZE = 32  # sentences that are translated back together


def check_document(path: Path | None, text: str, tsv: bool, length: str, per_sentence: bool, context: str) -> None:
    """Raise if the options of a document contradict each other, or there is no such file."""
    if context:
        from ..translation.records import CONTEXTS  # here: numpy, which other commands do not need

        if context not in CONTEXTS:
            raise terminal.UsageError(f"--context is one of {', '.join(CONTEXTS)}; got {context!r}")
    if path and (text or tsv):
        raise terminal.UsageError(f"--document and {'--tsv' if tsv else 'a text'} exclude each other; give one of them")
    if path and path != STDIN and not path.is_file():
        raise terminal.UsageError(f"--document: there is no file {str(path)!r}")
    if per_sentence and not (path and length):
        raise terminal.UsageError("--per-sentence is for a --document with a --length; give both")
    if context and (per_sentence or not path):
        raise terminal.UsageError("--context is for a --document without --per-sentence")


def translate_document(
    translator: "Translator",
    path: Path,
    budget: "Budget | None",
    out: Path | None,
    per_sentence: bool,
    context: str,
    as_json: bool,
) -> None:
    """Translate a document to `out` or stdout, and print its counts. Exit with 3 if a sentence has a fault.

    `path`: its file; that of stdin is Markdown.
    """
    from ..translation.document_sentences import MARKDOWN  # here: a Markdown parser, which lines do not need
    from ..translation.records import ALONE

    source: Path | str = path
    if path == STDIN:
        with terminal.stdin() as stream:
            source = terminal.decode(stream.read(), "stdin").removesuffix("\n") + "\n"  # a line break makes it a text
    elif path.suffix.lower() not in _TEXTS + MARKDOWN:
        terminal.print_message(f"{path} is read as plain text; Markdown is in {' and '.join(MARKDOWN)} files")
    progress = TextProgress("translating", "translated", "sentences")
    resumes = "the same command resumes" if out else "with --out, the same command would resume"
    with terminal.report_interrupt(lambda: f"stopped at {progress.done}; {resumes}"), progress.bar:
        document = translator.document(
            source, budget, out, per_sentence=per_sentence, context=context, progress=progress.show
        )
    if not as_json and not out:
        document.write(sys.stdout)
    counts: Counter[str] = Counter()
    for row in document.rows():
        if as_json:
            terminal.print_json(row)
        fault = row.get("error") or (None if row["intact"] else row.get("note"))
        if fault and counts["faults"] < MAX_NAMED:
            terminal.print_message(f"line {row['line']}, {_beginning(row['source'])}: {fault}")
        counts["faults"] += fault is not None
        counts["translated"] += "error" not in row
        counts["alone"] += ALONE in row.get("note", "")
        counts["shortened"] += names_omissions(row.get("note"))
        counts.update(name for name in ("intact", "complete", "fits") if row.get(name))
    _report(document, counts, translator.search.channel.reverse)
    if counts["faults"] or not document.fits or counts["complete"] < counts["translated"]:
        raise typer.Exit(terminal.SOME_DO_NOT_FIT)


def _beginning(source: str) -> str:
    """Return the first characters of a sentence, quoted, in one line."""
    flat = " ".join(source.split())
    return repr(flat if len(flat) <= 40 else f"{flat[:40].rstrip()} ...")


def _report(document: "TranslatedDocument", counts: Counter[str], reverse: "ReverseModel | None") -> None:
    """Print the length of a document and how much of it was translated."""
    sizes = (document.sentences, "sentence"), (document.paragraphs, "paragraph")
    size = ", ".join(terminal.counted(number, name) for number, name in sizes)
    fits = f"of {document.budget} · {'fits' if document.fits else 'does not fit'}" if document.budget else document.unit
    terminal.print_message(f"{size} · {document.length} {fits}")
    parts = [f"{counts['translated']:,} of {terminal.counted(document.sentences, 'sentence')} translated"]
    parts += [f"{counts['intact']:,} with all placeholders and numbers", f"{counts['complete']:,} complete"]
    parts += [f"{counts['fits']:,} fit"] if document.each else []
    parts += [f"{counts['alone']:,} alone, where a window had a wrong number of sentences"] if counts["alone"] else []
    parts += [words_left_out(counts["shortened"])] if counts["shortened"] else []
    if reverse is not None and document.sentences:
        parts.append(f"{_coverage(document, reverse):.0%} of the words return in the back-translation")
    terminal.print_message(", ".join(parts))


def _coverage(document: "TranslatedDocument", reverse: "ReverseModel") -> float:
    """Return the share of the source's words that are in the back-translation of their sentence."""
    from ..metrics.coverage import returned

    found = Counter[bool]()
    rows = document.rows()
    while some := list(islice(rows, BATCH_SIZE)):
        for row, back in zip(some, reverse.translate([row["text"] for row in some]), strict=True):
            found.update(returned(row["source"], back))
    return found[True] / max(1, found.total())
