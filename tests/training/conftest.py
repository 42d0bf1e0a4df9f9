"""Fixtures of the training tests."""

import json
from pathlib import Path
from typing import Any

import pytest

from families import tiny
from marian_tokenizer import save_marian_tokenizer
from toy_corpora import OTHER_PAIRS, PAIRS


@pytest.fixture(scope="module")
def toy_base(tmp_path_factory: pytest.TempPathFactory, byte_bpe: Any) -> Path:
    """A tiny random decoder-only model with a chat template, in the place of SmolLM2."""
    folder = tmp_path_factory.mktemp("base")
    tiny("llama", byte_bpe).save_pretrained(folder)
    template = "{% for m in messages %}<s>{{ m['content'] }}</s>{% endfor %}"
    byte_bpe.save_pretrained(folder)
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def toy_marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Marian model of 4 decoder layers with the files of its tokenizer."""
    folder = tmp_path_factory.mktemp("translator")
    sources, targets = zip(*PAIRS, *OTHER_PAIRS, strict=True)
    ids = save_marian_tokenizer(folder, sources, targets, pieces=120, more=["never written"])
    pad = {"pad_token_id": len(ids) - 1, "decoder_start_token_id": len(ids) - 1, "eos_token_id": 0, "bos_token_id": 0}
    tiny("marian", ids, decoder_layers=4, forced_eos_token_id=0).save_pretrained(folder)
    for file in ("config.json", "generation_config.json"):
        (folder / file).write_text(json.dumps(json.loads((folder / file).read_text()) | pad))
    return folder
