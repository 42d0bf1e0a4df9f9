"""Dev generation: generate dev texts during training, and compute the mean error of their lengths.

The model receives the length and no token is masked, so the error shows what the model has learnt.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any

import torch

from ..controls.attached import controls_of
from ..generation.generator import Writer
from ..generation.unconstrained import UnconstrainedWriter
from ..length.budget import exactly
from ..length.units import measure
from .data_stream import read_corpus
from .recipe import Recipe


class DevGeneration:
    """Sources of the dev set, and a writer that generates a text of the reference's length for each."""

    def __init__(self, pairs: list[tuple[str, str]], unit: str, model: Any, tokenizer: Any) -> None:
        self.model, self.unit, self.sources = model, unit, [source for source, _ in pairs]
        self.lengths = [max(1, measure(target, unit, tokenizer=tokenizer)) for _, target in pairs]
        self.writer = UnconstrainedWriter(Writer(model, tokenizer, batch_size=len(pairs)), receives_length=True)

    def length_error(self, autocast: AbstractContextManager[Any]) -> float:
        """Return the mean difference between the length that was asked for and that of the text."""
        self.model.eval()
        # Without torch.compile: every step of generation has a new shape.
        with torch.compiler.set_stance("force_eager"), autocast:
            texts = self.writer.write(self.sources, [exactly(length, self.unit) for length in self.lengths])
        pairs = zip(texts, self.lengths, strict=True)
        off = [abs(text.length - length) for text, length in pairs if text.error is None]
        return sum(off) / max(1, len(off))


def dev_generation(recipe: Recipe, model: Any, tokenizer: Any) -> DevGeneration | None:
    """Return the generation of dev texts, if there is a dev set and a control that counts."""
    counting = any(control.units for control in controls_of(model))
    pairs = list(islice(_pairs(recipe, tokenizer), recipe.data.dev_texts)) if counting else []
    return DevGeneration(pairs, recipe.unit[0], model, tokenizer) if pairs else None


def _pairs(recipe: Recipe, tokenizer: Any) -> Iterator[tuple[str, str]]:
    """Yield one example of each dev document: its first sentence, or all of it if the recipe trains on documents."""
    first_only = recipe.lengths.kind in ("sentences", "prefixes")
    for corpus in recipe.data.dev or []:
        for document in islice(read_corpus(corpus, recipe), recipe.data.dev_documents):
            segments = document.segments[:1] if first_only else document.segments
            source, target = (recipe.lengths.separator.join(side).strip() for side in zip(*segments, strict=True))
            tokens = sum(len(ids) for ids in tokenizer([source, target])["input_ids"])
            if source and target and tokens <= recipe.data.max_tokens:
                yield source, target
