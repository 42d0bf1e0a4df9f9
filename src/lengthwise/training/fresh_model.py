"""Untrained models: a Transformer as Marian builds it, and a tokenizer that is trained on the corpus."""

from itertools import islice
from typing import Any

import torch
from torch import nn

from .data_stream import epoch_documents
from .recipe import Fresh, Recipe
from .tokenizer import train_tokenizer

SIZES = {  # width, inner width, heads, layers a side; base and large are those of the Transformer paper
    "tiny": (64, 128, 4, 2),
    "compact": (256, 1024, 4, 4),
    "base": (512, 2048, 8, 6),
    "large": (1024, 4096, 16, 6),
}


def fresh_tokenizer(recipe: Recipe) -> Any:
    """Return a tokenizer trained on both sides of the training corpus."""
    fresh = recipe.model.fresh
    assert fresh is not None
    documents = islice(epoch_documents(recipe, epoch=0), fresh.tokenizer_documents)
    texts = (text for document in documents for pair in document.segments for text in pair)
    return train_tokenizer(texts, fresh.vocabulary)


def fresh_model(fresh: Fresh, tokenizer: Any) -> Any:
    """Return an untrained Transformer: sinusoidal positions, embeddings shared by encoder, decoder and output layer."""
    from transformers import GenerationConfig, MarianConfig, MarianMTModel

    width, inner, heads, layers = SIZES[fresh.size]
    special = {
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "decoder_start_token_id": tokenizer.pad_token_id,
    }
    config = MarianConfig(
        vocab_size=len(tokenizer),
        d_model=width,
        encoder_ffn_dim=inner,
        decoder_ffn_dim=inner,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_layers=layers,
        decoder_layers=layers,
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
    model = MarianMTModel(config)
    # Marian's 0.02, multiplied by √width in the forward pass, would make embeddings half as large as positions.
    nn.init.normal_(model.get_input_embeddings().weight, std=width**-0.5)
    with torch.no_grad():
        model.get_input_embeddings().weight[tokenizer.pad_token_id].zero_()
    model.generation_config = GenerationConfig(**special, num_beams=5, bos_token_id=tokenizer.bos_token_id)
    return model
