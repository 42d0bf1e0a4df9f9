r"""Metrics: scores of texts, with intervals, signatures and paired tests.

Every metric is one line in `METRICS`: how it counts and what it needs. `score` computes all metrics that the inputs
allow, each with its interval and its signature. `compare` tests whether two systems differ. Importing this package
imports neither torch nor sacreBLEU nor rouge-score.

>>> scores = score(["Fits well.", "Too long"], budgets="at most 10 chars", metrics=["mae", "completeness"])
>>> print(*scores, sep="\n")
mae 1.000 [0.000, 2.000] n=2 mae|agg:mean|unit:chars|norm:nfc|ws:keep|v1|bs:1000|rs:0
completeness 0.5000 [0.000, 1.000] n=2 completeness|rule:sentences.finished|v1|bs:1000|rs:0
"""

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

from . import (
    bertscore,
    consistency,
    coverage,
    diversity,
    length_error,
    length_ratio,
    likelihood,
    overlap,
    phrases,
    rouge,
)
from .attention_entropy import attention_entropy, entropy_gap
from .contrastive import contrastive_accuracy, contrastive_scores
from .models import causal_scorer, encoder, reverse_model
from .position import positions
from .realign import realign
from .score import Comparison, Score, as_json, as_table
from .tally import Metric, NotApplicable, Tally, Test, as_comparison, as_score, median, population_std
from .texts import Texts

__all__ = ["METRICS", "Comparison", "Metric", "NotApplicable", "Score", "Tally", "Texts", "as_json", "as_table"]
__all__ += [
    "attention_entropy",
    "compare",
    "contrastive_accuracy",
    "contrastive_scores",
    "entropy_gap",
    "realign",
    "score",
    "score_bins",
    "score_positions",
    "tally_of",
]

_REFS, _SRCS, _DOCS, _BUDGETS = ("refs",), ("srcs",), ("refs", "docs"), ("budgets",)
_TOK = "one of sacreBLEU's tokenizers"
_RECALL: dict[str, Any] = {"takes": "a cut in bytes", "default": "75", "usual": False}
_REVERSE: dict[str, Any] = {"takes": "a reverse model", "load": reverse_model}
_PERCENT: dict[str, Any] = {"takes": "a percentage", "default": "10"}

METRICS: dict[str, Metric] = {
    # against references: of documents with the prefix d-, else of sentences
    "bleu": Metric(overlap.bleu, _REFS, takes=_TOK),
    "bleu-lc": Metric(partial(overlap.bleu, lowercase=True), _REFS, takes=_TOK),
    "bleu*": Metric(partial(overlap.bleu, star=True), _REFS, takes=_TOK),
    "chrf": Metric(overlap.chrf, _REFS),
    "chrf-lc": Metric(partial(overlap.chrf, lowercase=True), _REFS, usual=False),
    "ter": Metric(overlap.ter, _REFS),
    "ter-cased": Metric(partial(overlap.ter, cased=True), _REFS, usual=False),
    "d-bleu": Metric(partial(overlap.of_documents, overlap.bleu), _DOCS, takes=_TOK),
    "d-bleu-lc": Metric(partial(overlap.of_documents, overlap.bleu, lowercase=True), _DOCS, takes=_TOK),
    "d-bleu*": Metric(partial(overlap.of_documents, overlap.bleu, star=True), _DOCS, takes=_TOK),
    "d-chrf": Metric(partial(overlap.of_documents, overlap.chrf), _DOCS),
    "d-ter": Metric(partial(overlap.of_documents, overlap.ter), _DOCS, usual=False),  # minutes on long documents
    "consistency": Metric(consistency.consistency, ("srcs", *_DOCS), usual=False),
    "consistency-ref": Metric(partial(consistency.consistency, of_references=True), ("srcs", *_DOCS), usual=False),
    "rouge-1": Metric(partial(rouge.rouge, kind="rouge1"), _REFS, takes="a tokenizer"),
    "rouge-2": Metric(partial(rouge.rouge, kind="rouge2"), _REFS, takes="a tokenizer"),
    "rouge-l": Metric(partial(rouge.rouge, kind="rougeL"), _REFS, takes="a tokenizer"),
    "rouge-1-recall": Metric(partial(rouge.rouge_recall, kind="rouge1"), _REFS, **_RECALL),
    "rouge-2-recall": Metric(partial(rouge.rouge_recall, kind="rouge2"), _REFS, **_RECALL),
    "rouge-l-recall": Metric(partial(rouge.rouge_recall, kind="rougeL"), _REFS, **_RECALL),
    "bertscore": Metric(bertscore.bertscore, _REFS, takes="an encoder", usual=False, load=encoder),
    # against the source
    "coverage": Metric(coverage.coverage, _SRCS, **_REVERSE),  # without a reverse model, it needs backs
    "tail": Metric(partial(coverage.coverage, tail=True), _SRCS, **_REVERSE),
    "reverse": Metric(likelihood.reverse, _SRCS, usual=False, **_REVERSE),
    "nll": Metric(likelihood.nll, _SRCS, takes="a model", usual=False, load=causal_scorer),
    "lr-src": Metric(length_ratio.length_ratio, _SRCS),
    "lr-src-median": Metric(partial(length_ratio.length_ratio, finish=median), _SRCS),
    "lr-src-std": Metric(partial(length_ratio.length_ratio, finish=population_std), _SRCS),
    "lr-ref": Metric(partial(length_ratio.length_ratio, to="refs"), _REFS),
    "lr-ref-median": Metric(partial(length_ratio.length_ratio, to="refs", finish=median), _REFS),
    "lr-ref-std": Metric(partial(length_ratio.length_ratio, to="refs", finish=population_std), _REFS),
    "compliance": Metric(length_ratio.compliance, _SRCS, **_PERCENT),
    "compliance-isometric": Metric(partial(length_ratio.compliance, isometric=True), _SRCS, **_PERCENT),
    # against the budget
    "variance": Metric(partial(length_error.length_error, name="variance"), _BUDGETS),
    "mae": Metric(partial(length_error.length_error, name="mae"), _BUDGETS),
    "relative-error": Metric(partial(length_error.length_error, name="relative-error"), _BUDGETS),
    "exact": Metric(partial(length_error.length_error, name="exact"), _BUDGETS),
    "within": Metric(length_error.within, _BUDGETS, takes="a tolerance", default="5"),
    "overrun": Metric(partial(length_error.length_error, name="overrun"), _BUDGETS),
    "violation": Metric(partial(length_error.length_error, name="violation"), _BUDGETS),
    # of the outputs alone
    "completeness": Metric(coverage.completeness),
    "whole-phrase": Metric(phrases.whole_phrase, usual=False),  # English titles
    "repetition": Metric(diversity.repetition, takes="an n-gram order", default="4"),
    "distinct-1": Metric(partial(diversity.distinct, order=1)),
    "distinct-2": Metric(partial(diversity.distinct, order=2)),
}


