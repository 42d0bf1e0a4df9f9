"""Sentences of a text that is shortened: each is shortened by itself, and the best of them are put together."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from ..engines.base import Engine
from .leaving_out import LOSS, Kept, Sentence, leave_out
from .pieces import Piece, join_pieces
from .records import Candidate, Source
from .rewriting import source_prompt

SEARCHED = 5  # sentences of a longer text: those that carry most; more if these do not fill the limit
FINALISTS = 8  # candidates of a text
BEAM, BEAM_OF_SEVERAL = 16, 8  # hypotheses for a text of one sentence, and for each of several
MARGIN = 6.0  # nats that a hypothesis may have less than the best one, for each of several sentences
MAX_PARTIAL = 200  # combinations of short sentences that are kept while they are put together,
BANDS = 10  # as many in each tenth of the limit: the first sentences must not use up all the room


def leave_out_of_texts(engine: Engine, sources: list[Source], form: str) -> list[list[Candidate]]:
    """Return, for each source, candidates with words or sentences left out; at least one, even if it does not fit."""
    limits = [source.limit for source in sources]
    found: list[list[Candidate]] = [[] for _ in sources]
    waiting = list(range(len(sources)))
    while waiting:
        kept = _search(engine, [(sources[n], limits[n]) for n in waiting], form)
        for n, some in zip(waiting, kept, strict=True):
            found[n] = _combined(sources[n], limits[n], some, form)
            if not found[n] and limits[n] >= sources[n].length(sources[n].text):
                found[n] = [Candidate(sources[n].text, "unchanged", complete=True)]
            limits[n] *= 2  # nothing fits: the shortest text that can be found
        waiting = [n for n in waiting if not found[n]]
    return found


# Some sentences put together: the gain, the text, its length, the cost of the deletions, and the parts.
_Partial = tuple[float, str, int, float, tuple[tuple[int, Kept], ...]]
_Options = list[tuple[int, float, list[Kept]]]  # the number of each sentence, its information, and its short forms


def _search(engine: Engine, sources: list[tuple[Source, int]], form: str) -> list[_Options]:
    sentences, owners = [], []  # each owner: the source, and the number of the sentence in it
    for owner, (source, limit) in enumerate(sources):
        for number in _chosen(source, limit, form):
            pieces, carried = source.sentences[number], source.information[number]
            text = join_pieces(pieces)
            prompt = source_prompt(engine, text, form, 2 * len(pieces))
            beam, margin = (BEAM, math.inf) if len(source.sentences) == 1 else (BEAM_OF_SEVERAL, MARGIN)
            short, headline = min(limit, source.length(text)), form == "headline"
            sentences.append(Sentence(pieces, carried, prompt, source.length, short, beam, margin, headline))
            owners.append((owner, number))
    kept: list[_Options] = [[] for _ in sources]
    for (owner, number), sentence, some in zip(owners, sentences, leave_out(engine, sentences), strict=True):
        kept[owner].append((number, sum(sentence.information), some))
    return kept


def _chosen(source: Source, limit: int, form: str) -> list[int]:
    """Return the numbers of the sentences that are searched: the first, and those with most information per piece.

    Of a text as many as would fill the limit if nothing were left out of them.
    """
    numbers = range(len(source.sentences))
    density = [sum(nats) / (len(nats) + 8) for nats in source.information]  # a short sentence rarely says most
    best = sorted(numbers, key=lambda n: (n > 0, -density[n]))
    lengths = accumulate(source.length(join_pieces(source.sentences[n])) for n in best)
    filled = next((count for count, length in enumerate(lengths, 1) if length >= limit), len(best))
    return sorted(best[: max(SEARCHED, filled if form == "text" else 0)])


def _combined(source: Source, limit: int, options: _Options, form: str) -> list[Candidate]:
    """Return the best ways to put short sentences together within the limit. Only a text has several."""
    several = form == "text"
    partial: list[_Partial] = [(0.0, "", 0, 0.0, ())]
    for number, carried, kept in options:
        grown = list(partial)
        for gain, text, _, cost, parts in partial:
            for one in kept:
                joined = f"{text} {one.text}".strip()
                if (several or not text) and (length := source.length(joined)) <= limit:
                    more = gain + LOSS * carried + one.score
                    grown.append((more, joined, length, cost + one.cost, (*parts, (number, one))))
        partial = _thinned(grown, limit)
    found: dict[str, Candidate] = {}
    for _, text, _, cost, parts in partial:
        if text and text not in found:
            origins = _with_origins(parts)
            found[text] = Candidate(text, "left out", complete=True, cost=cost, kept=origins, sentences=parts)
    return list(found.values())[:FINALISTS]


def _thinned(grown: list[_Partial], limit: int) -> list[_Partial]:
    """Return the combinations with most gain, best first: of each band of lengths its share of `MAX_PARTIAL`."""
    counts: Counter[int] = Counter()
    kept = []
    for option in sorted(grown, key=lambda option: -option[0]):
        band = BANDS * option[2] // (limit + 1)
        counts[band] += 1
        if counts[band] <= MAX_PARTIAL // BANDS:
            kept.append(option)
    return kept


def _with_origins(parts: Sequence[tuple[int, Kept]]) -> tuple[tuple[Piece, tuple[int, int] | None], ...]:
    return tuple(
        (replace(piece, spaced=True) if n == 0 else piece, None if place is None else (number, place))
        for number, one in parts
        for n, (piece, place) in enumerate(zip(one.pieces, one.places, strict=True))
    )
