"""Readers: stream the documents of corpora in several formats.

    read("corpus.jsonl.gz")               {"id", "segs": [[s, t], …]}, {"source", "target"}, {"prompt", "response"},
                                          {"text", "title"}, or the two fields you name
    read("corpus.tsv")                    two columns; a header is recognised by its names
    read("corpus.en,corpus.it")           line n of one file is the translation of line n of the other
    read("hf:owner/name:train")           a hub dataset, streamed (needs the `datasets` library)
    read(["a.jsonl", "more/*.tsv.gz"])    several, one after the other

A new file format is a function from a path to rows and a line in `FORMATS`.
"""

import glob
import importlib
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from .document import PAIRS, DataError, Document, NoFile, RowError, document
from .filters import HashSet, Limits, Report, drop_malformed, filter_documents
from .lines import Malformed, count, lines

Fields = tuple[str, str] | None
Rows = Iterator[Document | Malformed]
Corpus = tuple[str, Callable[[], Rows]]  # its name in messages, and a function that reads it


def read(
    source: str | Path | Sequence[str | Path],
    *,
    format: str | None = None,
    fields: Fields = None,
    blank_lines: bool = False,
    limits: Limits | None = None,
    report: Report | None = None,
) -> Iterator[Document]:
    """Return the documents of a file, a glob, paired files ("a.en,a.it"), a hub dataset ("hf:owner/name"), or several.

    `format`, one of `FORMATS`, is for files whose name does not show it. `blank_lines`: in paired files, a line that is
    blank on both sides ends a document. `report` is filled in as the documents are read.
    """
    if format is not None and format not in FORMATS:
        raise DataError(f"unknown format {format!r}; the formats are {', '.join(FORMATS)}")
    if fields is not None and (isinstance(fields, str) or len(fields) != 2):
        raise DataError(f"fields must be two names, of the source and of the target; got {fields!r}")
    # Files are looked up now and read later, so that a misspelt name fails in this call.
    sources = [source] if isinstance(source, str | Path) else source
    corpora = [corpus for one in sources for corpus in _corpora(str(one), format, fields, blank_lines)]
    return _stream(corpora, limits or Limits(), Report() if report is None else report)


def _stream(corpora: list[Corpus], limits: Limits, report: Report) -> Iterator[Document]:
    seen, before = HashSet(), report.kept
    for name, rows in corpora:
        yield from filter_documents(drop_malformed(rows(), name, limits, report), limits, report, seen)
    if report.kept == before:
        names = ", ".join(name for name, _ in corpora) or "an empty list of files"
        raise DataError(f"no usable document in {names}:\n{report}\nWhat to do: check the file, its format and fields.")


def _corpora(source: str, format: str | None, fields: Fields, blank_lines: bool) -> list[Corpus]:
    if source.startswith("hf:"):
        try:
            datasets = importlib.import_module("datasets")
        except ImportError:
            raise DataError(f"{source!r} needs the datasets library: pip install datasets") from None
        return [(source, partial(hub_rows, datasets, source.removeprefix("hf:"), fields))]
    if len(names := _sides(source)) > 1:
        sides = [_files(name) for name in names]
        if len(sides) != 2 or len(sides[0]) != len(sides[1]):
            found = " and ".join(str(len(side)) for side in sides)
            raise DataError(f"{source!r} must name two files, or two equal numbers of files; found {found}")
        return [(f"{a},{b}", partial(text_rows, a, b, blank_lines)) for a, b in zip(*sides, strict=True)]
    corpora: list[Corpus] = []
    for file in _files(source):
        name = format or format_of(file)
        if name is None:
            formats = f"give the format ({', '.join(FORMATS)}), or paired text files as 'corpus.en,corpus.it'"
            raise DataError(f"the name {file.name!r} does not show its format; {formats}")
        corpora.append((str(file), partial(FORMATS[name][1], file, fields)))
    return corpora


def missing(source: str) -> list[str]:
    """Return the files that `source` names and that do not exist."""
    return [name for name in _sides(source) if not source.startswith("hf:") and not _matches(name)]


def _sides(source: str) -> list[str]:
    paired = "," in source and not Path(source).exists()
    return [side.strip() for side in source.split(",")] if paired else [source]


def _matches(source: str) -> list[Path]:
    path = Path(source).expanduser()
    if path.exists():
        return [path]
    return sorted(file for file in map(Path, glob.glob(str(path), recursive=True)) if not file.is_dir())


def _files(source: str) -> list[Path]:
    path, files = Path(source).expanduser(), _matches(source)
    if path.is_dir():
        raise DataError(f"{source!r} is a folder; give its files, for example '{source.rstrip('/')}/*.jsonl.gz'")
    if not files:
        hint = f"; a hub dataset is written 'hf:{source}'" if source.count("/") == 1 and not path.suffix else ""
        raise NoFile(f"no file {source!r} (looked from {Path.cwd()}){hint}")
    return files


