"""Sliding decoding: translate documents that are longer than the model's window (Zhang, Gu, Zhang & Feng 2023).

A model that was trained on segments of several sentences translates a sentence better if it sees its neighbours. A
document that is longer than the window is translated in one of three ways:

    segments   Windows do not overlap. The first sentence of each has no context.
    slide      The window moves by at least one sentence. The oldest sentences leave it, and the translations of those
               that stay are the forced prefix of the next search. A sentence longer than the window is alone in it.
    revise     Each sentence of a finished translation is searched again with the source on both sides of it, after
               the translations before it. The searches are independent: errors do not accumulate, and all are batched.

The paper's method is `slide` with `hold_back=0, candidates=1`. The model writes a separator between sentences. Where
their number is wrong, or one is empty, the new sentences of the window are translated alone.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ..controls.sentence_separator import SentenceSeparator
from ..engines.base import Engine
from ..engines.rows import Processor
from ..scoring.log_likelihood import batches_by_size, log_probs
from ..scoring.noisy_channel import FORWARD_WEIGHT
from ..scoring.reverse import ReverseModel

Ids = tuple[int, ...]
Document = Sequence[str]  # sentences
Option = tuple[list[Ids], bool]  # the new sentences of a window, and whether their number was wrong
_BATCH = 8  # tokens of one search, prompts and prefixes of all beams, in multiples of the engine's `batch_tokens`


@dataclass(frozen=True)
class Window:
    """The source sentences of a window, and the translations of its first ones."""

    sources: Sequence[str]
    before: Sequence[Ids] = ()

    @property
    def new(self) -> Sequence[str]:
        return self.sources[len(self.before) :]


@dataclass(frozen=True)
class Draft:
    """The translations of the first sentences of a document, as ids.

    windows   how many windows were searched
    alone     numbers of the sentences that were translated without context, because their window had a wrong number
    """

    sentences: tuple[Ids, ...] = ()
    windows: int = 0
    alone: frozenset[int] = frozenset()

    def extended(self, sentences: Iterable[Ids], alone: bool) -> "Draft":
        joined = (*self.sentences, *sentences)
        added = range(len(self.sentences), len(joined)) if alone else ()
        return Draft(joined, self.windows + 1, self.alone | set(added))


class DocumentDecoder:
    """Translates documents with a model that was trained on segments of several sentences.

    Another model translates each sentence alone, whatever the window.

    window   source tokens that are translated together; default: half of the longest training segment, because the
             translation may be longer than the source and must not exceed that segment either. The paper takes 0.8
    count    mask the logits so that a window gets as many sentences as its source has, none of them empty
    repair   translate the sentences of a window alone if their number is wrong; if False, missing sentences are empty
             and surplus ones belong to the last, to measure what the model does by itself
    alone    translations of single sentences, which repair reads and adds to; several decoders may share them
    reverse  a model of the other direction, which scores the candidates of `slide` beside the translator itself
    """

    def __init__(
        self,
        engine: Engine,
        *,
        beams: int = 4,
        window: int | None = None,
        count: bool = False,
        repair: bool = True,
        alone: dict[str, Ids] | None = None,
        reverse: ReverseModel | None = None,
    ) -> None:
        trained = next((control for control in engine.controls if isinstance(control, SentenceSeparator)), None)
        self.engine, self.beams, self.count, self.repair, self.reverse = engine, beams, count, repair, reverse
        self.alone: dict[str, Ids] = {} if alone is None else alone
        self.window, self.separator, self._mark = 0, " ", -1
        if trained is not None:
            self.window, self.separator = trained.maximum // 2 if window is None else window, trained.separator
            [self._mark] = engine.tokenizer(text_target=self.separator, add_special_tokens=False)["input_ids"]

    def draft(self, texts: Sequence[str]) -> Draft:
        """Return translated sentences as a draft. A separator in them is left out: it would end a sentence."""
        found = self.engine.tokenizer(text_target=list(texts), add_special_tokens=False)["input_ids"]
        return Draft(tuple(tuple(token for token in ids if token != self._mark) for ids in found))

    def texts(self, draft: Draft) -> list[str]:
        """Return the sentences of a draft."""
        found = self.engine.tokenizer.batch_decode(list(draft.sentences), skip_special_tokens=True)
        return [text.strip() for text in found]

    # ---- three ways

    def segments(self, documents: Sequence[Document]) -> list[Draft]:
        """Translate windows that do not overlap, each without context."""
        windows, owners = [], []
        for number, (document, sizes) in enumerate(zip(documents, map(self._sizes, documents), strict=True)):
            start = 0
            while start < len(document):
                end = self._end(sizes, start, start + 1)
                windows.append(Window(document[start:end]))
                owners.append(number)
                start = end
        drafts = [Draft() for _ in documents]
        for number, [(sentences, alone)] in zip(owners, self._translate(windows), strict=True):
            drafts[number] = drafts[number].extended(sentences, alone)
        return drafts

    def slide(self, documents: Sequence[Document], *, hold_back: int = 0, candidates: int = 1) -> list[Draft]:
        """Translate with a window that moves over each document.

        hold_back    sentences at the end of a window that are searched again in the next one, with the source that
                     follows them
        candidates   drafts of each document that compete: those with the highest mean log-probability in the window;
                     with a reverse model, those with the highest score of `scoring/noisy_channel.py`
        """
        sizes = [self._sizes(document) for document in documents]
        drafts = {n: [Draft()] for n in range(len(documents))}
        while unfinished := [n for n, document in enumerate(documents) if len(drafts[n][0].sentences) < len(document)]:
            places = {n: self._place(sizes[n], len(drafts[n][0].sentences), hold_back) for n in unfinished}
            owners = [(n, draft) for n in unfinished for draft in drafts[n]]
            windows = [self._window(documents[n], *places[n], draft.sentences) for n, draft in owners]
            found = self._translate(windows, candidates)
            scores = iter(self._scores(windows, found) if candidates > 1 else ())
            ranked: dict[int, list[tuple[float, Draft]]] = {n: [] for n in unfinished}
            for (n, draft), options in zip(owners, found, strict=True):
                last = places[n][1] == len(documents[n])
                for sentences, alone in options:
                    kept = sentences if last or len(sentences) == 1 else sentences[: max(1, len(sentences) - hold_back)]
                    ranked[n].append((next(scores, 0.0), draft.extended(kept, alone)))
            drafts |= {n: _best(scored, candidates) for n, scored in ranked.items()}
        return [drafts[n][0] for n in range(len(documents))]

    def revise(self, documents: Sequence[Document], drafts: Sequence[Draft], *, compare: bool = False) -> list[Draft]:
        """Search each sentence again, with the source on both sides of it, after the drafts of those before it.

        compare    keep the draft of a sentence if its mean log-probability, with context and without, is higher
        """
        windows = []
        for document, draft in zip(documents, drafts, strict=True):
            sizes = self._sizes(document)
            for number in range(len(document)):
                half = (self.window + sizes[number]) // 2
                end = self._end(sizes, self._start(sizes, number, number + 1, half), number + 1)
                start = self._start(sizes, number, end, self.window)
                windows.append(self._window(document, start, end, draft.sentences[:number]))
        before = [sentence for draft in drafts for sentence in draft.sentences]
        searched = self._search(windows, 1, lambda rows: self._one_sentence)
        after = [found[0][0] or sentence for found, sentence in zip(searched, before, strict=True)]
        if compare:
            after = self._more_probable(windows, before, after)
        rest = iter(after)
        return [
            Draft(tuple(islice(rest, len(draft.sentences))), draft.windows + len(draft.sentences)) for draft in drafts
        ]

    def translate_alone(self, sources: Sequence[str]) -> dict[str, Ids]:
        """Return the translations of single sentences, from `alone` as far as they are there."""
        missing = [source for source in dict.fromkeys(sources) if source not in self.alone]
        found = self._search([Window([source]) for source in missing], 1) if missing else []
        self.alone.update((source, _flat(options[0])) for source, options in zip(missing, found, strict=True))
        return self.alone

    # ---- windows

    def _sizes(self, document: Document) -> list[int]:
        """Return the tokens of each source sentence, with its separator."""
        return [len(ids) + 1 for ids in self.engine.tokenizer(list(document), add_special_tokens=False)["input_ids"]]

    def _end(self, sizes: list[int], start: int, end: int) -> int:
        """Return the last end, from `end` on, with which sentences from `start` on are within the window."""
        while end < len(sizes) and sum(sizes[start : end + 1]) <= self.window:
            end += 1
        return end

    def _start(self, sizes: list[int], start: int, end: int, limit: int) -> int:
        """Return the first start, from `start` back, with which sentences before `end` are within the limit."""
        while start > 0 and sum(sizes[start - 1 : end]) <= limit:
            start -= 1
        return start

    def _place(self, sizes: list[int], done: int, hold_back: int) -> tuple[int, int]:
        """Return the start and the end of the next window: with a new sentence, and those to hold back if they fit."""
        new = min(done + 1 + hold_back, len(sizes))
        while new > done + 1 and sum(sizes[done:new]) > self.window:
            new -= 1
        start = self._start(sizes, done, new, self.window)
        return start, self._end(sizes, start, new)

    def _window(self, document: Document, start: int, end: int, translated: Sequence[Ids]) -> Window:
        """Return the window from `start` to `end`, or a shorter one if the prefix would take half of the decoder."""
        while start < len(translated) and len(self._prefix(translated[start:])) > self.engine.window // 2:
            start += 1
        return Window(document[start:end], translated[start:])

    # ---- search

    def _translate(self, windows: list[Window], count: int = 1) -> list[list[Option]]:
        """Return `count` translations of each window's new sentences, and whether their number was wrong.

        Only translations with the right number of sentences are returned; if there is none, a repaired one.
        """
        searched = self._search(windows, count)
        found = [
            [sentences for sentences in options if len(sentences) == len(window.new) and all(sentences)]
            for window, options in zip(windows, searched, strict=True)
        ]
        wrong = [row for row, options in enumerate(found) if not options]
        alone = self.translate_alone([source for row in wrong for source in windows[row].new]) if self.repair else {}
        result = [[(sentences, False) for sentences in options] for options in found]
        for row in wrong:
            new = windows[row].new
            sentences = [alone[source] for source in new] if self.repair else _padded(searched[row][0], len(new))
            result[row] = [(sentences, len(windows[row].sources) > 1)]
        return result

    def _search(
        self, windows: list[Window], count: int, processor: Callable[[list[Window]], Processor] | None = None
    ) -> list[list[list[Ids]]]:
        """Return `count` continuations of each window, each a list of sentences.

        `processor` returns the logits processor of a batch of windows; default: the one that counts, if asked for.
        """
        engine = self.engine
        if processor is None and self.count and self.window:
            processor = self._as_many_sentences
        prompts = [self._prompt(window) for window in windows]
        prefixes = [self._prefix(window.before) for window in windows]
        sizes = [len(prompt) + len(prefix) for prompt, prefix in zip(prompts, prefixes, strict=True)]
        found: list[list[list[Ids]]] = [[] for _ in windows]
        for rows in self._batches(sizes):
            new = max(len(prompts[row]) * len(windows[row].new) // len(windows[row].sources) for row in rows)
            longest = max(len(prefixes[row]) for row in rows)
            ids = engine.search(
                [prompts[row] for row in rows],
                prefixes=[prefixes[row] for row in rows],
                max_new_tokens=max(1, min(2 * new + 30, engine.window - longest - 2)),
                beams=max(self.beams, count),
                sequences=count,
                processors=[] if processor is None else [processor([windows[row] for row in rows])],
            ).ids
            for place, text in enumerate(ids):
                found[rows[place // count]].append(self._split(text))
        return found

    def _batches(self, sizes: list[int]) -> Iterator[list[int]]:
        """Yield rows of similar size that are searched together, within the engine's limits."""
        most = max(1, self.engine.max_rows // self.beams)
        for rows in batches_by_size(sizes, _BATCH * self.engine.batch_tokens // self.beams):
            for first in range(0, len(rows), most):
                yield rows[first : first + most]

    def _prompt(self, window: Window) -> list[int]:
        sources = [source.replace(self.separator.strip(), " ") if self.window else source for source in window.sources]
        return self.engine.prompt_ids(self.separator.join(sources))

    def _prefix(self, sentences: Iterable[Ids]) -> list[int]:
        return [token for sentence in sentences for token in (*sentence, self._mark)]

    def _split(self, ids: Sequence[int]) -> list[Ids]:
        """Return the ids of each sentence, up to the end token."""
        sentences: list[list[int]] = [[]]
        for token in ids:
            if token in self.engine.eos:
                break
            if token == self._mark:
                sentences.append([])
            else:
                sentences[-1].append(token)
        return [tuple(sentence) for sentence in sentences]

    def _as_many_sentences(self, windows: list[Window]) -> Processor:
        """Return a logits processor that allows as many sentences as each window has new ones, none of them empty."""
        counts = [len(window.new) for window in windows]

        def process(ids: Any, scores: Any) -> Any:  # (rows, n), (rows, vocabulary); the beams of a window are adjacent
            wanted = ids.new_tensor(counts).repeat_interleave(len(ids) // len(counts))
            begun = 1 + (ids == self._mark).sum(1)
            empty = ids[:, -1] == self._mark if ids.shape[1] else wanted > 0
            scores[:, self._mark] = scores[:, self._mark].masked_fill(empty | (begun >= wanted), -math.inf)
            ends = (empty | (begun < wanted))[:, None]
            scores[:, self.engine.eos] = scores[:, self.engine.eos].masked_fill(ends, -math.inf)
            return scores

        return process

    def _one_sentence(self, ids: Any, scores: Any) -> Any:
        """Allow only the end after a separator: a logits processor."""
        if ids.shape[1]:
            after = ids[:, -1] == self._mark
            kept = scores[:, self.engine.eos].clone()
            scores[after] = -math.inf
            scores[:, self.engine.eos] = kept
        return scores

    def _more_probable(self, windows: list[Window], before: list[Ids], after: list[Ids]) -> list[Ids]:
        """Return the more probable of two translations of each window's first new sentence.

        Compared is the sum of the mean log-probabilities per token in the window and without context.
        """
        different = [row for row, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]]
        prompts, texts, sizes = [], [], []
        for row in different:
            for sentence in (before[row], after[row]):
                for window in (windows[row], Window(windows[row].new[:1])):
                    end = self._mark if len(window.new) > 1 else self.engine.eos[0]
                    prompts.append(self._prompt(window))
                    texts.append([*self._prefix(window.before), *sentence, end])
                    sizes.append(len(sentence) + 1)
        known = {row: float(found.token[-sizes[row] :].mean()) for row, found in log_probs(self.engine, prompts, texts)}
        chosen = list(after)
        for place, row in enumerate(different):
            old, new = (known[4 * place + n] + known[4 * place + n + 1] for n in (0, 2))
            if old >= new:
                chosen[row] = before[row]
        return chosen

    def _scores(self, windows: list[Window], found: list[list[Option]]) -> list[float]:
        """Return the score of each translation in nats per token, the prefix included; higher is better."""
        pairs = [
            (self._prompt(window), self._prefix([*window.before, *sentences])[: self.engine.window - 2])
            for window, options in zip(windows, found, strict=True)
            for sentences, _ in options
        ]
        prompts, texts = zip(*pairs, strict=True)
        known = dict(log_probs(self.engine, prompts, texts))
        means = [float(known[row].token.mean()) if row in known else -math.inf for row in range(len(texts))]
        if self.reverse is None:
            return means
        backs = self._reverse_scores(self.reverse, windows, found)
        return [back + FORWARD_WEIGHT * mean for back, mean in zip(backs, means, strict=True)]

    def _reverse_scores(self, reverse: ReverseModel, windows: list[Window], found: list[list[Option]]) -> list[float]:
        """Return the mean log-probability of the source's tokens, each sentence given its translation alone."""
        options = [(window, sentences) for window, some in zip(windows, found, strict=True) for sentences, _ in some]
        sources = [source for window, _ in options for source in window.sources]
        texts = self.texts(Draft(tuple(ids for window, new in options for ids in (*window.before, *new))))
        rest = iter(reverse.likelihood(sources, texts))
        totals = [sum(islice(rest, len(window.sources))) for window, _ in options]  # each: log P, tokens
        return [float(log_prob / tokens) for log_prob, tokens in totals]


# The ways in which `Translator.document` translates sentences again in context: each from a draft of a document.
DECODINGS: dict[str, Callable[[DocumentDecoder, Document, Draft], Draft]] = {
    "sliding": lambda decoder, document, _: decoder.slide([document], hold_back=1)[0],
    "segments": lambda decoder, document, _: decoder.segments([document])[0],
    "revise": lambda decoder, document, draft: decoder.revise([document], [draft])[0],
}


def _best(scored: list[tuple[float, Draft]], count: int) -> list[Draft]:
    """Return the `count` best of the different drafts. With sentences held back, many drafts are equal."""
    different: dict[tuple[Ids, ...], Draft] = {}
    for _, draft in sorted(scored, key=lambda one: -one[0]):
        different.setdefault(draft.sentences, draft)
    return list(different.values())[:count]


def _flat(sentences: list[Ids]) -> Ids:
    return tuple(token for sentence in sentences for token in sentence)


def _padded(sentences: list[Ids], count: int) -> list[Ids]:
    """Return `count` sentences: missing ones are empty, and surplus ones belong to the last."""
    kept = [*sentences[: count - 1], _flat(sentences[count - 1 :])]
    return kept + [()] * (count - len(kept))
