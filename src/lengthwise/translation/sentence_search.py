"""Sentence search: translate single sentences at any length, within a budget, or with some of their words dropped.

In all three the model receives the sentence, the placeholders, capitals and ellipses of its output are restored, and
the noisy channel scores it.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ..generation.generator import Written
from ..length.budget import Budget
from ..scoring.noisy_channel import NoisyChannel
from .casing import restore_case, to_sentence_case
from .compression import DroppedWords, balanced, combine_runs, runs, without
from .forms import Form, Known, forms_of
from .hypotheses import WIDER, Hypotheses, asked_for
from .omissions import find_omissions
from .placeholders import lost, mend_references, restore_ellipsis
from .ranking import MAX_SCORE_GAP, SentenceRequest, mark_untranslated, rank_free, rank_key, score_of, violations
from .records import Hypothesis

MAX_COMBINATIONS = 8  # of dropped runs of words, per sentence: of 48, the best was among the first 8
# As MAX_SCORE_GAP, for a model that reads it first. 24 lines with 1.5: 59.5 chrF for 59.4, 19 wide searches for 11.
LENGTH_FIRST_SCORE_GAP = 3.0
# Searches within a share: times the beams, and the part of the share that the model is asked for. A model that reads
# the length first writes 3 % more than it is asked for, so asked for less, more of its texts end in time.
WIDE, LENGTH_FIRST = (WIDER, 1.0), ((1, 1.0), (1, 0.95), (WIDER, 0.95))
MAX_COMPRESSED = 8  # compressed translations that become options of a sentence: the best that fit
Options = list[Hypothesis]
Fits = Callable[[Hypothesis], bool]
How = tuple[int, float]  # as in `LENGTH_FIRST`


class SentenceSearch:
    """Searches with `hypotheses` and scores with `channel`.

    `prefix`: the model receives it before each text. `measure`: returns the length of a text in a unit.
    """

    def __init__(
        self, hypotheses: Hypotheses, channel: NoisyChannel, prefix: str, measure: Callable[[str, str], int]
    ) -> None:
        self.hypotheses, self.channel, self.prefix, self.measure = hypotheses, channel, prefix, measure
        self.has_reverse_model, self.can_compress = channel.reverse is not None, channel.forward is not None

    def free(self, texts: list[str]) -> dict[str, Options]:
        """Return translations of any length for each sentence, best first. Where none is intact, other forms follow."""
        found: dict[str, Options] = {text: [] for text in texts}
        forms = {text: forms_of(text) for text in texts}
        for n in range(max(map(len, forms.values()), default=0)):
            torn = [
                text
                for text in texts  # without failed ones: another search would also fail
                if n < len(forms[text]) and all(one.lost and not one.error for one in found[text])
            ]
            for text, options in zip(torn, self._free(torn, [forms[text][n]() for text in torn]), strict=True):
                found[text] = rank_free([*options, *found[text]])
        return found

    def _free(self, texts: list[str], forms: list[Form]) -> list[Options]:
        if not texts:
            return []
        found = self.hypotheses.free([self.prefix + to_sentence_case(form.text) for form in forms])
        return [rank_free(some) for some in self._restored([(text, _fits_always) for text in texts], forms, found)]

    def _restored(self, asked: list[tuple[str, Fits]], forms: list[Form], found: list[list[Written]]) -> list[Options]:
        """Return the results of a search as hypotheses of these sentences, with scores if a model has any."""
        known = self._translated_phrases(forms)
        options = [
            [_restored(text, form, known, one, fits) for one in some]
            for (text, fits), form, some in zip(asked, forms, found, strict=True)
        ]
        return self._scored(options) if self.has_reverse_model else options

    def _translated_phrases(self, forms: list[Form]) -> Known:
        """Return the translations of the words inside tags, by which they are found in the translation."""
        phrases = list(dict.fromkeys(phrase for form in forms for phrase in form.phrases))
        if not phrases or self.hypotheses.needs_length:
            return {}
        found = self.hypotheses.free([self.prefix + to_sentence_case(phrase) for phrase in phrases])
        return {phrase: [one.text for one in some] for phrase, some in zip(phrases, found, strict=True)}

    def within(self, requests: list[SentenceRequest]) -> list[Options]:
        """Return translations within each share, and the free ones.

        A model that reads the length first is searched with few beams, and where these find too little, again as
        `LENGTH_FIRST` says, except for the part of a share whose target is smaller anyway.
        """
        if not self.hypotheses.reads_length_first:
            return self._all_forms(requests, WIDE)
        found: list[Options] = [[] for _ in requests]
        behind = list(range(len(requests)))
        for wider, part in LENGTH_FIRST:
            less = [asked_for(requests[k].share, part) != requests[k].share for k in behind]
            some = [k for k, changed in zip(behind, less, strict=True) if changed or part == 1 or wider > 1]
            for k, options in zip(some, self._all_forms([requests[k] for k in some], (wider, part)), strict=True):
                found[k] = [*found[k], *options]
            behind = [
                k
                for k in behind
                if all(any(violations(requests[k], one)) for one in found[k]) or self._is_behind(requests[k], found[k])
            ]
        return found

    def _all_forms(self, requests: list[SentenceRequest], how: How) -> list[Options]:
        """Return translations within each share, and the free ones. Other forms are tried where none is intact."""
        found: list[Options] = [[] for _ in requests]
        forms = [forms_of(request.text) for request in requests]
        for n in range(max(map(len, forms), default=0)):
            torn = [k for k, request in enumerate(requests) if n < len(forms[k]) and _is_torn(request, found[k])]
            asked = [requests[k] for k in torn]
            for k, options in zip(torn, self._within(asked, [forms[k][n]() for k in torn], how), strict=True):
                found[k] = [*options, *found[k]]
        return [
            [mark_untranslated(one, request.free) for one in (*options, *request.free)]
            for request, options in zip(requests, found, strict=True)
        ]

    def _within(self, requests: list[SentenceRequest], forms: list[Form], how: How) -> list[Options]:
        if not requests:
            return []
        shares = [self._room_for(form.text, request) for form, request in zip(forms, requests, strict=True)]
        found = self.hypotheses.bound([self.prefix + to_sentence_case(form.text) for form in forms], shares, *how)
        return self._restored([(request.text, request.fits) for request in requests], forms, found)

    def _room_for(self, masked: str, request: SentenceRequest) -> Budget:
        """Return the share, reduced by the length that placeholders take beyond their stand-ins."""
        share = request.share
        more = self.measure(request.text, share.unit) - self.measure(masked, share.unit)
        if more == 0:
            return share
        high = None if share.high is None else max(1, share.high - more)
        low = max(0 if high else 1, share.low - more)
        target = max(1, low, share.target - more)
        if high is None:
            return Budget(low, None, target, share.unit)
        return Budget(min(low, high), high, min(target, high), share.unit)

    def compress(self, requests: list[SentenceRequest], options: list[Options]) -> list[Options]:
        """Return the options, with translations of compressed sources added where no option is good enough."""
        behind = [n for n, request in enumerate(requests) if self._is_behind(request, options[n])]
        for n, compressed in zip(behind, self._compressed([requests[n] for n in behind]), strict=True):
            dropped = {one.text: one.dropped for one in compressed}
            # An option with the same text as a compressed one omits the same words.
            options[n] = [replace(one, dropped=dropped.get(one.text, one.dropped)) for one in options[n]] + compressed
        return options

    def _is_behind(self, request: SentenceRequest, options: Options) -> bool:
        """Return whether no option without violations scores nearly as well as the best free translation."""
        high = request.share.high
        if not self.can_compress or not request.free or request.free[0].error or high is None:
            return False
        too_short = request.line.sentence_length(request.free[0]) <= high
        good = [score_of(one) for one in options if not any(violations(request, one))]
        gap = LENGTH_FIRST_SCORE_GAP if self.hypotheses.reads_length_first else MAX_SCORE_GAP
        return not too_short and max(good, default=-math.inf) < score_of(request.free[0]) - gap

    def _compressed(self, requests: list[SentenceRequest]) -> list[Options]:
        if not requests:
            return []
        full = [one for [one] in self._scored([request.free[:1] for request in requests])]
        single = self._without(requests, [_single(*known) for known in zip(requests, full, strict=True)])
        several = self._without(requests, [_combined(*known) for known in zip(requests, full, single, strict=True)])
        found = []
        for request, free, one_run, more_runs in zip(requests, full, single, several, strict=True):
            different = {one.text: one for one in one_run + more_runs}.values()
            fitting = [mark_untranslated(one, [free]) for one in different if not any(violations(request, one))]
            best = sorted(fitting, key=partial(rank_key, request))[:MAX_COMPRESSED]
            found.append([self.reported(one) for one in best])
        return found

    def _without(self, requests: list[SentenceRequest], choices: list[list[DroppedWords]]) -> list[Options]:
        """Return greedy translations without these words, if placeholders and pairs of brackets are kept."""
        forms = [
            {
                dropped: form
                for dropped in some
                if not lost(request.text, form := without(to_sentence_case(request.text), dropped))
                and (balanced(form) or not balanced(request.text))
            }
            for request, some in zip(requests, choices, strict=True)
        ]
        shorter = {text: forms_of(text)[0]() for some in forms for text in some.values()}
        known = self._translated_phrases(list(shorter.values()))
        first = self.hypotheses.first([self.prefix + form.text for form in shorter.values()])
        found = dict(zip(shorter, first, strict=True))
        options = [
            [
                replace(_restored(request.text, shorter[text], known, found[text], request.fits), dropped=dropped)
                for dropped, text in some.items()
            ]
            for request, some in zip(requests, forms, strict=True)
        ]
        return [[one for one in some if one.text] for some in self._scored(options)]

    def scored(self, options: Options) -> Options:
        """Return the hypotheses with scores, if a model can score them."""
        return self._scored([options])[0] if self.has_reverse_model or self.can_compress else options

    def omissions(self, options: Options, language: str) -> list[DroppedWords]:
        """Return the places of the source words that each translation leaves out; none if the model cannot score."""
        if not options or self.channel.forward is None:
            return [frozenset()] * len(options)
        pairs = [(one.source, one.text) for one in options]
        return find_omissions(self.channel.forward, pairs, language, self.alone)

    def alone(self, words: list[str]) -> list[str]:
        """Return the translation of each word alone; that of a model that needs a length is empty."""
        if self.hypotheses.needs_length:
            return [""] * len(words)
        return [one.text for one in self.hypotheses.first([self.prefix + word for word in words])]

    def reported(self, one: Hypothesis) -> Hypothesis:
        """Return the hypothesis without the score of the translator itself: only a reverse model's is reported."""
        return one if self.has_reverse_model else replace(one, score=None)

    def _scored(self, found: list[Options]) -> list[Options]:
        """Return the hypotheses with scores. Those with a score, and failed ones, are not changed."""
        unscored = [one for options in found for one in options if one.text and one.score is None]
        pairs = list(dict.fromkeys((one.source, one.text) for one in unscored))
        sources, outputs = ([to_sentence_case(pair[side]) for pair in pairs] for side in (0, 1))
        scores = dict(zip(pairs, self.channel.scores(sources, outputs).tolist(), strict=True))

        def filled(one: Hypothesis) -> Hypothesis:
            score = scores.get((one.source, one.text))
            return one if score is None else replace(one, score=round(score, 4), runaway=None)

        return [[filled(one) for one in options] for options in found]


