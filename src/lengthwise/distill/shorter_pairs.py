"""Shorter pairs: texts and shorter texts that say the same, as training data for a model that rewrites.

Each sentence is translated, and its translation translated back with a cost per character: a paraphrase that is a
little shorter. Rules leave parts of the sentence and of the paraphrase out, in many ways (`shortening/variants.py`).
The translators and a language model choose among them (`shorter_forms.py`). A text of several sentences is put together
from their shorter forms.

Rows are written group by group: an interrupted run can be resumed.

    out.jsonl            {"id", "source", "target"}: the id is the text's and a number, from 0
    out.dropped.jsonl    {"id", "source"}: the texts without a shorter one that is sound
    out.settings.json    how they were made
"""

import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path

from ..engines.base import Engine
from ..scoring.unit_scores import UnitScorer, split_units
from ..shortening.pieces import split_sentences
from ..shortening.rewriting import NEUTRAL
from ..shortening.variants import variants
from .marian import Marian
from .prompts import Prompt
from .row_files import RowFiles, append
from .shorter_forms import Judged, choose, is_sound, plausible
from .shorter_texts import shorter_texts

_FIELDS = ("id", "source", "target")
_DROPPED_FIELDS = ("id", "source")
GROUP = 8192  # texts; an interrupted run loses at most two groups
CHUNK = 64  # sentences whose forms a worker process draws at a time


@dataclass(frozen=True)
class Settings:
    """How shorter texts are made."""

    beams: int = 2
    char_cost: float = 0.15  # nats per character of a paraphrase
    forms: int = 3  # that the rules draw of a sentence in each range of lengths
    seed: int = 0


@dataclass
class Report:
    """The texts of this run, the rows written, and the texts that have none."""

    texts: int = 0
    written: int = 0
    without: int = 0


@dataclass(frozen=True)
class Models:
    """A translator, one of the opposite direction, and a causal language model of the texts' language."""

    there: Marian
    back: Marian
    language_model: Engine

    @property
    def names(self) -> dict[str, str]:
        return {"model": self.there.name, "back": self.back.name, "language_model": self.language_model.name}


@dataclass(frozen=True)
class _Sentence:
    text: str
    translation: str
    forms: list[str]  # that may be faithful


