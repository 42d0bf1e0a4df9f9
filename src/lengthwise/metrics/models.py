"""Models that metrics use, loaded by name on first use and cached. Imports are inside the functions: they are slow."""

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .bertscore import Encoder

if TYPE_CHECKING:
    from ..engines.base import Engine
    from ..scoring.log_likelihood import CausalScorer
    from ..scoring.reverse import ReverseModel


def _engine(name: str) -> "Engine":
    import torch

    from ..generation.load import load

    return load(name, dtype=torch.float32).engine


@lru_cache(maxsize=2)
def reverse_model(name: str) -> "ReverseModel":
    """Return the model `name`, which translates outputs back."""
    from ..scoring.reverse import ReverseModel

    return ReverseModel(_engine(name))


@lru_cache(maxsize=1)
def causal_scorer(name: str) -> "CausalScorer":
    """Return the causal model `name`, which assigns probability to outputs."""
    from ..scoring.log_likelihood import CausalScorer

    return CausalScorer(_engine(name))


@lru_cache(maxsize=1)
def encoder(name: str) -> Encoder:
    """Return the encoder "path" or "path@layer"; the default layer is at three quarters of its depth."""
    from transformers import AutoModel, AutoTokenizer

    found = re.fullmatch(r"(.+)@(\d+)", name)
    path = found[1] if found else name
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(path, local_files_only=True)
        model = AutoModel.from_pretrained(path, local_files_only=True).eval()
    except OSError as error:
        raise ValueError(f"no encoder was found at {path!r}; give the path of a local folder") from error
    depth = model.config.num_hidden_layers
    layer = int(found[2]) if found else max(1, depth * 3 // 4)
    if not 0 <= layer <= depth:
        raise ValueError(f"the encoder {path!r} has layers 0 to {depth}; got {layer}")
    return Encoder(Path(path).name, tokenizer, model, layer)
