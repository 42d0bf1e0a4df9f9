"""The onnx engine: Llama- and GPT-2-type decoders on onnxruntime, without torch.

`models/conversion` makes the graph. The KV cache is a set of numpy buffers that onnxruntime updates in place.
"""

import threading
import weakref
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..length.meter import Integers
from ..length.prompt_template import PromptTemplate
from ..models.onnx_embedding import read_embedding
from ..models.onnx_model import OnnxModel
from .base import AttachedControl, Engine, Ids, LengthInputs, Options
from .kv_cache import KVCache, SlotCache
from .numpy_countdown_head import NumpyCountdownHead
from .numpy_rows import NumpyRows, fill_log_probs, least_tokens, text_states, token_log_probs
from .onnx_session import Session, cache_name, wrapped
from .rows import TokenLogProbs
from .shared_batch import Member, SharedBatch

Floats = NDArray[np.float32]

_SHARED_START = 32  # tokens; with fewer, one pass for all prompts takes less time
_FORWARD_TOKENS = 1024  # steps with logits of one forward pass


class OnnxEngine(Engine):
    """A converted model, its tokenizer and, if it has one, its length control."""

    batch_tokens = _FORWARD_TOKENS

    def __init__(self, model: OnnxModel, name: str = "") -> None:
        self.name, self.tokenizer = name or model.graph.parent.name, model.tokenizer
        self.eos, self.pad, self.window = model.eos, model.pad, model.shape.window
        self.graph = Graph(model)
        self.head = self.graph.head
        self.template: PromptTemplate | None = None
        if model.control is not None and model.control[0]["control"] == "prompt":
            self.template = PromptTemplate.of(model.control[0])
        self._shared: SharedBatch | None = None

    def share(self) -> bool:
        if self._shared is None:
            padding = self.pad, self.head.identity
            self._shared = SharedBatch(self.graph.slots(), self.graph.step, padding)
        return True

    @property
    def controls(self) -> list[AttachedControl]:
        if self.template is not None:
            return [self.template]
        return [self.head] if self.head.units else []

    def prefill(
        self,
        prompts: Sequence[Ids],
        lengths: LengthInputs | None = None,
        options: Options | None = None,
        *,
        each: int = 1,
        max_new_tokens: int | None = None,
        hidden: bool = False,
    ) -> NumpyRows:
        least, cache = least_tokens(options, "onnx"), self.graph.cache(len(prompts))
        if self._shared is None:
            rows = NumpyRows(self, cache, prompts, lengths, least, hidden)
        else:
            member = self._shared.enter(cache, each * len(prompts), max(map(len, prompts)))
            try:
                rows = NumpyRows(self, member, prompts, lengths, least, hidden)
            except BaseException:
                member.close()
                raise
            weakref.finalize(rows, member.close).atexit = False  # for rows that are not closed
        if each > 1:
            rows.select(np.arange(len(prompts)).repeat(each))
        return rows

    def forward(
        self, cache: KVCache | Member, ids: Sequence[Ids], states: Integers | None, hidden: bool
    ) -> tuple[Floats, Floats]:
        """Append `ids` to the rows of the cache; return the hidden state and the logits of each row."""
        states = np.full(len(ids), self.head.identity) if states is None else states
        if isinstance(cache, Member):
            if cache.own is None or cache.own.used.any():
                return cache.step(np.array(ids)[:, 0], states)
            cache = cache.own
        if not cache.used.any() and len(ids) > 1:
            return self.graph.read(cache, ids, states)
        return self.graph.run(cache, ids, [np.array([len(row) - 1]) for row in ids], [states])

    def embedded(self, tokens: Integers) -> Floats:
        return self._embedding(tokens)

    @cached_property
    def _embedding(self) -> Callable[[Integers], Floats]:
        return read_embedding(self.graph.file)

    # ---- scoring given texts

    def score(
        self, prompts: Sequence[Ids], texts: Sequence[Ids], lengths: LengthInputs | None = None, cache: Any = None
    ) -> TokenLogProbs:
        found = np.zeros((3, len(texts), max(map(len, texts))), np.float32)
        states = [np.full(len(text), self.head.identity) for text in texts]
        if lengths is not None:
            states = text_states(self, prompts, texts, lengths)
        if cache is not None:
            each = len(texts) // len(cache.used)
            for n in range(len(cache.used)):
                rows = range(n * each, (n + 1) * each)
                self._score_after(cache.row(n), prompts[rows.start][-1], rows, texts, states, found)
            return TokenLogProbs(*found)
        width = max(len(prompt) + len(text) for prompt, text in zip(prompts, texts, strict=True))
        size = max(1, self.batch_tokens // width)
        for first in range(0, len(texts), size):
            rows = range(first, min(first + size, len(texts)))
            ids = [[*prompts[row], *texts[row][:-1]] for row in rows]
            steps = [len(prompts[row]) - 1 + np.arange(len(texts[row])) for row in rows]
            logits = self.graph.run(self.graph.cache(len(rows)), ids, steps, [states[row] for row in rows])[1]
            fill_log_probs(found, rows, texts, logits, self.eos)
        return TokenLogProbs(*found)

    def _score_after(
        self, cache: KVCache, last: int, rows: range, texts: Sequence[Ids], states: Sequence[Integers], found: Floats
    ) -> None:
        """Write the values of `TokenLogProbs` of texts after one prompt into `found`. `last`: the prompt's last token.

        The texts are sorted, and a beginning that one has in common with the text before it is not read again.
        """
        start, before = cache.used.copy(), rows.start
        read: list[tuple[int, int]] = []  # the tokens and states of the text before
        for row in sorted(rows, key=lambda row: list(texts[row])):
            text, own = texts[row], list(zip(texts[row], states[row].tolist(), strict=True))
            # The last token in common is read again, because another one is wanted after it.
            same = max(0, min(common_start(read, own), len(own) - 1))
            if same:
                found[:, row, :same] = found[:, before, :same]
            cache.used = start + same
            ids, steps = [[last, *text[:-1]][same:]], [np.arange(len(text) - same)]
            logits = self.graph.run(cache, ids, steps, [states[row][same:]])[1]
            found[:, row, same : len(text)] = token_log_probs(logits, text[same:], self.eos)
            read, before = own, row

    def prompt_cache(self, prompts: Sequence[Ids], each: int = 1, options: Options | None = None) -> KVCache:
        """Return the KV cache of the prompts without their last tokens; `score` shares it among `each` texts."""
        cache = self.graph.cache(len(prompts))
        none = [np.zeros(0, np.int64)] * len(prompts)
        self.graph.run(cache, prompts, none, none)
        cache.used -= 1
        return cache


def common_start(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Return how many items at the beginning are the same."""
    both = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in both if a != b), min(len(one), len(other)))


class Graph:
    """A session of onnxruntime that runs the model's graph."""

    def __init__(self, model: OnnxModel) -> None:
        self.file, self._shape, self._pad = model.graph, model.shape, model.pad
        self.session = Session(model.graph)
        self.head = NumpyCountdownHead.none(model.shape.width)
        if model.control is not None and model.control[0]["control"] == "countdown_head":
            self.head = NumpyCountdownHead.of(*model.control)
        self._head = {name: wrapped(array) for name, array in self.head.arrays.items()}
        self._turn = threading.Lock()  # a pass uses all cores, so another one beside it would gain nothing

    def cache(self, rows: int) -> KVCache:
        """Return an empty KV cache."""
        return KVCache(self._shape.layers, rows, self._shape.kv_heads, self._shape.head_size)

    def slots(self) -> SlotCache:
        """Return an empty KV cache whose rows come and go one by one."""
        return SlotCache(self._shape.layers, self._shape.kv_heads, self._shape.head_size)

    def step(self, cache: KVCache, tokens: Integers, states: Integers) -> tuple[Floats, Floats]:
        """Append one token to each row of the cache; return the hidden state and the logits of each row."""
        return self.run(cache, tokens[:, None].tolist(), [np.zeros(1, np.int64)] * len(tokens), [states])

    def read(self, cache: KVCache, ids: Sequence[Ids], states: Integers) -> tuple[Floats, Floats]:
        """Read prompts into an empty cache; return the hidden state and the logits after each.

        A long beginning that all have in common is read once.
        """
        last = [np.array([len(row) - 1]) for row in ids]
        same = min(common_start(ids[0], row[:-1]) for row in ids)
        if same < _SHARED_START:
            return self.run(cache, ids, last, [states])
        start, nothing = self.cache(1), np.zeros(0, np.int64)
        self.run(start, [ids[0][:same]], [nothing], [nothing])
        cache.reserve(max(map(len, ids)))
        cache.buffers[:, :, :, :same] = start.buffers[:, :, :, :same]
        cache.used[:] = same
        found = [
            self.run(cache.row(n), [row[same:]], [last[n] - same], [states[n : n + 1]]) for n, row in enumerate(ids)
        ]
        cache.used = np.array([len(row) for row in ids])
        hidden, logits = (np.concatenate(some) for some in zip(*found, strict=True))
        return hidden, logits

    def run(
        self, cache: KVCache, ids: Sequence[Ids], steps: Sequence[Integers], states: Sequence[Integers]
    ) -> tuple[Floats, Floats]:
        """Append `ids` to each row of the cache; return hidden states and logits of `steps` of each row.

        A step is the index of one of the row's new ids; `states` are those of the countdown head in the steps.
        Results of all rows are joined: (n, width) and (n, vocabulary). Several ids after others need a single row.
        """
        new = np.array([len(row) for row in ids])
        width = int(new.max())
        padded = np.full((len(ids), width), self._pad)
        for row, own in enumerate(ids):
            padded[row, : len(own)] = own
        used = cache.used + new
        if (longest := int(used.max())) > self._shape.window:
            raise ValueError(
                f"a text has {longest} tokens with its prompt; the model has {self._shape.window} positions"
            )
        cache.reserve(longest)
        wanted = np.concatenate([row * width + own for row, own in enumerate(steps)])
        inputs = {
            "ids": padded,
            "last": (used - 1).astype(np.int32),
            "total": np.array(longest, np.int32),
            "steps": wanted,
            "state": np.concatenate(states),
        }
        hidden = np.empty((len(wanted), self._shape.width), np.float32)
        logits = np.empty((len(wanted), self._shape.vocabulary), np.float32)
        binding = self._binding(cache)
        for name, array in inputs.items():
            binding.bind_ortvalue_input(name, wrapped(array))
        for name, array in (("hidden", hidden), ("logits", logits)):
            binding.bind_ortvalue_output(name, wrapped(array))
        with self._turn:
            self.session.run_with_iobinding(binding)
        cache.used = used
        return hidden, logits

    def _binding(self, cache: KVCache) -> Any:
        """Return the inputs and outputs that have the buffers of the cache and the head, made once per buffer."""
        if cache.binding is None:
            cache.binding = self.session.io_binding()
            for name, value in self._head.items():
                cache.binding.bind_ortvalue_input(name, value)
            for n, buffer in enumerate(cache.buffers):
                name, value = cache_name(n), wrapped(buffer)
                cache.binding.bind_ortvalue_input(name, value)
                cache.binding.bind_ortvalue_output(f"new_{name}", value)
        return cache.binding
