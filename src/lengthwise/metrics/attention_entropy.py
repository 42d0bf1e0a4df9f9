"""Attention entropy: over how many keys does a query spread its attention (Zhang et al. 2023)?"""

from typing import Any

import numpy as np

from .texts import Array


def attention_entropy(weights: Any) -> Array:  # (..., keys) -> (...)
    """Return −Σ w ln w over the keys of each query: ln n for even attention over n keys.

    Masked keys have weight 0 and add nothing. The entropy of a layer is the mean over its queries without padding.

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
