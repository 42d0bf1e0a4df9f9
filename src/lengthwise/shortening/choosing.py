"""Choosing: one score for the texts of both routes.

    score = fluency + 5 × coverage − 10 × invented − 0.3 × dropped − 2 × deletions

*Fluency*: mean log-probability of a text's tokens and of its end, in nats, half of it given the source and half
without. *Coverage*: the share of the source's information whose words the text keeps (`content.py`); a word carries as
many nats as the model needs for it in the source. *Invented*: the share of content words that the source does not
have. *Dropped*: the number of names, numbers, negations and placeholders of the source that the text lacks, at most
three. *Deletions*: the cost of what was left out (`deletions.py`), for each token; a rewritten text
has a fixed cost.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..engines.base import Engine, TokenLogProbs
from ..scoring.log_likelihood import log_probs
from ..translation.placeholders import changed_placeholders
from . import words
from .content import coverage, dropped, invented, salience, spread, stems
from .pieces import FINAL, Piece
from .records import Candidate, Source
from .rewriting import NEUTRAL

COVERAGE, INVENTED, DROPPED, DELETIONS = 5.0, 10.0, 0.3, 2.0
REWRITING = 0.4  # nats for each token: the cost of usual deletions
# Log-probability of the full stop and of the end, less that of the best token; below it, a text is not complete.
MIN_END = -6.0
MAX_INFORMATION = 9.0  # nats of one word: an unknown name has no more to say than a known one


@dataclass(frozen=True)
class Fluency:
    """Mean log-probability of a text, the number of its tokens, and how likely it ends where it does (0: surely)."""

    mean: float
    tokens: int
    end: float


class Judge:
    """Scores texts with a causal language model."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.neutral = engine.prompt_ids(NEUTRAL)

    def information(self, sources: Sequence[Sequence[Sequence[Piece]]]) -> list[list[list[float]]]:
        """Return the nats of each piece of each sentence of the sources: −log P of a content word, else 0.

        The model receives all words before it. Words of sentences that matter most count more (`salience`).
        """
        encoded = [[[self._ids(piece, n > 0) for n, piece in enumerate(one)] for one in some] for some in sources]
        room = max(1, self.engine.window - len(self.neutral) - 1)
        texts = [[token for one in some for ids in one for token in ids][:room] for some in encoded]
        found = [[[0.0] * len(one) for one in some] for some in sources]
        for row, scored in log_probs(self.engine, [self.neutral] * len(texts), texts):
            nats, at = (-scored.token).tolist(), 0
            for number, sentence in enumerate(sources[row]):
                weight = salience(number, sentence) if len(sources[row]) > 1 else 1.0
                for place, ids in enumerate(encoded[row][number]):
                    if words.is_content(sentence[place]):
                        found[row][number][place] = weight * min(sum(nats[at : at + len(ids)]), MAX_INFORMATION)
                    at += len(ids)
        return [spread(some, nats) for some, nats in zip(sources, found, strict=True)]

    def fluency(self, texts: Sequence[str], prompt: list[int] | None = None) -> list["Fluency"]:
        """Return how the model rates each text with a final mark and its end, after the prompt or the neutral one."""
        prompt, engine = self.neutral if prompt is None else prompt, self.engine
        ended = [text if text[-1:] in FINAL else f"{text}." for text in texts]
        ids = [[*engine.tokenizer(text, add_special_tokens=False)["input_ids"], engine.eos[0]] for text in ended]
        width = max(map(len, ids), default=0)
        cache = engine.prompt_cache([prompt], len(ids)) if ids else None
        if cache is None:
            scored = [found for _, found in sorted(log_probs(engine, [prompt] * len(ids), ids), key=lambda one: one[0])]
        else:  # texts must have one length
            filled = [[*row, *[engine.eos[0]] * (width - len(row))] for row in ids]
            found = engine.score([prompt] * len(ids), filled, cache=cache)
            scored = [TokenLogProbs(*(column[n, : len(row)] for column in found)) for n, row in enumerate(ids)]
        rated = []
        for row in scored:
            end = (row.token - row.best)[-2:]
            rated.append(Fluency(float(row.token.mean()), len(row.token) - 1, float(end.min())))
        return rated

    def tokens(self, text: str) -> int:
        """Return the number of a text's tokens."""
        return len(self.engine.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _ids(self, piece: Piece, inside: bool) -> list[int]:
        text = f" {piece.text}" if piece.spaced or not inside else piece.text
        return self.engine.tokenizer(text, add_special_tokens=False)["input_ids"]

    def judged(self, candidates: Sequence[Candidate], source: Source, prompt: list[int]) -> list[Candidate]:
        """Return the candidates with their scores, best first. `prompt`: what the model receives of the source."""
        texts = [one.text for one in candidates]
        rated = []
        for one, alone, given in zip(candidates, self.fluency(texts), self.fluency(texts, prompt), strict=True):
            kept = coverage(source.sentences, source.information, one.text)
            new = len(invented(source.text, one.text)) / max(1, len(stems(one.text)))
            gone = len(dropped(source.text, one.text)) + len(changed_placeholders(source.text, one.text))
            cost = REWRITING if one.route == "rewritten" else one.cost / max(1, alone.tokens)
            score = (alone.mean + given.mean) / 2 + COVERAGE * kept
            score -= INVENTED * new + DROPPED * min(3, gone) + DELETIONS * cost
            complete = one.complete and alone.end >= MIN_END
            rated.append(replace(one, complete=complete, tokens=alone.tokens, score=score, coverage=kept))
        return sorted(rated, key=lambda one: -one.score)
