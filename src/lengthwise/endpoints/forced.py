"""Forced ends: where the log-probabilities of a reply show that a budget on the server made the model end a sentence.

A server with a hard budget bans tokens and raises the scores of full stops, but the log-probabilities it returns are
the model's own. They show it only if they include the likeliest token: `logprobs=True, top_logprobs=2`.
"""

import math
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from ..generation.endings import LAST_TOKENS, MIN_AGREEMENT


def forced_ends(choice: Mapping[str, Any], text: str) -> tuple[tuple[range, ...], bool]:
    """Return the offsets of `text` where an end would be forced, in ranges, and whether its own end token was forced.

    `choice`: one of the OpenAI API, with or without log-probabilities; `text`: its content.
    """
    tokens = (choice.get("logprobs") or {}).get("content") or []
    begin = "".join(token["token"] for token in tokens).find(text)
    if begin < 0 or not text:
        return (), False
    ends = [end - begin for end in accumulate(len(token["token"]) for token in tokens)]
    forced = [_ratio(token) < MIN_AGREEMENT for token in tokens]
    last = [n for n, end in enumerate(ends) if end <= len(text)]
    after = max(last, default=-1) + 1
    ranges = [range(ends[n], ends[min(n + LAST_TOKENS, after) - 1] + 1) for n in last if forced[n]]
    return tuple(ranges), after < len(tokens) and forced[after]


def _ratio(token: Mapping[str, Any]) -> float:
    """Return the probability of a token over that of the likeliest one."""
    best = max([token["logprob"], *(other["logprob"] for other in token.get("top_logprobs") or [])])
    return math.exp(token["logprob"] - best)