def format_of(file: Path) -> str | None:
    """Return the format that the name of a file shows, one of `FORMATS`, or None."""
    name = file.name.lower().removesuffix(".gz")
    return next((format for format, (ends, _) in FORMATS.items() if name.endswith(ends)), None)


def jsonl_rows(path: Path, fields: Fields) -> Rows:
    """Yield the row of each line, a JSON object; blank lines are skipped."""
    for number, line in lines(path):
        if isinstance(line, Malformed):
            yield line
        elif line and not line.isspace():
            try:
                yield document(json.loads(line), fields, f"{path.name}:{number}")
            except RowError as error:
                yield Malformed(str(path), number, str(error))
            except (ValueError, RecursionError) as error:
                yield Malformed(str(path), number, f"not JSON: {error}")


def tsv_rows(path: Path, fields: Fields) -> Rows:
    """Yield the row of each line. Only tabs separate columns; a quotation mark is a character of the text."""
    columns: dict[str, int] | None = None
    for number, line in lines(path):
        if isinstance(line, Malformed):
            yield line
            continue
        cells = line.split("\t")
        if columns is None:
            if columns := _header(cells, fields, path):
                continue
            columns = {"source": 0, "target": 1}
        if len(cells) == len(columns):
            row = {name: cells[index] for name, index in columns.items()}
            yield document(row, fields, f"{path.name}:{number}")
        elif line:  # blank lines are skipped
            yield Malformed(str(path), number, f"expected {len(columns)} columns; got {len(cells)}")


def _header(cells: list[str], fields: Fields, path: Path) -> dict[str, int] | None:
    """Return the index of each column if the first line names them, else None."""
    names = [cell.strip() for cell in cells]
    if fields is None:
        names = [name.lower() for name in names]
        known = next((pair for pair in PAIRS if set(pair) <= set(names)), None)
        # Besides a pair only "id" is accepted: with other words the line may be a row of text.
        if known is None or set(names) - {*known, "id"}:
            return None
    elif not set(fields) <= set(names):
        raise DataError(f"{path} has no columns {' and '.join(fields)}; its first line is {' | '.join(names)}")
    return {name: index for index, name in enumerate(names)}


def text_rows(left: Path, right: Path, blank_lines: bool = False) -> Rows:
    """Return the pairs of two files, line by line; with `blank_lines`, a line blank in both ends a document."""
    here, there = count(left), count(right)
    if here != there:  # checked first: after a missing line, every pair would be wrong
        rule = "line n of one must translate line n of the other"
        raise DataError(f"{left} has {here:,} lines and {right} has {there:,}; {rule}")
    return _by_document(_line_pairs(left, right)) if blank_lines else _line_pairs(left, right)


def _line_pairs(left: Path, right: Path) -> Rows:
    for (number, source), (_, target) in zip(lines(left), lines(right), strict=True):
        if isinstance(source, Malformed):
            yield source
        elif isinstance(target, Malformed):
            yield target
        else:
            yield Document(f"{left.name}:{number}", ((source, target),))


def _by_document(rows: Rows) -> Rows:
    """Join the pairs between blank lines. A malformed line makes its whole document malformed."""
    pairs: list[Document] = []
    bad: list[Malformed] = []
    for row in itertools.chain(rows, [Document("", (("", ""),))]):
        if isinstance(row, Malformed):
            bad.append(row)
        elif any(text.strip() for text in row.segments[0]):
            pairs.append(row)
        else:
            if bad:
                yield bad[0]
            elif pairs:
                yield Document(pairs[0].id, tuple(pair.segments[0] for pair in pairs))
            pairs, bad = [], []


def hub_rows(datasets: Any, name: str, fields: Fields) -> Rows:
    """Stream a hub dataset: owner/name, owner/name:split or owner/name/configuration:split."""
    path, _, split = name.partition(":")
    owner_and_name, configuration = "/".join(path.split("/")[:2]), "/".join(path.split("/")[2:])
    number = 0
    try:
        stream = datasets.load_dataset(owner_and_name, configuration or None, split=split or "train", streaming=True)
        for number, row in enumerate(stream, 1):
            try:
                yield document(row, fields, f"{name}:{number}")
            except RowError as error:
                yield Malformed(f"hf:{name}", number, str(error))
    except Exception as error:  # the errors of the library have no common base class
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        problem = f"cannot read the hub dataset {name!r} (after {number:,} rows): {reason}"
        advice = "check the spelling, the split and the network; a private dataset needs `hf auth login`."
        raise DataError(f"{problem}\nWhat to do: {advice}") from error


FORMATS: dict[str, tuple[tuple[str, ...], Callable[[Path, Fields], Rows]]] = {  # name: (ends of file names, reader)
    "jsonl": ((".jsonl", ".ndjson", ".json"), jsonl_rows),
    "tsv": ((".tsv", ".tab"), tsv_rows),
}
