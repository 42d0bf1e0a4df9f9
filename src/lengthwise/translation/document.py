"""Documents: a text or Markdown file, translated sentence by sentence in windows, within one budget for the file.

First every sentence is translated freely. If the document does not fit, the sentences with the highest ratio of
translation to source are translated again, at a ratio with which it fits. A journal on disk holds one JSON row per
translation, so memory grows with the window, and an interrupted run is resumed.
"""

import hashlib
import json
import math
import re
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any, Protocol, TextIO

import numpy as np

from .. import atomic
from ..length.budget import Budget, at_most
from ..length.units import unit_named
from ..settings_file import check_settings
from .languages import UNSPACED
from .placeholders import count_placeholders, lost, split_placeholders, translatable
from .prose import Prose, link_references, read_pieces
from .records import Translation
from .segments import split

WINDOW = 128  # sentences that are translated together freely
FIT_WINDOW = 32  # within shares: what the sentences of a window save, the next ones can use
ROUNDS = 4  # passes over the document until it fits
MAX_CHARS = 800  # a longer sentence is translated in parts
_PAUSE = re.compile(r"[,;:、，；：]\s+|[、，；：]")
_CUT_PLACEHOLDER = re.compile(r"(?:[{<]/?a?\d*)?$")  # the first part of one
_TAG = re.compile(r"<(/?)a(\d+)>")

Row = dict[str, Any]
Progress = Callable[[str, int, int], None]  # the stage, sentences done, sentences in all


class LineTranslator(Protocol):
    """What a document needs of a translator."""

    name: str
    target: str
    settings: dict[str, Any]

    def translate(self, texts: list[str], budgets: list[Budget] | None = None) -> list[Translation]: ...


@dataclass(frozen=True)
class Sentence:
    """`prose.text[start:end]`, with its number in the document. `adjoins`: no space is before it in the source."""

    number: int
    paragraph: int
    prose: Prose
    start: int
    end: int
    adjoins: bool = False
    part_of: int = 0  # the length of the long sentence that it is a part of

    @property
    def text(self) -> str:
        return self.prose.received(self.start, self.end)

    @property
    def source(self) -> str:
        return self.prose.source(self.start, self.end)


def read_sentences(path: Path, references: dict[str, Any]) -> Iterator[str | Sentence]:
    """Yield the sentences of a file, and the text between them, in order and without gaps."""
    number = paragraph = 0
    for piece in read_pieces(path, references):
        if isinstance(piece, str):
            yield piece
            continue
        at, first, adjoins = 0, number, False
        for segment in split(piece.text):
            end = at + len(segment.text)
            parts = _parts(piece.text, at, end) if segment.is_sentence else [(at, end)]
            for start, stop in parts:
                if segment.is_sentence and (len(parts) == 1 or translatable(piece.text[start:stop])):
                    length = end - at if len(parts) > 1 else 0
                    yield Sentence(number, paragraph, piece, start, stop, adjoins and start == at, length)
                    number += 1
                else:
                    yield piece.source(start, stop)
            at, adjoins = end, segment.is_sentence
        paragraph += number > first


