"""Find a GGUF file for the gguf engine: from a name to the file, its tokenizer and its countdown head.

Neither torch nor transformers is imported.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelNotFound
from . import registry
from .cache import Say
from .description import DESCRIPTION, describe
from .gguf_tensor import read_tensor
from .gguf_tokenizer import GgufTokenizer
from .llama_cpp_model import LlamaModel, library


@dataclass(frozen=True)
class GgufModel:
    """A model of llama.cpp. `head`: the options and the weights of its countdown head, if it has one."""

    llama: LlamaModel
    tokenizer: GgufTokenizer
    head: tuple[dict[str, Any], dict[str, NDArray[Any]]] | None = None

    def output_layer(self) -> NDArray[np.float32]:
        """Return the weights from the last hidden state to the logits: (vocabulary, width)."""
        kind = self.llama.setting("general.architecture")
        for name in ("logit_scale", "final_logit_softcapping"):
            if self.llama.setting(f"{kind}.{name}") is not None:
                raise ValueError(f"{self.llama.path} has a {name}, with which a countdown head does not work")
        return read_tensor(self.llama.path, "output.weight", "token_embd.weight")  # without the first, they are tied


def is_gguf(name: str) -> bool:
    """Return whether `name` is that of a GGUF file."""
    return name.lower().endswith(".gguf")


def load_gguf(name: str, *, gpu: bool | None = None) -> GgufModel:
    """Return the model called `name`: a GGUF file, a known model that has one, or a countdown head upon one of them.

    `gpu`: see `LlamaModel`.
    """
    library()  # before anything is fetched
    found = find_gguf(name)
    head = None
    if found.controls is not None:
        from .onnx_model import read_control

        head = read_control(found.controls, "gguf", "countdown_head")
    llama = LlamaModel(found.file, gpu=gpu)
    return GgufModel(llama, GgufTokenizer(llama, found.chat_template), head)


@dataclass(frozen=True)
class GgufFiles:
    """The files of a model. `chat_template`: replaces that of the GGUF file. `controls`: a folder, if it has any."""

    file: Path
    chat_template: str | None = None
    controls: Path | None = None


def find_gguf(name: str, *, say: Say = registry.say) -> GgufFiles:
    """Return the files of the model called `name`; those of a known model are fetched on first use."""
    if is_gguf(name):
        path = Path(name).expanduser().absolute()
        if not path.is_file():
            raise ModelNotFound(name, f"no file at {path}.", "give the path of a GGUF file of a chat model.")
        return GgufFiles(path)
    if (folder := registry.gguf(name, say=say)) is not None:
        return GgufFiles(next(folder.glob("*.gguf")), (folder / "chat_template.jinja").read_text("utf-8"))
    if registry.is_on_hub(name):  # a checkpoint, which need not be fetched to be refused
        raise _not_gguf(name)
    folder = registry.resolve(name)
    description = describe(folder)
    weights = any((folder / file).exists() for file in ("config.json", "adapter_config.json"))
    if weights or not description["controls"]:
        raise _not_gguf(name)
    if (base := str(description["base_model"])) == name:
        raise ValueError(f"{folder} names itself as its base model; write the path of the base in {DESCRIPTION}")
    return replace(find_gguf(base, say=say), controls=folder)


def _not_gguf(name: str) -> ModelNotFound:
    advice = "download a GGUF file of the model and give its path, or use another engine."
    return ModelNotFound(name, f"{name!r} is not a GGUF file, and the gguf engine runs no other.", advice)
