"""`EndpointTranslator`: the interface of `Translator` for a model behind an API. The search is `Rewording`."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from ..endpoints.calls import Ask, Searched
from ..endpoints.rewording import Reworded, Rewording
from ..endpoints.writer import EndpointWriter, check_row
from ..generation.generator import Written
from ..length.budget import Budget, as_budget, with_budgets
from ..length.units import measure
from .placeholders import count_placeholders, lost, translatable
from .records import NO_FIT, Translation


class EndpointTranslator:
    """Translates lines with a model behind an API. Options are those of `Translator`."""

    def __init__(
        self, writer: EndpointWriter, source: str = "en", target: str = "fr", *, candidates: int = 1, min_limit: int = 0
    ) -> None:
        self.writer, self.name, self.target = writer, writer.name, target
        self.candidates, self.min_limit = candidates, min_limit
        self._languages = source, target
        self._task = f"Translate this text from {_language_name(source)} to {_language_name(target)}."

    @property
    def settings(self) -> dict[str, Any]:
        """What decides the translations. A resumed run of a file must have the same."""
        source, target = self._languages
        found = {"model": self.name, "from": source, "to": target, "min_limit": self.min_limit}
        return found | {"max_calls": self.writer.max_calls, "candidates": self.candidates}

    def at_once(self, limited: bool) -> int:
        """Return how many lines are translated before they are saved: few, because each is paid for."""
        return self.writer.concurrency

    def translate(
        self, texts: str | Sequence[str], budgets: str | Budget | Sequence[str | Budget | None] | None = None
    ) -> list[Translation]:
        """Return the translation of each line within its budget; see `Translator.translate`."""
        texts, asked = with_budgets(texts, budgets, optional=True)
        rows = list(zip(texts, asked, strict=True))
        open_ = [n for n, text in enumerate(texts) if not isinstance(text, str) or translatable(text)]
        found = dict(zip(open_, self.writer.search([partial(self._begin, *rows[n]) for n in open_]), strict=True))
        return [self._result(*row, found[n]) if n in found else self._copied(*row) for n, row in enumerate(rows)]

    def _begin(self, text: str, budget: str | Budget | None, ask: Ask) -> Rewording:
        keep = list(count_placeholders(text))
        options: dict[str, Any] = {"lost": partial(lost, text), "keep": keep, "candidates": self.candidates}
        return Rewording(self._task, text, self._known(text, budget), ask, **options)

    def _known(self, text: str, budget: str | Budget | None) -> Budget | None:
        if budget is None:
            text.encode()  # raises a ValueError for half a surrogate pair
            return None
        known = check_row(text, budget)
        return known.widened(self.min_limit) if as_budget(budget).of_source else known

    def _copied(self, text: str, budget: str | Budget | None) -> Translation:
        """Return the result for a line without a letter to translate."""
        known = None
        with suppress(ValueError):
            known = as_budget(budget) if budget is not None and text.strip() else None
            known = known.resolve(text).widened(self.min_limit) if known and known.of_source else known
        unit = "chars" if known is None or known.unit == "tokens" else known.unit
        length = measure(text, unit)
        fits = known is None or known.fits(length)
        note = None if fits else "the line has nothing to translate; it was copied"
        return Translation(text, length, unit, str(known or ""), fits, True, self.name, 0, source=text, note=note)

    def _result(self, text: str, budget: str | Budget | None, one: Searched[Rewording]) -> Translation:
        if one.search is None or one.search.best is None:
            error = one.note or f"{self.name} sent no text in {one.calls} calls"
            known: dict[str, Any] = {"source": text, "intact": False, "calls": one.calls, "down": one.down or None}
            return Translation.failed(error, budget, self.name, **known)
        best, *others = [self._translation(text, one.search, found) for found in one.search.ranked]
        note = "; ".join(filter(None, [None if best.fits else NO_FIT, best.note, one.note])) or None
        alternatives: list[Written] = list(others[: self.candidates - 1])
        return replace(best, note=note, tokens=one.tokens, calls=one.calls, candidates=alternatives)

    def _translation(self, text: str, search: Rewording, found: Reworded) -> Translation:
        notes = [f"not as in the source: {', '.join(found.lost)}"] if found.lost else []
        head, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        return Translation(
            head + found.text + tail,
            found.length,
            search.unit.name,
            "" if search.budget is None else str(search.budget),
            found.fits,
            found.complete,
            self.name,
            0,
            source=text,
            intact=not found.lost,
            note="; ".join(notes) or None,
        )


def _language_name(code: str) -> str:
    """Return the English name of a language, or its code if it has none or Babel is not installed."""
    try:
        from babel import Locale, UnknownLocaleError
    except ImportError:
        return code
    try:
        return Locale.parse(code.replace("-", "_")).get_display_name("en") or code
    except (UnknownLocaleError, ValueError):
        return code
