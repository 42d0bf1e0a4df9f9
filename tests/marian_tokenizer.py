"""The files of a Marian tokenizer, trained on a few lines."""

import json
from collections.abc import Sequence
from pathlib import Path

import sentencepiece


def save_marian_tokenizer(
    folder: Path, sources: Sequence[str], targets: Sequence[str], *, pieces: int, more: Sequence[str] = ()
) -> dict[str, int]:
    """Write source.spm, target.spm, vocab.json, tokenizer_config.json; return the ids. `more`: further tokens."""
    ids = {token: n for n, token in enumerate(["</s>", "<unk>", *more])}
    for name, lines in (("source", sources), ("target", targets)):
        options = {"vocab_size": pieces, "hard_vocab_limit": False, "minloglevel": 2}
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([*lines] * 4), model_prefix=str(folder / name), **options
        )
        (folder / f"{name}.model").rename(folder / f"{name}.spm")
        side = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{name}.spm"))
        for n in range(side.get_piece_size()):
            ids.setdefault(side.id_to_piece(n), len(ids))
    ids["<pad>"] = len(ids)
    (folder / "vocab.json").write_text(json.dumps(ids))
    config = {"source_lang": "en", "target_lang": "fr", "tokenizer_class": "MarianTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return ids
