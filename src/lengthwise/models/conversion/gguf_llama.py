"""Read a Llama-type decoder and its byte-level tokenizer from a GGUF file; blocks stay as the file has them."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .llama import Layer, Llama, Shape
from .weights import BLOCK, Blocks4, Blocks8, Dense, Floats, Weight, reordered, stacked

_CONTROL = 3  # the type of a special token


class GgufFile:
    """The settings and tensors of a GGUF file of the architecture `llama`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reader = _reader(path)
        self._tensors = {tensor.name: tensor for tensor in self._reader.tensors}
        if (found := self.setting("general.architecture")) != "llama":
            raise ValueError(f"{path.name} has a model of the architecture {found}; only llama is read")

    def setting(self, name: str) -> Any:
        """Return the value of one setting; None if the file has none of this name."""
        field = self._reader.fields.get(name)
        return None if field is None else field.contents()

    def llama(self) -> Llama:
        """Return the decoder."""
        shape = self._shape()
        embedding = self._weight("token_embd")
        output = self._weight("output") if "output.weight" in self._tensors else embedding
        layers = [self._layer(n, shape) for n in range(shape.layers)]
        return Llama(shape, embedding, layers, self._vector("output_norm"), output)

    def _shape(self) -> Shape:
        heads, width = self.setting("llama.attention.head_count"), self.setting("llama.embedding_length")
        return Shape(
            vocabulary=len(self._tensors["token_embd.weight"].data),
            width=width,
            layers=self.setting("llama.block_count"),
            heads=heads,
            kv_heads=self.setting("llama.attention.head_count_kv") or heads,
            head_size=self.setting("llama.rope.dimension_count") or width // heads,
            window=self.setting("llama.context_length"),
            rope_base=self.setting("llama.rope.freq_base") or 10_000.0,
            epsilon=self.setting("llama.attention.layer_norm_rms_epsilon"),
        )

    def _layer(self, n: int, shape: Shape) -> Layer:
        query = self._weight(f"blk.{n}.attn_q", _unpaired(shape.heads, shape.head_size))
        key = self._weight(f"blk.{n}.attn_k", _unpaired(shape.kv_heads, shape.head_size))
        return Layer(
            attention_norm=self._vector(f"blk.{n}.attn_norm"),
            qkv=stacked([query, key, self._weight(f"blk.{n}.attn_v")]),
            qkv_bias=None,
            output=self._weight(f"blk.{n}.attn_output"),
            mlp_norm=self._vector(f"blk.{n}.ffn_norm"),
            gate_up=stacked([self._weight(f"blk.{n}.ffn_{name}") for name in ("gate", "up")]),
            down=self._weight(f"blk.{n}.ffn_down"),
        )

    def _vector(self, name: str) -> Floats:
        return np.array(self._tensors[f"{name}.weight"].data, np.float32)

    def _weight(self, name: str, rows: NDArray[np.int64] | None = None) -> Weight:
        tensor = self._tensors[f"{name}.weight"]
        kind = tensor.tensor_type.name
        if kind not in _READERS:
            raise ValueError(f"{self.path.name} has weights of the type {kind}; only {', '.join(_READERS)} are read")
        weight = _READERS[kind](tensor.data)
        return weight if rows is None else reordered(weight, rows)

    def tokenizer(self) -> Any:
        """Return the byte-level BPE tokenizer as a `tokenizers.Tokenizer`, without a pre-tokenizer."""
        from tokenizers import AddedToken, Tokenizer, decoders, models

        if (found := self.setting("tokenizer.ggml.model")) != "gpt2":
            raise ValueError(f"{self.path.name} has a tokenizer of the kind {found}; only gpt2 is read")
        tokens = self.setting("tokenizer.ggml.tokens")
        merges = [tuple(merge.split(" ", 1)) for merge in self.setting("tokenizer.ggml.merges")]
        model = models.BPE({token: n for n, token in enumerate(tokens)}, merges, fuse_unk=False)
        tokenizer = Tokenizer(model)
        tokenizer.decoder = decoders.ByteLevel()
        types = self.setting("tokenizer.ggml.token_type")
        special = [token for token, kind in zip(tokens, types, strict=True) if kind == _CONTROL]
        tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
        return tokenizer


def _reader(path: Path) -> Any:
    """Return gguf's reader of the file, on a plain array: it takes a view for each word, slowly of a memory map."""
    from gguf import GGUFReader

    class Reader(GGUFReader):  # type: ignore[misc]
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value.view(np.ndarray) if name == "data" else value)

    return Reader(str(path))


def _unpaired(heads: int, size: int) -> NDArray[np.int64]:
    """Return the order of rows in which the two halves of each head are rotated together.

    GGUF stores the rows of queries and keys so that neighbouring rows are rotated together.
    """
    return np.arange(heads * size).reshape(heads, size // 2, 2).swapaxes(1, 2).reshape(-1)


def _read_f32(data: Any) -> Dense:
    return Dense(np.array(data, np.float32))


def _read_q8_0(data: NDArray[np.uint8]) -> Blocks8:
    blocks = data.reshape(len(data), -1, 2 + BLOCK)  # float16 scale, 32 numbers
    return Blocks8(_halves(blocks[..., :2])[..., 0], blocks[..., 2:].view(np.int8))


def _read_q4_1(data: NDArray[np.uint8]) -> Blocks4:
    blocks = data.reshape(len(data), -1, 4 + BLOCK // 2)  # float16 scale and minimum, 32 half bytes
    factors, packed = _halves(blocks[..., :4]), blocks[..., 4:]
    q = np.concatenate([packed & 15, packed >> 4], -1)  # the low half bytes are the first 16 numbers
    return Blocks4(factors[..., 0], factors[..., 1], q)


def _halves(raw: NDArray[np.uint8]) -> Floats:
    return np.ascontiguousarray(raw).view(np.float16).astype(np.float32)


_READERS: dict[str, Any] = {"F32": _read_f32, "F16": _read_f32, "Q8_0": _read_q8_0, "Q4_1": _read_q4_1}
