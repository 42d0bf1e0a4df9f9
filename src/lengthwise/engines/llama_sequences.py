"""Token sequences in a context of llama.cpp: append tokens, read logits and hidden states, fork, drop and reorder rows.

Each sequence has a KV buffer of its own (`kv_unified` is off): in a common buffer every token would attend to the cells
of all sequences, most of them masked. The sequences of the rows are 0, 1, 2, ..., without gaps: llama.cpp computes only
neighbouring sequences in one pass.
"""

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models.llama_cpp_model import LlamaModel
from .threads import threads

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

_PASS_TOKENS = 512  # of one call of llama.cpp
_GROWTH = 160  # tokens that fit into a new context beyond those that are needed at once


class Sequences:
    """Rows of tokens that llama.cpp has read: `ids` of each."""

    can_fork = False  # a context with more rows would read all tokens again

    def __init__(self, model: LlamaModel, rows: int, tokens: int = 0, spare: int = 0) -> None:
        """Make empty rows, with room for `spare` more, and for `tokens` tokens in each; room for tokens grows."""
        self._model, self.ids = model, [[] for _ in range(rows)]  # type: LlamaModel, list[list[int]]
        self._places = np.arange(rows)  # the sequence of each row
        self._context = Context(model, rows + spare, tokens + _GROWTH)

    def append(
        self, ids: Sequence[Sequence[int]], steps: Sequence[Integers], hidden: bool = False
    ) -> tuple[Floats, Floats]:
        """Append `ids` to each row; return hidden states, if wanted, and logits of `steps` of each row.

        A step is the index of one of the row's new ids. Results of all rows are joined: (n, width) and (n, vocabulary).
        """
        before, new = np.array([len(row) for row in self.ids]), np.array([len(row) for row in ids])
        if (longest := int((before + new).max())) > self._context.tokens:
            self._move(np.arange(len(self.ids)), self._context.rows, longest + longest // 2)
        order = np.argsort(self._places)
        start = np.empty_like(new)  # of each row among all new tokens
        start[order] = new[order].cumsum() - new[order]
        at = np.concatenate([first + own for first, own in zip(start, steps, strict=True)])
        wanted = np.zeros(new.sum(), np.int8)
        wanted[at] = 1
        states, logits = self._context.run(
            np.concatenate([np.array(ids[row], np.int32) for row in order]),
            np.concatenate([before[row] + np.arange(new[row]) for row in order]).astype(np.int32),
            self._places[order].repeat(new[order]).astype(np.int32),
            wanted,
            hidden,
        )
        self.ids = [[*old, *more] for old, more in zip(self.ids, ids, strict=True)]
        back = np.searchsorted(np.flatnonzero(wanted), at)  # results are in the order of sequences
        return states[back] if hidden else states, logits[back]

    def select(self, rows: Integers) -> None:
        """Keep these rows in this order. A row that is named twice is forked, one that is not named is dropped."""
        places, count = self._places[rows], len(rows)
        if count > self._context.rows:
            self._move(rows, count, self._context.tokens)
            return
        kept, seen = np.full(count, -1), set()
        for row, place in enumerate(places.tolist()):  # a row stays where it is, unless others must close a gap
            if place < count and place not in seen:
                kept[row] = place
                seen.add(place)
        kept[kept < 0] = sorted(set(range(count)) - seen)
        for place in dict.fromkeys(places[kept != places].tolist()):
            state = self._context.state(place)
            for target in kept[(places == place) & (kept != place)].tolist():
                self._context.restore(target, state)
        for place in set(self._places.tolist()) - set(kept.tolist()):
            self._context.remove(place)
        self._places, self.ids = kept, [self.ids[row] for row in rows]

    def _move(self, rows: Integers, count: int, tokens: int) -> None:
        """Move these rows to a new context with `count` sequences of `tokens` tokens."""
        before, self._context = self._context, Context(self._model, count, tokens)
        places, ids = self._places[rows], [self.ids[row] for row in rows]
        self._places, self.ids = np.arange(len(rows)), ids
        if count == before.rows:
            for target, place in enumerate(places.tolist()):
                self._context.restore(target, before.state(place))
        elif any(ids):  # states fit only into contexts of as many sequences, so the tokens are read again
            self.ids = [[] for _ in rows]
            self.append(ids, [np.zeros(0, np.int64)] * len(rows))


class Context:
    """A context of llama.cpp with room for `rows` sequences of `tokens` tokens each."""

    def __init__(self, model: LlamaModel, rows: int, tokens: int) -> None:
        self._model, self._lib = model, model.library
        if rows > (most := self._lib.llama_max_parallel_sequences()):
            raise ValueError(f"llama.cpp decodes at most {most} texts at once; got {rows}: use a smaller batch")
        params = self._lib.llama_context_default_params()
        size = -(-tokens // 256) * 256  # llama.cpp rounds it up as well
        params.n_ctx, params.n_seq_max, params.kv_unified = rows * size, rows, False
        params.n_batch = params.n_ubatch = _PASS_TOKENS
        params.n_threads = params.n_threads_batch = threads()
        params.pooling_type = self._lib.LLAMA_POOLING_TYPE_NONE
        if model.in_float32:
            params.type_k = params.type_v = self._lib.GGML_TYPE_F32
            params.flash_attn_type = self._lib.LLAMA_FLASH_ATTN_TYPE_DISABLED  # it computes in float16 on a CPU
        self._pointer = self._lib.llama_init_from_model(model.pointer, params)
        if not self._pointer:
            raise MemoryError(f"llama.cpp cannot make a context of {rows} texts of {size} tokens: not enough memory")
        weakref.finalize(self, self._lib.llama_free, self._pointer)
        self._memory = self._lib.llama_get_memory(self._pointer)
        self.rows, self.tokens = rows, size

    def run(
        self,
        tokens: NDArray[np.int32],
        positions: NDArray[np.int32],
        places: NDArray[np.int32],
        wanted: NDArray[np.int8],
        hidden: bool,
    ) -> tuple[Floats, Floats]:
        """Append the tokens to the sequences `places`; return hidden states and logits of those that are `wanted`."""
        count = int(wanted.sum())
        states = np.empty((count if hidden else 0, self._model.width), np.float32)
        logits = np.empty((count, self._model.vocabulary), np.float32)
        done = 0
        self._lib.llama_set_embeddings(self._pointer, hidden)
        for start in range(0, len(tokens), _PASS_TOKENS):
            part = slice(start, start + _PASS_TOKENS)
            # With hidden states, llama.cpp outputs every token.
            outputs = np.ones_like(wanted[part]) if hidden else np.ascontiguousarray(wanted[part])
            self._decode(tokens[part], positions[part], places[part], outputs)
            own = np.flatnonzero(wanted[part]) if hidden else np.arange(int(outputs.sum()))
            if not len(own):
                continue
            shape = int(outputs.sum()), self._model.vocabulary
            logits[done : done + len(own)] = _array(self._lib.llama_get_logits(self._pointer), shape)[own]
            if hidden:
                shape = int(outputs.sum()), self._model.width
                states[done : done + len(own)] = _array(self._lib.llama_get_embeddings(self._pointer), shape)[own]
            done += len(own)
        return states, logits

    def _decode(self, tokens: Any, positions: Any, places: Any, outputs: Any) -> None:
        lib, count = self._lib, len(tokens)
        arrays = [np.ascontiguousarray(one) for one in (tokens, positions, np.ones(count, np.int32), places)]
        pointers = (arrays[3].ctypes.data + 4 * np.arange(count)).astype(np.uint64)  # each token has one sequence
        token, position, one, _ = (array.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)) for array in arrays)
        batch = lib.llama_batch(
            n_tokens=count,
            token=token,
            pos=position,
            n_seq_id=one,
            seq_id=pointers.ctypes.data_as(ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
            logits=outputs.ctypes.data_as(ctypes.POINTER(ctypes.c_int8)),
        )
        if code := lib.llama_decode(self._pointer, batch):
            raise RuntimeError(f"llama.cpp could not decode {count} tokens (code {code}); {self._model.path}")

    def remove(self, place: int) -> None:
        """Empty one sequence."""
        self._lib.llama_memory_seq_rm(self._memory, place, -1, -1)

    # `llama_memory_seq_cp` would copy the whole buffer of a sequence, not only its tokens, and only at the next pass.

    def state(self, place: int) -> NDArray[np.uint8]:
        """Return the keys and values of one sequence, for `restore` in a context of as many sequences."""
        size = self._lib.llama_state_seq_get_size(self._pointer, place)
        buffer = np.empty(size, np.uint8)
        self._lib.llama_state_seq_get_data(self._pointer, _bytes(buffer), size, place)
        return buffer

    def restore(self, place: int, state: NDArray[np.uint8]) -> None:
        """Set one sequence to what `state` returned."""
        if not self._lib.llama_state_seq_set_data(self._pointer, _bytes(state), len(state), place):
            raise RuntimeError(f"llama.cpp could not copy a sequence of {self._model.path}")


def _array(pointer: Any, shape: tuple[int, int]) -> Floats:
    """Return the numbers at `pointer`, which llama.cpp overwrites at its next pass."""
    return np.ctypeslib.as_array(pointer, shape)


def _bytes(array: NDArray[np.uint8]) -> Any:
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
