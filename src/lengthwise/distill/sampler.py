"""Sampling translations: many translations per sentence, for many sentences in one batch.

A sentence is encoded once for all of its translations that receive the same length, and a step runs no Python
code per row. There is no budget; a model with a length control may receive a length for each translation. Each row has
its own seed.
"""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..engines.base import LengthInputs
from ..engines.continuous import TOP_K
from ..engines.sampling import uniforms
from ..engines.torch_sampling import sample
from ..generation.generator import Writer
from ..length.meter import Meter

UNIT = "chars"  # of lengths and costs


class Sampler:
    """An encoder-decoder that translates without a budget. A translation that does not end within its limit is None."""

    def __init__(self, writer: Writer, *, temperature: float = 0.7, top_p: float = 0.95) -> None:
        engine = writer.engine
        if not engine.encoder_decoder:
            raise ValueError(f"{engine.name} is a decoder-only model; translations need an encoder-decoder")
        if engine.units and UNIT not in engine.units:
            raise ValueError(f"{engine.name} counts {', '.join(engine.units)}; lengths are given in {UNIT} here")
        self.writer, self.engine = writer, engine
        self._sample = partial(sample, temperature=temperature, top_p=top_p, top_k=TOP_K)
        self.receives_length = bool(engine.controls)
        self._chars = torch.from_numpy(Meter(engine.tokenizer, UNIT).cost).float()

    @torch.inference_mode()
    def best(self, texts: Sequence[str], beams: int) -> list[str | None]:
        """Return the translation of each text by beam search, without a length."""
        prompts = self._prompts(texts)
        limits = [_limit(prompt) for prompt in prompts]
        # One token more than any row may have: an end token that is forced at the last position does not count.
        steps = min(max(limits) + 2, self.engine.window - 1)
        found = self.engine.search(prompts, max_new_tokens=steps, beams=beams)
        return self._decoded(torch.tensor(found.ids), limits)

    @torch.inference_mode()
    def draw(
        self, texts: Sequence[str], lengths: Sequence[int], char_costs: Sequence[float], seeds: Sequence[int]
    ) -> list[str | None]:
        """Return one sampled translation of each text; a text may occur several times.

        `lengths`: for a model that receives one. `char_costs`: nats that each character of a token costs.
        """
        engine = self.engine
        asked = [(self._prefixed(text, n), n if engine.units else 0) for text, n in zip(texts, lengths, strict=True)]
        places = {one: place for place, one in enumerate(dict.fromkeys(asked))}
        prompts = self._prompts([text for text, _ in places])
        limits = [_limit(prompts[places[one]]) for one in asked]
        count = len(places)
        units = [engine.units.index(UNIT)] * count if engine.units else []
        length_inputs = LengthInputs([length for _, length in places], units, [False] * count, [0] * count)
        rows = engine.prefill(prompts, length_inputs if engine.units else None)
        rows.select(torch.tensor([places[one] for one in asked]))

        steps, device = min(max(limits) + 1, engine.window - 1), rows.scores.device
        uniform = torch.from_numpy(uniforms(seeds, steps)).to(device)  # (rows, steps)
        limit, ends = torch.tensor(limits, device=device), torch.tensor(engine.eos, device=device)
        cost = torch.tensor(char_costs, device=device)[:, None]
        chars = pad(self._chars, (0, max(0, rows.scores.shape[1] - len(self._chars)))).to(device)  # (vocabulary,)
        going = torch.ones(len(limits), dtype=torch.bool, device=device)
        written: list[Tensor] = []
        for step in range(steps):
            chosen = self._sample(rows.scores, uniform[:, step : step + 1], penalty=lambda tokens: cost * chars[tokens])
            token = chosen.squeeze(1)
            written.append(torch.where(going, token, engine.pad))
            going &= ~torch.isin(token, ends) & (step < limit)
            if not going.any():
                break
            rows.step(written[-1])
        return self._decoded(torch.stack(written, 1), limits)

    def _prefixed(self, text: str, length: int) -> str:
        for control in self.engine.controls:
            text = control.prefix(text, length, UNIT, self.engine.tokenizer)
        return text

    def _prompts(self, texts: Sequence[str]) -> list[list[int]]:
        window = self.engine.window
        found = self.engine.tokenizer(list(texts))["input_ids"]
        return [ids if len(ids) <= window else [*ids[: window - 1], ids[-1]] for ids in found]

    def _decoded(self, written: Tensor, limits: list[int]) -> list[str | None]:
        """Return the texts of token ids (rows, time)."""
        ends = torch.isin(written, torch.tensor(self.engine.eos, device=written.device))
        first = torch.where(ends.any(1), ends.int().argmax(1), written.shape[1] + max(limits))
        rows = zip(written.tolist(), first.tolist(), limits, strict=True)
        kept = [tuple(ids[:end]) if end <= limit else None for ids, end, limit in rows]
        distinct = [ids for ids in dict.fromkeys(kept) if ids is not None]  # each is decoded once
        texts = self.engine.tokenizer.batch_decode(
            list(map(list, distinct)), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        decoded = {ids: text.strip() for ids, text in zip(distinct, texts, strict=False)}  # [] may decode to [""]
        return [None if ids is None else decoded[ids] for ids in kept]


def _limit(prompt: list[int]) -> int:
    """Return the maximum number of tokens: a translation much longer than its source is a repetition loop."""
    return 3 * len(prompt) // 2 + 12
