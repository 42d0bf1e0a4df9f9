"""Leaving words out: a beam search over the deletions of a sentence, in which a language model reads what is kept.

Each hypothesis is a place in the sentence and the pieces kept before it. At each step the model's scores of the next
token give the log-probability of continuing with the next piece or, after a deletion, with a later one; one forward
pass covers all of them. The budget is exact: a piece that does not fit is not added.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..arrays import converter, log_softmax, to_numpy
from ..engines.base import Engine
from ..engines.rows import Rows, closing
from .deletions import Deletion, deletions, skips
from .english import may_be_foreign
from .joining import form_of, is_fragment, may_end, with_conjunction
from .pieces import Piece, join_pieces
from .torn import alike, is_torn

PER_PLACE = 3  # hypotheses at the same place of the sentence
LOSS = 1.5  # nats for each nat of information that is left out
MUST_LOSE = 1.0  # share of the information that is expected to be lost where words must still be left out
KEPT = 4  # results of a sentence, in each range of lengths
RANGES = (0.5, 0.7, 0.85, 1.0)  # of the limit
ROWS = 64  # decoded together
PER_START = 0.6  # share of the beam that may begin with the same piece
EFFORT = 0.05  # nats expected for each unit that must still be left out
TORN = 8.0  # cost of words that need a word between them which is left out


@dataclass(frozen=True)
class Sentence:
    """A sentence to shorten. `information`: nats that each piece carries. `limit`: of its length.

    `margin`: how many nats a hypothesis may have less than the best one.
    """

    pieces: list[Piece]
    information: list[float]
    prompt: list[int]
    length: Callable[[str], int]
    limit: int
    beam: int  # hypotheses
    margin: float
    headline: bool = False


@dataclass(frozen=True)
class Kept:
    """A sentence with some pieces left out. `cost`: of the deletions. `score`: of the search.

    `places`: those of the pieces in the sentence; None for a short form.
    """

    pieces: tuple[Piece, ...]
    places: tuple[int | None, ...]
    score: float
    cost: float

    @property
    def text(self) -> str:
        return join_pieces(self.pieces)


@dataclass(frozen=True)
class _Hypothesis:
    place: int  # the next piece of the sentence
    pieces: tuple[Piece, ...]
    places: tuple[int | None, ...]
    log_prob: float
    cost: float
    lost: float
    pending: tuple[int, ...]  # tokens of the last piece that the model has yet to read
    row: int
    start: int = -1  # place of the first kept piece
    rank: float = 0.0


class _Search:
    """The search for one sentence."""

    def __init__(self, engine: Engine, sentence: Sentence) -> None:
        self.sentence, self.tokenizer = sentence, engine.tokenizer
        found = deletions(sentence.pieces, sentence.headline)
        self.skips = skips(sentence.pieces, found)
        self.short_forms: dict[int, list[Deletion]] = {}
        for one in found:
            if one.instead is not None:
                self.short_forms.setdefault(one.start, []).append(one)
        count = len(sentence.pieces)
        rest = [join_pieces(sentence.pieces[place:]) for place in range(count + 1)]
        self.left = [sentence.length(text) for text in rest]  # of the sentence from each place on
        self.carried = [sum(sentence.information[place:]) for place in range(count + 1)]
        self.ids: dict[tuple[str, bool], tuple[int, ...]] = {}
        self.foreign = may_be_foreign(rest[0])  # the rules on torn places are for English
        self.torn: dict[tuple[int, int], float] = {}
        self.finished: dict[str, Kept] = {}

    def tokens(self, piece: Piece, first: bool) -> tuple[int, ...]:
        """Return the token ids of a piece, with the space before it."""
        key = piece.text, piece.spaced and not first
        if key not in self.ids:
            text = f" {piece.text}" if key[1] else piece.text
            self.ids[key] = tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])
        return self.ids[key]

    def tear(self, before: int, after: int) -> float:
        """Return the cost of a torn place between two places of the sentence, 0 if it is none."""
        if (before, after) not in self.torn:
            torn = not self.foreign and is_torn(self.sentence.pieces, before, after, telegraphic=self.sentence.headline)
            self.torn[before, after] = TORN if torn else 0.0
        return self.torn[before, after]

    def rank(self, one: _Hypothesis) -> float:
        """Return the score of a hypothesis with an estimate of what it must still leave out."""
        used = self.sentence.length(join_pieces(one.pieces)) if one.pieces else 0
        over = max(0, used + self.left[one.place] - self.sentence.limit)
        losing = MUST_LOSE * self.carried[one.place] * over / max(1, self.left[one.place])
        return one.log_prob - one.cost - LOSS * (one.lost + losing) - EFFORT * over

    def grow(self, one: _Hypothesis, log_probs: NDArray[np.float32]) -> list[_Hypothesis]:
        """Return the hypotheses that follow: each next piece that fits, after each deletion."""
        grown = []
        pieces, information = self.sentence.pieces, self.sentence.information
        for place, cost in self.skips[one.place].items():
            lost = sum(information[one.place : place])
            cost += self.tear(one.place - 1, place)
            if place == len(pieces):
                self.finish(one, cost, lost)
                continue
            nexts: list[tuple[Piece, int | None, int, float]] = [(pieces[place], place, place + 1, 0.0)]
            nexts += [
                (short.instead, None, short.end, short.cost)
                for short in self.short_forms.get(place, ())
                if short.instead
            ]
            for piece, origin, after, more in nexts:
                if (form := form_of(piece, place, one.pieces, one.place, pieces)) is None:
                    continue
                kept = (*one.pieces, form)
                if self.sentence.length(join_pieces(kept)) > self.sentence.limit:
                    continue
                start = place if not one.pieces else one.start
                spent, ids = one.cost + cost + more, self.tokens(form, not one.pieces)
                places = (*one.places, origin)
                new = _Hypothesis(after, kept, places, one.log_prob, spent, one.lost + lost, ids, one.row, start)
                if after == len(pieces) and len(ids) == 1:  # the end needs no further forward pass
                    self.finish(self.read(new, log_probs), 0.0, 0.0)
                else:
                    grown.append(self.read(new, log_probs))
        return grown

    def read(self, one: _Hypothesis, log_probs: NDArray[np.float32]) -> _Hypothesis:
        """Return the hypothesis with the log-probability of the first pending token of its last piece."""
        new = replace(one, log_prob=one.log_prob + float(log_probs[one.pending[0]]))
        return replace(new, rank=self.rank(new))

    def finish(self, one: _Hypothesis, cost: float, lost: float) -> None:
        """Keep a hypothesis as a result."""
        if not one.pieces:
            return
        source = self.sentence.pieces
        if cost and not may_end(one.pieces[-1]):
            return
        if one.cost + cost and is_fragment(one.pieces, source, self.sentence.headline):
            return
        if one.cost + cost and not self.foreign:
            same = alike(source, {place for place in one.places if place is not None})
            cost += TORN * len(list(same))
        score = one.log_prob - one.cost - cost - LOSS * (one.lost + lost)
        kept = Kept(one.pieces, one.places, score, one.cost + cost)
        listed = _listed(kept, source)
        kept = listed if self.sentence.length(listed.text) <= self.sentence.limit else kept
        if kept.text not in self.finished or self.finished[kept.text].score < score:
            self.finished[kept.text] = kept

    def best(self) -> list[Kept]:
        """Return the best results of each range of lengths, best first."""
        ranked = sorted(self.finished.values(), key=lambda one: -one.score)
        chosen: dict[str, Kept] = {}
        for share in RANGES:
            short = [one for one in ranked if self.sentence.length(one.text) <= share * self.sentence.limit]
            chosen |= {one.text: one for one in short[:KEPT]}
        return sorted(chosen.values(), key=lambda one: -one.score)


def _listed(kept: Kept, source: Sequence[Piece]) -> Kept:
    pieces, places = with_conjunction(kept.pieces, kept.places, source)
    return replace(kept, pieces=pieces, places=places)


def leave_out(engine: Engine, sentences: Sequence[Sentence]) -> list[list[Kept]]:
    """Return, for each sentence, the best results of leaving words out, best first."""
    results: list[list[Kept]] = [[] for _ in sentences]
    order = sorted(range(len(sentences)), key=lambda n: len(sentences[n].prompt))
    while order:
        some = [order.pop(0)]
        while order and sum(sentences[n].beam for n in some) + sentences[order[0]].beam <= ROWS:
            some.append(order.pop(0))
        for number, found in zip(some, _leave_out(engine, [sentences[n] for n in some]), strict=True):
            results[number] = found
    return results


def _leave_out(engine: Engine, sentences: Sequence[Sentence]) -> list[list[Kept]]:
    searches = [_Search(engine, sentence) for sentence in sentences]
    prompts = list(dict.fromkeys(tuple(sentence.prompt) for sentence in sentences))
    beams = [[_Hypothesis(0, (), (), 0.0, 0.0, 0.0, (), prompts.index(tuple(one.prompt)))] for one in sentences]
    with closing(engine.prefill(prompts, max_new_tokens=1024)) as rows:
        _search(rows, searches, beams)
    return [search.best() for search in searches]


def _search(rows: Rows, searches: Sequence[_Search], beams: list[list[_Hypothesis]]) -> None:
    """Read the sentences to their ends. `beams`: the hypotheses of each search."""
    while True:
        convert, log_probs = converter(rows.scores), log_softmax(to_numpy(rows.scores))
        for number, (search, beam) in enumerate(zip(searches, beams, strict=True)):
            grown: list[_Hypothesis] = []
            for one in beam:
                grown += [search.read(one, log_probs[one.row])] if one.pending else search.grow(one, log_probs[one.row])
            beams[number] = _pruned(grown, search.sentence)
        # The same words after the same prompt are read once, also for several limits of one sentence.
        wanted = _in_place(dict.fromkeys((one.row, one.pending[0]) for beam in beams for one in beam))
        if not wanted:
            return
        rows.select(convert(np.array([row for row, _ in wanted])))
        rows.step(convert(np.array([token for _, token in wanted])))
        at = {key: row for row, key in enumerate(wanted)}
        for number, beam in enumerate(beams):
            beams[number] = [replace(one, row=at[one.row, one.pending[0]], pending=one.pending[1:]) for one in beam]


def _in_place(wanted: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return (row, token) in an order in which most rows stay in their places: a KV cache copies only the others."""
    waiting = list(wanted)
    placed = {row: (row, token) for row, token in reversed(waiting) if row < len(waiting)}
    moved = [one for one in waiting if placed.get(one[0]) != one]
    return [placed[row] if row in placed else moved.pop() for row in range(len(waiting))]


def _pruned(grown: list[_Hypothesis], sentence: Sentence) -> list[_Hypothesis]:
    """Return the best hypotheses: at most `PER_PLACE` at a place of the sentence, and not all with the same start."""
    kept: list[_Hypothesis] = []
    places: Counter[int] = Counter()
    starts: Counter[int] = Counter()
    least = max((one.rank for one in grown), default=0.0) - sentence.margin
    for one in sorted(grown, key=lambda one: -one.rank):
        if one.rank < least or len(kept) == sentence.beam:
            break
        if places[one.place] < PER_PLACE and starts[one.start] < PER_START * sentence.beam:
            places[one.place] += 1
            starts[one.start] += 1
            kept.append(one)
    return kept
