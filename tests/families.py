"""Tiny random models of eight families, and controls to attach to them, for the cross products."""

from collections.abc import Callable
from typing import Any

import torch
import transformers as hf

from lengthwise.controls import Control, CountdownHead, EncodingControl, LengthTokens

ENCODER_DECODERS = ("marian", "bart", "m2m100", "t5")
DECODERS = ("llama", "mistral", "qwen2", "gpt2")
FAMILIES = ENCODER_DECODERS + DECODERS
ABSOLUTE = ("marian", "bart", "m2m100", "gpt2")  # families with absolute positions in the decoder

CONTROLS: dict[str, Callable[[], list[Control]]] = {
    "difference": lambda: [EncodingControl(scale=0.5)],
    "ratio": lambda: [EncodingControl("ratio", "bytes", "response", scale=0.5)],
    "progress+tokens": lambda: [LengthTokens(), EncodingControl("progress", "words")],
    "whole": lambda: [EncodingControl(unit="tokens", placement="whole", end_index=1, scale=0.5)],
    "units": lambda: [EncodingControl(unit=("tokens", "words", "chars"), at_most=True, scale=0.5, reader=8)],
    "countdown_head": lambda: [CountdownHead(("tokens", "words", "chars"), at_most=True, hidden=8)],
    "replace": lambda: [EncodingControl(scale=0.5, positions="replace", layout="fairseq")],
}

PAIRS = [(family, control) for family in FAMILIES for control in CONTROLS if control != "replace" or family in ABSOLUTE]

_SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_PAIR = {
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 128,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "encoder_layerdrop": 0.0,
    "decoder_layerdrop": 0.0,
    "forced_eos_token_id": None,
}
_ROPE = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}
_T5 = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "dropout_rate": 0.0}
_GPT2 = {
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 128,
    "resid_pdrop": 0,
    "embd_pdrop": 0,
    "attn_pdrop": 0,
}
_MAKE: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "marian": (hf.MarianMTModel, hf.MarianConfig, _PAIR | {"scale_embedding": True, "decoder_start_token_id": 0}),
    "bart": (hf.BartForConditionalGeneration, hf.BartConfig, _PAIR | {"decoder_start_token_id": 2}),
    "m2m100": (
        hf.M2M100ForConditionalGeneration,
        hf.M2M100Config,
        _PAIR | {"scale_embedding": True, "decoder_start_token_id": 2},
    ),
    "t5": (hf.T5ForConditionalGeneration, hf.T5Config, _T5 | {"decoder_start_token_id": 0}),
    "llama": (hf.LlamaForCausalLM, hf.LlamaConfig, _ROPE | {"tie_word_embeddings": True}),
    "mistral": (hf.MistralForCausalLM, hf.MistralConfig, _ROPE | {"sliding_window": None}),
    "qwen2": (hf.Qwen2ForCausalLM, hf.Qwen2Config, _ROPE),
    "gpt2": (hf.GPT2LMHeadModel, hf.GPT2Config, _GPT2),
}


def tiny(family: str, vocabulary: Any, **sizes: Any) -> Any:
    """Return a random model of this family with `len(vocabulary)` tokens; its weights are large, so outputs vary.

    `sizes` replace settings of its configuration.
    """
    kind, config, options = _MAKE[family]
    torch.manual_seed(0)
    model = kind(config(vocab_size=len(vocabulary), **_SPECIAL, **(options | sizes)))
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad and weight.dim() > 1:
                weight.normal_(std=0.15)
    model.generation_config = hf.GenerationConfig(
        **_SPECIAL, decoder_start_token_id=getattr(model.config, "decoder_start_token_id", None)
    )
    return model.eval()
