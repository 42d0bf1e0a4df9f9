"""A Marian model as a translator of many sentences, in large batches of few shapes."""

from collections.abc import Sequence
from typing import Any

import torch

from ..engines.marian_beams import MarianBeams
from ..length.meter import Meter
from ..scoring.unit_scores import WordIds

MAX_TOKENS = 128  # of a sentence; a longer one is rarely one sentence


class Marian:
    """Translates with `beams` beams, `batch_tokens` source tokens at a time with padding."""

    def __init__(self, writer: Any, beams: int, batch_tokens: int) -> None:
        self.writer, self.engine, self.name = writer, writer.engine, writer.name
        self.tokenizer, self.batch_tokens = writer.tokenizer, batch_tokens
        self.search = MarianBeams(writer.model, beams, torch.from_numpy(Meter(self.tokenizer, "chars").cost).float())
        self.source_ids = WordIds(lambda words: [ids[:-1] for ids in self.tokenizer(words)["input_ids"]])

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of source texts, each with the end token."""
        end = self.tokenizer.eos_token_id
        return [[*(token for ids in self.source_ids(text.split()) for token in ids), end] for text in texts]

    def translate(self, texts: Sequence[str], char_cost: float = 0.0) -> list[str]:
        """Return the best translation of each text; empty for a text that is too long, or if no beam ended.

        `char_cost`: nats that each character costs.
        """
        found = [""] * len(texts)
        encoded = self.encode(texts)
        by_width: dict[int, list[int]] = {}
        for row in sorted(range(len(texts)), key=lambda row: len(encoded[row])):
            if len(encoded[row]) <= MAX_TOKENS:
                by_width.setdefault(-(-len(encoded[row]) // 16) * 16, []).append(row)
        on_gpu = self.writer.model.device.type == "cuda"
        for width, alike in by_width.items():
            size, limit = max(1, self.batch_tokens // width), width * 3 // 2 + 16
            for at in range(0, len(alike), size):
                rows = alike[at : at + size]
                costs, sources = [char_cost] * len(rows), [encoded[row] for row in rows]
                beams = self.search.translate(sources, limit, costs, rows=size if on_gpu else 0)  # few shapes
                best = [some[0].ids if some else [] for some in beams]
                for row, text in zip(rows, self._decode(best), strict=True):
                    found[row] = text.strip()
        return found

    def _decode(self, ids: list[list[int]]) -> list[str]:
        texts: list[str] = self.tokenizer.batch_decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return texts