def gather(
    models: Models,
    texts: list[Prompt],
    out: Path,
    settings: Settings,
    *,
    pool: Executor | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Report:
    """Append the shorter texts of the texts that `out` does not have yet. `pool`: processes that apply the rules."""
    files, report = RowFiles(out, "pairs"), Report()
    files.begin(models.names | asdict(settings), {})
    what, kind = "another text", "texts"
    done = files.known(out, _FIELDS, texts, what, kind, id_of=lambda id_: id_.rpartition(".")[0])
    done |= files.known(files.dropped, _DROPPED_FIELDS, texts, what, kind)
    todo = [text for text in texts if text.id not in done]
    progress(len(texts) - len(todo))
    judge = _Judge(models)
    with out.open("ab") as kept, files.dropped.open("ab") as dropped:
        for group, drawn in _one_ahead(models, todo, settings, pool):
            forms = {one.text: found for one, found in judge.shorter(list(drawn))}
            for text in group:
                rng = random.Random(text.seed(settings.seed))
                rows = [
                    {"id": f"{text.id}.{number}", "source": text.text, "target": shorter}
                    for number, shorter in enumerate(shorter_texts(split_sentences(text.text), forms, rng))
                ]
                append(kept, rows)
                append(dropped, [] if rows else [{"id": text.id, "source": text.text}])
                report.written += len(rows)
                report.without += not rows
            report.texts += len(group)
            progress(len(group))
    return report


def _one_ahead(
    models: Models, texts: list[Prompt], settings: Settings, pool: Executor | None
) -> Iterator[tuple[list[Prompt], Iterator[_Sentence]]]:
    """Yield groups of texts with their sentences; processes draw the forms of one group while another is judged."""
    waiting: tuple[list[Prompt], Iterator[_Sentence]] | None = None
    for at in range(0, len(texts), GROUP):
        group = texts[at : at + GROUP]
        drawn = _drawn(models, group, settings, pool)
        if waiting:
            yield waiting
        waiting = group, drawn
    if waiting:
        yield waiting


def _drawn(models: Models, group: list[Prompt], settings: Settings, pool: Executor | None) -> Iterator[_Sentence]:
    """Return the sentences of the group with their translations, and forms that may be faithful."""
    sentences = list(dict.fromkeys(one for text in group for one in split_sentences(text.text)))
    translations = models.there.translate(sentences)
    paraphrases = models.back.translate(translations, settings.char_cost)
    work = [  # a sentence is its own id: its seed does not depend on the other sentences
        (sentence, paraphrase, settings.forms, Prompt(sentence, sentence).seed(settings.seed))
        for sentence, paraphrase in zip(sentences, paraphrases, strict=True)
    ]
    found = pool.map(_forms, work, chunksize=CHUNK) if pool else map(_forms, work)
    return (
        _Sentence(sentence, translation, forms)
        for sentence, translation, forms in zip(sentences, translations, found, strict=True)
        if translation and forms
    )


def _forms(work: tuple[str, str, int, int]) -> list[str]:
    """Return shorter forms of a sentence and of its paraphrase that may be faithful to the sentence."""
    sentence, paraphrase, each, seed = work
    drawn = variants(sentence, seed, each)
    if paraphrase and paraphrase != sentence:
        drawn += [paraphrase, *variants(paraphrase, seed, each)]
    return [form for form in dict.fromkeys(drawn) if plausible(sentence, form)]


class _Judge:
    """Chooses among the forms of sentences."""

    def __init__(self, models: Models) -> None:
        self.models, self.prompt = models, models.language_model.prompt_ids(NEUTRAL)
        self.there, self.back, self.language_model = (
            UnitScorer(engine) for engine in (models.there.engine, models.back.engine, models.language_model)
        )

    def shorter(self, sentences: Sequence[_Sentence]) -> Iterator[tuple[_Sentence, list[str]]]:
        """Yield each sentence that has sound forms, with the best of them."""
        judged = self._judged([(one, [one.text, *one.forms]) for one in sentences])
        sound = [
            (one, [whole, *(form for form in forms if is_sound(whole, form))])
            for one, (whole, *forms) in zip(sentences, judged, strict=True)
        ]
        for one, (whole, *forms) in self._understood([(one, some) for one, some in sound if len(some) > 1]):
            yield one, choose(whole, forms)

    def _judged(self, options: Sequence[tuple[_Sentence, list[str]]]) -> list[list[Judged]]:
        """Return the texts of each sentence with the scores of their words."""
        encoded = self.models.back.encode([one.translation for one, _ in options])
        texts = [text for _, some in options for text in some]
        prompts = [ids for ids, (_, some) in zip(encoded, options, strict=True) for _ in some]
        supported = self.back.scores(texts, prompts)
        fluent = self.language_model.scores(texts, [self.prompt] * len(texts))
        judged = (Judged(text, split_units(text)[0], a, b) for text, a, b in zip(texts, supported, fluent, strict=True))
        return [list(islice(judged, len(some))) for _, some in options]

    def _understood(
        self, options: Sequence[tuple[_Sentence, list[Judged]]]
    ) -> Iterator[tuple[_Sentence, list[Judged]]]:
        """Yield the texts of each sentence with log P of its translation given the text."""
        inputs = self.models.there.encode([judged.text for _, some in options for judged in some])
        scored = iter(self.there.scores([one.translation for one, some in options for _ in some], inputs))
        for one, some in options:
            yield one, [replace(judged, understood=float(next(scored).sum())) for judged in some]
