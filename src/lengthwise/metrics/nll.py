"""NLL: the negative log-likelihood of outputs as answers to their sources, under another model.

exp(NLL) is the perplexity. The model receives each source in its own prompt format, and no length. Short outputs, and
outputs that this model would write itself, have a low NLL whatever they say: compare at like lengths.
This file receives a scorer; it loads no model.
"""

from typing import TYPE_CHECKING

import numpy as np

from .tally import Tally, ratio_of_sums
from .texts import Texts, short_name

if TYPE_CHECKING:
    from ..scoring.log_likelihood import CausalScorer


def nll(texts: Texts, scorer: "CausalScorer | None") -> Tally:
    """Return nats per token, over all outputs together; ends are not counted. Two equally likely tokens: ln 2."""
    if scorer is None:
        raise ValueError("the likelihood needs a model: 'nll:smollm2-plain' or 'nll:path/to/model'")
    counts = scorer.likelihood(texts.hyps, texts.srcs or ()) * (-1, 1)
    alone = np.divide(counts[:, 0], counts[:, 1], out=np.zeros(len(counts)), where=counts[:, 1] > 0)
    return Tally(f"nll|per:token|end:no|given:source|model:{short_name(scorer.name)}|v1", counts, ratio_of_sums, alone)
