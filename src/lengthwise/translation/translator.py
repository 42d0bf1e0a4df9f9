"""Translator: lines in, lines out, no longer than asked for and with their placeholders.

A line is translated sentence by sentence. First freely: whatever fits as the model likes it stays so. A sentence that
takes more than its share is searched again within it. A hypothesis that loses a placeholder gives way to one that
keeps it, and if there is none the sentence is tried with a stand-in. Of hypotheses that are as good in all this, the
likeliest is taken or, with a reverse model, the one that says most of the source and says it well; if none is whole, or
says it as well as a free one would, the sentence is tried without some of its words. Which languages there are, how a
line is divided, how a model is searched, what can be left out and what is said best, the files beside this one know.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..generation.generator import Writer, Written
from ..length.budget import Budget, as_budget, at_most
from ..length.units import measure
from ..scoring.noisy_channel import Channel, forward
from ..scoring.reverse import ReverseModel
from .casing import restore_case, to_sentence_case
from .compression import DroppedWords, balanced, runs, together, without
from .hypotheses import Hypotheses
from .languages import UNSPACED, prepare
from .placeholders import STAND_INS, kept, lost, masked, tidied, unmasked
from .ranking import (
    BEHIND,
    Scored,
    SentenceRequest,
    faults,
    length_of,
    mark_untranslated,
    order,
    ranked,
    score_of,
    usable,
    whole,
    with_score,
    without_score,
)
from .segments import Line

COMBINED = 48  # ways to leave out several runs of words that are tried
ABRIDGED = 8  # translations of fewer words that a sentence is given to choose from: the best that fit


@dataclass(frozen=True)
class Translation(Written):
    """A line and what is known of it. `intact`: its placeholders and numbers are those of the source.

    Without a budget `budget` is empty and any length fits. `note` says what is not as it should be, and which words of
    the source were left out to make room. `score`: how well it says what the source says, where there is a reverse
    model (`Channel.scores`, the mean of its sentences).
    """

    source: str = ""
    intact: bool = True
    note: str | None = None
    score: float | None = None

    def as_json(self) -> dict[str, Any]:
        """The fields as plain values; `error`, `note` and `score` only where there is one."""
        fields = super().as_json()
        return {name: value for name, value in fields.items() if value is not None or name not in ("note", "score")}


@dataclass(frozen=True)
class _Abridged:
    """What came of a sentence without some of its words, cleaned and scored, and the words."""

    clean: Written
    left_out: str


class Translator:
    """Translates with a writer whose model is a translator.

    `beams`: how many hypotheses are searched for and chosen from. `candidates`: how many of them a translation tells
    of, itself included (where the line is one sentence). `room`: a ratio such as 1.0x leaves a line at least as many
    units, since a short one can hardly be as short in another language. `reverse`: a model that translates back, by
    which to choose beside the writer's own. `note`: what is uncertain about the model.
    """

    def __init__(
        self,
        writer: Writer,
        source: str = "en",
        target: str = "fr",
        *,
        beams: int = 5,
        candidates: int = 1,
        room: int = 0,
        reverse: ReverseModel | None = None,
    ) -> None:
        self.prefix, self.note = prepare(writer, source, target)
        self.name, self.tokenizer, self.target = writer.name, writer.tokenizer, target
        self.candidates, self.room = candidates, room
        own = forward(writer, self.prefix)
        self.channel = None if reverse is None else Channel(reverse, own)
        # Of what is abridged: the same, or the writer alone.
        self.judge = None if own is None else Channel(reverse, own)
        self.hypotheses = Hypotheses(writer, max(beams, candidates))

    def translate(
        self,
        texts: str | Sequence[str],
        budgets: str | Budget | Sequence[str | Budget | None] | None = None,
    ) -> list[Translation]:
        """Each line of text within its budget: one for all, or one a line; None for any length.

        A line that cannot be translated has its `error` set; the others are translated.
        """
        texts = [texts] if isinstance(texts, str) else list(texts)
        asked = [budgets] * len(texts) if budgets is None or isinstance(budgets, str | Budget) else list(budgets)
        if len(asked) != len(texts):
            raise ValueError(f"one budget for all lines or one for each; got {len(asked)} for {len(texts)} lines")
        errors: dict[int, str] = {}
        lines: dict[int, Line] = {}
        for place, (text, budget) in enumerate(zip(texts, asked, strict=True)):
            try:
                lines[place] = self._line(text, budget)
            except (ValueError, TypeError) as error:
                errors[place] = str(error)
        pool = self._translate_freely(list(lines.values()))
        # What a line becomes must not depend on whether another one holds the same sentence.
        known = {} if self.hypotheses.told else pool
        self._translate_tightly([line for line in lines.values() if line.budget is not None], known)
        return [
            self._failed(text, asked[place], errors[place]) if place in errors else self._result(lines[place], pool)
            for place, text in enumerate(texts)
        ]

    def _line(self, text: str, budget: str | Budget | None) -> Line:
        text.encode()  # half a surrogate pair is no text
        known = None if budget is None else as_budget(budget)
        unit = "chars" if known is None else known.unit
        if known is not None and known.of_source and text.strip():
            known = known.resolve(text, self.tokenizer)
            if known.high is not None and known.high < self.room:
                known = at_most(self.room, unit)
        return Line(text, known, lambda part: self._measure(part, unit), self.target not in UNSPACED)

    def _measure(self, text: str, unit: str) -> int:
        return measure(text, unit, tokenizer=self.tokenizer)

    # ---- freely

    def _translate_freely(self, lines: list[Line]) -> dict[str, list[Written]]:
        """Hypotheses for each sentence, those that keep its placeholders first; lines without a budget are done."""
        # A model that has only been trained with a length is asked once it can be told one.
        free = [line for line in lines if line.budget is None or not self.hypotheses.told]
        texts = list(dict.fromkeys(sentence for line in free for sentence in line.sentences))
        pool = dict(zip(texts, self._free(texts), strict=True))
        for form in STAND_INS:
            torn = [text for text in texts if kept(text) and not whole(text, pool[text])]
            for text, found in zip(torn, self._free(torn, [masked(text, form) for text in torn]), strict=True):
                pool[text] = ranked(text, [*found, *pool[text]])
        for line in lines:
            if line.budget is None:
                line.done = {number: pool[text][0] for number, text in enumerate(line.sentences)}
        return pool

    def _free(self, texts: list[str], forms: list[tuple[str, dict[str, str]]] | None = None) -> list[list[Written]]:
        """Hypotheses for each text; `forms`: what the model reads in its place, and what the stand-ins in it are."""
        forms = forms or [(text, {}) for text in texts]
        found = self.hypotheses.free([self.prefix + to_sentence_case(form) for form, _ in forms]) if texts else []
        clean = [
            [_restored(text, _restored(form, one, {}), stands) for one in options]
            for text, (form, stands), options in zip(texts, forms, found, strict=True)
        ]
        scored = self._scored(texts, clean, self.channel)
        return [ranked(text, options) for text, options in zip(texts, scored, strict=True)]

    def _scored(self, texts: Sequence[str], found: list[list[Written]], channel: Channel | None) -> list[list[Written]]:
        """The same, with how well they say it, if there is anybody to ask; what failed, or is known, stays as it is."""
        if channel is None:
            return found
        asked = list(
            dict.fromkeys(
                (text, one.text)
                for text, options in zip(texts, found, strict=True)
                for one in options
                if one.text and not isinstance(one, Scored)
            )
        )
        sources, outputs = (
            [to_sentence_case(source) for source, _ in asked],
            [to_sentence_case(output) for _, output in asked],
        )
        scores = channel.scores(sources, outputs)
        known = dict(zip(asked, scores.tolist(), strict=True))
        return [
            [with_score(one, known[text, one.text]) if (text, one.text) in known else one for one in options]
            for text, options in zip(texts, found, strict=True)
        ]

    # ---- within a budget

    def _translate_tightly(self, lines: list[Line], pool: dict[str, list[Written]]) -> None:
        """Round by round one sentence of each line that has any left, in the room that those before it left."""
        while True:
            for line in lines:
                texts = {number: line.sentences[number] for number in line.open}
                line.settle({number: usable(text, pool.get(text, [])) for number, text in texts.items()})
            asks = [SentenceRequest(line, number, line.share(number)) for line in lines for number in line.open[:1]]
            if not asks:
                return
            for ask, options in zip(asks, self._bound(asks), strict=True):
                free = pool.get(ask.text, [])
                ask.line.options[ask.number] = [mark_untranslated(ask.text, one, free) for one in (*options, *free)]
            self._abridge([ask for ask in asks if self._behind(ask, pool.get(ask.text, []))], pool)
            for ask in asks:
                ask.line.options[ask.number].sort(key=partial(order, ask))
                ask.line.done[ask.number] = ask.line.options[ask.number][0]

    def _bound(self, asks: list[SentenceRequest]) -> list[list[Written]]:
        found = self._bound_as(asks, [ask.text for ask in asks], [{}] * len(asks))
        for form in STAND_INS:
            torn = [
                place
                for place, ask in enumerate(asks)
                if kept(ask.text) and all(faults(ask, one)[:2] != (False, False) for one in found[place])
            ]
            if not torn:
                break
            forms = [masked(asks[place].text, form) for place in torn]
            again = self._bound_as([asks[p] for p in torn], [text for text, _ in forms], [s for _, s in forms])
            for place, options in zip(torn, again, strict=True):
                found[place] = [*options, *found[place]]
        return found

    def _bound_as(
        self, asks: list[SentenceRequest], texts: list[str], stands: Sequence[dict[str, str]]
    ) -> list[list[Written]]:
        """Hypotheses for `texts`, which may have stand-ins: these take another room than what they stand for."""
        shares = []
        for ask, text in zip(asks, texts, strict=True):
            more = self._measure(ask.text, ask.share.unit) - self._measure(text, ask.share.unit)
            shares.append(_narrowed(ask.share, more))
        found = self.hypotheses.bound([self.prefix + to_sentence_case(text) for text in texts], shares)
        clean = [
            [_restored(ask.text, one, given) for one in options]
            for ask, options, given in zip(asks, found, stands, strict=True)
        ]
        return self._scored([ask.text for ask in asks], clean, self.channel)

    # ---- without some of the words

    def _behind(self, ask: SentenceRequest, free: list[Written]) -> bool:
        """Is nothing whole among what was found within the budget? Or does it say less than a free translation?"""
        if self.judge is None or not free or free[0].error or ask.share.high is None:
            return False
        if length_of(ask, free[0]) <= ask.share.high:  # too short, if anything
            return False
        good = [score_of(one) for one in ask.line.options[ask.number] if not any(faults(ask, one))]
        return max(good, default=-math.inf) < score_of(free[0]) - BEHIND

    def _abridge(self, asks: list[SentenceRequest], pool: dict[str, list[Written]]) -> None:
        """Adds to their options translations of the sentences without some of their words."""
        sources = [ask.text for ask in asks]
        free = [options[0] for options in self._scored(sources, [pool[text][:1] for text in sources], self.judge)]
        one_run = self._translated_without(asks, [runs(text) for text in sources])
        several = self._translated_without(asks, [_together(*known) for known in zip(asks, free, one_run, strict=True)])
        for ask, best, first, second in zip(asks, free, one_run, several, strict=True):
            different = {form.clean.text: form for form in (*first.values(), *second.values())}
            fitting = [
                replace(form, clean=mark_untranslated(ask.text, form.clean, [best]))
                for form in different.values()
                if not any(faults(ask, form.clean))
            ]
            for form in sorted(fitting, key=lambda form: order(ask, form.clean))[:ABRIDGED]:
                ask.line.left_out[ask.number, form.clean.text] = form.left_out
                ask.line.options[ask.number].append(form.clean if self.channel else without_score(form.clean))

    def _translated_without(
        self, asks: list[SentenceRequest], cuts: list[list[DroppedWords]]
    ) -> list[dict[DroppedWords, "_Abridged"]]:
        """What comes of each sentence without these words. What has to come through is never left out."""
        forms = [
            {
                gone: form
                for gone in some
                if not lost(ask.text, form := without(to_sentence_case(ask.text), gone))
                and (balanced(form) or not balanced(ask.text))
            }
            for ask, some in zip(asks, cuts, strict=True)
        ]
        texts = list(dict.fromkeys(form for some in forms for form in some.values()))
        written = dict(zip(texts, self.hypotheses.first([self.prefix + text for text in texts]), strict=True))
        clean = [
            [_restored(ask.text, written[form], {}) for form in some.values()]
            for ask, some in zip(asks, forms, strict=True)
        ]
        scored = self._scored([ask.text for ask in asks], clean, self.judge)
        return [
            {gone: _Abridged(one, _words(ask.text, gone)) for gone, one in zip(some, ones, strict=True) if one.text}
            for ask, some, ones in zip(asks, forms, scored, strict=True)
        ]

    # ---- results

    def _result(self, line: Line, pool: dict[str, list[Written]]) -> Translation:
        failed = next((one.error for one in line.done.values() if one.error), None)
        if failed:
            return self._failed(line.text, line.budget, failed)
        text = line.joined({number: one.text for number, one in line.done.items()})
        length = line.length(line.done)
        budget = line.budget
        fits = budget is None or not line.text.strip() or budget.fits(length)
        missing = lost(line.text, text) if line.sentences else []
        notes = [f"not as in the source: {', '.join(missing)}"] if missing else []
        left_out = [line.left_out.get((number, one.text)) for number, one in line.done.items()]
        notes += [f"left out: {words}" for words in left_out if words]
        if not fits and not line.sentences:
            notes = ["there is nothing to translate in it; it is copied"]
        return Translation(
            text=text,
            length=length,
            unit="chars" if budget is None else budget.unit,
            budget="" if budget is None else str(budget),
            fits=fits,
            complete=all(one.complete for one in line.done.values()),
            model=self.name,
            tokens=sum(one.tokens for one in line.done.values()),
            candidates=self._others(line, pool) if self.candidates > 1 else [],
            source=line.text,
            intact=not missing,
            note="; ".join(notes) or None,
            score=self._score_of(line),
        )

    def _score_of(self, line: Line) -> float | None:
        """The mean of its sentences; None where nobody judged, or there was nothing to translate."""
        scores = [one.score for one in line.done.values() if isinstance(one, Scored)]
        return round(sum(scores) / len(scores), 4) if scores else None

    def _others(self, line: Line, pool: dict[str, list[Written]]) -> list[Written]:
        """What else a line of one sentence could have been, those that fit first; none that loses what it keeps."""
        if len(line.sentences) != 1:
            return []
        source, taken = line.sentences[0], line.done[0].text
        different: dict[str, Written] = {}
        for one in line.options.get(0) or pool.get(source, []):  # the better one of two with the same text comes first
            if one.text != taken and (lost(source, taken) or not lost(source, one.text)):
                different.setdefault(one.text, one)
        others = [self._other(line, one) for one in different.values()]
        return sorted(others, key=lambda one: not one.fits)[: self.candidates - 1]

    def _other(self, line: Line, one: Written) -> Written:
        length = line.length({0: one})
        fits = line.budget is None or line.budget.fits(length)
        return replace(one, text=line.joined({0: one.text}), length=length, fits=fits, candidates=[])

    def _failed(self, source: str, budget: str | Budget | None, error: str) -> Translation:
        unit = budget.unit if isinstance(budget, Budget) else ""
        asked = "" if budget is None else str(budget)
        return Translation("", 0, unit, asked, False, False, self.name, 0, error=error, source=source, intact=False)


def _words(text: str, gone: DroppedWords) -> str:
    """The words that are gone, in the order of the text; a gap between them is told by dots.

    >>> _words("Open the very old file now.", frozenset([2, 3, 5]))
    'very old … now.'
    """
    words = text.split()
    return " ".join(f"{'' if n == min(gone) or n - 1 in gone else '… '}{words[n]}" for n in sorted(gone))


def _together(ask: SentenceRequest, free: Written, one_run: dict[DroppedWords, _Abridged]) -> list[DroppedWords]:
    """Runs to leave out at once; none if the placeholders do not come through whatever is left out."""
    if all(faults(ask, form.clean)[1] for form in one_run.values()):
        return []
    worth = {gone: (length_of(ask, form.clean), score_of(form.clean)) for gone, form in one_run.items()}
    of_free = length_of(ask, free), score_of(free)
    return together(len(ask.text.split()), worth, of_free, ask.share.fits, COMBINED)


def _restored(source: str, one: Written, stands: dict[str, str]) -> Written:
    """The hypothesis with its placeholders in their places, clean, and in capitals if the source is."""
    text = restore_case(source, tidied(source, unmasked(one.text, stands)))
    return one if text == one.text else replace(one, text=text)


def _narrowed(share: Budget, more: int) -> Budget:
    """The share less what the placeholders will take beyond their stand-ins."""
    if more == 0:
        return share
    high = None if share.high is None else max(1, share.high - more)
    low = max(0 if high else 1, share.low - more)
    aim = max(1, low, share.target - more)
    low = low if high is None else min(low, high)
    return Budget(low, high, aim if high is None else min(aim, high), share.unit)
