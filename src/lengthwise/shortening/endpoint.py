"""`EndpointShortener`: the interface of `Shortener` for a model behind an API. The search is `Rewording`."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..endpoints.calls import Ask, Searched
from ..endpoints.rewording import Rewording
from ..endpoints.writer import EndpointWriter, check_row
from ..generation.generator import Written
from ..length.budget import Budget, with_budgets
from ..length.units import measure
from ..translation.placeholders import changed_placeholders, count_placeholders
from .content import is_empty, is_format
from .forms import FORMS, Form
from .notes import notes_on
from .pieces import split_sentences
from .records import Progress, Shortened, check_minimum, no_progress

_TASKS = {
    "text": "Say the same in less room. Keep the language, the names, the numbers and the negations.",
    "sentence": "Say the same in one short sentence. Keep the language, the names, the numbers and the negations.",
    "headline": "Write a headline for this text, in its language and without a full stop.",
}


class EndpointShortener:
    """Shortens texts with a model behind an API. A text that fits already makes no call."""

    def __init__(self, writer: EndpointWriter) -> None:
        self.model = self.writer = writer

    def at_once(self, limited: bool) -> int:
        """Return how many texts are shortened before they are saved: few, because each is paid for."""
        return self.writer.concurrency

    def shorten(
        self,
        texts: str | Sequence[str],
        budgets: str | Budget | Sequence[str | Budget],
        *,
        form: Form = "text",
        candidates: int = 4,
        faithful: bool = False,
        progress: Progress = no_progress,
    ) -> list[Shortened]:
        """Return each text within its budget; see `Shortener.shorten`. `candidates`: replies to the first call."""
        if form not in FORMS:
            raise ValueError(f"a form is {', '.join(FORMS)}; got {form!r}")
        if faithful:
            raise ValueError("a model behind an API rewrites texts; only one that runs here can just leave words out")
        texts, asked = with_budgets(texts, budgets)
        progress(f"asking {self.writer.name}")
        begin = [partial(self._begin, form, candidates, *row) for row in zip(texts, asked, strict=True)]
        found = self.writer.search(begin)
        return [self._result(*row) for row in zip(texts, asked, found, strict=True)]

    def _begin(self, form: Form, candidates: int, text: str, budget: str | Budget, ask: Ask) -> "_Shortening":
        options: dict[str, Any] = {"lost": partial(_lost, text), "candidates": candidates}
        keep = list(filter(is_format, count_placeholders(text)))
        counts = check_row(text, budget)
        check_minimum(counts, measure(text, counts.unit))
        return _Shortening(form, _TASKS[form], text, counts, ask, **options, keep=keep)

    def _result(self, text: str, budget: str | Budget, one: Searched["_Shortening"]) -> Shortened:
        name = self.writer.name
        if one.search is None or not (one.search.unchanged or one.search.best):
            error = one.note or f"{name} sent no text in {one.calls} calls"
            known: dict[str, Any] = {"source": text, "intact": False, "calls": one.calls, "down": one.down or None}
            return Shortened.failed(error, budget, name, **known)
        search = one.search
        known = {"unit": search.unit.name, "budget": str(search.budget), "model": name, "source": text}
        if search.unchanged:
            length = search.unit.measure(text)
            known["model"] = ""  # it was not called
            return Shortened(text.strip(), length, fits=True, complete=True, tokens=0, route="unchanged", **known)
        best, *others = [
            Shortened(
                found.text,
                found.length,
                fits=found.fits,
                complete=found.complete,
                tokens=0,
                route="rewritten",
                intact=not found.lost,
                note=notes_on(text, found.text),
                **known,
            )
            for found in search.ranked
        ]
        note = "; ".join(filter(None, [best.note, one.note])) or None
        alternatives: list[Written] = list(others)
        return replace(best, note=note, tokens=one.tokens, calls=one.calls, candidates=alternatives)


class _Shortening(Rewording):
    """A search that makes no call for a text that fits already and has the form. Other forms are one line."""

    def __init__(self, form: Form, task: str, source: str, budget: Budget, ask: Ask, **options: Any) -> None:
        super().__init__(task, source, budget, ask, **options)
        self._form = form
        as_asked = form == "text" or len(split_sentences(source)) == 1
        self.unchanged = as_asked and budget.fits(self.unit.measure(source))

    def run(self, calls_left: Any) -> None:
        if not self.unchanged:
            super().run(calls_left)

    def _clean(self, reply: str) -> str:
        text = super()._clean(reply)
        if is_empty(self.source, text):
            return ""  # as if nothing had been sent
        if self._form == "text":
            return text
        line = " ".join(text.split())
        return line.removesuffix(".") if self._form == "headline" else line


def _lost(source: str, text: str) -> list[str]:
    return list(filter(is_format, changed_placeholders(source, text)))
