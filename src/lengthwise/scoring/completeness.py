"""Completeness: which tokens the hard budget or a control forced, computed from the model's own scores.

A hard budget bans tokens and raises the scores of full stops, and an attached control makes full stops more probable.
These scores show where that changed the model's own ranking. They are recorded during decoding or searching
(`token_scores`), or computed from the finished text by `score_tokens`. What follows from them is decided in
`generation/endings`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engines.base import Engine, Ids, LengthInputs
from ..engines.rows import TokenLogProbs

Floats = NDArray[np.float32]

MAX_GAP_INSIDE = 2.0  # nats below the best token; chosen on invented words of two translators, see docs/LOG.md


@dataclass(frozen=True)
class TokenScores:
    """Scores of each token of a text: (rows, time)."""

    agreement: Floats  # 1 if the mask did not change the choice; near 0 if the token was forced
    end_ratio: Floats  # probability of ending here / probability of the best token
    score: Floats  # log of (probability of the token / probability of the best token)


def agreement(own: Floats, made: Floats, best: Floats, top: Floats) -> Floats:
    """Return how far a token agrees with the model's own ranking: exp(min(0, (own − best) − (made − top))).

    Before masking, the token has the score `own` and the best token `best`; after masking, `made` and `top`.
    The result is small where the budget banned better tokens or raised the score of a full stop.
    """
    return np.exp(np.minimum((own - best) - (made - top), 0))


def score_tokens(
    engine: Engine,
    prompts: Sequence[Ids],
    texts: Sequence[Ids],
    lengths: LengthInputs | None = None,
    cache: Any = None,
) -> TokenScores:
    """Return the scores of given texts; the arguments are those of `Engine.score`.

    The agreement of a token is here its probability divided by that of the best token.
    """
    return token_scores(engine.score(prompts, texts, lengths, cache))


def token_scores(found: TokenLogProbs) -> TokenScores:
    """Return the scores of texts from the log-probabilities of their tokens."""
    score = found.token - found.best
    return TokenScores(np.exp(score), np.exp(found.end - found.best), score)


def judged_without_length(scores: TokenScores, own: TokenScores, full_stops: NDArray[np.bool_]) -> TokenScores:
    """Return `scores` of a model with length inputs, where the scores of full stops and ends are those of `own`.

    `own`: scores of the same text without length inputs, or with a distant length. A length input
    raises the probability of full stops. So `full_stops` (rows, time), ends and the text's score are taken from `own`.
    """
    lower = np.minimum(scores.agreement, own.agreement)
    return TokenScores(np.where(full_stops, lower, scores.agreement), own.end_ratio, own.score)


def without_bent_words(scores: TokenScores, inside_words: NDArray[np.bool_]) -> TokenScores:
    """Return `scores` in which unlikely tokens inside a word count as forced: "horizal" in place of "horizontal".

    Under a tight limit, a search finds shorter texts by ending a long word in another way. A word's first token may be
    unlikely, because another word is more usual; a later one is unlikely if the word does not exist.
    `inside_words` (rows, time): the tokens that go on with a word.
    """
    bent = inside_words & (scores.score < -MAX_GAP_INSIDE)
    return replace(scores, agreement=np.where(bent, 0, scores.agreement))


def can_judge_without_length(engine: Engine, unit: str) -> bool:
    """Return whether the model can score a text without the effect of its length inputs in this `unit`.

    An answer can have any length, so a causal model can receive a longer one. A translation cannot: a translator must
    work without a length input or accept upper limits.
    """
    return not engine.encoder_decoder or engine.plain_without_length or engine.takes_limits_in(unit)


def neutral_lengths(engine: Engine, lengths: LengthInputs) -> LengthInputs | None:
    """Return length inputs that do not limit the text: none, or distant ones for a model that always receives some."""
    if engine.plain_without_length:
        return None
    distant = replace(lengths, length=[distant_length(length) for length in lengths.length])
    return replace(distant, at_most=[True] * len(lengths.length)) if engine.encoder_decoder else distant


def distant_length(length: int) -> int:
    """Return a length so far beyond `length` that it does not limit the text."""
    return 2 * length + 20
