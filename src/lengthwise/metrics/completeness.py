"""Completeness: does an output end as a finished sentence? Whether content is missing, `coverage.py` measures."""

from ..length.sentences import finished
from .tally import Tally, mean_of
from .texts import Texts


def completeness(texts: Texts, _: str = "") -> Tally:
    """Return the share of outputs that end as a finished sentence."""
    return mean_of([finished(text) for text in texts.hyps], "completeness|rule:sentences.finished|v1")
