"""Shortener: the same text in less room. Two routes compete for each text, and one score chooses.

leave out   words, phrases, clauses and sentences of the source are left out      leaving_out.py, sentences.py
write       a model writes a shorter text under the hard budget                   rewriting.py
choose      likelihood, coverage of the source, no invented words                 choosing.py

A model that was trained to shorten takes part in the choice, and writes where it finds no text with words left out
likely; of several sentences, where none is sound. A sound headline of a model that was trained for headlines is taken
without the first route, which takes longer.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..endpoints.client import Endpoint, is_endpoint
from ..endpoints.writer import EndpointWriter
from ..generation.generator import Writer, Written
from ..generation.load import load
from ..length.budget import Budget, as_budget, with_budgets
from ..length.sentences import finished
from ..length.units import measure
from ..translation.placeholders import changed_placeholders
from .choosing import LIKELY, Judge, information, with_likelihood
from .content import claims_more, invented, is_empty, is_format, stems
from .english import may_be_foreign
from .forms import FORMS, LANGUAGE_MODEL, WRITERS, Form
from .note_labels import NOT_ENGLISH
from .notes import notes_on
from .pieces import split_pieces, split_sentences
from .records import Candidate, Progress, Shortened, Source, check_minimum, no_progress
from .rewriting import is_trained_for, only_rewrites, rewrite
from .sentences import leave_out_of_texts
from .torn import torn

if TYPE_CHECKING:
    from .endpoint import EndpointShortener

AT_ONCE = 32  # texts: enough to batch sentences of similar length, few enough to lose little if the run is killed
MAX_INVENTED = 1 / 3  # of the content words of a rewritten text; with more, it is about something else

_Route = Callable[[list[Source], Form], list[list[Candidate]]]  # returns the candidates of each source


class Shortener:
    """Shortens texts with a causal language model. `writer`: another model for rewriting, such as a summariser."""

    def __init__(self, model: Writer, writer: Writer | None = None) -> None:
        if model.engine.encoder_decoder:
            raise ValueError(f"words are left out by a model that has only a decoder; {model.name} also has an encoder")
        self.model, self.writer = model, writer or model
        self.judge = Judge(model.engine)

    def at_once(self, limited: bool) -> int:
        """Return how many texts of a file are shortened before they are saved."""
        return AT_ONCE

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
        """Return each text within its budget; one that fits already is returned as it is.

        `budgets`: one for all, or one per text. `form`: a headline, one sentence, or a text of any number of
        sentences. `candidates`: how many texts are rewritten. `faithful`: only leave words out. `progress` is
        called with what is being done: to rewrite a long article takes two minutes. If a text cannot be shortened, its
        `error` is set; if nothing fits, the shortest text found is returned.
        """
        if form not in FORMS:
            raise ValueError(f"a form is {', '.join(FORMS)}; got {form!r}")
        texts, asked = with_budgets(texts, budgets)
        results: dict[int, Shortened] = {}
        sources: dict[int, Source] = {}
        for place, (text, budget) in enumerate(zip(texts, asked, strict=True)):
            made = self._source(text, budget, form)
            if isinstance(made, Shortened):
                results[place] = made
            else:
                sources[place] = made
        found = self._shorten(list(sources.values()), form, candidates, faithful, progress) if sources else []
        results |= dict(zip(sources, found, strict=True))
        return [results[place] for place in range(len(texts))]

    def _source(self, text: str, budget: str | Budget, form: Form) -> Source | Shortened:
        """Return a text that must be shortened, or the result for one that fits already or has an error."""
        try:
            if not text.strip():
                raise ValueError("the text is empty")
            known, sentences = as_budget(budget).resolve(text, self.model.tokenizer), split_sentences(text)
            source = Source(text, known, self._length(known.unit), list(map(split_pieces, sentences)))
            check_minimum(known, source.length(text))
        except (ValueError, TypeError) as error:
            return Shortened.failed(str(error), budget, self.model.name, source=text)
        as_asked = form == "text" or len(sentences) == 1
        if known.fits(source.length(text)) and as_asked:
            same = Candidate(text.strip(), "unchanged", complete=True, coverage=1.0)
            return self._result(source, same)
        return source

    def _length(self, unit: str) -> Callable[[str], int]:
        tokenizer = self.model.tokenizer
        return lambda text: measure(text, unit, tokenizer=tokenizer)

    def _shorten(
        self, sources: list[Source], form: Form, candidates: int, faithful: bool, progress: Progress
    ) -> list[Shortened]:
        """Return the results of the better route for each source; of the other one, only where it is not sound.

        A summariser always competes. A model that was trained to shorten reads all candidates.
        """
        progress("reading")
        sources = self._informed(sources)
        routes: list[tuple[str, _Route]] = [("leaving words out", self._left_out)]
        if not faithful:
            routes.append(("rewriting", partial(self._rewritten, candidates=candidates)))
        engine = self.writer.engine
        if (trained := is_trained_for(form, engine)) and form == "headline":
            routes.reverse()
        both = self.writer is not self.model and not trained
        reads = trained and form != "headline"
        found: list[list[Candidate]] = [[] for _ in sources]
        open_ = list(range(len(sources)))
        for what, route in routes:
            if not open_:
                break
            progress(what)
            some = [sources[n] for n in open_]
            options = route(some, form)
            progress("comparing")
            for n, rated in zip(open_, self._rated(some, options, form), strict=True):
                found[n] += with_likelihood(engine, sources[n], rated) if reads else rated
            open_ = [n for n in open_ if both or not _is_settled(sources[n], found[n], form)]
        return [self._choose(source, some) for source, some in zip(sources, found, strict=True)]

    def _informed(self, sources: list[Source]) -> list[Source]:
        """Return the sources with the nats of their pieces. A text that has several budgets is read once."""
        each = {source.text: source.sentences for source in sources}
        nats = dict(zip(each, self.judge.nats(list(each.values())), strict=True))
        carried = {text: information(sentences, nats[text]) for text, sentences in each.items()}
        return [replace(one, nats=nats[one.text], information=carried[one.text]) for one in sources]

    def _left_out(self, sources: list[Source], form: Form) -> list[list[Candidate]]:
        return leave_out_of_texts(self.model.engine, sources, form)

    def _rewritten(self, sources: list[Source], form: Form, candidates: int) -> list[list[Candidate]]:
        texts, budgets = [source.text for source in sources], [source.budget for source in sources]
        written = rewrite(self.writer, texts, budgets, form, candidates)
        return [_about_source(source, some, form) for source, some in zip(sources, written, strict=True)]

    def _rated(self, sources: list[Source], options: list[list[Candidate]], form: Form) -> list[list[Candidate]]:
        """Return the different candidates of each source with their scores. Marks alone are no candidate."""
        rows = []
        for source, some in zip(sources, options, strict=True):
            styled = [one for one in (_styled(one, form) for one in some) if not is_empty(source.text, one.text)]
            rows.append((source, list({one.text: one for one in reversed(styled)}.values())))
        return self.judge.judged(rows)

    def _choose(self, source: Source, options: list[Candidate]) -> Shortened:
        """Return the best candidate: it fits, keeps the placeholders, is complete and not torn, and scores highest.

        A rewritten sentence without a negation or a condition of the source comes last: it may fit and say the
        opposite. The rules of the other route keep them.
        """
        best_first = sorted(options, key=lambda one: -one.score)
        rated = list({one.text: one for one in reversed(best_first)}.values())[::-1]

        def faults(one: Candidate) -> tuple[bool, int, bool, bool, int]:
            misleads = one.route == "rewritten" and len(source.sentences) == 1 and claims_more(source.text, one.text)
            miss = source.budget.miss(source.length(one.text))
            damaged = any(map(is_format, changed_placeholders(source.text, one.text)))
            return misleads, miss, damaged, not one.complete, len(torn(source.text, one.text))

        best, *others = [self._result(source, one) for one in sorted(rated, key=faults)]
        return replace(best, candidates=list(others))

    def _result(self, source: Source, one: Candidate) -> Shortened:
        length = source.length(one.text)
        models = {"unchanged": "", "left out": self.model.name, "rewritten": self.writer.name}
        return Shortened(
            one.text,
            length,
            source.budget.unit,
            str(source.budget),
            source.budget.fits(length),
            one.complete,
            models[one.route],
            one.tokens,
            source=source.text,
            route=one.route,
            intact=not any(map(is_format, changed_placeholders(source.text, one.text))),
            note=_note(source, one),
            score=None if one.route == "unchanged" else one.score,
            coverage=one.coverage,
        )


def shorten(
    text: str,
    budget: str | Budget,
    *,
    form: Form = "text",
    candidates: int = 4,
    faithful: bool = False,
    model: str = "",
    device: Any = None,
) -> Shortened:
    """Return the text within the budget: the same language, the same meaning, less room.

    `budget`: such as "at most 30 chars" or "at most 0.5x". As for several texts, `error` says why a text cannot be
    shortened, also if the budget cannot be read, such as "30"; its text is then empty.
    `model`: a name, a folder or a hub id, for a language model or a summariser, or openai:NAME@URL. It is loaded in
    each call; to shorten several texts, make a `Shortener`.
    """
    return load_shortener(model, form, device=device).shorten(
        text, budget, form=form, candidates=candidates, faithful=faithful
    )[0]


def load_shortener(
    model: str = "", form: str = "text", *, load: Callable[..., Writer] = load, device: Any = None
) -> "Shortener | EndpointShortener":
    """Return a shortener with this model, or with the one that `WRITERS` names for the form.

    A model that was trained to rewrite does only that; words are then left out by `LANGUAGE_MODEL`. A name such as
    openai:NAME@URL is that of a model behind an API.
    """
    name = model or WRITERS[form]
    if is_endpoint(name):
        from .endpoint import EndpointShortener

        return EndpointShortener(EndpointWriter(Endpoint.named(name)))
    writer = load(name, device=device)
    if only_rewrites(writer.engine, form):
        return Shortener(load(LANGUAGE_MODEL, device=device), writer)
    return Shortener(writer)


def _is_settled(source: Source, options: list[Candidate], form: Form) -> bool:
    """Return whether the best sound text is likely enough for the other route to be left out.

    That it is sound is enough for a text of several sentences: to rewrite one takes longer than all the rest, and was
    not better (docs/results/shorten.md).
    """
    sound = [one for one in options if _is_sound(source, one)]
    several = form == "text" and len(source.sentences) > 1
    return bool(sound) and (several or max(sound, key=lambda one: one.score).likelihood >= LIKELY)


def _is_sound(source: Source, one: Candidate) -> bool:
    """Return whether a text fits, is complete and not torn, keeps the placeholders, and has no number of its own.

    An address may be gone: no shorter text might keep it.
    """
    fits = one.complete and source.budget.fits(source.length(one.text)) and not torn(source.text, one.text)
    numbers = any(map(str.isdigit, "".join(invented(source.text, one.text))))
    return fits and not numbers and not any(map(is_format, changed_placeholders(source.text, one.text)))


def _about_source(source: Source, written: list[Written], form: Form) -> list[Candidate]:
    """Return the rewritten texts that say what the source says: few new words, and a question stays a question.

    One sentence is written if one is asked for. In a very small room, a model writes a letter or "The", which is no
    new word: a text without content words is discarded if the source has some.
    """
    has_content = bool(stems(source.text))

    def is_about(text: str) -> bool:
        known = stems(text)
        if has_content and not known:
            return False
        new = len(invented(source.text, text)) / max(1, len(known))
        asks = len(source.sentences) == 1 and source.text.rstrip().endswith("?")
        several = form == "sentence" and len(split_sentences(text)) > 1
        return new <= MAX_INVENTED and not several and (not asks or text.rstrip().endswith("?"))

    return [Candidate(one.text, "rewritten", one.complete) for one in written if is_about(one.text)]


def _note(source: Source, one: Candidate) -> str | None:
    """Return the notes on a text. The rules for leaving words out are for English, and so are the models."""
    foreign = one.route != "unchanged" and may_be_foreign(source.text)
    return "; ".join(filter(None, [NOT_ENGLISH if foreign else None, notes_on(source.text, one.text)])) or None


def _styled(one: Candidate, form: Form) -> Candidate:
    """Return the candidate on one line; a headline without its full stop."""
    text, kept = " ".join(one.text.split()), one.kept
    if form == "headline" and finished(text) and text.endswith("."):
        text, kept = text.removesuffix("."), kept[:-1] if kept and kept[-1][0].text == "." else ()
    return replace(one, text=text, kept=kept)
