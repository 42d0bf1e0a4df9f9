"""The transformers engine: any causal or encoder-decoder model of Hugging Face, with or without length controls.

The reference for other engines, and beside `controls/attach.py` the only place that knows the insides of transformers.
"""

from typing import Any

from ..controls.attach import controls_of, core_of, units_of
from ..protocols import Tokenizer
from .base import Capabilities

UNLIMITED = 1 << 28  # positions of a model that names no limit


class TransformersEngine:
    """A transformers model (possibly inside PEFT) and its tokenizer."""

    def __init__(self, model: Any, tokenizer: Tokenizer, name: str = "") -> None:
        self.model, self.tokenizer = model, tokenizer
        self.name = name or getattr(model.config, "_name_or_path", "") or type(model).__name__
        self.encoder_decoder: bool = model.config.is_encoder_decoder
        self.can = Capabilities(beams=True, hidden=True, lengths=bool(units_of(controls_of(model))))
        model.eval()
        if not self.eos:
            raise ValueError(f"{self.name} names no end-of-text token; set tokenizer.eos_token, or it cannot stop")
