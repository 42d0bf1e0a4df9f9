"""Fixtures of the command line's tests: a command called in this process, and a tiny model."""

import os
import tempfile

import pytest
import torch
import transformers

from lengthwise.cli import main


@pytest.fixture
def cli(capfd):
    """Return a function that runs a command with this stdin and returns its exit code, stdout and stderr."""

    def run(*args, stdin=b""):
        with tempfile.TemporaryFile() as file:
            file.write(stdin if isinstance(stdin, bytes) else stdin.encode())
            file.seek(0)
            before = os.dup(0)
            os.dup2(file.fileno(), 0)
            try:
                code = main([str(arg) for arg in args])
            finally:
                os.dup2(before, 0)
                os.close(before)
        return code, *capfd.readouterr()

    return run


@pytest.fixture(scope="module")
def tiny(byte_bpe, tmp_path_factory):
    """Return the folder of a random Llama; its texts fit but have no meaning."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    config = transformers.LlamaConfig(
        vocab_size=len(byte_bpe),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=256,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.LlamaForCausalLM(config).save_pretrained(folder)
    byte_bpe.save_pretrained(folder)
    return str(folder)
