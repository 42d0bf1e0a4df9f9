"""Choosing: one score for the texts of both routes.

    score = 0.5 × fluency + 5.5 × coverage − 10 × invented − 0.3 × dropped − 2 × deletions − 0.2 × strain
            − 0.2 × unlikelihood

*Fluency*: mean log-probability of a text's tokens and of its end, in nats, without the source. *Coverage*: the share of
the source's information whose words the text keeps (`content.py`); a word carries as many nats as the model needs for
it in the source. *Invented*: the share of content words that the source does not have. *Dropped*: the number of names,
numbers, negations, qualifiers ("if") and placeholders of the source that the text lacks, at most three. *Deletions*:
the cost of what was left out (`deletions.py`), for each token; a rewritten text has a fixed cost. *Strain*: how many
nats less likely the worst word after a deletion is than it was in the source. *Unlikelihood*: by how much the
log-probability of the text and of its end, after the source, by a model that was trained to shorten, is below −3 nats;
of a text of several sentences the mean of its sentences, each after its own, or after the whole source if it was
rewritten. It is 0 without such a model, for texts with abbreviations, which its training did not have, and after a
source of more than 512 tokens.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ..engines.base import Engine
from ..engines.rows import TokenLogProbs
from ..scoring.log_likelihood import log_probs, log_probs_after
from ..translation.placeholders import changed_placeholders
from . import words
from .content import coverage, dropped, invented, salience, spread, stems
from .pieces import FINAL, Piece, join_pieces, split_pieces, split_sentences, written_pieces
from .records import Candidate, Source
from .rewriting import NEUTRAL, trained_prompt
from .variants import TERSE

FLUENCY, COVERAGE, INVENTED, DROPPED, DELETIONS = 0.5, 5.5, 10.0, 0.3, 2.0
STRAIN, UNLIKELIHOOD = 0.2, 0.2
LIKELY = -3.0  # nats of a whole text, after its source
REWRITING = 0.4  # nats for each token: the cost of usual deletions
# Log-probability of the full stop and of the end, less that of the best token; below it, a text is not complete.
MIN_END = -6.0
MAX_INFORMATION = 9.0  # nats of one word: an unknown name has no more to say than a known one


@dataclass(frozen=True)
class Fluency:
    """Mean log-probability of a text, the number of its tokens, and how likely it ends where it does (0: surely).

    `nats`: −log P of each of its parts.
    """

    mean: float
    tokens: int
    end: float
    nats: list[float]


class Judge:
    """Scores texts with a causal language model."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.neutral = engine.prompt_ids(NEUTRAL)

    def nats(self, sources: Sequence[Sequence[Sequence[Piece]]]) -> list[list[list[float]]]:
        """Return −log P of each piece of each sentence of the sources; the model receives all words before it."""
        encoded = [[[self._ids(piece, n > 0) for n, piece in enumerate(one)] for one in some] for some in sources]
        room = max(1, self.engine.window - len(self.neutral) - 1)
        texts = [[token for one in some for ids in one for token in ids][:room] for some in encoded]
        found = [[[0.0] * len(one) for one in some] for some in sources]
        for row, scored in log_probs(self.engine, [self.neutral] * len(texts), texts):
            nats, at = (-scored.token).tolist(), 0
            for number, sentence in enumerate(encoded[row]):
                for place, ids in enumerate(sentence):
                    found[row][number][place] = sum(nats[at : at + len(ids)])
                    at += len(ids)
        return found

    def _ids(self, piece: Piece, inside: bool) -> list[int]:
        text = f" {piece.text}" if piece.spaced or not inside else piece.text
        return self.engine.tokenizer(text, add_special_tokens=False)["input_ids"]

    def fluency(self, texts: Sequence[Sequence[str]]) -> list[Fluency]:
        """Return how the model rates each text, which is given in parts, with a final mark and its end."""
        engine, eos = self.engine, self.engine.eos[0]
        ended = [[*parts, *([] if parts[-1][-1:] in FINAL else ["."])] for parts in texts]
        parts = [[engine.tokenizer(part, add_special_tokens=False)["input_ids"] for part in one] for one in ended]
        ids = [[*(token for part in one for token in part), eos] for one in parts]
        scored = log_probs_after(engine, self.neutral, ids)
        return [_fluency(row, one) for row, one in zip(scored, parts, strict=True)]

    def judged(self, options: Sequence[tuple[Source, Sequence[Candidate]]]) -> list[list[Candidate]]:
        """Return the candidates of each source with their scores, best first. A text that several have is read once."""
        texts = {one.text: _parts(one) for _, some in options for one in some}
        rated = dict(zip(texts, self.fluency(list(texts.values())), strict=True))
        found = [[_rated(one, source, rated[one.text]) for one in some] for source, some in options]
        return [sorted(some, key=lambda one: -one.score) for some in found]


