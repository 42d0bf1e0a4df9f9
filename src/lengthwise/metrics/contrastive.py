"""Contrastive accuracy: does a model give the right translation more probability than wrong ones?

ContraPro, Müller et al. 2018. This file receives the sum of log-probabilities of each text, and compares them.
"""

from collections.abc import Sequence

from .score import Score
from .tally import as_score, mean_of


def contrastive_accuracy(
    reference: Sequence[float], contrasts: Sequence[Sequence[float]], *, bootstrap: int = 1000, seed: int = 0
) -> Score:
    """Return the share of references with a higher log-probability than all their contrasts; a tie counts as wrong.

    >>> contrastive_accuracy([-3.0, -5.0], [[-4.0, -9.0], [-5.0]], bootstrap=0).value
    0.5
    """
    if len(reference) != len(contrasts):
        found = f"{len(reference)} references and {len(contrasts)} lists of contrasts"
        raise ValueError(f"each reference needs contrasts; got {found}")
    if not reference:
        raise ValueError("nothing to score: reference is empty")
    if bare := [row for row, wrong in enumerate(contrasts) if not len(wrong)]:
        raise ValueError(f"every reference needs at least one contrast; row {bare[0]} has none")
    right = [float(ours > max(wrong)) for ours, wrong in zip(reference, contrasts, strict=True)]
    return as_score("contrastive", mean_of(right, "contrastive|of:log-prob-sums|ties:wrong|v1"), bootstrap, seed)
