"""Translator: translate lines within their budgets and with their placeholders.

The stages, in order:

    split       a line becomes sentences that share its budget                            segments.py
    free        each sentence is translated at any length                                 sentence_search.py
    settle      translations that fit are chosen                                          segments.py
    within      a sentence that exceeds its share is searched again within it             sentence_search.py
    compress    if the results are much worse, the sentence is tried with fewer words     sentence_search.py
    rank        the option with the fewest violations and the highest score is chosen     ranking.py
    replace     a fragment is replaced by the free translation nearest to its share       ranking.py
    omissions   words that the chosen translations leave out are found                    omissions.py
    join        the line is joined with its translations                                  segments.py
    in context  sentences of a document are searched again with those around them         sliding.py
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..generation.generator import Writer, Written
from ..length.budget import Budget, as_budget, check_text, with_budgets
from ..length.sentences import finished
from ..length.units import measure
from ..scoring.noisy_channel import NoisyChannel, forward_model
from ..scoring.reverse import ReverseModel
from .casing import restore_case, to_sentence_case
from .compression import listed
from .forms import spaced
from .hypotheses import Hypotheses
from .languages import UNSPACED, prepare
from .placeholders import lost, mend_references, restore_ellipsis
from .prose import keeps_markup
from .ranking import SentenceRequest, nearest_usable, rank_key, usable
from .records import ALONE, CONTEXTS, NO_FIT, Hypothesis, Translation
from .segments import Segments
from .sentence_search import SentenceSearch

if TYPE_CHECKING:
    from .document import Progress, TranslatedDocument
    from .sliding import DocumentDecoder, Draft

Pool = dict[str, list[Hypothesis]]  # the free translations of each sentence, best first


class Translator:
    """Translates with the model of a writer.

    beams        beam size, and the number of free hypotheses to choose from
    candidates   how many translations are returned for a line of one sentence, the chosen one included
    min_limit    a ratio such as 1.0x allows at least this length: short texts rarely have a translation as short
    reverse      a model that translates back; its scores rank the translations
    """

    def __init__(
        self,
        writer: Writer,
        source: str = "en",
        target: str = "fr",
        *,
        beams: int = 5,
        candidates: int = 1,
        min_limit: int = 0,
        reverse: ReverseModel | None = None,
    ) -> None:
        if not hasattr(writer, "engine"):
            name = writer if isinstance(writer, str) else "en-fr"
            raise TypeError(f"a translator takes a Writer, such as lengthwise.load({name!r}); got {writer!r}")
        prefix, self.note = prepare(writer, source, target)  # a note if the languages could not be checked
        self.name, self.tokenizer, self.target, self._engine = writer.name, writer.tokenizer, target, writer.engine
        self.candidates, self.min_limit = candidates, min_limit
        self._languages, self._beams, self._reverse = (source, target), max(beams, candidates), reverse
        channel = NoisyChannel(reverse, forward_model(writer.engine, prefix))
        self.search = SentenceSearch(Hypotheses(writer, self._beams), channel, prefix, self._measure)

    @property
    def settings(self) -> dict[str, Any]:
        """What decides the translations. A resumed run of a document must have the same."""
        source, target = self._languages
        reverse = None if self._reverse is None else self._reverse.name
        found = {"model": self.name, "from": source, "to": target, "beams": self._beams}
        return found | {"min_limit": self.min_limit, "reverse": reverse}

    def at_once(self, limited: bool) -> int:
        """Return how many sentences are searched together. `limited`: within a length, with more beams."""
        return self.search.hypotheses.at_once(limited)

    def translate(
        self, texts: str | Sequence[str], budgets: str | Budget | Sequence[str | Budget | None] | None = None
    ) -> list[Translation]:
        """Return the translation of each line within its budget: one for all, or one per line; None for any length.

        A line that cannot be translated has its `error` set.
        """
        texts, asked = with_budgets(texts, budgets, optional=True)
        split = [self._split(text, budget) for text, budget in zip(texts, asked, strict=True)]
        lines = [line for line in split if isinstance(line, Segments)]
        pool = self._translate_freely(lines)
        self._translate_within([line for line in lines if line.budget is not None], pool)
        for line in lines:
            line.others = self._others(line, pool) if self.candidates > 1 else []
        self._name_omissions([line for line in lines if line.budget is not None], pool)
        return [
            self._result(line) if isinstance(line, Segments) else self._failed(text, budget, line)
            for line, text, budget in zip(split, texts, asked, strict=True)
        ]

    def in_context(
        self, sentences: Sequence[str], translations: Sequence[Translation], context: str
    ) -> list[Translation]:
        """Translate a document's consecutive sentences again, in context: in one of the ways in `CONTEXTS`.

        The new translation is taken if it keeps the placeholders, ends as a finished sentence if the old one does, and
        is at most twice, and at least half, as long. A sentence with an error, or with the separator of the model in
        it, stays as it is. So does one whose window has a wrong number of sentences; it gets the note `ALONE`.
        """
        decode, decoder = self._document_decoder(context)
        found = list(translations)
        readable = [n for n, one in enumerate(translations) if not one.error]
        if not readable:
            return found
        texts = [to_sentence_case(spaced(sentences[n])) for n in readable]
        draft = decoder.draft([found[n].text for n in readable])
        decoder.alone.update(zip(texts, draft.sentences, strict=True))
        new = decode(decoder, texts, draft)
        for place, (n, text) in enumerate(zip(readable, decoder.texts(new), strict=True)):
            if place in new.alone:
                found[n] = replace(found[n], note="; ".join(filter(None, [found[n].note, ALONE])))
            elif draft.sentences[place] != new.sentences[place] and decoder.separator.strip() not in sentences[n]:
                found[n] = self._better(sentences[n], found[n], text, len(new.sentences[place]))
        return found

    def _better(self, source: str, old: Translation, text: str, tokens: int) -> Translation:
        """Return the translation with another text in place of its own, or as it is if that has a fault."""
        new = restore_ellipsis(source, restore_case(source, mend_references(source, text)))
        similar = len(new) <= 2 * len(old.text) + 20 and len(old.text) <= 2 * len(new) + 20
        intact = keeps_markup(source, new) and not lost(source, new)
        if not (similar and intact and finished(new) >= finished(old.text)):
            return old
        return replace(old, text=new, length=self._measure(new, old.unit), tokens=tokens, intact=True, note=None)

    def _document_decoder(self, context: str) -> tuple[Callable[..., "Draft"], "DocumentDecoder"]:
        """Return the way to decode with this context, and its decoder; raise if the model cannot use it."""
        if context not in CONTEXTS:
            raise ValueError(f"context is one of {', '.join(CONTEXTS)}; got {context!r}")
        untrained = ValueError(
            f"{self.name} was not trained on documents; translate without context, or train such a model"
        )
        trained = any(hasattr(control, "separator") for control in self._engine.controls)
        if not trained or self.search.prefix or self.search.hypotheses.needs_length:
            raise untrained
        from .sliding import DECODINGS, DocumentDecoder  # here: it needs torch, which not every engine does

        decoder = DocumentDecoder(self._engine, beams=self._beams)
        if not decoder.window:
            raise untrained
        return DECODINGS[context], decoder

    def document(
        self,
        source: str | Path,
        budget: str | Budget | None = None,
        out: str | Path | None = None,
        *,
        per_sentence: bool = False,
        context: str = "",
        progress: "Progress" = lambda done, total: None,
    ) -> "TranslatedDocument":
        """Return the translation of a file (.md: Markdown), or of a text in Markdown, within a budget for all of it.

        `out`: a file that it is written to; an interrupted run for the same file is resumed. `per_sentence`: the budget
        is for each sentence. `context`: each sentence is translated twice, the second time with those around it
        ("sliding", "segments" or "revise"); for models that were trained on documents. `progress` is called with the
        numbers of sentences: done, and all.
        """
        from .document import translate_document  # here: a Markdown parser, which lines do not need
        from .document_sentences import Document

        if context:
            self._document_decoder(context)  # raises if the model cannot use it
        known, file = None if budget is None else as_budget(budget), None if out is None else Path(out)
        return translate_document(self, Document.of(source), known, file, per_sentence, context, progress)

    def _split(self, text: str, budget: str | Budget | None) -> Segments | str:
        """Return the line as segments, with its budget in counts; or the error of its text or budget."""
        try:
            check_text(text)
            known = None if budget is None else as_budget(budget)
            unit = "chars" if known is None else known.unit
            if known is not None and known.of_source and text.strip():
                known = known.resolve(text, self.tokenizer).widened(self.min_limit)
            return Segments(text, known, lambda part: self._measure(part, unit), self.target not in UNSPACED)
        except (ValueError, TypeError) as error:
            return str(error)

    def _measure(self, text: str, unit: str) -> int:
        return measure(text, unit, tokenizer=self.tokenizer)

    def _translate_freely(self, lines: list[Segments]) -> Pool:
        """Return translations of any length for each sentence, and choose the best for lines without a budget."""
        # A model that needs a length translates the sentences of lines with a budget later, within their shares.
        free = [line for line in lines if line.budget is None or not self.search.hypotheses.needs_length]
        pool = self.search.free(list(dict.fromkeys(sentence for line in free for sentence in line.sentences)))
        for line in lines:
            if line.budget is None:
                line.chosen = {number: pool[text][0] for number, text in enumerate(line.sentences)}
        return pool

    def _translate_within(self, lines: list[Segments], pool: Pool) -> None:
        """Choose a translation for each sentence: each round takes one sentence per line, within the budget left."""
        if self.search.hypotheses.needs_length:
            pool = {}  # it is from lines without a budget, and the result for a line must not depend on other lines
        while True:
            for line in lines:
                line.settle({number: usable(pool.get(line.sentences[number], [])) for number in line.open})
            requests = [
                SentenceRequest(line, number, line.share(number), pool.get(line.sentences[number], []))
                for line in lines
                for number in line.open[:1]
            ]
            if not requests:
                break
            found = self.search.compress(requests, self.search.within(requests))
            for request, options in zip(requests, found, strict=True):
                options.sort(key=partial(rank_key, request))
                request.line.options[request.number] = options
                request.line.chosen[request.number] = self._whole(request, options[0])

    def _name_omissions(self, lines: list[Segments], pool: Pool) -> None:
        """Find the words that the translations of these lines leave out. The best free one is taken to be whole."""
        found = {one: one for line in lines for one in (*line.chosen.values(), *line.others)}
        checked = [
            one for one in found if one.text and not any(one.text == best.text for best in pool.get(one.source, [])[:1])
        ]
        omissions = self.search.omissions(checked, self._languages[0])
        found |= {one: replace(one, omitted=omitted) for one, omitted in zip(checked, omissions, strict=True)}
        for line in lines:
            line.chosen = {number: found[one] for number, one in line.chosen.items()}
            line.others = [found[one] for one in line.others]

    def _whole(self, request: SentenceRequest, best: Hypothesis) -> Hypothesis:
        """Return the best translation of a sentence, or in place of a fragment the free one nearest to its share."""
        if best.error or (best.complete and not best.lost):
            return best
        free = nearest_usable(request, self.search.scored(request.free))
        return best if free is None else self.search.reported(free)

    def _result(self, line: Segments) -> Translation:
        if failed := next((one.error for one in line.chosen.values() if one.error), None):
            return self._failed(line.text, line.budget, failed)
        best = self._translation(line, line.chosen)
        if not best.fits:
            why = NO_FIT if line.sentences else "the line has nothing to translate; it was copied"
            best = replace(best, note="; ".join(filter(None, [why, best.note])))
        others = [replace(self._translation(line, {0: one}), runaway=one.runaway) for one in line.others]
        return replace(best, candidates=list[Written](others))

    def _translation(self, line: Segments, chosen: dict[int, Hypothesis]) -> Translation:
        text, length, budget = line.join(chosen), line.length(chosen), line.budget
        fits = budget is None or not line.text.strip() or budget.fits(length)
        missing = lost(line.text, text) if line.sentences else []
        notes = [f"not as in the source: {', '.join(missing)}"] if missing else []
        if left_out := [listed(one.source, one.left_out) for one in chosen.values() if one.left_out]:
            notes.append(f"left out: {' … '.join(left_out)}")
        scores = [one.score for one in chosen.values() if one.score is not None]
        return Translation(
            text=text,
            length=length,
            unit="chars" if budget is None else budget.unit,
            budget="" if budget is None else str(budget),
            fits=fits,
            complete=all(one.complete for one in chosen.values()),
            model=self.name,
            tokens=sum(one.tokens for one in chosen.values()),
            source=line.text,
            intact=not missing,
            note="; ".join(notes) or None,
            score=round(sum(scores) / len(scores), 4) if scores else None,
        )

    def _others(self, line: Segments, pool: Pool) -> list[Hypothesis]:
        """Return other translations of a one-sentence line, fitting ones first. All are intact if the chosen one is."""
        if len(line.sentences) != 1 or line.chosen[0].error:
            return []
        different = {line.chosen[0].text: line.chosen[0]}
        for one in line.options.get(0) or pool.get(line.sentences[0], []):
            if not one.lost or line.chosen[0].lost:
                different.setdefault(one.text, one)  # of two with the same text, the first is better
        _, *rest = different.values()
        fits = {one: line.budget is None or line.budget.fits(line.length({0: one})) for one in rest}
        return sorted(rest, key=lambda one: not fits[one])[: self.candidates - 1]

    def _failed(self, source: str, budget: str | Budget | None, error: str) -> Translation:
        return Translation.failed(error, budget, self.name, source=source, intact=False)
