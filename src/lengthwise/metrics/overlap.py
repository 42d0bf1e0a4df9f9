"""Overlap with references: BLEU, chrF and TER, with sacreBLEU's counts and signatures.

sacreBLEU counts the n-grams and edits of each text. The formulas on summed counts are repeated here, for many resamples
at once, and tested against sacreBLEU. BLEU* (Lakew et al. 2019) is BLEU without its brevity penalty, so it does not
measure what a short text omits.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np

from .optional_imports import library
from .tally import Tally
from .texts import Array, Texts


def bleu(texts: Texts, tokenize: str = "", *, lowercase: bool = False, star: bool = False) -> Tally:
    """Return BLEU; `tokenize` is one of sacreBLEU's tokenizers (13a, zh, ja-mecab, char, ...)."""
    kind = library("sacrebleu.metrics").BLEU
    if tokenize and tokenize not in kind.TOKENIZERS:
        raise ValueError(f"unknown tokenizer {tokenize!r} for BLEU; there are {', '.join(kind.TOKENIZERS)}")
    try:
        metric = kind(lowercase=lowercase, tokenize=tokenize or None)
    except RuntimeError as error:  # the tokenizer needs a library that is not installed
        raise ValueError(f"cannot load the tokenizer {tokenize!r} for BLEU: {error}") from None
    return _tally(metric, texts, partial(bleu_formula, star=star), "|bp:off" if star else "", per_item=False)


def chrf(texts: Texts, _: str = "", *, lowercase: bool = False) -> Tally:
    """Return chrF2: character 6-grams; recall counts twice as much as precision."""
    return _tally(library("sacrebleu.metrics").CHRF(lowercase=lowercase), texts, chrf_formula)


def ter(texts: Texts, _: str = "", *, cased: bool = False) -> Tally:
    """Return the translation edit rate, lower is better; sacreBLEU's default ignores case."""
    return _tally(library("sacrebleu.metrics").TER(case_sensitive=cased), texts, ter_formula)


def of_documents(metric: Callable[..., Tally], texts: Texts, argument: str = "", **options: Any) -> Tally:
    """Return the same metric with each document as one line (d-BLEU)."""
    tally = metric(texts.as_documents(), argument, **options)
    return replace(tally, signature=f"{tally.signature}|level:document")


def bleu_formula(sums: Array, *, star: bool = False) -> Array:
    """Return BLEU. sums (draws, 10): hypothesis and reference length, matches of orders 1-4, n-grams of orders 1-4."""
    hyp, ref, correct, total = sums[:, 0], sums[:, 1], sums[:, 2:6], sums[:, 6:10]
    with np.errstate(divide="ignore", invalid="ignore"):
        # Smoothing "exp": the k-th order without a match counts as 1/2^k of one match.
        smoothed = np.where(correct > 0, correct, 1 / 2 ** np.cumsum(correct == 0, axis=1))
        precision = np.exp(np.log(smoothed / total).mean(axis=1))
        score = np.where(correct.any(axis=1) & total.all(axis=1), 100 * precision, 0)
        return score if star else score * brevity_penalty(hyp, ref)


def brevity_penalty(hyp_len: Array | float, ref_len: Array | float) -> Array:
    """Return 1 for a text as long as its reference or longer, else exp(1 − reference / hypothesis).

    962 words for 1000 → 0.9613, so BLEU 31.62 is BLEU* 32.89.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        short = np.exp(1 - np.divide(ref_len, hyp_len))
    return np.where(np.less(hyp_len, ref_len), short, 1.0)


def chrf_formula(sums: Array) -> Array:
    """Return chrF. sums (draws, 18): n-grams of the hypothesis, the reference and both, for each of 6 orders; β = 2."""
    hyp, ref, match = (sums[:, start::3] for start in range(3))
    there = (hyp > 0) & (ref > 0)
    orders = np.maximum(there.sum(axis=1), 1)
    precision = np.divide(match, hyp, out=np.zeros_like(match), where=there).sum(axis=1) / orders
    recall = np.divide(match, ref, out=np.zeros_like(match), where=there).sum(axis=1) / orders
    weighed = 4 * precision + recall
    return np.divide(500 * precision * recall, weighed, out=np.zeros_like(weighed), where=weighed > 0)


def ter_formula(sums: Array) -> Array:
    """Return TER. sums (draws, 2): edits, reference words; edits against an empty reference cost 100."""
    edits, words = sums[:, 0], sums[:, 1]
    return np.where(words > 0, 100 * edits / np.where(words > 0, words, 1), 100.0 * (edits > 0))


def _tally(
    metric: Any, texts: Texts, formula: Callable[[Array], Array], note: str = "", *, per_item: bool = True
) -> Tally:
    # sacreBLEU takes the first references of all texts, then the second ones, ...; None where a text has fewer.
    streams = list(zip_longest(*(texts.refs or ())))
    counts = np.array(metric._extract_corpus_statistics(texts.hyps, streams), dtype=np.float64)
    # BLEU of one sentence needs other smoothing than BLEU of a corpus, so it has no value per text.
    alone = formula(counts) if per_item else None
    return Tally(f"{metric.get_signature()}{note}", counts, lambda counts, weights: formula(weights @ counts), alone)
