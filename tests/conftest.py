"""Small real tokenizers of the three kinds that models use, as vocabularies/train.py made them."""

import gc
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

torch.set_num_threads(1)
settings.register_profile("lengthwise", deadline=None)  # a busy machine is no failure
settings.load_profile("lengthwise")
# Of tests that are started in the background, too, Ctrl-C must reach the programs they run.
signal.signal(signal.SIGINT, signal.default_int_handler)


gc.disable()  # while modules are imported: they stay


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what was imported."""
    gc.freeze()
    gc.enable()


def _tokenizer(name: str, **special: str) -> PreTrainedTokenizerFast:
    trained = Tokenizer.from_file(str(Path(__file__).parent / "vocabularies" / f"{name}.json"))
    return PreTrainedTokenizerFast(
        tokenizer_object=trained,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        padding_side="left",
        **special,
    )


@pytest.fixture(autouse=True)
def onednn_restored() -> Iterator[None]:
    """Undo what PyTorch does on an ARM CPU without bfloat16: the first product in it disables oneDNN for good."""
    before = torch.backends.mkldnn.enabled
    yield
    torch.backends.mkldnn.enabled = before


# Each test file has its own copy: `attach` may add tokens to it.


@pytest.fixture(scope="module")
def byte_bpe() -> PreTrainedTokenizerFast:
    """Byte-level BPE (GPT-2, Llama 3, SmolLM2, Qwen): other scripts fall apart into bytes of split characters."""
    return _tokenizer("byte_bpe")


@pytest.fixture(scope="module")
def sp_unigram() -> PreTrainedTokenizerFast:
    """SentencePiece unigram (Marian, T5, NLLB)."""
    return _tokenizer("sp_unigram", unk_token="<unk>")


@pytest.fixture(scope="module")
def sp_bpe() -> PreTrainedTokenizerFast:
    """SentencePiece BPE with byte fallback (Llama 2, Mistral)."""
    return _tokenizer("sp_bpe", unk_token="<unk>")
