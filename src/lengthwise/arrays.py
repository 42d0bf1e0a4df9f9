"""Scores as torch tensors on any device or as numpy arrays: which library, and conversion. Torch is not imported."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = Any  # a torch tensor or a numpy array


def library(array: Array) -> Any:
    """Return the module, numpy or torch, whose functions take `array`."""
    return np if isinstance(array, np.ndarray) else sys.modules["torch"]  # imported, because it made `array`


def to_numpy(array: Array) -> NDArray[Any]:
    """Return the same numbers as a numpy array."""
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array)


def log_softmax(scores: Array) -> Array:
    """Return the log-probabilities of tokens from their logits: (rows, vocabulary)."""
    if not isinstance(scores, np.ndarray):
        return scores.log_softmax(1)
    found, exp = np.empty_like(scores), np.empty(scores.shape[1:], scores.dtype)
    for row, logits in zip(found, scores, strict=True):  # a row fits into the CPU's cache, a batch does not
        np.subtract(logits, logits.max(), out=row)
        row -= np.log(np.exp(row, out=exp).sum())
    return found


def converter(like: Array) -> Callable[[NDArray[Any]], Array]:
    """Return the function that converts a numpy array to the library and the device of `like`."""
    if isinstance(like, np.ndarray):
        return lambda array: array
    torch = library(like)
    return lambda array: torch.from_numpy(array).to(like.device)
