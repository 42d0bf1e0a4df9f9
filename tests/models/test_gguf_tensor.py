"""One tensor of a GGUF file, compared with the reader of the package gguf."""

import gguf
import numpy as np
import pytest

from families import tiny
from lengthwise.models.gguf_tensor import read_tensor
from tiny_gguf import write_gguf


def test_plain_numbers(byte_bpe, tmp_path):
    model = tiny("qwen2", byte_bpe)
    path = write_gguf(tmp_path / "tiny.gguf", model, byte_bpe)
    for names in (("output.weight", "token_embd.weight"), ("none", "output.weight")):
        np.testing.assert_array_equal(read_tensor(path, *names), model.lm_head.weight.detach().numpy())
    with pytest.raises(ValueError, match=r"tiny\.gguf has no tensor a or b"):
        read_tensor(path, "a", "b")


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_1", "F16", "BF16"])
def test_blocks(kind, tmp_path):
    form = gguf.GGMLQuantizationType[kind]
    data = gguf.quantize(np.random.default_rng(0).normal(size=(6, 64)).astype(np.float32), form)
    writer = gguf.GGUFWriter(tmp_path / "a.gguf", "llama")
    writer.add_token_list(["a", "bé", ""])
    writer.add_array("lists", [1, 2, 3])
    writer.add_custom_alignment(64)
    writer.add_tensor("first", np.zeros(3, np.float32))
    writer.add_tensor("second", data, raw_dtype=form)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    np.testing.assert_array_equal(read_tensor(tmp_path / "a.gguf", "second"), gguf.dequantize(data, form))


def test_another_file(tmp_path):
    (tmp_path / "a.gguf").write_bytes(b"GGML" + bytes(40))
    with pytest.raises(ValueError, match="is not a little-endian GGUF file"):
        read_tensor(tmp_path / "a.gguf", "a")
