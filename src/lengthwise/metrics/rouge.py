"""ROUGE: words shared with a reference summary, counted by rouge-score (Lin 2004).

F1, and the recall of an output cut to a number of bytes: the rule of DUC (75 bytes), where length gives no advantage.
rouge-score reads only a-z and 0-9; for other scripts use the tokenizers here: "rouge-1:words" or "rouge-1:chars".
"""

from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import numpy as np
import regex

from .optional_imports import library
from .tally import NotApplicable, Tally, mean_of
from .texts import Texts

_TOKENS = {"words": r"[\p{L}\p{M}\p{N}]+", "chars": r"[\p{L}\p{N}]\p{M}*"}


def rouge(texts: Texts, tokenizer: str = "", *, kind: str) -> Tally:
    """Return F1 of "rouge1", "rouge2" or "rougeL"; of several references of a text, the mean."""
    tokenizer = tokenizer or "english"
    return _tally(texts, list(texts.hyps), kind, "fmeasure", tokenizer, f"f1|cut:no|tok:{tokenizer}")


def rouge_recall(texts: Texts, cut: str = "75", *, kind: str) -> Tally:
    """Return the recall of the output's first `cut` bytes; "target": as many bytes as its budget's target."""
    if cut == "target" and texts.budgets is not None:
        limits = [int(target) for target in texts.targets]
    elif cut.isdecimal() and int(cut) > 0:
        limits = [int(cut)] * len(texts)
    else:
        raise ValueError(f"recall needs a number of bytes, or 'target' where budgets are given; got {cut!r}")
    hyps = [first_bytes(text, limit) for text, limit in zip(texts.hyps, limits, strict=True)]
    return _tally(texts, hyps, kind, "recall", "english", f"recall|cut:{cut}-bytes|tok:english")


def first_bytes(text: str, limit: int) -> str:
    """Return as much of `text` as fits in `limit` bytes of UTF-8; a split character is dropped."""
    return text.encode("utf-8", "surrogatepass")[:limit].decode("utf-8", "ignore")


def _tokenizer(name: str) -> Any:
    """Return the tokenizer with the interface that rouge-score expects."""
    if name == "english":
        return library("rouge_score.tokenizers").DefaultTokenizer(use_stemmer=True)
    if name not in _TOKENS:
        raise ValueError(f"unknown tokenizer {name!r} for ROUGE; the tokenizers are english, {', '.join(_TOKENS)}")
    find = regex.compile(_TOKENS[name]).findall
    return SimpleNamespace(tokenize=lambda text: find(text.lower()))


def _tally(texts: Texts, hyps: list[str], kind: str, field: str, tokenizer: str, note: str) -> Tally:
    tokens = _tokenizer(tokenizer)
    scorer = library("rouge_score.rouge_scorer").RougeScorer([kind], tokenizer=tokens)
    values = []
    for row, (hyp, refs) in enumerate(zip(hyps, texts.refs or (), strict=True)):
        if not any(map(tokens.tokenize, refs)):
            advice = "use 'rouge-1:words' or 'rouge-1:chars'" if tokenizer == "english" else "leave it out"
            raise NotApplicable(f"the reference of row {row} has no token that ROUGE ({tokenizer}) reads; {advice}")
        values.append(np.mean([getattr(scorer.score(ref, hyp)[kind], field) for ref in refs]))
    refs_rule = "mean" if any(len(refs) > 1 for refs in texts.refs or ()) else "one"
    stem = "porter" if tokenizer == "english" else "no"
    return mean_of(values, f"{kind}|{note}|stem:{stem}|refs:{refs_rule}|rouge-score:{version('rouge-score')}")
