"""Batch sizes: more on a GPU with more memory, and never fewer than on a CPU."""

import pytest
from transformers import LlamaConfig, MambaConfig, MarianConfig

from lengthwise.engines.batch_sizes import BatchSizes

OPUS = MarianConfig(vocab_size=59514, d_model=512, decoder_layers=6, decoder_attention_heads=8)
SMALL = LlamaConfig(
    vocab_size=49152, hidden_size=576, num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3
)
LARGE = LlamaConfig(
    vocab_size=128256, hidden_size=8192, num_hidden_layers=80, num_attention_heads=64, num_key_value_heads=8
)


@pytest.mark.parametrize(
    ("config", "gigabytes", "expected"),
    [
        (OPUS, 140, BatchSizes(tokens=32768, rows=640, texts=64)),
        (OPUS, 16, BatchSizes(tokens=8401, rows=198, texts=64)),
        (SMALL, 140, BatchSizes(tokens=32768, rows=347, texts=64)),
        (SMALL, 24, BatchSizes(tokens=15258, rows=59, texts=59)),
        (LARGE, 10, BatchSizes(tokens=4096, rows=40, texts=16)),
        (LARGE, -1, BatchSizes(tokens=4096, rows=40, texts=16)),
    ],
)
def test_sizes_follow_the_memory(config, gigabytes, expected):
    assert BatchSizes.within(gigabytes * 10**9, config, itemsize=2) == expected


class ByLayer:
    """A config whose layers differ: that of transformers has no number of heads for all layers."""

    hidden_size, vocab_size = 576, 49152

    @property
    def num_attention_heads(self):
        raise RuntimeError("'num_attention_heads' is a per-layer attribute and may vary across layers")


@pytest.mark.parametrize("config", [MambaConfig(), ByLayer()])
def test_a_model_of_unknown_size_has_the_sizes_of_a_cpu(config):
    assert BatchSizes.within(140 * 10**9, config, itemsize=2) == BatchSizes()
