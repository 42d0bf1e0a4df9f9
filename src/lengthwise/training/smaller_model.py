"""A smaller copy of a Marian translator, to be trained further: fewer tokens, fewer layers in the decoder.

Frequent tokens are kept with their embeddings, those of the corpus and those of the base model in turn; the two
SentencePiece models split other words into them. Of the decoder, which runs for every token, some layers are kept
(Shleifer & Rush 2020). The encoder is unchanged.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

from ..models.checkpoint import load_tokenizer
from ..models.registry import resolve
from .data_stream import epoch_documents
from .recipe import Recipe, RecipeError

_SIDES = ("source.spm", "target.spm")
_VOCABULARY, _CONFIG = "vocab.json", "tokenizer_config.json"
_EMBEDDINGS = ("shared.weight", "embed_tokens.weight", "lm_head.weight")
_SPACE = "▁"  # how SentencePiece writes a space
_LATIN = 0x250  # code points of Latin letters, digits and marks
_RARE = 20  # a letter of another script that the corpus has less often becomes the unknown token


def save_smaller_tokenizer(recipe: Recipe, folder: Path) -> None:
    """Write the base model's tokenizer into `folder`, with the tokens that the training corpus uses most."""
    from sentencepiece import SentencePieceProcessor

    smaller, base = recipe.model.smaller, resolve(str(recipe.model.base))
    assert smaller is not None
    if missing := [name for name in (*_SIDES, _VOCABULARY, _CONFIG) if not (base / name).exists()]:
        raise RecipeError(f"model.smaller is for Marian translators; {base} has no {missing[0]}")
    sides = [SentencePieceProcessor(model_file=str(base / name)) for name in _SIDES]
    ids: dict[str, int] = json.loads((base / _VOCABULARY).read_text("utf-8"))
    counts: Counter[str] = Counter()
    letters: Counter[str] = Counter()
    for document in islice(epoch_documents(recipe, epoch=0), smaller.documents):
        for pair in document.segments:
            for side, text in zip(sides, pair, strict=True):
                letters.update(text)
                counts.update(side.encode(text, out_type=str))
    ordinary = {side.id_to_piece(n) for side in sides for n in range(side.get_piece_size()) if _ordinary(side, n)}
    alphabet = {letter for letter, count in letters.items() if count >= _RARE or ord(letter) < _LATIN}
    own = load_tokenizer(base)
    kept = {*own.all_special_tokens, *own.supported_language_codes, *alphabet, _SPACE} & ids.keys()
    ranked = sorted(ids, key=ids.__getitem__)  # Marian numbers tokens by their frequency
    frequent = [[piece for piece, _ in counts.most_common()], ranked]
    for piece in chain.from_iterable(zip_longest(*frequent)):
        if len(kept) < smaller.vocabulary and piece in ordinary and piece in ids and len(piece) > 1:
            kept.add(piece)
    tokens = [token for token in ranked if token in kept]
    (folder / _VOCABULARY).write_text(json.dumps({token: n for n, token in enumerate(tokens)}), encoding="utf-8")
    for name, side in zip(_SIDES, sides, strict=True):
        (folder / name).write_bytes(_without_others((base / name).read_bytes(), side, kept))
    config = json.loads((base / _CONFIG).read_text("utf-8")) | {"tokenizer_class": type(own).__name__}
    (folder / _CONFIG).write_text(json.dumps(config), encoding="utf-8")


def _ordinary(side: Any, number: int) -> bool:
    return not (side.is_control(number) or side.is_unknown(number))


def _without_others(model: bytes, side: Any, kept: Collection[str]) -> bytes:
    """Return a SentencePiece model with the pieces that are `kept`, and its control symbols."""
    # A model is a message of protobuf: its pieces, in the order of their ids, are the fields with the number 1.
    out, number = [], 0
    for tag, field in _fields(model):
        if tag != 1:
            out.append(field)
            continue
        if side.id_to_piece(number) in kept or not _ordinary(side, number):
            out.append(field)
        number += 1
    return b"".join(out)


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the bytes of each field; SentencePiece has only fields with a length at the top."""

    def varint(at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            byte = message[at]
            value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
            if byte < 128:
                return value, at

    start = 0
    while start < len(message):
        tag, at = varint(start)
        if tag & 7 != 2:
            raise RecipeError(f"a SentencePiece model of the base model has an unknown field {tag >> 3}")
        length, at = varint(at)
        yield tag >> 3, message[start : at + length]
        start = at + length


def smaller_model(model: Any, old: Any, new: Any, decoder_layers: int) -> Any:
    """Return a copy of `model`, whose tokenizer is `old`, for the tokenizer `new`, with so many decoder layers."""
    config = model.config
    if config.model_type != "marian" or not config.share_encoder_decoder_embeddings:
        raise RecipeError(
            f"model.smaller is for Marian translators with shared embeddings, not for {config.model_type}"
        )
    if decoder_layers > config.decoder_layers:
        raise RecipeError(f"model.smaller.decoder_layers is {decoder_layers}; the base has {config.decoder_layers}")
    tokens = new.get_vocab()
    rows = old.convert_tokens_to_ids(sorted(tokens, key=tokens.__getitem__))
    layers = [round(n * (config.decoder_layers - 1) / max(1, decoder_layers - 1)) for n in range(decoder_layers)]
    pad, end = new.pad_token_id, new.eos_token_id
    special = {"pad_token_id": pad, "decoder_start_token_id": pad, "eos_token_id": end, "bos_token_id": end}
    sizes = {"vocab_size": len(rows), "decoder_vocab_size": len(rows), "decoder_layers": decoder_layers}
    smaller = type(model)(type(config)(**config.to_dict() | sizes | special | {"forced_eos_token_id": end}))
    weights = model.state_dict()
    for name in smaller.state_dict():
        parts = name.split(".")
        if parts[:3] == ["model", "decoder", "layers"]:
            parts[3] = str(layers[int(parts[3])])
        old_weight = weights[".".join(parts)]
        if name == "final_logits_bias":
            old_weight = old_weight[:, rows]
        elif name.endswith(_EMBEDDINGS):
            old_weight = old_weight[rows]
        smaller.state_dict()[name].copy_(old_weight)
    settings = model.generation_config.to_dict() | special | {"forced_eos_token_id": end, "bad_words_ids": [[pad]]}
    smaller.generation_config = type(model.generation_config)(**settings)
    return smaller
