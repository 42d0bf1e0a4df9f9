"""The graphs of a Marian model on onnxruntime: from sources, and texts whole or token by token, to logits.

Encoder outputs are kept for a while, so that searches and scores of the same source encode it once. Lengths are numbers
here; what is written is counted by the caller.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..length.meter import Integers
from ..length.prompt_template import PromptTemplate
from ..models.onnx_marian_model import OnnxMarian
from .base import Ids, LengthInputs
from .beam_cache import BeamCache, padding_mask
from .numpy_countdown_head import NumpyCountdownHead
from .numpy_length_encoding import NumpyLengthEncoding
from .onnx_session import Session, cache_name, wrapped

Floats = NDArray[np.float32]

FORWARD_TOKENS = 1024  # tokens of one forward pass: more is not faster
SCORED_TOKENS = 256  # tokens of texts that are scored in one pass: the logits of more are too large for the caches
_SOURCE_TOKENS = 4096  # tokens of sources whose encoder outputs are kept


class TextInputs:
    """The decoder's inputs for texts of different lengths."""

    def __init__(self, embedded: Floats, sizes: Integers, states: list[Integers]) -> None:
        self.embedded = embedded  # (rows, time, width)
        self.sizes = sizes  # (rows,) tokens without padding
        self.states = states  # of the countdown head, (time,) each


class Sources:
    """Encoded sources: `cross` (2 · layers, sources, heads, time, size), keys and values, and the mask of padding."""

    def __init__(self, cross: Floats, sizes: Integers) -> None:
        self.cross, self.sizes = cross, sizes
        self.mask = padding_mask(sizes, cross.shape[3])

    def select(self, sources: Integers) -> "Sources":
        sizes = self.sizes[sources]
        return Sources(np.ascontiguousarray(self.cross[:, sources, :, : sizes.max()]), sizes)


