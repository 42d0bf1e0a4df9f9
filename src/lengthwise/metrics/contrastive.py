"""Contrastive accuracy: how often is the right translation the most probable (ContraPro, Müller et al. 2018)?

A translation's score is the sum of the log-probabilities of its tokens given the source. Nothing is generated. Context
sentences stand before the source and before each translation of it. They are the same before all translations of a
source, so they change the score only through what the model makes of them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .score import Score
from .tally import as_score, mean_of
from .texts import Array, short_name

if TYPE_CHECKING:
    from ..corpora.contrasts import Contrast
    from ..engines.base import Engine

_SIGNATURE = "contrastive|of:log-prob-sums|ties:wrong|v1"


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
    return as_score("contrastive", mean_of(right, _SIGNATURE), bootstrap, seed)


def contrastive_scores(
    engine: "Engine", items: "Sequence[Contrast]", *, context: int = 0, separator: str = " ", prefix: str = ""
) -> list[Score]:
    """Return the accuracy of a translator on all items, then on each group: "contrastive pronoun it:er".

    `context`: how many sentences before the source are given, as far as there are any. `separator`: between sentences,
    as in training. `prefix`: names the target language to a model of several languages.
    """
    if context and not any(item.context for item in items):
        raise ValueError(f"{context} sentences of context were asked for, but no item has any")
    sources, targets = [], []
    for item in items:
        before = item.context[-context:] if context else ()
        source = separator.join([*(text for text, _ in before), item.source])
        for text in (item.reference, *item.contrasts):
            sources.append(source)
            targets.append(separator.join([*(text for _, text in before), text]))
    sums = iter(log_prob_sums(engine, sources, targets, prefix).tolist())
    found = [[next(sums) for _ in range(1 + len(item.contrasts))] for item in items]
    right = contrastive_accuracy([row[0] for row in found], [row[1:] for row in found], bootstrap=0).per_item or []
    rows: dict[str, list[int]] = {"contrastive": list(range(len(items)))}
    for row, item in enumerate(items):
        for group in sorted(item.groups.items()):
            rows.setdefault(" ".join(("contrastive", *group)), []).append(row)
    joined = f"|sep:{separator.strip() or 'space'}" if context else ""
    signature = f"{_SIGNATURE}|context:{context}{joined}|model:{short_name(engine.name)}"
    order = sorted(rows, key=lambda name: (name != "contrastive", name))
    return [as_score(name, mean_of([right[row] for row in rows[name]], signature)) for name in order]


def log_prob_sums(engine: "Engine", sources: Sequence[str], targets: Sequence[str], prefix: str = "") -> Array:
    """Return log P of each target given its source, with its end: (n,). A text beyond the window is an error."""
    from ..scoring.noisy_channel import forward_model
    from ..scoring.reverse import ReverseModel

    if not engine.encoder_decoder:
        raise ValueError(f"a translator is needed (Marian, BART, M2M100, T5, ...); {engine.name} has only a decoder")
    scorer = ReverseModel(engine, prefix) if engine.plain_without_length else forward_model(engine, prefix)
    if scorer is None:
        raise ValueError(f"{engine.name} needs the length of a translation, which is not known; give another model")
    for side in ({"text": [prefix + text for text in sources]}, {"text_target": list(targets)}):
        sizes = [len(ids) for ids in engine.tokenizer(**side)["input_ids"]]
        if (most := max(sizes, default=0)) >= engine.window:
            raise ValueError(f"a text has {most} tokens; {engine.name} allows {engine.window - 1}: give shorter texts")
    return scorer.likelihood(targets, sources)[:, 0]
