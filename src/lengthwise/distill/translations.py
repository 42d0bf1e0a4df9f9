"""Translations: sample several translations of each sentence, at different lengths and with the same meaning.

Training data decide what a model leaves out when the length is short. Many translations of each sentence are sampled
(`sampler.py`). One is kept if log P(sentence | translation), by a reverse model, and log P(translation | sentence) are
nearly those of the best translation (`candidates.py`); short ones are kept first. A model trained on them samples
shorter ones in the next round. Rows are written one by one: an interrupted run can be resumed.

    out.jsonl            {"id", "source", "target", "ratio", "score", "tail"}: the id is the sentence's and a number, 0
                         for the best translation; score and tail are those of `whole_and_tail`
    out.dropped.jsonl    {"id", "source", "best", "kept", "reasons"}: for each sentence, the length ratio of its best
                         translation, how many are kept, and why others are not
    out.settings.json    how they were sampled
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..corpora.document import DataError
from ..length.units import measure
from ..scoring.reverse import ReverseModel
from .candidates import Margins, score, select, well_formed
from .prompts import Prompt
from .row_files import Row, RowFiles, append
from .sampler import Sampler

# Without cuDNN's attention, which is slow on every new shape: each sampling step has one.
_ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
Scorers = tuple[ReverseModel, ReverseModel]  # log P of the source given a translation, and the other way round
_FIELDS = ("id", "source", "target", "ratio")
_JOURNAL_FIELDS = ("id", "source", "best", "kept", "reasons")
_RENAMED = {  # in settings files of older versions
    "standard": "reference_model",
    "thrift": "char_cost",
    "doubt": "likelihood_margin",
    "oddest": "max_surprisal",
}


@dataclass(frozen=True)
class Settings(Margins):
    """How translations are sampled, and which are kept."""

    each: int = 12  # samples of each sentence
    ratios: tuple[float, ...] = (0.8, 0.9, 1.0, 1.1)  # of the source's characters, for a model that receives a length
    char_cost: tuple[float, ...] = (0.0, 0.15, 0.3)  # nats per character, for a model that receives no length
    beams: int = 5
    temperature: float = 0.7
    top_p: float = 0.95
    keep: int = 4  # translations of a sentence
    seed: int = 0


def gather(
    sampler: Sampler,
    reverse: ReverseModel,
    sentences: list[Prompt],
    out: Path,
    settings: Settings,
    *,
    reference_model: Sampler | None = None,
    rows: int = 64,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Append the translations of sentences that `out` does not have yet, and return the counts of all there.

    `reference_model`: makes the best translation that others are compared with [default: `sampler`, without a length].
    `rows`: translations sampled at a time. Samples depend on `settings.seed` and the sentence's id, apart from the
    rounding of sums, which differs with the other rows of a batch.
    """
    files = RowFiles(out, "translations")
    reference = reference_model or sampler
    models = {"model": sampler.writer.name, "reference_model": reference.writer.name, "reverse": reverse.name}
    files.begin(models | asdict(settings), _RENAMED)
    if out.exists() and not files.dropped.exists():
        raise DataError(f"{out} cannot be resumed without {files.dropped.name}; give another file")
    done = files.known(files.dropped, _JOURNAL_FIELDS, sentences, "another sentence", "sentences")
    files.resume(out, _FIELDS, keep=lambda row: row["id"].rpartition(".")[0] in done)
    todo = [sentence for sentence in sentences if sentence.id not in done]
    progress = progress or (lambda _: None)
    progress(len(sentences) - len(todo))
    scorers = reverse, ReverseModel(reference.writer.engine)
    with out.open("ab") as kept, files.dropped.open("ab") as journal, sdpa_kernel(_ATTENTION):
        for group in _groups(todo, max(1, rows // max(settings.each, settings.beams)), settings.seed):
            examples, accounts = _translate(sampler, reference, scorers, group, settings)
            append(kept, examples)
            append(journal, accounts)  # last: a sentence is done when the journal has it
            progress(len(group))
    return _counts(files)


def _groups(todo: list[Prompt], size: int, seed: int) -> list[list[Prompt]]:
    """Return groups of sentences of similar length, in random order, so that a partial run is a random sample."""
    ordered = sorted(todo, key=lambda sentence: (len(sentence.text), sentence.id))
    groups = [ordered[at : at + size] for at in range(0, len(ordered), size)]
    random.Random(seed).shuffle(groups)
    return groups


def _translate(
    sampler: Sampler, reference: Sampler, scorers: Scorers, group: list[Prompt], settings: Settings
) -> tuple[list[Row], list[Row]]:
    """Return the rows of `out` (kept translations) and of OUT.dropped.jsonl (one per sentence, with reasons)."""
    best = reference.best([sentence.text for sentence in group], settings.beams)
    drawn = _draw(sampler, group, settings)
    reasons: list[Counter[str]] = [Counter() for _ in group]
    candidates = []
    for place, sentence in enumerate(group):
        texts = [best[place], *(drawn[place * settings.each :][: settings.each] if best[place] else [])]
        candidates.append(well_formed(sentence.text, texts, reasons[place]))
    candidates = score(*scorers, [sentence.text for sentence in group], candidates)
    examples: list[Row] = []
    accounts: list[Row] = []
    for sentence, some, why in zip(group, candidates, reasons, strict=True):
        chosen = select(some, settings, settings.keep, why)
        size = measure(sentence.text, "chars")
        for number, one in enumerate(chosen):
            row = {"id": f"{sentence.id}.{number}", "source": sentence.text, "target": one.text}
            numbers = {"ratio": one.length / size, "score": one.score, "tail": one.tail}
            examples.append(row | {name: round(value, 3) for name, value in numbers.items()})
        ratio = next((round(one.length / size, 3) for one in some if one.best), None)
        about = {"best": ratio, "kept": len(chosen), "reasons": dict(why)}
        accounts.append({"id": sentence.id, "source": sentence.text, **about})
    return examples, accounts


def _draw(sampler: Sampler, group: list[Prompt], settings: Settings) -> list[str | None]:
    """Return the samples of each sentence, with the ratios, or the costs per character, in turn."""
    turns = [(sentence, turn) for sentence in group for turn in range(settings.each)]
    ratios = settings.ratios if sampler.receives_length else (1.0,)
    costs = (0.0,) if sampler.receives_length else settings.char_cost
    return sampler.draw(
        [sentence.text for sentence, _ in turns],
        [max(1, round(ratios[turn % len(ratios)] * measure(sentence.text, "chars"))) for sentence, turn in turns],
        [costs[turn % len(costs)] for _, turn in turns],
        [sentence.seed(settings.seed) + turn for sentence, turn in turns],
    )


def _counts(files: RowFiles) -> dict[str, Any]:
    ratios = np.array([row["ratio"] for row, _ in files.rows(files.out, _FIELDS)])
    journal = [row for row, _ in files.rows(files.dropped, _JOURNAL_FIELDS)]
    best = [row["best"] for row in journal if row["best"] is not None]
    reasons: Counter[str] = sum((Counter(row["reasons"]) for row in journal), Counter())
    shares = {f"below_{limit}x": float((ratios < limit).mean().round(3)) for limit in (1.0, 0.9) if len(ratios)}
    return {
        "sentences": len(journal),
        "without": sum(not row["kept"] for row in journal),
        "kept": len(ratios),
        "ratio": round(float(ratios.mean()), 3) if len(ratios) else None,
        "best_ratio": round(float(np.mean(best)), 3) if best else None,
        **shares,
        "dropped": sum(reasons.values()),
        "reasons": dict(reasons.most_common()),
    }
