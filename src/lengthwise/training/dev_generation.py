"""A trial of a model that is being trained: it writes a few dev texts, and the errors of their lengths are averaged.

The length is told and nothing is enforced, so the number says what the model has learnt. Knows texts and lengths; when
a trial is due, and what becomes of the number, is the loop's matter.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any

import torch

from ..controls.attach import length_control
from ..generation.generator import Writer
from ..generation.unconstrained import PlainWriter
from ..length.budget import exactly
from ..length.units import measure
from .data_stream import opened
from .recipe import Recipe


class Trial:
    """The texts of a recipe's dev set that are written again and again, each as long as its reference."""

    def __init__(self, recipe: Recipe, model: Any, tokenizer: Any) -> None:
        self.model, self.unit = model, recipe.unit[0]
        found = islice(_pairs(recipe, tokenizer), recipe.data.dev_texts)
        self.sources, self.lengths = [], []
        for source, target in found:
            self.sources.append(source)
            self.lengths.append(max(1, measure(target, self.unit, tokenizer=tokenizer)))
        self.writer = PlainWriter(Writer(model, tokenizer, batch_size=max(1, len(self.sources))), told=True)

    def error(self, autocast: AbstractContextManager[Any]) -> float:
        """The mean difference between the length that was asked for and the one that was written."""
        self.model.eval()
        # Step by step every shape is new, and hardly worth compiling for.
        with torch.compiler.set_stance("force_eager"), autocast:
            texts = self.writer.write(self.sources, [exactly(length, self.unit) for length in self.lengths])
        pairs = zip(texts, self.lengths, strict=True)
        off = [abs(text.length - length) for text, length in pairs if text.error is None]
        return sum(off) / max(1, len(off))


def trial_of(recipe: Recipe, model: Any, tokenizer: Any) -> Trial | None:
    """A trial, where there is a dev set and a control that counts; else the model does not know of lengths."""
    attached = length_control(model)
    if not recipe.data.dev or not recipe.data.dev_texts or attached is None or not attached.units:
        return None
    trial = Trial(recipe, model, tokenizer)
    return trial if trial.sources else None


def _pairs(recipe: Recipe, tokenizer: Any) -> Iterator[tuple[str, str]]:
    """One example of each dev document: its first sentence, or all of it if the recipe trains on documents."""
    alone = recipe.lengths.kind in ("sentences", "prefixes")
    for corpus in recipe.data.dev or []:
        for document in islice(opened(corpus, recipe), recipe.data.dev_documents):
            segments = document.segments[:1] if alone else document.segments
            source, target = (recipe.lengths.separator.join(side).strip() for side in zip(*segments, strict=True))
            tokens = sum(len(ids) for ids in tokenizer([source, target])["input_ids"])
            if source and target and tokens <= recipe.data.max_tokens:
                yield source, target