def with_likelihood(engine: Engine, source: Source, options: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates with their likelihood by a model that was trained to shorten, and the scores with it.

    Of a text of several sentences each short form is read after its own sentence, once for all candidates, and a whole
    sentence counts as certain. A text that was rewritten is read after the whole source, and its sentences share the
    likelihood equally.
    """
    several = len(source.sentences) > 1
    whole = [one.text for one in options if not several or one.route == "rewritten"]
    prompt = trained_prompt(engine, source.text, int(source.budget.target), source.budget.unit)
    read = dict(zip(whole, _likelihoods(engine, prompt, whole), strict=True))
    forms = _of_short_forms(engine, source, options) if several else {}
    found = []
    for one in options:
        if one.text in read:
            count = len(split_sentences(one.text)) if several else 1
            nats, judged = [read[one.text] / count] * count, not _is_terse(one.kept)
        else:
            nats, judged = [forms.get((number, kept.text), 0.0) for number, kept in one.sentences], True
        cost = sum(max(0.0, LIKELY - some) for some in nats) / max(1, len(nats)) if judged else 0.0
        found.append(replace(one, likelihood=sum(nats), score=one.score - UNLIKELIHOOD * cost))
    return found


def _of_short_forms(engine: Engine, source: Source, options: Sequence[Candidate]) -> dict[tuple[int, str], float]:
    """Return the likelihood of each short form after its sentence, by the number of the sentence and the short form.

    The limit is the length of the longest short form of the sentence.
    """
    forms: dict[int, dict[str, None]] = {}
    for number, kept in (pair for one in options for pair in one.sentences):
        if kept.cost and not _is_terse(zip(kept.pieces, kept.places, strict=True)):
            forms.setdefault(number, {})[kept.text] = None
    found: dict[tuple[int, str], float] = {}
    for number, texts in forms.items():
        limit = max(map(source.length, texts))
        prompt = trained_prompt(engine, join_pieces(source.sentences[number]), limit, source.budget.unit)
        read = _likelihoods(engine, prompt, list(texts))
        found |= {(number, text): some for text, some in zip(texts, read, strict=True)}
    return found


def _likelihoods(engine: Engine, prompt: list[int], texts: Sequence[str]) -> list[float]:
    """Return log P of each text and of its end; 0 without a prompt."""
    if not prompt or not texts:
        return [0.0] * len(texts)
    end = engine.eos[0]
    ids = [[*engine.tokenizer(text, add_special_tokens=False)["input_ids"], end] for text in texts]
    return [float(one.token.sum()) for one in log_probs_after(engine, prompt, ids)]


def _is_terse(kept: Iterable[tuple[Piece, object]]) -> bool:
    """Return whether one of the pieces, each with its origin, is an abbreviation that stands for longer words."""
    return any(origin is None and piece.lower in TERSE for piece, origin in kept)


def _parts(one: Candidate) -> list[str]:
    return written_pieces([piece for piece, _ in one.kept]) if one.kept else [one.text]


def _fluency(scored: TokenLogProbs, parts: list[list[int]]) -> Fluency:
    nats, at = [], 0
    for ids in parts:
        nats.append(-float(scored.token[at : at + len(ids)].sum()))
        at += len(ids)
    end = float((scored.token - scored.best)[-2:].min())
    return Fluency(float(scored.token.mean()), len(scored.token) - 1, end, nats)


def _rated(one: Candidate, source: Source, fluency: Fluency) -> Candidate:
    kept = coverage(source.sentences, source.information, one.text)
    new = len(invented(source.text, one.text)) / max(1, len(stems(one.text)))
    gone = len(dropped(source.text, one.text)) + len(changed_placeholders(source.text, one.text))
    cost = REWRITING if one.route == "rewritten" else one.cost / max(1, fluency.tokens)
    score = FLUENCY * fluency.mean + COVERAGE * kept
    score -= INVENTED * new + DROPPED * min(3, gone) + DELETIONS * cost + STRAIN * strain(one, source, fluency.nats)
    ended = fluency.end >= MIN_END or ends_in_its_placeholder(one, source)
    complete = one.complete and ended and not has_fragment(one, source)
    return replace(one, complete=complete, tokens=fluency.tokens, score=score, coverage=kept)


def ends_in_its_placeholder(one: Candidate, source: Source) -> bool:
    """Return whether the last word is a placeholder with which the source ends as well: a model cannot judge "$2."."""
    worded = [(piece, origin) for piece, origin in one.kept if piece.is_word]
    if not worded or worded[-1][1] is None or not worded[-1][0].is_placeholder:
        return False
    number, place = worded[-1][1]
    return not any(piece.is_word for piece in source.sentences[number][place + 1 :])


def has_fragment(one: Candidate, source: Source) -> bool:
    """Return whether a rewritten sentence lacks its main clause, which the source sentence it came from has.

    It came from the one that shares most words with it. A sentence of the source is no fragment. Where words were left
    out, each sentence has been compared with its own source (`leaving_out.py`).
    """
    if one.route != "rewritten":
        return False
    new = [pieces for part in split_sentences(one.text) if (pieces := split_pieces(part)) not in source.sentences]
    return any(words.lacks_main_clause(pieces, _closest(pieces, source.sentences)) for pieces in new)


def _closest(pieces: Sequence[Piece], sentences: Sequence[Sequence[Piece]]) -> Sequence[Piece]:
    own = {piece.lower for piece in pieces if piece.is_word}
    return max(sentences, key=lambda one: len(own & {piece.lower for piece in one}))


def strain(one: Candidate, source: Source, nats: Sequence[float]) -> float:
    """Return how many nats less likely the worst word after a deletion is than it was in the source; at least 0."""
    worst = 0.0
    for n, ((_, before), (_, origin)) in enumerate(pairwise(one.kept), 1):
        if origin is not None and before != (origin[0], origin[1] - 1) and origin[1] > 0:
            worst = max(worst, nats[n] - source.nats[origin[0]][origin[1]])
    return worst


def information(sentences: Sequence[Sequence[Piece]], nats: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return the nats that each piece carries: those of a content word, else 0.

    Words of sentences that matter most count more (`salience`).
    """
    found = []
    for number, (sentence, some) in enumerate(zip(sentences, nats, strict=True)):
        weight = salience(number, sentence) if len(sentences) > 1 else 1.0
        carried = [weight * min(one, MAX_INFORMATION) for one in some]
        found.append([one if words.is_content(piece) else 0.0 for piece, one in zip(sentence, carried, strict=True)])
    return spread(sentences, found)
