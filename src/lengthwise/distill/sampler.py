"""Samples: many translations of each of many sentences, drawn side by side.

For data, where thousands of sentences are translated a dozen times each: the encoder reads a sentence once, however
many translations are drawn from it, and a step costs no Python for a row. Nothing is held to a budget; a model that has
a length control may be told a length for each draw. Every row has random numbers of its own, so that what is drawn
depends on its seed. Knows models and token ids; not which translation is a good one.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import LogitsProcessor
from transformers.modeling_outputs import BaseModelOutput

from ..controls.attach import controls_of, core_of, units_of
from ..generation.generator import Writer
from ..generation.sampling import nucleus
from ..length.meter import Meter

UNIT = "chars"  # in which lengths are told and tokens are dear


class Sampler:
    """Draws with the writer's model, an encoder-decoder. None stands for a text that did not come to its end."""

    def __init__(self, writer: Writer, *, temperature: float = 0.7, top_p: float = 0.95) -> None:
        if not writer.model.config.is_encoder_decoder:
            raise ValueError(f"{writer.name} answers prompts and is no translator; an encoder-decoder is needed")
        self.writer, self.temperature, self.top_p = writer, temperature, top_p
        self.units = units_of(controls_of(writer.model))
        self.told = bool(controls_of(writer.model))  # can it be told a length?
        if self.units and UNIT not in self.units:
            raise ValueError(f"{writer.name} counts {', '.join(self.units)}; lengths are told in {UNIT} here")
        rows = core_of(writer.model).get_output_embeddings().weight.shape[0]
        prices = Meter(writer.tokenizer, UNIT, rows).prices[:rows]
        self._prices = prices.to(writer.model.device, torch.float32)  # (vocabulary,)

    def best(self, texts: Sequence[str], beams: int) -> list[str | None]:
        """Each text as the model translates it by itself, with so many beams."""
        prompts = self._prompts(texts)
        limits = [_limit(prompt) for prompt in prompts]
        ids, mask = self._padded(prompts)
        with torch.inference_mode():
            written = self._generate(limits, input_ids=ids, attention_mask=mask, num_beams=beams)
        return self._decoded(written, limits)

    def draw(
        self, texts: Sequence[str], lengths: Sequence[int], thrift: Sequence[float], seeds: Sequence[int]
    ) -> list[str | None]:
        """A translation of each text, which may come several times, beside others of its kind or not.

        `lengths`: what a model that can be told is told. `thrift`: what a character costs in the draw, in nats; at 0
        tokens are drawn by their likelihood alone. `seeds`: each row's own.
        """
        asked = [self._told(text, length) for text, length in zip(texts, lengths, strict=True)]
        known = {text: place for place, text in enumerate(dict.fromkeys(asked))}
        prompts = self._prompts(list(known))
        index = torch.tensor([known[text] for text in asked], device=self.writer.model.device)
        limits = [_limit(prompts[known[text]]) for text in asked]
        ids, mask = self._padded(prompts)
        start = 1 if self.writer.model.generation_config.forced_bos_token_id is None else 2
        uniforms = uniform(np.array(seeds, dtype=np.uint64), max(limits) + 2)
        draw = _Draw(self, torch.from_numpy(uniforms).to(ids.device), torch.tensor(thrift, device=ids.device), start)
        with torch.inference_mode():
            read = core_of(self.writer.model).get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
            written = self._generate(
                limits,
                encoder_outputs=BaseModelOutput(last_hidden_state=read[index]),
                attention_mask=mask[index],
                num_beams=1,
                logits_processor=[draw],
                **self._signal(lengths),
            )
        return self._decoded(written, limits)

    def _told(self, text: str, length: int) -> str:
        for control in controls_of(self.writer.model):
            text = control.prefix(text, length, UNIT, self.writer.tokenizer)
        return text

    def _signal(self, lengths: Sequence[int]) -> dict[str, Tensor]:
        if not self.units:
            return {}
        told = torch.tensor(list(lengths), device=self.writer.model.device)
        return {"decoder_length": told, "decoder_unit": torch.full_like(told, self.units.index(UNIT))}

    def _prompts(self, texts: Sequence[str]) -> list[list[int]]:
        window = self.writer.window
        found = self.writer.tokenizer(list(texts))["input_ids"]
        return [ids if len(ids) <= window else [*ids[: window - 1], ids[-1]] for ids in found]

    def _padded(self, prompts: list[list[int]]) -> tuple[Tensor, Tensor]:
        rows = [torch.tensor(prompt) for prompt in prompts]
        ids = pad_sequence(rows, batch_first=True, padding_value=self.writer.pad)
        mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        return ids.to(self.writer.model.device), mask.to(self.writer.model.device)

    def _generate(self, limits: list[int], **options: Any) -> Any:
        return self.writer.model.generate(
            **options,
            **dict.fromkeys(("temperature", "top_p", "top_k", "max_length")),
            do_sample=False,
            # One more than any row may have: models that force an end there are not believed to have found it.
            max_new_tokens=min(max(limits) + 2, self.writer.window - 1),
            eos_token_id=self.writer.ends,
            pad_token_id=self.writer.pad,
        )

    def _decoded(self, written: Tensor, limits: list[int]) -> list[str | None]:
        ends = torch.isin(written[:, 1:], torch.tensor(self.writer.ends, device=written.device))
        first = torch.where(ends.any(1), ends.int().argmax(1), written.shape[1])  # BART starts with its end token
        rows = zip(written[:, 1:].tolist(), first.tolist(), limits, strict=True)
        kept = [ids[:end] if end <= limit else None for ids, end, limit in rows]
        several = list(dict.fromkeys(tuple(ids) for ids in kept if ids is not None))  # drawn twice, decoded once
        texts = self.writer.tokenizer.batch_decode(
            [list(ids) for ids in several], skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        spelt = dict(zip(several, (text.strip() for text in texts), strict=False))  # of none it makes an empty one
        return [None if ids is None else spelt[tuple(ids)] for ids in kept]


def _limit(prompt: list[int]) -> int:
    """Tokens of a translation: one with many more than its source runs on and on, and all would wait for it."""
    return 3 * len(prompt) // 2 + 12


class _Draw(LogitsProcessor):  # type: ignore[misc]  # transformers is untyped
    """Leaves one token a row: drawn from the likeliest that make up `top_p`, each less likely the longer it is."""

    def __init__(self, sampler: Sampler, uniforms: Tensor, thrift: Tensor, start: int) -> None:
        self.sampler, self.uniforms, self.thrift, self.start = sampler, uniforms, thrift.unsqueeze(1), start

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        step = input_ids.shape[1] - self.start
        if step < 0:  # a language token, which nobody chooses
            return scores
        how = (self.sampler.temperature, self.sampler.top_p)
        drawn = nucleus(scores, self.uniforms[:, step : step + 1], *how, cost=self._cost)
        return torch.full_like(scores, -torch.inf).scatter_(1, drawn, 0.0)

    def _cost(self, tokens: Tensor) -> Tensor:
        return self.thrift * self.sampler._prices[tokens]


def uniform(seeds: "np.ndarray[Any, np.dtype[np.uint64]]", steps: int) -> "np.ndarray[Any, np.dtype[np.float32]]":
    """Numbers in [0, 1), a row for each seed: (rows, steps). SplitMix64, since a generator for each row takes too long.

    >>> uniform(np.array([0], dtype=np.uint64), 1)[0, 0].round(4)  # its first output for seed 0 is 0xe220a8397b1dcdaf
    np.float32(0.8833)
    """
    with np.errstate(over="ignore"):
        mixed = seeds[:, None] + np.arange(1, steps + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return ((mixed >> np.uint64(40)) / np.float64(1 << 24)).astype(np.float32)