def _parts(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the sentence and, if it is long, its parts and the spaces between them: cut at commas, else at spaces."""
    found = []
    while end - start > MAX_CHARS:
        stop = start + MAX_CHARS
        pauses = [pause.end() for pause in _PAUSE.finditer(text, start + MAX_CHARS // 4, stop)]
        space = text.rfind(" ", start + 1, stop)
        whole = stop - len(_CUT_PLACEHOLDER.search(text[start:stop])[0])  # type: ignore[index]
        cut = pauses[-1] if pauses else space + 1 if space > 0 else whole
        body = start + len(text[start:cut].rstrip())
        found += [(start, body), (body, cut)]
        start = cut
    return [(a, b) for a, b in [*found, (start, end)] if a < b]


class TranslatedDocument:
    """A document and its journal. `length` is that of the whole output, without white space at its ends."""

    def __init__(
        self, translator: LineTranslator, path: Path, budget: Budget | None, journal: Path | None, progress: Progress
    ) -> None:
        self.path, self.progress, self._translator = path, progress, translator
        self.unit = "chars" if budget is None else budget.unit
        if self.unit == "tokens":
            raise ValueError("the length of a document is not counted in tokens; give chars or words")
        self._count = unit_named(self.unit).count
        self.digest, source_length = _check(path, self._count)
        self._references = link_references(path)
        lengths, extra = array("q"), array("q")  # of each source: with placeholders, and what its markup adds
        self.paragraphs = 0
        for one in self._sentences():
            lengths.append(max(1, self._count(one.text)))
            extra.append(self._count(one.source) - lengths[-1])
            self.paragraphs = one.paragraph + 1
        self.sentences = len(lengths)
        self._sources, self._extra = np.array(lengths, dtype=np.int64), np.array(extra, dtype=np.int64)
        self._lengths, self._stuck = self._sources.copy(), np.zeros(self.sentences, dtype=bool)
        self._fixed = source_length - int(self._sources.sum())  # all that no translation changes
        self.budget = budget.scaled(source_length) if budget is not None and budget.of_source else budget
        smallest = self._fixed + self.sentences
        if self.budget is not None and self.budget.high is not None and self.budget.high < smallest:
            kept = f"what is not translated has {self._fixed} {self.unit}, with {self.sentences} sentences between"
            raise ValueError(f"{path} cannot have {self.budget}: {kept}")
        settings = {"document": self.digest, **translator.settings, "budget": str(budget or "")}
        self._journal = _Journal(journal, self.sentences, settings)
        for row in self._journal.load():
            self._note_length(row)

    @property
    def length(self) -> int:
        return self._fixed + int(self._lengths.sum())

    @property
    def fits(self) -> bool:
        return self.budget is None or self.budget.fits(self.length)

    @property
    def verdict(self) -> str:
        """Return '12 sentences in 3 paragraphs · 800 of at most 900 chars · fits'."""
        size = f"{self.sentences:,} sentences in {self.paragraphs:,} paragraphs · {self.length:,}"
        if self.budget is None:
            return f"{size} {self.unit}"
        return f"{size} of {self.budget} · {'fits' if self.fits else 'does not fit'}"

    def rows(self) -> Iterator[Row]:
        """Yield the row of each sentence, in order: source, text, length, complete, intact, and what is to be noted."""
        return map(self._journal.row, range(self.sentences))

    def write(self, stream: TextIO) -> None:
        """Write the translated document."""
        for one in read_sentences(self.path, self._references):
            stream.write(one if isinstance(one, str) else self._journal.row(one.number)["text"])

    def close(self) -> None:
        """Delete the journal. The rows are gone then."""
        self._journal.delete()

    def __enter__(self) -> "TranslatedDocument":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def translate(self) -> None:
        """Translate the sentences that the journal lacks, then those that must be shorter or longer."""
        todo = (one for one in self._sentences() if not self._journal.has(one.number))
        done = sum(map(self._journal.has, range(self.sentences)))
        for window in _windows(todo, WINDOW):
            found = self._freely(window)
            self._append([self._row(one, translation) for one, translation in zip(window, found, strict=True)])
            done += len(window)
            self.progress("translating", done, self.sentences)
        for _ in range(ROUNDS):
            if self.fits or not self._fit():
                return

    def _sentences(self) -> Iterator[Sentence]:
        return (one for one in read_sentences(self.path, self._references) if isinstance(one, Sentence))

    def _freely(self, window: list[Sentence]) -> list[Translation]:
        """Return free translations. Where markup is lost, the text between it is translated piece by piece."""
        found = self._translator.translate([one.text for one in window])
        torn = [n for n, one in enumerate(window) if not found[n].error and not _keeps_markup(one.text, found[n].text)]
        pieces = {n: [piece for piece, _ in split_placeholders(window[n].text)] for n in torn}
        texts = list(dict.fromkeys(p.strip() for some in pieces.values() for p in some if translatable(p)))
        known = {text: one for text, one in zip(texts, self._translator.translate(texts), strict=True) if not one.error}
        for n in torn:
            joined = "".join(
                piece.replace(piece.strip(), known[piece.strip()].text) if piece.strip() in known else piece
                for piece in pieces[n]
            )
            missing = lost(window[n].text, joined)
            notes = ["the text between its markup was translated in pieces"]
            notes += [f"not as in the source: {', '.join(missing)}"] if missing else []
            found[n] = replace(found[n], text=joined, intact=not missing, note="; ".join(notes))
        return found

    def _fit(self) -> bool:
        """Translate sentences again, within their shares of what the others leave; return whether there are any."""
        assert self.budget is not None
        too_long = self.budget.high is not None and self.length > self.budget.high
        done = tried = 0
        for window in _windows(self._sentences(), FIT_WINDOW):
            if self.fits:
                break
            shares = self._shares(window, too_long)
            asked = [one for one in window if one.number in shares]
            found = self._translator.translate([one.text for one in asked], list(shares.values()))
            rows = []
            for one, new in zip(asked, found, strict=True):
                row = self._row(one, new)
                gain = row["length"] - int(self._extra[one.number]) - int(self._lengths[one.number])
                # Markup is worth more than the budget.
                usable = (
                    not new.error
                    and new.text.strip()
                    and _keeps_markup(one.text, new.text)
                    and (gain < 0 if too_long else gain > 0)
                )
                rows += [row] if usable else []
                self._stuck[one.number] = not (usable and new.fits)  # else it may be asked again
            self._append(rows)
            done, tried = done + len(window), tried + len(asked)
            self.progress("fitting", done, self.sentences)
        return tried > 0

    def _shares(self, window: list[Sentence], too_long: bool) -> dict[int, Budget]:
        """Return budgets for the sentences of a window that are above, or below, the ratio with which the rest fits.

        The ratio r solves: sum of min(length, r × source) over the open sentences = what is left of the budget.
        """
        assert self.budget is not None
        first = window[0].number
        limit = self.budget.high if too_long else self.budget.low
        open_ = ~self._stuck
        open_[:first] = False
        left = float(limit or 0) - self._fixed - int(self._lengths[~open_].sum())
        lengths, sources = self._lengths[open_], self._sources[open_]
        if not len(lengths):
            return {}
        clip = np.minimum if too_long else np.maximum
        low, high = 0.0, float(max((lengths / sources).max(), left / sources.sum())) + 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (low, middle) if clip(lengths, middle * sources).sum() > left else (middle, high)
        spare = 0.0 if self.budget.high is None else (self.budget.high - self.budget.low) / sources.sum()
        shares: dict[int, Budget] = {}
        for number in (one.number for one in window if open_[one.number]):
            source, length = int(self._sources[number]), int(self._lengths[number])
            if too_long and length > (share := max(1, math.floor(low * source + 1e-6))):
                shares[number] = at_most(share, self.unit)
            elif not too_long and length < (share := math.ceil(high * source - 1e-6)):
                most = None if self.budget.high is None else share + int(spare * source)
                shares[number] = Budget(share, most, share, self.unit)
        return shares

    def _append(self, rows: list[Row]) -> None:
        self._journal.append(rows)
        for row in rows:
            self._note_length(row)

    def _note_length(self, row: Row) -> None:
        number = row["sentence"] - 1
        self._lengths[number] = row["length"] - self._extra[number]

    def _row(self, one: Sentence, found: Translation) -> Row:
        """Return the journal's row. A sentence that cannot be translated stays as it is, with its error."""
        if not found.error and not found.text.strip():
            found = replace(found, error="the model returned an empty text")
        text = one.source if found.error else one.prose.restore(one.start, one.end, found.text)
        if one.adjoins and found.text != one.text and self._translator.target not in UNSPACED:
            text = " " + text
        notes = [one.prose.with_markup(found.note)] if found.note else []
        if one.part_of:
            notes.append(f"part of a sentence of {one.part_of} characters")
        row = {
            **{"sentence": one.number + 1, "paragraph": one.paragraph + 1, "source": one.source, "text": text},
            **{"length": self._count(text), "unit": self.unit, "complete": found.complete, "intact": found.intact},
            **{"note": "; ".join(notes) or None, "error": found.error},
        }
        return {name: value for name, value in row.items() if value is not None}


def translate_document(
    translator: LineTranslator, path: Path, budget: Budget | None, out: Path | None, progress: Progress
) -> TranslatedDocument:
    """Return the translated document, and write it to `out`, if given. An interrupted run for `out` is resumed."""
    journal = None
    if out is not None:
        if out.exists() and out.samefile(path):
            raise ValueError(f"{out} is the file to translate; name another file")
        if out.is_file() or not out.exists():
            journal = out.with_name(f"{out.name}.sentences.jsonl")
            if journal.exists():
                out.with_name(f"{out.name}.partial").unlink(missing_ok=True)  # the journal has all that it has
        atomic.partial_path(out)  # raises if it cannot be written
    document = TranslatedDocument(translator, path, budget, journal, progress)
    document.translate()
    if out is not None:
        with atomic.partial_file(out, newline="") as stream:
            document.write(stream)
    return document


class _Journal:
    """Rows in a file beside the output, or in a temporary one. Of several rows of a sentence the last one counts."""

    def __init__(self, path: Path | None, sentences: int, settings: Row) -> None:
        self._path, self._offsets = path, array("q", [-1]) * sentences
        if path is None:
            self._stream: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
            return
        self._settings = path.with_name(path.name.replace(".sentences.jsonl", ".settings.json"))
        if path.exists():
            check_settings(self._settings, settings)
        atomic.write_text(self._settings, json.dumps(settings) + "\n")
        self._stream = path.open("a+b")

    def load(self) -> Iterator[Row]:
        """Yield the rows of an earlier run, and remove a last one that is incomplete."""
        end = 0
        self._stream.seek(0)
        while (line := self._stream.readline()).endswith(b"\n"):
            row = json.loads(line)
            self._offsets[row["sentence"] - 1] = end
            end += len(line)
            yield row
        self._stream.truncate(end)

    def has(self, number: int) -> bool:
        return self._offsets[number] >= 0

    def append(self, rows: Iterable[Row]) -> None:
        at = self._stream.seek(0, 2)
        for row in rows:
            self._offsets[row["sentence"] - 1] = at
            at += self._stream.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
        self._stream.flush()

    def row(self, number: int) -> Row:
        self._stream.seek(self._offsets[number])
        return json.loads(self._stream.readline())

    def delete(self) -> None:
        self._stream.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._settings.unlink(missing_ok=True)


def _windows(sentences: Iterator[Sentence], size: int) -> Iterator[list[Sentence]]:
    while window := list(islice(sentences, size)):
        yield window


def _keeps_markup(source: str, text: str) -> bool:
    """Return whether the placeholders are those of the source, each pair of tags is in order, and none is empty."""
    if count_placeholders(source) != count_placeholders(text):
        return False
    opened: list[str] = []
    closed = set()
    for tag in _TAG.finditer(text):
        if not tag[1]:
            if tag[2] in closed or text[tag.end() :].lstrip().startswith(f"</a{tag[2]}>"):
                return False
            opened.append(tag[2])
        elif opened and opened.pop() != tag[2]:
            return False
        closed |= {tag[2]} if tag[1] else set()
    return True


def _check(path: Path, count: Callable[[str], int]) -> tuple[str, int]:
    """Return the digest of a file and its length; raise if it is not a text in UTF-8."""
    if not path.is_file():
        raise ValueError(f"there is no file {str(path)!r}")
    digest, length, tail = hashlib.sha256(), 0, ""
    with path.open("rb") as stream:
        for number, data in enumerate(stream, 1):
            digest.update(data)
            if b"\0" in data:
                raise ValueError(f"{path} has a zero byte in line {number}: it is binary, or UTF-16; give a UTF-8 text")
            try:
                line = data.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                found = f"byte {data[error.start]:#x} at {error.start + 1} in line {number}"
                raise ValueError(f"{path} is not UTF-8: {found}; convert it") from None
            if body := line.strip():
                length += count(tail + line[: line.index(body)] + body if length else body)
                tail = line[len(line.rstrip()) :]
            elif length:
                tail += line
    if not length:
        raise ValueError(f"{path} is empty" + (": it has only white space" if path.stat().st_size else ""))
    return digest.hexdigest(), length
