"""Channel: which of several translations says best what its source says? A noisy channel (Yee, Dauphin & Auli 2019).

A model that translates back says how much of the source it reads out of a translation; the translator itself, how
likely it finds it. The first alone likes words that are left as they are and clumsy ones that nobody can mistake; the
second alone, what leaves something out. Knows likelihoods; not where translations come from.
"""

from collections.abc import Sequence

import numpy as np

from ..decode.write import Writer
from ..metrics.reverse import Reverse
from ..metrics.texts import Array

OWN = 4.0  # what a nat a token of the translator's counts beside one of the reverse model's


class Channel:
    """Both directions, or one: `reverse`, and `forward`, which is asked about outputs, given their sources.

    A score is how well the source is read out of the output (`Reverse.recovery`), and `OWN` times how well the output
    is read out of the source, by the translator.
    """

    def __init__(self, reverse: Reverse | None, forward: Reverse | None) -> None:
        self.reverse, self.forward = reverse, forward

    def scores(self, sources: Sequence[str], outputs: Sequence[str]) -> Array:
        """In nats a token, the higher the better: (n,)."""
        found: Array = np.zeros(len(outputs))
        if self.reverse is not None:
            found = self.reverse.recovery(sources, outputs)
        if self.forward is not None:
            found = found + OWN * self.forward.recovery(outputs, sources)
        return found


def forward(writer: Writer, prefix: str) -> Reverse | None:
    """The writer's model as a judge of translations; None for one that translates only when it is told a length.

    Nor is one that must be told its language: the token that does it would count as a word.
    """
    coded = writer.model.generation_config.forced_bos_token_id is not None
    return Reverse(writer, prefix) if writer.steered and not coded else None
