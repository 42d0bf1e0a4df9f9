"""Likelihood: how probable is an output given its source (NLL), and a source given its output (the reverse score)?

exp(NLL) is the perplexity. The model receives each source in its own prompt format, and no length. Short outputs and
outputs that this model would write itself have a low NLL whatever their content, so compare outputs of similar length.
The reverse score comes from a model that translates in the opposite direction.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .tally import Tally, ratio_of
from .texts import Texts, short_name

if TYPE_CHECKING:
    from ..scoring.log_likelihood import CausalScorer
    from ..scoring.reverse import ReverseModel

BACK_TRANSLATING = ("coverage", "tail")


def nll(texts: Texts, scorer: "CausalScorer | None") -> Tally:
    """Return the NLL in nats per token of all outputs together, without end tokens. Two equally likely tokens: ln 2."""
    if scorer is None:
        raise ValueError("metric 'nll' needs a model: 'nll:smollm2-plain' or 'nll:path/to/model'")
    counts = scorer.likelihood(texts.hyps, texts.srcs or ()) * (-1, 1)
    return ratio_of(counts, f"nll|per:token|end:no|given:source|model:{short_name(scorer.name)}|v1")


def reverse(texts: Texts, model: "ReverseModel | None") -> Tally:
    """Return log P(source | output) in nats per token of all sources together, with end tokens."""
    if model is None:
        raise ValueError("metric 'reverse' needs a model that translates back: 'reverse:path/to/model'")
    signature = f"reverse|log-p:source|given:output|per:token|end:yes|model:{short_name(model.name)}|v1"
    return ratio_of(model.likelihood(texts.srcs or (), texts.hyps), signature)


def reverse_metrics(model: str | None) -> list[str]:
    """Return the metrics that use this reverse model; none without a model.

    >>> reverse_metrics("opus/it-en")
    ['coverage:opus/it-en', 'tail:opus/it-en', 'reverse:opus/it-en']
    """
    return [f"{name}:{model}" for name in (*BACK_TRANSLATING, "reverse")] if model else []


def back_translators(metrics: Iterable[str]) -> list[str]:
    """Return the models that must translate outputs back for these metrics.

    >>> back_translators(["bleu:zh", "coverage:m", "tail:m", "tail", "reverse:n"])
    ['m']
    """
    asked = (name.partition(":") for name in metrics)
    return list(dict.fromkeys(model for name, _, model in asked if name.lower() in BACK_TRANSLATING and model))
