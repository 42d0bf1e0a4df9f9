"""Contrastive accuracy: how often is the right translation the most probable (ContraPro, Müller et al. 2018)?"""

from collections.abc import Sequence

from .score import Score
from .tally import as_score, mean_of


def contrastive_accuracy(
    reference: Sequence[float], contrasts: Sequence[Sequence[float]], *, bootstrap: int = 1000, seed: int = 0
) -> Score:
    """Return the share of references whose log-probability is above that of all their contrasts; a tie is wrong.

    >>> contrastive_accuracy([-3.0, -5.0], [[-4.0, -9.0], [-5.0]], bootstrap=0).value
    0.5
    """
    if len(reference) != len(contrasts):
        raise ValueError(f"each reference needs a list of contrasts; got {len(reference)} and {len(contrasts)}")
    if not reference:
        raise ValueError("nothing to score: reference is empty")
    if bare := [row for row, wrong in enumerate(contrasts) if not len(wrong)]:
        raise ValueError(f"every reference needs at least one contrast; row {bare[0]} has none")
    right = [float(ours > max(wrong)) for ours, wrong in zip(reference, contrasts, strict=True)]
    return as_score("contrastive", mean_of(right, "contrastive|of:log-prob-sums|ties:wrong|v1"), bootstrap, seed)
