"""An untrained LED (Beltagy, Peters & Cohan 2020) of the compact size, with the tokenizer of another model.

    python bench/led.py runs/doc-documents/model runs/led-base
    lengthwise train recipes/zhang-documents.yaml --set model.fresh=null --set model.base=runs/led-base ...

Its encoder attends to windows of 128 tokens; its positions are learnt.
"""

import sys
from typing import Any

import torch
from transformers import AutoTokenizer, GenerationConfig, LEDConfig, LEDForConditionalGeneration

_POSITIONS = 4096


def main() -> None:
    source, out = sys.argv[1:]
    torch.manual_seed(1)
    tokenizer = AutoTokenizer.from_pretrained(source)
    special: dict[str, Any] = {name: getattr(tokenizer, name) for name in ("pad_token_id", "eos_token_id")}
    special |= {"bos_token_id": tokenizer.bos_token_id, "decoder_start_token_id": tokenizer.pad_token_id}
    size = {"layers": 4, "ffn_dim": 1024, "attention_heads": 4}
    sides = {f"{side}_{key}": value for side in ("encoder", "decoder") for key, value in size.items()}
    positions = {f"max_{side}_position_embeddings": _POSITIONS for side in ("encoder", "decoder")}
    dropout = {"dropout": 0.2, "attention_dropout": 0.1}
    shape: dict[str, Any] = {"vocab_size": len(tokenizer), "d_model": 256, "attention_window": 128} | sides | positions
    config = LEDConfig(**shape, **dropout, **special, activation_function="relu", forced_eos_token_id=None)
    config.max_position_embeddings = _POSITIONS  # Lengthwise reads the number of positions here
    model = LEDForConditionalGeneration(config)
    model.generation_config = GenerationConfig(**special, num_beams=5)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


if __name__ == "__main__":
    main()
