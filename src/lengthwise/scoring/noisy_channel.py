"""The noisy channel: score translations by a reverse and a forward model (Yee, Dauphin & Auli 2019).

    score(output) = mean log P(source | output) + FORWARD_WEIGHT · mean log P(output | source)

The reverse model alone gives high scores to untranslated words and to clumsy but unambiguous ones; the translator alone
gives high scores to outputs that leave something out.
"""

from collections.abc import Sequence

import numpy as np

from ..engines.base import Engine, LengthInputs
from .completeness import distant_length
from .log_likelihood import Array
from .reverse import ReverseModel

FORWARD_WEIGHT = 4.0


class NoisyChannel:
    """Scores by a reverse model, by the translator itself (`forward`: outputs given sources), or by both."""

    def __init__(self, reverse: ReverseModel | None, forward: ReverseModel | None) -> None:
        self.reverse, self.forward = reverse, forward

    def scores(self, sources: Sequence[str], outputs: Sequence[str]) -> Array:
        """Return the score of each output in nats per token, higher is better: (n,)."""
        found: Array = np.zeros(len(outputs))
        if self.reverse is not None:
            found = self.reverse.mean_log_prob(sources, outputs)
        if self.forward is not None:
            found = found + FORWARD_WEIGHT * self.forward.mean_log_prob(outputs, sources)
        return found


def forward_model(engine: Engine, prefix: str) -> ReverseModel | None:
    """Return the translator as a scorer of outputs given sources, or None if it cannot be one.

    A model that was always trained with a length scores with a distant limit, if it takes limits. A model with
    a forced language token is not used: this has not been measured.
    """
    if engine.forced_start:
        return None
    if engine.plain_without_length:
        return ReverseModel(engine, prefix)
    if not engine.takes_limits_in("chars"):
        return None

    def distant(inputs: Sequence[Sequence[int]]) -> LengthInputs:
        texts = [engine.tokenizer.decode(ids, skip_special_tokens=True) for ids in inputs]
        lengths, unit = [distant_length(len(text)) for text in texts], engine.units.index("chars")
        return LengthInputs(lengths, [unit] * len(texts), [True] * len(texts), [0] * len(texts))

    return ReverseModel(engine, prefix, distant)
