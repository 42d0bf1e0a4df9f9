"""The reverse score: how probable is the source, given the output, to a model that translates the other way?

Also the names of the metrics that need such a model. This file receives the model; it loads none.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .tally import Tally, ratio_of_sums
from .texts import Texts, short_name

if TYPE_CHECKING:
    from ..scoring.reverse import ReverseModel

BACK_TRANSLATING = ("coverage", "tail")


def reverse(texts: Texts, model: "ReverseModel | None") -> Tally:
    """Return the mean log P(source | output) in nats per token, over all sources together, ends included."""
    if model is None:
        raise ValueError("the reverse score needs a model that translates back: 'reverse:path/to/model'")
    counts = model.likelihood(texts.srcs or (), texts.hyps)
    signature = f"reverse|log-p:source|given:output|per:token|end:yes|model:{short_name(model.name)}|v1"
    return Tally(signature, counts, ratio_of_sums, counts[:, 0] / counts[:, 1])


def reverse_metrics(model: str | None) -> list[str]:
    """Return the names of all metrics of this reverse model; none without a model.

    >>> reverse_metrics("opus/it-en")
    ['coverage:opus/it-en', 'tail:opus/it-en', 'reverse:opus/it-en']
    """
    return [f"{name}:{model}" for name in (*BACK_TRANSLATING, "reverse")] if model else []


def back_translators(metrics: Iterable[str]) -> list[str]:
    """Return the models that must translate outputs back for these metrics.

    >>> back_translators(["bleu:zh", "coverage:m", "tail:m", "tail", "reverse:n"])
    ['m']
    """
    asked = [name.partition(":") for name in metrics]
    return list(dict.fromkeys(model for name, _, model in asked if name.lower() in BACK_TRANSLATING and model))
