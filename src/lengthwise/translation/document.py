"""Documents: translate a text or Markdown file sentence by sentence in windows, within one budget for the whole file.

The sentences of a window are first translated at any length. The window may grow by its share of what the document may
grow, plus what earlier windows have left. If it grows more, the sentences that exceed their share of its length are
translated again. So memory grows with the window, not with the document.
Each translation is in the journal as soon as it is found; a resumed run takes those of its first window from there.
With `context`, the sentences of a window are translated again with those around them; context ends at the window.
These translations, and those of the text between the markup of a sentence, are saved with their window.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from io import StringIO
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol, TextIO

from .. import atomic
from ..length.budget import Budget, at_least, at_most
from ..length.sentences import finished
from ..length.units import unit_named
from .casing import with_first_capital
from .document_sentences import Document, Sentence
from .journal import Journal, Row, is_journal
from .languages import UNSPACED
from .placeholders import lost, split_placeholders, translatable
from .prose import keeps_markup
from .records import ALONE, Translation

WINDOW = 64  # sentences that are translated together
ROUNDS = 4  # how often the sentences of a window are translated again, until it fits
HALVINGS = 3  # searches for the shortest translation of a sentence that has none within its share
Progress = Callable[[int, int], None]  # sentences done, sentences in all


class SentenceTranslator(Protocol):
    """What a document needs of a translator. `settings` decide the translations: a resumed run must have the same."""

    target: str

    @property
    def settings(self) -> dict[str, Any]: ...

    def at_once(self, limited: bool) -> int: ...

    def translate(self, texts: list[str], budgets: list[Budget] | None = None) -> list[Translation]: ...

    def in_context(self, sentences: list[str], translations: list[Translation], context: str) -> list[Translation]: ...


class TranslatedDocument:
    """The translation of a document within a budget for the whole of it, or with `per_sentence` for each sentence.

    `length` is that of the whole output, without white space at its ends.
    """

    def __init__(
        self,
        translator: SentenceTranslator,
        source: Document,
        budget: Budget | None,
        per_sentence: bool,
        context: str,
        journal: Path | None,
    ) -> None:
        self._translator, self._source, self._context = translator, source, context
        self.unit = "chars" if budget is None else budget.unit
        if self.unit == "tokens":
            raise ValueError("the length of a document is not counted in tokens; give chars or words")
        self._count = unit_named(self.unit).count
        self._digest, self._source_length = source.check(self._count)
        self.sentences = self.paragraphs = self._translatable = 0  # the last one: a length
        for one in source.sentences():
            self.sentences, self.paragraphs = one.number + 1, one.paragraph + 1
            self._translatable += self._count(one.text)
        if context and per_sentence:
            raise ValueError("context is for documents without a budget for each sentence")
        self.each = budget if per_sentence else None
        self.budget = None if per_sentence else self._in_counts(budget)
        settings = {
            "document": self._digest,
            "budget": str(budget or ""),
            "per_sentence": per_sentence,
            "context": context,
            "window": WINDOW,
        }
        self.journal = Journal(journal, settings | translator.settings)
        self._growth = sum(map(self._growth_of, self.rows()))  # length of the translations less that of their sources
        self._known = {
            (text, budget): Translation(**fields) for text, budget, fields in chain.from_iterable(self.journal.found)
        }  # the translations of sentences of this window, by their budgets
        self._done, self._end = 0.0, 0  # sentences that are shown as done, and those up to the end of this window
        self._progress: Progress = lambda done, total: None

    def _in_counts(self, budget: Budget | None) -> Budget | None:
        """Return the budget in counts; raise if the text that is not translated exceeds it."""
        if budget is not None and budget.of_source:
            budget = budget.scaled(self._source_length)
        copied = self._source_length - self._translatable
        if budget is not None and budget.high is not None and budget.high < copied + self.sentences:
            kept = f"what is not translated has {copied} {self.unit}, with {self.sentences} sentences between"
            raise ValueError(f"{self._source.name} cannot have {budget}: {kept}")
        return budget

    def _growth_of(self, row: Row) -> int:
        return row["length"] - self._count(row["source"])

    @property
    def length(self) -> int:
        return self._source_length + self._growth

    @property
    def fits(self) -> bool:
        in_all = self.budget is None or self.budget.fits(self.length)
        return in_all and (self.each is None or all(row["fits"] for row in self.rows()))

    @property
    def text(self) -> str:
        """The translated document. `write` takes less memory for a large one."""
        stream = StringIO()
        self.write(stream)
        return stream.getvalue()

    def rows(self) -> Iterator[Row]:
        """Yield a row for each translated sentence, in order: its source, text, length, window, note, ..."""
        return self.journal.rows()

    def write(self, stream: TextIO) -> None:
        """Write the translated document."""
        if self._source.check(self._count)[0] != self._digest:
            raise ValueError(f"{self._source.name} has changed while it was translated; translate it again")
        rows = self.rows()
        for piece in self._source.pieces():
            if isinstance(piece, str):
                stream.write(piece)
            elif row := next(rows, None):
                stream.write(row["text"])
            else:
                raise self.journal.lacks(piece.number + 1)

    def translate(self, progress: Progress) -> None:
        """Translate the windows that the journal does not have."""
        self._progress = progress
        sentences = self._source.sentences()
        number = done = received = 0
        while window := list(islice(sentences, WINDOW)):
            number, begun, done = number + 1, done, done + len(window)
            received += sum(self._count(one.text) for one in window)
            if number <= self.journal.windows:
                continue
            self._done, self._end = begun, done
            rows = self._translate_window(window)
            if self.budget is not None:
                self._fit(window, rows, self.budget, received / self._translatable)
            self._growth += sum(map(self._growth_of, rows))
            self.journal.append(rows)
            self._known.clear()
            progress(done, self.sentences)

    def _translate(
        self, sentences: list[Sentence], budgets: list[Budget] | None = None, part: float = 0.5
    ) -> list[Translation]:
        """Return the translations of sentences of one window, in the order of the document.

        `part`: the progress, as a part of what is left of the window; how many searches follow is not known.
        """
        keys = [(one.text, "" if budgets is None else str(budgets[n])) for n, one in enumerate(sentences)]
        open_ = list({key: n for n, key in enumerate(keys) if key not in self._known}.values())
        size, step = self._translator.at_once(budgets is not None), part * (self._end - self._done) / len(keys)
        known = sum(key in self._known for key in keys)
        self._show(step * known)
        for start in range(0, len(open_), size):
            some = open_[start : start + size]
            texts = [sentences[n].text for n in some]
            found = self._translator.translate(texts, None if budgets is None else [budgets[n] for n in some])
            new = {keys[n]: replace(one, candidates=[]) for n, one in zip(some, found, strict=True)}
            self.journal.keep([[*key, asdict(one)] for key, one in new.items()])
            self._known |= new
            self._show(step * (len(keys) - known) * len(some) / len(open_))  # some sentences occur more than once
        return [self._known[key] for key in keys]

    def _show(self, more: float) -> None:
        self._done += more
        self._progress(int(self._done), self.sentences)

    def _translate_window(self, window: list[Sentence]) -> list[Row]:
        budgets = None if self.each is None else [self._budget_of(one, self.each) for one in window]
        again = self._context or self.budget is not None
        rows, translations = [], self._translate(window, budgets, 0.25 if again else 1.0)
        if self._context:
            translations = self._translator.in_context([one.text for one in window], translations, self._context)
        for one, found in zip(window, translations, strict=True):
            torn = not found.error and not keeps_markup(one.text, found.text)
            rows.append(self._row(one, self._in_pieces(one, found) if torn else found))
        return rows

    def _budget_of(self, one: Sentence, each: Budget) -> Budget:
        """Return the budget of a sentence with placeholders in place of its markup."""
        if each.of_source:
            return each
        markup = self._markup(one)
        high = None if each.high is None else max(1, each.high - markup)
        return Budget(max(0, each.low - markup), high, max(1, each.target - markup), each.unit)

    def _markup(self, one: Sentence) -> int:
        """Return what the markup of a sentence adds to its length."""
        return self._count(one.source) - self._count(one.text)

    def _in_pieces(self, one: Sentence, found: Translation) -> Translation:
        """Return a translation that keeps all markup: the text between it is translated piece by piece."""
        pieces = [piece for piece, _ in split_placeholders(one.text)]
        texts = [piece.strip() for piece in pieces if translatable(piece)]
        translations = self._translator.translate(texts)
        if error := next((new.error for new in translations if new.error), None):
            return replace(found, text="", complete=False, intact=False, note=None, error=error)
        new = {text: new.text or text for text, new in zip(texts, translations, strict=True)}
        text = "".join(piece.replace(piece.strip(), new.get(piece.strip(), piece.strip())) for piece in pieces)
        missing = lost(one.text, text)
        notes = [ALONE] if ALONE in (found.note or "") else []
        notes.append("the text between its markup was translated in pieces")
        notes += [f"not as in the source: {', '.join(missing)}"] if missing else []
        complete = all(new.complete for new in translations)
        return replace(found, text=text, complete=complete, intact=not missing, note="; ".join(notes))

    def _fit(self, window: list[Sentence], rows: list[Row], budget: Budget, share: float) -> None:
        """Replace rows until the document, up to this window, has grown by `share` of what it may or must grow."""
        sources = [max(1, self._count(one.text)) for one in window]
        before = sum(sources) - self._growth
        low = before + (budget.low - self._source_length) * share
        high = math.inf if budget.high is None else before + (budget.high - self._source_length) * share
        stuck: set[int] = set()  # sentences that have no translation within their share
        for _ in range(ROUNDS):
            lengths = [source + self._growth_of(row) for source, row in zip(sources, rows, strict=True)]
            too_long = sum(lengths) > high
            if low <= sum(lengths) <= high:
                return
            left = (high if too_long else low) - sum(lengths[n] for n in stuck)
            open_ = {n: (lengths[n], sources[n]) for n in range(len(window)) if n not in stuck}
            shares = _shares(open_, left, too_long, self.unit)
            if not shares:
                return
            stuck |= (failed := self._replace(window, rows, shares, too_long))
            if too_long:
                self._shorten(window, rows, sources, {n: int(shares[n].target) for n in failed})

    def _shorten(self, window: list[Sentence], rows: list[Row], sources: list[int], above: dict[int, int]) -> None:
        """Replace rows by shorter ones, although none is as short as `above`: search between that and the length."""
        for _ in range(HALVINGS):
            lengths = {n: sources[n] + self._growth_of(rows[n]) for n in above}
            halves = {n: (above[n] + lengths[n]) // 2 for n in above}
            limits = {n: at_most(half, self.unit) for n, half in halves.items() if above[n] < half < lengths[n]}
            if not limits:
                return
            above |= {n: halves[n] for n in self._replace(window, rows, limits, True)}

    def _replace(self, window: list[Sentence], rows: list[Row], shares: dict[int, Budget], too_long: bool) -> set[int]:
        """Replace rows by better ones that are found within these shares; return those without any."""
        failed: set[int] = set()
        found = self._translate([window[n] for n in shares], list(shares.values()))
        for n, new in zip(shares, found, strict=True):
            row = self._row(window[n], new)
            better = row["length"] < rows[n]["length"] if too_long else row["length"] > rows[n]["length"]
            whole = new.complete or not rows[n]["complete"]
            usable = better and whole and "error" not in row and keeps_markup(window[n].text, new.text)
            rows[n] = row if usable else rows[n]
            if not (usable and new.fits):
                failed.add(n)
        return failed

    def _row(self, one: Sentence, found: Translation) -> Row:
        """Return the JSON row of a sentence. One that cannot be translated stays as it is, with its error."""
        error = found.error or (None if found.text.strip() else "the model returned an empty text")
        text = found.text if one.goes_on else with_first_capital(one.text, found.text)
        if one.part_of and not finished(one.text) and one.text[-1:] != ".":
            text = text if text.endswith("..") else text.removesuffix(".")  # of a part within a sentence
        text = one.source if error else one.prose.restore(one.start, one.end, text)
        if one.adjoins and not error and found.text != one.text and self._translator.target not in UNSPACED:
            text = " " + text
        part = f"part of a sentence of {one.part_of} characters" if one.part_of else None
        length = self._count(text)
        row = {
            "sentence": one.number + 1,
            "paragraph": one.paragraph + 1,
            "window": one.number // WINDOW + 1,
            "line": one.line,
            "source": one.source,
            "text": text,
            "length": length,
            "unit": self.unit,
            "complete": found.complete,
            "intact": found.intact,
            "note": "; ".join(filter(None, [found.note, part])) or None,
            "error": error,
        }
        if self.each is not None:
            row["fits"] = error is None and Budget.parse(found.budget).fits(length - self._markup(one))
        return {name: value for name, value in row.items() if value is not None}


def _shares(lengths: dict[int, tuple[int, int]], total: float, too_long: bool, unit: str) -> dict[int, Budget]:
    """Return budgets for the sentences that are above, or below, their share of the total.

    `lengths`: of the translation and the source of each sentence. A share is a ratio r times the weight of the source,
    where r solves Σ min(length, r × weight) = total, or, if the translations are too short, Σ max(length, r × weight) =
    total. The weight is the length of the source and a quarter of the average: a heading or a table cell cannot be
    shortened as much as a sentence.
    """
    extra = sum(source for _, source in lengths.values()) / max(1, len(lengths)) / 4
    weights = {n: source + extra for n, (_, source) in lengths.items()}
    order = sorted(lengths, key=lambda n: lengths[n][0] / weights[n], reverse=not too_long)
    rest, ratio = sum(weights.values()), 0.0
    for n in order:  # those before it keep their lengths
        length, weight = lengths[n][0], weights[n]
        ratio = total / rest
        if ratio * weight <= length if too_long else ratio * weight >= length:
            break
        total, rest = total - length, rest - weight
    limit, rounded = (at_most, math.floor) if too_long else (at_least, math.ceil)
    shares = {n: max(1, rounded(ratio * weight)) for n, weight in weights.items()}
    wrong = [n for n, (length, _) in lengths.items() if (length > shares[n] if too_long else length < shares[n])]
    return {n: limit(shares[n], unit) for n in wrong}


def translate_document(
    translator: SentenceTranslator,
    source: Document,
    budget: Budget | None,
    out: Path | None,
    per_sentence: bool,
    context: str,
    progress: Progress,
) -> TranslatedDocument:
    """Return the translated document, and write it to `out`, if given. An interrupted run for `out` is resumed."""
    journal = None
    if out is not None:
        if out.is_file() or not out.exists():
            journal = out.with_name(f"{out.name}.sentences.jsonl")
            if is_journal(journal):
                out.with_name(f"{out.name}.partial").unlink(missing_ok=True)  # the journal has all that it has
        atomic.partial_path(out)  # raises if it cannot be written
    document = TranslatedDocument(translator, source, budget, per_sentence, context, journal)
    document.translate(progress)
    if out is not None:
        with atomic.partial_file(out, newline="") as stream:
            document.write(stream)
        document.journal.unlink()
    return document
