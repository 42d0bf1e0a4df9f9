"""Fixtures of the training tests."""

import json
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from families import tiny
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
    ids = {"</s>": 0, "<unk>": 1}
    for name, lines in zip(("source", "target"), zip(*PAIRS, *OTHER_PAIRS, strict=True), strict=True):
        options = {"vocab_size": 120, "hard_vocab_limit": False, "minloglevel": 2}
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines * 4), model_prefix=str(folder / name), **options
        )
        (folder / f"{name}.model").rename(folder / f"{name}.spm")
        side = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{name}.spm"))
        for n in range(side.get_piece_size()):
            ids.setdefault(side.id_to_piece(n), len(ids))
    ids |= {"never written": len(ids), "<pad>": len(ids) + 1}
    (folder / "vocab.json").write_text(json.dumps(ids))
    config = {"source_lang": "en", "target_lang": "fr", "tokenizer_class": "MarianTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    pad = {"pad_token_id": len(ids) - 1, "decoder_start_token_id": len(ids) - 1, "eos_token_id": 0, "bos_token_id": 0}
    tiny("marian", ids, decoder_layers=4, forced_eos_token_id=0).save_pretrained(folder)
    for file in ("config.json", "generation_config.json"):
        (folder / file).write_text(json.dumps(json.loads((folder / file).read_text()) | pad))
    return folder
