"""Sentences of a text that is shortened: each is shortened by itself, and the best of them are put together."""

import math
from collections.abc import Sequence
from dataclasses import replace

from ..engines.base import Engine
from .leaving_out import LOSS, Kept, Sentence, leave_out
from .pieces import Piece, join_pieces
from .records import Candidate, Source
from .rewriting import source_prompt

MAX_SENTENCES = 5  # of a longer text: those that carry most
FINALISTS = 8  # candidates of a text
BEAM, BEAM_OF_SEVERAL = 16, 8  # hypotheses for a text of one sentence, and for each of several
MARGIN = 6.0  # nats that a hypothesis may have less than the best one, for each of several sentences
MAX_PARTIAL = 200  # combinations of short sentences that are kept while they are put together


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


_Options = list[tuple[int, float, list[Kept]]]  # the number of each sentence, its information, and its short forms


def _search(engine: Engine, sources: list[tuple[Source, int]], form: str) -> list[_Options]:
    sentences, owners = [], []  # each owner: the source, and the number of the sentence in it
    for owner, (source, limit) in enumerate(sources):
        for number in _chosen(source):
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


def _chosen(source: Source) -> list[int]:
    """Return the numbers of the sentences that are searched: the first, and those with most information per piece."""
    numbers = range(len(source.sentences))
    density = [sum(nats) / (len(nats) + 8) for nats in source.information]  # a short sentence rarely says most
    return sorted(sorted(numbers, key=lambda n: (n > 0, -density[n]))[:MAX_SENTENCES])


def _combined(source: Source, limit: int, options: _Options, form: str) -> list[Candidate]:
    """Return the best ways to put short sentences together within the limit. Only a text has several."""
    several = form == "text"
    partial: list[tuple[float, str, float, tuple[tuple[int, Kept], ...]]] = [(0.0, "", 0.0, ())]
    for number, carried, kept in options:
        grown = list(partial)
        for gain, text, cost, parts in partial:  # cost: of the deletions
            for one in kept:
                joined = f"{text} {one.text}".strip()
                if (several or not text) and source.length(joined) <= limit:
                    more = gain + LOSS * carried + one.score
                    grown.append((more, joined, cost + one.cost, (*parts, (number, one))))
        partial = sorted(grown, key=lambda option: -option[0])[:MAX_PARTIAL]
    found: dict[str, Candidate] = {}
    for _, text, cost, parts in partial:
        if text and text not in found:
            origins = _with_origins(parts)
            found[text] = Candidate(text, "left out", complete=True, cost=cost, kept=origins, sentences=parts)
    return list(found.values())[:FINALISTS]


def _with_origins(parts: Sequence[tuple[int, Kept]]) -> tuple[tuple[Piece, tuple[int, int] | None], ...]:
    return tuple(
        (replace(piece, spaced=True) if n == 0 else piece, None if place is None else (number, place))
        for number, one in parts
        for n, (piece, place) in enumerate(zip(one.pieces, one.places, strict=True))
    )
