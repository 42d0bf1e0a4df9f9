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
from .base import AttachedControl, Engine, Ids, LengthInputs, Options, TokenLogProbs
from .kv_cache import KVCache, SlotCache
from .numpy_countdown_head import NumpyCountdownHead
from .numpy_rows import NumpyRows, fill_log_probs, least_tokens, text_states, token_log_probs
from .onnx_session import Session, cache_name, wrapped
from .shared_batch import Member, SharedBatch

Floats = NDArray[np.float32]

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
            for row, (prompt, text) in enumerate(zip(prompts, texts, strict=True)):
                ids = [[prompt[-1], *text[:-1]]]
                logits = self.graph.run(cache.row(row // each), ids, [np.arange(len(text))], [states[row]])[1]
                found[:, row, : len(text)] = token_log_probs(logits, text, self.eos)
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

    def prompt_cache(self, prompts: Sequence[Ids], each: int = 1, options: Options | None = None) -> KVCache:
        """Return the KV cache of the prompts without their last tokens; `score` shares it among `each` texts."""
        cache = self.graph.cache(len(prompts))
        none = [np.zeros(0, np.int64)] * len(prompts)
        self.graph.run(cache, prompts, none, none)
        cache.used -= 1
        return cache


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