def _fits_always(one: Hypothesis) -> bool:
    return True


def _restored(source: str, form: Form, known: Known, found: Written, fits: Fits) -> Hypothesis:
    """Return the result of a search with its placeholders, and with the capitals and the ellipses of the source.

    Three full stops stay where the text fits only with them.
    """
    # Restore the capitals of the form first: else a stand-in in lower case is not found.
    seen = restore_case(form.text, mend_references(form.text, found.text))
    text = restore_case(source, mend_references(source, form.restore(seen, known)))
    one = Hypothesis(source, text, found.tokens, found.complete, found.error, getattr(found, "runaway", None))
    shorter = replace(one, text=restore_ellipsis(source, text))
    return one if shorter.text != text and fits(one) and not fits(shorter) else shorter


def _is_torn(request: SentenceRequest, options: Options) -> bool:
    """Return whether no option both fits and keeps the placeholders."""
    return all(one.misfit or one.lost for one in (violations(request, option) for option in options))


def _single(request: SentenceRequest, full: Hypothesis) -> list[DroppedWords]:
    """Return the runs to drop alone."""
    length, high = request.line.sentence_length(full), request.share.high
    return runs(request.text, 0.0 if high is None else 1 - high / length)


def _combined(request: SentenceRequest, full: Hypothesis, single: Options) -> list[DroppedWords]:
    """Return combinations of runs to drop; none if every single-run translation has lost a placeholder."""
    if all(one.lost for one in single):
        return []
    length = request.line.sentence_length
    tried = {one.dropped: (length(one), score_of(one)) for one in single}
    whole = length(full), score_of(full)
    return combine_runs(len(request.text.split()), tried, whole, request.share.fits, MAX_COMBINATIONS)