def score(
    hyps: Sequence[str] | Texts,
    refs: Sequence[str | Sequence[str]] | None = None,
    srcs: Sequence[str] | None = None,
    budgets: Any = None,
    *,
    docs: Sequence[Hashable] | None = None,
    backs: Sequence[str] | None = None,
    lengths: Sequence[int] | None = None,
    metrics: Sequence[str] | None = None,
    unit: str = "chars",
    tokenizer: Any = None,
    bootstrap: int = 1000,
    seed: int = 0,
) -> list[Score]:
    """Return the scores of all metrics that the inputs allow, or of those named ("mae", "within:5", "bleu:zh").

    The inputs are those of `Texts`. Shares and ratios are fractions; BLEU, chrF and TER are out of 100.
    """
    texts = hyps if isinstance(hyps, Texts) else Texts(hyps, refs, srcs, budgets, docs, backs, lengths, unit, tokenizer)
    usual = [name for name, metric in METRICS.items() if metric.usual and not _missing(metric, texts)]
    scores = []
    for name in usual if metrics is None else metrics:
        try:
            scores.append(as_score(*tally_of(name, texts), bootstrap, seed))
        except NotApplicable:
            if metrics is not None:
                raise
    return scores


def score_bins(
    texts: Texts, *, width: int = 100, edges: Sequence[int] | None = None, **options: Any
) -> dict[str, list[Score]]:
    """Return the scores of each bin of the target length, by its name ("1-100 chars"). `options`: those of `score`."""
    if texts.budgets is None:
        raise ValueError("bins of the target length need budgets: Texts(hyps, ..., budgets=...)")
    rows_by_bin = length_error.bins(texts.targets.tolist(), width=width, edges=edges)
    return {f"{label} {texts.budget_unit}": score(texts.pick(rows), **options) for label, rows in rows_by_bin.items()}


def score_positions(texts: Texts, parts: int = 4, **options: Any) -> dict[str, list[Score]]:
    """Return the scores of each part of the documents, from the first quarter ("1/4") to the last ("4/4").

    `options`: those of `score`. Documents of fewer sentences than parts are left out, so that all parts have sentences
    of the same documents.
    """
    if texts.docs is None:
        raise ValueError("positions in documents need docs: Texts(hyps, ..., docs=...)")
    return {label: score(texts.pick(rows), **options) for label, rows in positions(texts.docs, parts).items()}


def compare(
    a: Sequence[str] | Texts,
    b: Sequence[str] | Texts,
    refs: Sequence[str | Sequence[str]] | None = None,
    srcs: Sequence[str] | None = None,
    budgets: Any = None,
    *,
    metric: str,
    test: Test = "bootstrap",
    docs: Sequence[Hashable] | None = None,
    unit: str = "chars",
    tokenizer: Any = None,
    samples: int = 1000,
    seed: int = 0,
) -> Comparison:
    """Return the paired test of system b against system a; a system with its own lengths or backs is a `Texts`."""
    both = [
        side if isinstance(side, Texts) else Texts(side, refs, srcs, budgets, docs, unit=unit, tokenizer=tokenizer)
        for side in (a, b)
    ]
    (name, tally_a), (_, tally_b) = (tally_of(metric, texts) for texts in both)
    return as_comparison(name, tally_a, tally_b, test, samples, seed)


def tally_of(asked: str, texts: Texts) -> tuple[str, Tally]:
    """Return the metric's full name, with its argument, and its counts."""
    name, colon, argument = asked.partition(":")
    name = name.lower().removeprefix("s-")
    if name not in METRICS:
        raise ValueError(f"unknown metric {asked!r}; the metrics are {', '.join(METRICS)}")
    metric = METRICS[name]
    if colon and not metric.takes:
        raise ValueError(f"metric {name!r} takes no argument; got {asked!r}")
    if missing := _missing(metric, texts):
        raise ValueError(f"metric {name!r} needs {' and '.join(metric.needs)}; {' and '.join(missing)} not given")
    argument = argument or metric.default
    given = argument if metric.load is None else metric.load(argument) if argument else None
    return (f"{name}:{argument}" if argument else name), metric.tally(texts, given)


def _missing(metric: Metric, texts: Texts) -> list[str]:
    return [need for need in metric.needs if getattr(texts, need) is None]
