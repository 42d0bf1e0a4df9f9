"""Attention entropy: over how many keys does a query spread its attention (Zhang et al. 2023)?

Natural logarithm: even attention over n keys has ln n. This file receives weights; it does not know which model or
which kind of attention they come from.
"""

from typing import Any

import numpy as np

from .texts import Array


def attention_entropy(weights: Any) -> Array:  # (..., keys) -> (...)
    """Return −Σ w ln w over the keys of each query. Masked keys have weight 0 and add nothing.

    For the entropy of a layer, take the mean over the queries that are not padding.

    >>> round(float(attention_entropy([0.5, 0.5, 0.0])), 4)
    0.6931
    """
    w = np.asarray(weights, dtype=np.float64)
    sums = w.sum(axis=-1)
    if w.size and (w.min() < 0 or np.abs(sums - 1).max() > 0.02):  # half precision sums to about 1
        raise ValueError(
            "attention weights of a query must be at least 0 and sum to 1; got a minimum of "
            f"{w.min():.3g} and sums from {sums.min():.3g} to {sums.max():.3g}; give them after the softmax"
        )
    return -(w * np.log(np.where(w > 0, w, 1.0))).sum(axis=-1)
