"""Untrained models: Marian's architecture, with a Transformer or an LSTM decoder, and a tokenizer of the corpus.

Encoder and decoder share the tokenizer, SentencePiece BPE. Every character of the training corpus and every byte is a
token of it, so a decoder that writes character by character uses it as well.
"""

import io
import unicodedata
from collections.abc import Iterable
from itertools import islice
from typing import Any

import torch
from torch import nn

from .data_stream import epoch_documents
from .examples import SEPARATOR
from .recipe import Fresh, Recipe, RecipeError

PAD, BEGIN, END, UNKNOWN = "<pad>", "<s>", "</s>", "<unk>"
_LONGEST = 1 << 20  # bytes of a text; SentencePiece ignores longer ones
# Width, inner width, heads, layers of encoder and decoder. base and large are those of the Transformer paper.
SIZES = {
    "tiny": (64, 128, 4, 2, 2),
    "small": (256, 1024, 4, 3, 3),
    "compact": (256, 1024, 4, 4, 4),
    "base": (512, 2048, 8, 6, 6),
    "large": (1024, 4096, 16, 6, 6),
}


def fresh_tokenizer(recipe: Recipe) -> Any:
    """Return a tokenizer trained on both sides of the training corpus."""
    fresh = recipe.model.fresh
    assert fresh is not None
    documents = islice(epoch_documents(recipe, epoch=0), fresh.tokenizer_documents)
    texts = (text for document in documents for pair in document.segments for text in pair)
    return train_tokenizer(texts, fresh.vocabulary)


def fresh_model(fresh: Fresh, tokenizer: Any) -> Any:
    """Return an untrained model: sinusoidal positions, embeddings shared by encoder, decoder and output layer."""
    from transformers import GenerationConfig

    width, inner, heads, *layers = SIZES[fresh.size]
    pad = tokenizer.pad_token_id
    special = {"pad_token_id": pad, "eos_token_id": tokenizer.eos_token_id, "decoder_start_token_id": pad}
    side = {"ffn_dim": inner, "attention_heads": heads}
    config_class, model_class = _classes(fresh)
    lstm = {"decoder_layers": 0, "lstm_layers": fresh.lstm} if fresh.lstm else {}
    config = config_class(
        **{f"{name}_{key}": value for name in ("encoder", "decoder") for key, value in side.items()},
        **{"encoder_layers": layers[0], "decoder_layers": layers[1]} | lstm,
        vocab_size=len(tokenizer),
        d_model=width,
        dropout=fresh.dropout,
        attention_dropout=fresh.attention_dropout,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=fresh.max_positions,
        forced_eos_token_id=None,
        bos_token_id=1,
        spells_letters=fresh.decoder == "chars",  # not of transformers: read by `model.build` if it is trained further
        **special,
    )
    model = model_class(config)
    # Marian's 0.02, multiplied by √width in the forward pass, would make embeddings half as large as positions.
    nn.init.normal_(model.get_input_embeddings().weight, std=width**-0.5)
    with torch.no_grad():
        model.get_input_embeddings().weight[pad].zero_()
    settings = special | {"num_beams": 5, "bos_token_id": tokenizer.bos_token_id, "use_cache": not fresh.lstm}
    model.generation_config = GenerationConfig(**settings)
    return model


def _classes(fresh: Fresh) -> tuple[Any, Any]:
    if fresh.lstm:
        from ..models.lstm_decoder import LstmMarianConfig, LstmMarianMTModel

        return LstmMarianConfig, LstmMarianMTModel
    from transformers import MarianConfig, MarianMTModel

    return MarianConfig, MarianMTModel


# ---- the tokenizer


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> Any:
    """Return a tokenizer of at most `vocabulary` tokens; a small corpus gives fewer."""
    import sentencepiece

    normalized = (unicodedata.normalize("NFC", text) for text in texts)
    trained = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(line for text in normalized for line in text.splitlines() if line.strip()),
            model_writer=trained,
            model_type="bpe",
            vocab_size=vocabulary,
            hard_vocab_limit=False,
            character_coverage=0.9999,
            byte_fallback=True,
            normalization_rule_name="identity",  # a tokenizer that rewrites the text would change its length
            remove_extra_whitespaces=False,
            max_sentence_length=_LONGEST,
            control_symbols=[SEPARATOR],
            minloglevel=2,
            pad_id=0,
            bos_id=1,
            eos_id=2,
            unk_id=3,
        )
    except RuntimeError as error:
        raise RecipeError(
            f"SentencePiece could not train a tokenizer of {vocabulary:,} tokens on this corpus: {error}\n"
            "What to do: check that the corpus has texts, or set another model.fresh.vocabulary."
        ) from error
    return _fast(sentencepiece.SentencePieceProcessor(model_proto=trained.getvalue()))


def _fast(trained: Any) -> Any:
    """Return the trained pieces and merges as a tokenizer of transformers."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    ranks = {trained.id_to_piece(n): n for n in range(trained.get_piece_size())}
    merges = [
        (piece[:cut], piece[cut:])
        for piece, n in ranks.items()
        if not (trained.is_control(n) or trained.is_byte(n) or trained.is_unknown(n))
        for cut in range(1, len(piece))
        if piece[:cut] in ranks and piece[cut:] in ranks
    ]
    tokenizer = Tokenizer(models.BPE(ranks, merges, unk_token=UNKNOWN, byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.post_processor = processors.TemplateProcessing(single=f"$A {END}", special_tokens=[(END, ranks[END])])
    special = {"pad_token": PAD, "bos_token": BEGIN, "eos_token": END, "unk_token": UNKNOWN}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, additional_special_tokens=[SEPARATOR], **special)
