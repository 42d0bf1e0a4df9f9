"""Length tokens (Lakew et al. 2019): a token before the source gives the class of the target: short, normal or long.

Lakew, Di Gangi & Federico 2019. Each class of the ratio target / source has a token; `attach.py` adds their embeddings.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy

from ..length.units import measure
from .base import Control

QUANTILES = "quantiles"
NAMES = ("short", "normal", "long")


class LengthTokens(Control):
    """A class token for the ratio target / source: [0, 1] short, (1, 1.2] normal, (1.2, ∞) long.

    In a recipe, `thresholds: quantiles` makes classes of equal size on the training corpus; see `from_corpus`.

    >>> LengthTokens().prefix("Where is it?", 11, "chars")
    '<len:short> Where is it?'
    """

    name = "length_tokens"

    def __init__(
        self, thresholds: Sequence[float] | Literal["quantiles"] = (1.0, 1.2), names: Sequence[str] = NAMES
    ) -> None:
        super().__init__()
        self.names = tuple(names)
        self.tokens = tuple(f"<len:{name}>" for name in self.names)
        self.thresholds: tuple[float, ...] | str = QUANTILES
        if thresholds == QUANTILES:
            return
        self.thresholds = tuple(float(t) for t in thresholds)
        if any(low >= high for low, high in zip(self.thresholds, self.thresholds[1:], strict=False)):
            raise ValueError(f"thresholds must increase; got {self.thresholds}: ask for fewer classes")
        if len(set(self.names)) != len(self.thresholds) + 1:
            count = len(self.thresholds)
            raise ValueError(f"{count} thresholds make {count + 1} classes; got {self.names}")

    @classmethod
    def from_corpus(
        cls, pairs: Iterable[tuple[str, str]], names: Sequence[str] = NAMES, unit: str = "chars"
    ) -> "LengthTokens":
        """Return a control whose thresholds sort the (source, target) pairs of a corpus into classes of equal size."""
        ratios = [measure(target, unit) / max(1, measure(source, unit)) for source, target in pairs]
        if not ratios:
            raise ValueError("thresholds need a corpus of (source, target) pairs; got none")
        shares = [n / len(names) for n in range(1, len(names))]
        return cls([round(float(q), 4) for q in numpy.quantile(ratios, shares)], names)

    def kind_of(self, source: float, target: float) -> str:
        """Return the length class of a target of `target` units for a source of `source` units."""
        if isinstance(self.thresholds, str):
            raise ValueError(
                "thresholds are quantiles of a corpus that has not been read; use LengthTokens.from_corpus"
            )
        return self.names[bisect_left(self.thresholds, target / max(1, source))]

    def prefix(self, text: str, target: int, unit: str, tokenizer: Any = None) -> str:
        kind = self.kind_of(measure(text, unit, tokenizer=tokenizer), target)
        return f"{self.tokens[self.names.index(kind)]} {text}"  # after the space SentencePiece starts a word
