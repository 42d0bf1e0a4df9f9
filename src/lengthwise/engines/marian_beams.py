"""Beam search with Marian for millions of sentences: no controls, one CUDA graph per shape of batch.

The beams of a sentence are query positions over one cache of all its beams. A mask says which keys are a beam's own
history, so no cache is copied when beams are reordered. No shape changes from step to step, nothing waits for the GPU,
and scores, reordering and finished translations stay on it. Same translations as `generate` of transformers, up to
rounding. The only budget is a maximum of characters.
`engines/transformers.py` is the engine for other budgets, controls and models.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from .cuda_graph import record
from .padding import padded
from .torch_largest import largest

STRIDE = 8  # steps between two checks of whether all sentences are finished
NEAREST = 4  # times the beams: the most probable tokens of a beam, among which a cost per character may choose
_NEVER = -1e9  # score of a beam that does not exist; not minus infinity, which would make NaN


@dataclass(frozen=True)
class Hypothesis:
    """A finished translation: its token ids without the end token, and its score.

    The score is the mean log-probability of its tokens; with a cost per character, the sum of log-probabilities and
    costs: a mean would hardly favour short translations.
    """

    ids: list[int]
    score: float


class MarianBeams:
    """Beam search of a MarianMTModel. `chars`: the characters of each token, for a cost per character."""

    def __init__(self, model: Any, beams: int, chars: Tensor | None = None) -> None:
        if type(model).__name__ != "MarianMTModel":
            raise ValueError(f"this beam search runs Marian models; got {type(model).__name__}")
        self.model, self.beams, config = model.eval(), beams, model.config
        self.start, self.eos = config.decoder_start_token_id, config.eos_token_id
        never = {config.pad_token_id, *(ids[0] for ids in model.generation_config.bad_words_ids or [] if len(ids) == 1)}
        size = model.lm_head.weight.shape[0]
        self.bias = model.final_logits_bias[0].to(model.dtype, copy=True)  # (vocabulary,)
        self.bias[sorted(never - {self.eos})] = -torch.inf
        self.chars = torch.zeros(size, device=model.device)
        if chars is not None:
            self.chars[: len(chars)] = chars[:size].to(self.chars)
        self._char_counts = self.chars.cpu().numpy()
        self.batches: dict[tuple[int, int, int], BeamBatch] = {}
        self.pool: Any = None  # graphs are replayed one after the other, so they share memory
        self.buffers: dict[str, Tensor] = {}  # and so do batches of different shapes

    @torch.inference_mode()
    def translate(
        self,
        sources: Sequence[Sequence[int]],
        limit: int,
        char_costs: Sequence[float] | None = None,
        max_chars: Sequence[int] | None = None,
        rows: int = 0,
    ) -> list[list[Hypothesis]]:
        """Return the finished translations of each source, best first; none if no beam ends within `limit` tokens.

        `char_costs`: nats that each character costs, per source. `max_chars`: characters that a translation may have,
        per source, with the space before its first word. `rows` and a width that is a multiple of 16 make batches of
        one shape, which share a graph.
        """
        config = self.model.config
        rows, width = max(rows, len(sources)), -(-max(map(len, sources)) // 16) * 16
        more: list[list[int]] = [[]] * (rows - len(sources))
        ids, mask = padded([*sources, *more], config.pad_token_id, width=width)
        mask[len(sources) :, 0] = 1  # softmax needs a key
        costs = torch.zeros(rows)
        if char_costs is not None:
            costs[: len(sources)] = torch.tensor(char_costs, dtype=torch.float32)
        room = torch.full((rows,), torch.inf)
        if max_chars is not None:
            room[: len(sources)] = torch.tensor(max_chars, dtype=torch.float32)
        limit = min(-(-limit // 16) * 16, config.max_position_embeddings)
        shape = (rows, width, limit)
        if shape not in self.batches:
            self.batches[shape] = BeamBatch(self, *shape)
        batch = self.batches[shape]
        batch.begin(ids, mask.bool(), costs, room, len(sources))
        return batch.run(limit)[: len(sources)]

    def mean_log_prob(self, found: Hypothesis, char_cost: float) -> float:
        """Return the mean log-probability of the tokens of a translation that was found with this cost."""
        if not char_cost:
            return found.score
        return (found.score + char_cost * float(self._char_counts[found.ids].sum())) / (len(found.ids) + 1)

    def buffer(self, name: str, *shape: int) -> Tensor:
        """Return memory that batches share, with the finite values of others; a batch that needs more takes new."""
        size = math.prod(shape)
        if name not in self.buffers or len(self.buffers[name]) < size:
            self.buffers[name] = torch.zeros(size, dtype=self.model.dtype, device=self.model.device)
        return self.buffers[name][:size].view(shape)


class BeamBatch:
    """Sentences that are translated together. Tensors are changed in place: a graph refers to them by address.

    `before`: columns of the cache before those of the beams, which all beams of a sentence may share.
    """

    def __init__(self, search: MarianBeams, rows: int, width: int, limit: int, before: int = 0) -> None:
        self.search, model, beams = search, search.model, search.beams
        self.rows, self.limit, self.before = rows, limit, before
        self.decoder = model.model.decoder
        device, dtype, config = model.device, model.dtype, model.config
        heads = config.decoder_attention_heads
        size = config.d_model // heads
        layers = len(self.decoder.layers)
        self.cross = search.buffer("cross", layers, 2, rows, heads, width, size)  # keys, values
        columns = before + limit * beams
        self.cache = search.buffer("cache", layers, 2, rows, heads, columns, size)
        self.source_bias = torch.zeros(rows, 1, 1, width, dtype=dtype, device=device)
        self.own = torch.zeros(rows, beams, columns, dtype=torch.bool, device=device)  # keys of a beam's history
        self.step = torch.zeros(1, dtype=torch.long, device=device)
        self.token = torch.zeros(rows, beams, dtype=torch.long, device=device)
        self.score = torch.zeros(rows, beams, device=device)  # summed, of unfinished beams
        self.history = torch.zeros(rows, beams, limit, dtype=torch.long, device=device)
        self.done = torch.zeros(rows, dtype=torch.bool, device=device)
        self.ended = torch.zeros(rows, beams, limit, dtype=torch.long, device=device)  # finished translations
        self.ended_score = torch.zeros(rows, beams, device=device)
        self.ended_size = torch.zeros(rows, beams, dtype=torch.long, device=device)
        self.costs = torch.zeros(rows, 1, 1, device=device)
        self.room = torch.zeros(rows, beams, device=device)  # characters that a beam may still have
        self.beam = torch.arange(beams, device=device)
        self.graph: Callable[[], None] | None = None

    def begin(self, ids: Tensor, mask: Tensor, costs: Tensor, room: Tensor, used: int) -> None:
        """Encode the sources and reset the beams; rows from `used` on hold no sentence."""
        model, device = self.search.model, self.token.device
        ids, mask = ids.to(device), mask.to(device)
        memory = model.model.encoder(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        for number, layer in enumerate(self.decoder.layers):
            attention = layer.encoder_attn
            for place, projection in enumerate((attention.k_proj, attention.v_proj)):
                self.cross[number, place].copy_(self._heads(projection(memory)))
        lowest = torch.finfo(memory.dtype).min
        self.source_bias.zero_().masked_fill_(~mask[:, None, None], lowest)
        self.token.fill_(self.search.start)
        self._reset(used)
        self.costs.copy_(costs.to(device)[:, None, None])
        self.room.copy_(room.to(device)[:, None])

    def _reset(self, used: int) -> None:
        self.own.zero_()
        self.step.zero_()
        self.score.fill_(_NEVER)
        self.score[:, 0] = 0
        self.history.zero_()
        self.done.copy_(torch.arange(self.rows, device=self.done.device) >= used)
        self.ended_score.fill_(_NEVER)

    def run(self, limit: int) -> list[list[Hypothesis]]:
        """Return the finished translations of each sentence, best first, of at most `limit` tokens with the end."""
        with torch.cuda.device_of(self.token):  # type: ignore[no-untyped-call]  # nothing on a CPU
            if self.graph is None and self.token.is_cuda:
                self._record()
            step = self.graph or self._step
            for number in range(min(limit, self.limit)):
                if number % STRIDE == 0 and bool(self.done.all()):
                    break
                step()
        columns = (self.ended.tolist(), self.ended_score.tolist(), self.ended_size.tolist())
        return [
            [
                Hypothesis(ids[:size], score)
                for ids, score, size in sorted(zip(*row, strict=True), key=lambda one: -one[1])
                if score > _NEVER / 2
            ]
            for row in zip(*columns, strict=True)
        ]

    def _record(self) -> None:
        """Record a step. The state is restored after the steps that are run for that."""
        state = self._state()
        before = [tensor.clone() for tensor in state]
        self.search.pool = self.search.pool or torch.cuda.graph_pool_handle()
        self.graph, _ = record(self.search.model, self._step, self.search.pool)
        for tensor, value in zip(state, before, strict=True):
            tensor.copy_(value)

    def _state(self) -> list[Tensor]:
        """Return the tensors that a step changes, except the cache, which the next step overwrites."""
        state = [self.step, self.token, self.score, self.history, self.done, self.own, self.room]
        return [*state, self.ended, self.ended_score, self.ended_size]

    # ---- a step

    def _step(self) -> None:
        beams, rows = self.search.beams, self.rows
        slots = self.before + self.step * beams + self.beam
        self.own.index_copy_(2, slots, torch.eye(beams, dtype=torch.bool, device=slots.device).expand(rows, -1, -1))
        logits = self._logits(slots)  # (rows, beams, vocabulary)
        best, tokens = largest(logits, NEAREST * beams)  # of each beam, then of all
        chars = self.search.chars[tokens]
        best = best.float() - logits.float().logsumexp(-1, keepdim=True) - self.costs * chars + self.score[:, :, None]
        best = best.masked_fill(chars > self.room[:, :, None], _NEVER)
        best, places = best.flatten(1).topk(2 * beams)
        tokens = tokens.flatten(1).gather(1, places)
        parents = places // (NEAREST * beams)
        ends = tokens == self.search.eos
        self._keep_ended(best[:, :beams], parents[:, :beams], ends[:, :beams])
        going = (self._order(2 * beams) + ends * (2 * beams)).topk(beams, largest=False).indices.sort().values
        parents = parents.gather(1, going)
        self.token.copy_(tokens.gather(1, going))
        self.room.copy_(self.room.gather(1, parents) - self.search.chars[self.token])
        self.score.copy_(best.gather(1, going))
        self.own.copy_(self.own.gather(1, parents[:, :, None].expand_as(self.own)))
        self.history.copy_(self.history.gather(1, parents[:, :, None].expand_as(self.history)))
        self.history.index_copy_(2, self.step, self.token[:, :, None])
        self._reordered(parents)
        self.step += 1
        # As in transformers: finished if no beam can become better than the worst translation, at its present length.
        self.done |= self.ended_score.amin(1) >= self.score[:, 0] / self._divisor(self.step)[:, 0]
        self.done |= (self.score[:, 0] < _NEVER / 2) | (self.step >= self.limit)  # or if no likely token fits
        if beams == 1:  # greedy search: the first end is the end
            self.done |= self.ended_score[:, 0] > _NEVER / 2

    def _reordered(self, parents: Tensor) -> None:
        """Update what a subclass keeps of each beam: beams go on from `parents`, with the tokens of `self.token`."""

    def _divisor(self, size: Tensor) -> Tensor:
        """Return what the summed scores of texts of `size` tokens are divided by: (rows, 1)."""
        return torch.where(self.costs[:, 0] > 0, 1, size)

    def _order(self, count: int) -> Tensor:
        return torch.arange(count, device=self.token.device).expand(self.rows, -1)

    def _keep_ended(self, best: Tensor, parents: Tensor, ends: Tensor) -> None:
        """Keep the best finished translations, old and new."""
        beams, size = self.search.beams, self.step.expand(self.rows, self.search.beams)
        alive = ends & ~self.done[:, None] & (best > _NEVER / 2)
        new = torch.where(alive, best / self._divisor(self.step + 1), _NEVER)
        texts = torch.cat([self.ended, self.history.gather(1, parents[:, :, None].expand_as(self.history))], 1)
        scores, kept = torch.cat([self.ended_score, new], 1).topk(beams)
        self.ended_score.copy_(scores)
        self.ended.copy_(texts.gather(1, kept[:, :, None].expand_as(self.ended)))
        self.ended_size.copy_(torch.cat([self.ended_size, size], 1).gather(1, kept))

    def _logits(self, slots: Tensor) -> Tensor:
        decoder = self.decoder
        hidden = decoder.embed_tokens(self.token) * decoder.embed_scale + self._positions()
        own = torch.zeros_like(self.own, dtype=hidden.dtype).masked_fill_(~self.own, torch.finfo(hidden.dtype).min)
        for number, layer in enumerate(decoder.layers):
            attention = layer.self_attn
            keys, values = self.cache[number]
            keys.index_copy_(2, slots, self._heads(attention.k_proj(hidden)))
            values.index_copy_(2, slots, self._heads(attention.v_proj(hidden)))
            hidden = layer.self_attn_layer_norm(hidden + self._attend(attention, hidden, keys, values, own[:, None]))
            attention = layer.encoder_attn
            keys, values = self.cross[number]
            found = self._attend(attention, hidden, keys, values, self.source_bias)
            hidden = layer.encoder_attn_layer_norm(hidden + found)
            inner = layer.activation_fn(layer.fc1(hidden))
            hidden = layer.final_layer_norm(hidden + layer.fc2(inner))
        return F.linear(hidden, self.search.model.lm_head.weight, self.search.bias)

    def _positions(self) -> Tensor:
        """Return the position embeddings of a step: (1, width), or (rows, 1, width)."""
        found: Tensor = self.decoder.embed_positions.weight.index_select(0, self.step)
        return found.to(self.search.model.dtype)

    def _attend(self, attention: Any, hidden: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
        queries = self._heads(attention.q_proj(hidden))
        weights = torch.add(bias, queries @ keys.transpose(2, 3), alpha=queries.shape[-1] ** -0.5)
        found = weights.softmax(-1) @ values  # whose sums are in float32 in any case
        merged: Tensor = attention.out_proj(found.transpose(1, 2).flatten(2))
        return merged

    def _heads(self, states: Tensor) -> Tensor:
        """(rows, time, width) -> (rows, heads, time, size)."""
        heads = self.search.model.config.decoder_attention_heads
        return states.view(*states.shape[:-1], heads, -1).transpose(1, 2)
