"""Beam search of Marian over windows of documents on a GPU: `marian_beams.py` with prefixes and attention controls.

The beginning of a text, such as the translations of earlier sentences of a window, is read in one pass of the model.
Its keys are stored once and seen by all beams. Length-aware attention, ALiBi and group attention are computed here by
the formulas of `controls/attention.py`, for one decoder step of all beams. The translations are those of `generate` of
transformers, up to rounding, except that a text that has ended is preferred to one that has not. A step is a CUDA
graph.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import MarianMTModel

from ..controls import Alibi, Control, GroupedAttention, LengthAwareAttention, SentenceSeparator
from ..controls.alibi import slopes
from ..controls.attached import controls_of, core_of
from ..controls.masks import limited
from .decoder_prefix import last_logits_only
from .marian_beams import BeamBatch, MarianBeams
from .padding import padded
from .recorded_rows import rounded
from .rows import SearchResult

_KNOWN = (Alibi, GroupedAttention, LengthAwareAttention, SentenceSeparator)
_WIDTH = 32  # the smallest number of columns
_CACHE_BYTES = 4 << 30  # of the keys and values of a search
_SHAPES = 48  # of batches that are kept, each with its graph: those that were used last
# Generation settings that do not change this search, and those that do not if they are 1.
_HARMLESS = {
    *("max_length", "max_new_tokens", "num_beams", "num_return_sequences", "renormalize_logits", "use_cache"),
    *("pad_token_id", "bos_token_id", "eos_token_id", "forced_eos_token_id", "decoder_start_token_id", "bad_words_ids"),
    *("temperature", "top_k", "top_p", "do_sample", "transformers_version"),
    *("output_scores", "output_logits", "output_attentions", "output_hidden_states", "return_dict_in_generate"),
}
_NEUTRAL_AT_1 = {"length_penalty", "repetition_penalty", "encoder_repetition_penalty", "num_beam_groups"}


class DocumentBeams:
    """Beam search of a Marian model, one for each number of beams."""

    def __init__(self, model: Any) -> None:
        self.core = core_of(model)
        self._searches: dict[int, MarianBeams] = {}  # by the number of beams
        self._batches: dict[tuple[int, ...], _Windows] = {}

    @staticmethod
    def supports(model: Any) -> bool:
        """Return whether this is a Marian model with no other controls than those on attention, and usual settings."""
        core = core_of(model)
        known = all(isinstance(control, _KNOWN) for control in controls_of(model))
        return type(core) is MarianMTModel and known and _has_usual_settings(core)

    @torch.inference_mode()
    def search(
        self, prompts: Sequence[Sequence[int]], prefixes: Sequence[Sequence[int]], limit: int, beams: int, count: int
    ) -> SearchResult:
        """Return `count` continuations of each prefix, at most `limit` tokens each, with mean log-probabilities."""
        if beams not in self._searches:
            self._searches[beams] = MarianBeams(self.core, beams)
        search = self._searches[beams]
        width, before = (self._columns(max(map(len, some))) for some in (prompts, prefixes))
        if not any(isinstance(control, Alibi) for control in controls_of(self.core)):  # else positions are not limited
            limit = min(limit, self.core.config.max_position_embeddings - max(map(len, prefixes)))
        steps = rounded(limit, _WIDTH)
        rows = min(len(prompts), self._most_rows(before + steps * beams))
        found: list[tuple[list[int], float]] = []
        for first in range(0, len(prompts), rows):
            some = slice(first, first + rows)
            shape = (rounded(len(prompts[some]), 1), width, steps, before)
            batch = self._batches.pop((beams, *shape), None) or _Windows(search, *shape)
            self._batches[(beams, *shape)] = batch  # the last
            for old in list(self._batches)[:-_SHAPES]:
                del self._batches[old]
            batch.begin_windows(prompts[some], prefixes[some])
            for hypotheses in batch.run_windows(len(prompts[some]), limit):
                found += (hypotheses * count)[:count]
        longest, end = max(len(ids) for ids, _ in found), self.core.config.eos_token_id
        ids = [[*ids, *[end] * (longest - len(ids))] for ids, _ in found]
        return SearchResult(ids, [score if beams > 1 else 0.0 for _, score in found])

    def _columns(self, tokens: int) -> int:
        """Return a number of columns for so many tokens, so that few shapes are recorded."""
        most = self.core.config.max_position_embeddings
        return min(rounded(tokens, _WIDTH), max(tokens, most)) if tokens else 0

    def _most_rows(self, columns: int) -> int:
        config = self.core.config
        bytes_ = columns * 2 * config.d_model * config.decoder_layers * self.core.dtype.itemsize
        return max(1, _CACHE_BYTES // bytes_)


def _has_usual_settings(core: Any) -> bool:
    """Return whether no generation setting asks for more than single tokens that are never written."""
    settings, config = core.generation_config, core.config
    for name, value in vars(settings).items():
        neutral = not value or (value == 1 and name in _NEUTRAL_AT_1)
        if not (neutral or name.startswith("_") or name in _HARMLESS):
            return False
    usual = all(len(ids) == 1 for ids in settings.bad_words_ids or ())
    tokens = ("eos_token_id", "decoder_start_token_id")
    return usual and all(getattr(settings, name) in (None, getattr(config, name)) for name in tokens)


class _Windows(BeamBatch):
    """Windows that are translated together, each after its prefix."""

    def __init__(self, search: MarianBeams, rows: int, width: int, limit: int, before: int) -> None:
        super().__init__(search, rows, width, limit, before)
        model, device, beams = search.model, self.token.device, search.beams
        self.controls: list[Control] = controls_of(model)
        self.grouping = next((control for control in self.controls if control.groups_sentences), None)
        self.alibi = any(isinstance(control, Alibi) for control in self.controls)
        columns = self.own.shape[2]
        self.size = torch.zeros(rows, 1, dtype=torch.long, device=device)  # position of the first decoded step
        self.source = torch.zeros(rows, 1, 1, width, dtype=torch.bool, device=device)  # not padding
        self.column_position = torch.zeros(rows, columns, dtype=torch.long, device=device)
        self.sentence = torch.zeros(rows, beams, dtype=torch.long, device=device)  # of the step that reads `token`
        self.column_sentence = torch.zeros(rows, columns, dtype=torch.long, device=device)
        self.source_sentence = torch.zeros(rows, width, dtype=torch.long, device=device)

    def _state(self) -> list[Tensor]:
        return [*super()._state(), self.sentence, self.column_sentence]

    def begin_windows(self, prompts: Sequence[Sequence[int]], prefixes: Sequence[Sequence[int]]) -> None:
        """Read the sources and the prefixes, and reset the beams."""
        model, device, used = self.search.model, self.token.device, len(prompts)
        pad, width = model.config.pad_token_id, self.source.shape[-1]
        more: list[list[int]] = [[]] * (self.rows - used)
        sources, source_mask = padded([*prompts, *more], pad, width=width)
        source_mask[used:, 0] = 1  # softmax needs a key
        starts = [[self.search.start, *prefix] for prefix in (*prefixes, *more)]
        texts, text_mask = padded(starts, pad, width=self.before + 1)
        sizes = text_mask.sum(1, keepdim=True) - 1
        sources, source_mask, texts, sizes = (one.to(device) for one in (sources, source_mask, texts, sizes))
        self._read(sources, source_mask, texts)
        self._reset(used)
        self.costs.zero_()
        self.room.fill_(torch.inf)
        self.size.copy_(sizes)
        self.source.copy_(source_mask[:, None, None].bool())
        # The last token of a prefix is read by the first step.
        self.token.copy_(texts.gather(1, sizes).expand_as(self.token))
        columns = torch.arange(self.before, device=device)
        self.own[:, :, : self.before] = (columns < sizes)[:, None]
        slots = torch.arange(self.own.shape[2] - self.before, device=device) // self.search.beams
        self.column_position[:, : self.before] = columns
        self.column_position[:, self.before :] = sizes + slots
        if self.grouping is not None:
            sentences = self.grouping.sentences(texts, "target")
            self.sentence.copy_(sentences.gather(1, sizes).expand_as(self.sentence))
            self.column_sentence.zero_()
            self.column_sentence[:, : self.before] = sentences[:, : self.before]
            self.source_sentence.copy_(self.grouping.sentences(sources, "source"))

    def _read(self, sources: Tensor, mask: Tensor, texts: Tensor) -> None:
        """Store the keys and values of the sources and of the texts, which the whole model reads with its controls."""
        arguments = {"input_ids": sources, "attention_mask": mask, "decoder_input_ids": texts[:, : max(1, self.before)]}
        with last_logits_only(self.search.model):
            found = self.search.model(**arguments, use_cache=True).past_key_values
        for number in range(len(self.decoder.layers)):
            cross, own = found.cross_attention_cache.layers[number], found.self_attention_cache.layers[number]
            self.cross[number, 0].copy_(cross.keys)
            self.cross[number, 1].copy_(cross.values)
            self.cache[number, 0, :, :, : self.before] = own.keys[:, :, : self.before]
            self.cache[number, 1, :, :, : self.before] = own.values[:, :, : self.before]

    def run_windows(self, used: int, limit: int) -> list[list[tuple[list[int], float]]]:
        """Return the finished continuations of each window, best first; if there is none, its best unfinished one."""
        found = self.run(limit)[:used]
        unfinished = [row for row, hypotheses in enumerate(found) if not hypotheses]
        result = [[([*one.ids, self.search.eos], one.score) for one in hypotheses] for hypotheses in found]
        for row in unfinished:
            steps = int(self.step)
            result[row] = [(self.history[row, 0, :steps].tolist(), float(self.score[row, 0]) / max(1, steps))]
        return result

    # ---- a step

    def _step(self) -> None:
        if self.grouping is not None:
            slots = self.before + self.step * self.search.beams + self.beam
            self.column_sentence.index_copy_(1, slots, self.sentence)
        super()._step()

    def _reordered(self, parents: Tensor) -> None:
        if self.grouping is not None:
            new = (self.token == self.grouping.token_ids[0]).long()
            self.sentence.copy_(self.sentence.gather(1, parents) + new)

    def _positions(self) -> Tensor:
        table: Tensor = self.decoder.embed_positions.weight
        if self.alibi:
            return torch.zeros(1, table.shape[1], dtype=self.search.model.dtype, device=table.device)
        place = (self.size + self.step).clamp(max=len(table) - 1)  # rows without a window, and those that are done
        return table[place].to(self.search.model.dtype)  # (rows, 1, width)

    def _attend(self, attention: Any, hidden: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
        kind = "decoder" if attention.is_causal else "cross"
        queries = self._heads(attention.q_proj(hidden))  # (rows, heads, beams, size)
        seen = self.own[:, None] if kind == "decoder" else self.source.expand(-1, -1, queries.shape[2], -1)

        def attend(seen: Tensor) -> Tensor:
            scaled, number = queries, seen.sum(-1)
            for control in self.controls:
                if (scale := control.query_scale(kind, number)) is not None:
                    scaled = scaled * scale.unsqueeze(-1).to(queries.dtype)
            weights = scaled @ keys.transpose(2, 3) * queries.shape[-1] ** -0.5
            if self.alibi and kind == "decoder":
                distance = (self.size + self.step - self.column_position).abs()[:, None, None]  # (rows, 1, 1, columns)
                weights = weights - slopes(queries.shape[1], queries.device)[:, None, None] * distance
            weights = weights.float().masked_fill(~seen, torch.finfo(torch.float32).min)
            return (weights.softmax(-1).to(values.dtype) @ values).transpose(1, 2)  # (rows, beams, heads, size)

        merged: Tensor = attention.out_proj(self._grouped(kind, attention, seen, attend).flatten(2))
        return merged

    def _grouped(self, kind: str, attention: Any, seen: Tensor, attend: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the attention of a layer: within the sentence, to the whole text, or both by a gate."""
        if self.grouping is None:
            return attend(seen)
        of_keys = self.column_sentence if kind == "decoder" else self.source_sentence
        same = self.sentence[:, None, :, None] == of_keys[:, None, None, :]
        inside = limited(seen, same)
        return self.grouping.attend(kind, attention._lengthwise_above, lambda: attend(inside), lambda: attend(seen))