class Graphs:
    """Sessions of onnxruntime that run the encoder and the decoder."""

    def __init__(self, model: OnnxMarian) -> None:
        self.shape = model.shape
        self._tables, self._positions = model.embeddings, model.positions
        self._encoder, self._decoder = Session(model.encoder), Session(model.decoder)
        self.encoding: NumpyLengthEncoding | None = None
        self.head = NumpyCountdownHead.none(model.shape.width)
        self.template: PromptTemplate | None = None
        if model.control is not None:
            config, learnt = model.control
            if config["control"] == "encoding":
                self.encoding = NumpyLengthEncoding(config, float(learnt["factor"]))
            elif config["control"] == "prompt":
                self.template = PromptTemplate.of(config)
            else:
                self.head = NumpyCountdownHead.of(config, learnt)
        self._head = {name: wrapped(array) for name, array in self.head.arrays.items()}
        self._known: OrderedDict[tuple[int, ...], Floats] = OrderedDict()  # (2 · layers, heads, time, size) by ids

    # ---- inputs

    def embedded(self, ids: Integers, positions: Integers, lengths: LengthInputs | None, written: Integers) -> Floats:
        """Return the decoder's inputs: embeddings, positions and the length encoding, (n,) each -> (n, width)."""
        found = self._tables[-1][ids] + self._positions[positions]
        if self.encoding is not None and lengths is not None:
            given = lengths.length, lengths.unit, lengths.at_most
            found += self.encoding.vectors(*given, written, self.shape.width)
        return found

    def states(self, lengths: LengthInputs | None, written: Integers) -> Integers:
        """Return the states of the countdown head: (n,)."""
        if lengths is None or not self.head.units:
            return np.full(len(written), self.head.identity)
        return self.head.states(lengths, written)

    # ---- encoder

    def encoded(self, prompts: Sequence[Ids]) -> Sources:
        """Return the encoded prompts; equal ones, and those that were encoded shortly before, are encoded once."""
        keys = [tuple(prompt) for prompt in prompts]
        new = sorted({key for key in keys if key not in self._known}, key=len)
        while new:
            size = max(1, FORWARD_TOKENS // len(new[-1]))
            self._encode(new[-size:])
            del new[-size:]
        found = [self._known[key] for key in keys]
        sizes = np.array([len(key) for key in keys])
        layers, heads, _, head_size = found[0].shape
        cross = np.zeros((layers, len(keys), heads, int(sizes.max()), head_size), np.float32)
        for row, one in enumerate(found):
            cross[:, row, :, : one.shape[2]] = one
        self.forget(keys)
        return Sources(cross, sizes)

    def _encode(self, prompts: list[tuple[int, ...]]) -> None:
        sizes = np.array([len(prompt) for prompt in prompts])
        inputs = np.zeros((len(prompts), int(sizes.max()), self.shape.width), np.float32)
        for row, prompt in enumerate(prompts):
            inputs[row, : len(prompt)] = self._tables[0][np.array(prompt)] + self._positions[: len(prompt)]
        [cross] = self._encoder.run(["cross"], {"inputs": inputs, "mask": padding_mask(sizes, inputs.shape[1])})
        for row, prompt in enumerate(prompts):
            self._known[prompt] = cross[:, row, :, : len(prompt)].copy()

    def forget(self, used: Sequence[tuple[int, ...]], kept: int = _SOURCE_TOKENS) -> None:
        """Delete encoder outputs that were not used for long, until those of `kept` tokens are left."""
        for key in used:
            self._known.move_to_end(key)
        tokens = sum(map(len, self._known))
        while tokens > kept:
            key, _ = self._known.popitem(last=False)
            tokens -= len(key)

    # ---- decoder

    def cache(self, sources: int, **options: int) -> BeamCache:
        """Return an empty KV cache."""
        return BeamCache(self.shape.layers, sources, self.shape.heads, self.shape.head_size, **options)

    def read(
        self, sources: Sources, inputs: TextInputs, steps: Sequence[Integers], cache: BeamCache | None = None
    ) -> tuple[Floats, Floats]:
        """Read texts, one per source, into an empty cache; return hidden states and logits of `steps` of each."""
        stored, cache = cache is not None, cache or self.cache(len(inputs.sizes), capacity=1)
        time = inputs.embedded.shape[1]
        places = np.concatenate([row * time + own for row, own in enumerate(steps)])
        states = np.concatenate([own[some] for own, some in zip(inputs.states, steps, strict=True)])
        hidden, logits, new = self._run(sources, cache, inputs.embedded, cache.text_mask(time), places, states)
        if stored:
            cache.append_text(new, inputs.sizes)
        return hidden, logits

    def step(self, sources: Sources, cache: BeamCache, embedded: Floats, states: Integers) -> tuple[Floats, Floats]:
        """Append one token to each row, (rows, width) of inputs; return hidden states and logits of each."""
        mask = cache.step_mask()
        grid = np.zeros((cache.sources, cache.slots, self.shape.width), np.float32)
        grid[cache.source, cache.slot] = embedded
        places = cache.source * cache.slots + cache.slot
        hidden, logits, new = self._run(sources, cache, grid, mask, places, states)
        cache.append_step(new)
        return hidden, logits

    def _run(
        self, sources: Sources, cache: BeamCache, inputs: Floats, mask: Floats, steps: Integers, state: Integers
    ) -> tuple[Floats, Floats, Floats]:
        binding = self._binding(sources, cache)
        shape = self.shape
        hidden = np.empty((len(steps), shape.width), np.float32)
        logits = np.empty((len(steps), shape.vocabulary), np.float32)
        new = np.empty((2 * shape.layers, len(inputs), shape.heads, inputs.shape[1], shape.head_size), np.float32)
        given: dict[str, NDArray[Any]] = {"inputs": inputs, "mask": mask, "steps": steps, "state": state}
        made = {"hidden": hidden, "logits": logits} | {f"new_{cache_name(n)}": one for n, one in enumerate(new)}
        for name, array in given.items():
            binding.bind_ortvalue_input(name, wrapped(array))
        for name, array in made.items():
            binding.bind_ortvalue_output(name, wrapped(array))
        self._decoder.run_with_iobinding(binding)
        return hidden, logits, new

    def _binding(self, sources: Sources, cache: BeamCache) -> Any:
        """Return the inputs that do not change from step to step, bound once per buffer."""
        if cache.binding is None:
            cache.binding = self._decoder.io_binding()
            cache.binding.bind_ortvalue_input("source_mask", wrapped(sources.mask))
            for name, value in self._head.items():
                cache.binding.bind_ortvalue_input(name, value)
            for n, (buffer, cross) in enumerate(zip(cache.buffers, sources.cross, strict=True)):
                cache.binding.bind_ortvalue_input(cache_name(n), wrapped(buffer))
                cache.binding.bind_ortvalue_input(f"cross_{cache_name(n)}", wrapped(cross))
        return cache.binding
