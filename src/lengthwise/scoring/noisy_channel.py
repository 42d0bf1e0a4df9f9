"""Channel: which of several translations says best what its source says? A noisy channel (Yee, Dauphin & Auli 2019).

A model that translates back says how much of the source it reads out of a translation; the translator itself, how
likely it finds it. The first alone likes words that are left as they are and clumsy ones that nobody can mistake; the
second alone, what leaves something out. Knows likelihoods; not where translations come from.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..controls.attach import controls_of, units_of
from ..generation.generator import Writer
from ..metrics.texts import Array
from .completeness import distant_limit_inputs
from .reverse import ReverseModel

OWN = 4.0  # what a nat a token of the translator's counts beside one of the reverse model's


class Channel:
    """Both directions, or one: `reverse`, and `forward`, which is asked about outputs, given their sources.

    A score is how well the source is read out of the output (`ReverseModel.mean_log_prob`), and `OWN` times how well the output
    is read out of the source, by the translator.
    """

    def __init__(self, reverse: ReverseModel | None, forward: ReverseModel | None) -> None:
        self.reverse, self.forward = reverse, forward

    def scores(self, sources: Sequence[str], outputs: Sequence[str]) -> Array:
        """In nats a token, the higher the better: (n,)."""
        found: Array = np.zeros(len(outputs))
        if self.reverse is not None:
            found = self.reverse.mean_log_prob(sources, outputs)
        if self.forward is not None:
            found = found + OWN * self.forward.mean_log_prob(outputs, sources)
        return found


class _Limited(ReverseModel):
    """A model that has only ever translated with a length: it hears of a limit that hinders nobody."""

    def _inputs(self, heads: list[list[int]]) -> dict[str, Any]:
        lengths = [len(self.tokenizer.decode(head, skip_special_tokens=True)) for head in heads]
        told = distant_limit_inputs(torch.tensor(lengths, device=self.model.device))
        unit = units_of(controls_of(self.model)).index("chars")
        return super()._inputs(heads) | told | {"decoder_unit": torch.full_like(told["decoder_length"], unit)}


def forward(writer: Writer, prefix: str) -> ReverseModel | None:
    """The writer's model as a judge of translations; None for one that must be told their very length.

    Nor is one that must be told its language: the token that does it would count as a word.
    """
    if writer.model.generation_config.forced_bos_token_id is not None:
        return None
    if writer.steered:
        return ReverseModel(writer, prefix)
    return _Limited(writer, prefix) if writer.takes_limits_in("chars") else None
