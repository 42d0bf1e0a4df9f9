"""A GGUF file in llama.cpp: load it, read its settings, and say why it cannot be run.

llama-cpp-python is imported here and nowhere else. Its class `Llama` runs one sequence, so only its C functions are
used.
"""

import ctypes
import weakref
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import how_to_install

_ALL_F32 = "0"  # general.file_type
_ERROR = 4  # a level of llama.cpp's log


class LlamaModel:
    """The weights and the vocabulary of a chat model. `library`: the functions of llama.h."""

    def __init__(self, path: Path, *, gpu: bool | None = None) -> None:
        """Load the file. `gpu`: whether its layers are on a GPU; the default is where this llama.cpp can use one."""
        self.library, self.path = library(), path
        lib = self.library
        if gpu and not lib.llama_supports_gpu_offload():
            raise ValueError(
                "this build of llama-cpp-python has no GPU support; build it with CMAKE_ARGS=-DGGML_CUDA=on, or leave "
                "out the device"
            )
        params = lib.llama_model_default_params()
        params.n_gpu_layers = 0 if gpu is False else 9999
        _errors.clear()
        self.pointer = lib.llama_model_load_from_file(str(path).encode(), params)
        if not self.pointer:
            why = "; ".join(_errors) or "it gives no reason"
            raise ValueError(
                f"llama.cpp cannot load {path}: {why}. Download the file again, or update llama-cpp-python"
            )
        weakref.finalize(self, lib.llama_model_free, self.pointer)
        if lib.llama_model_has_encoder(self.pointer) or not lib.llama_model_has_decoder(self.pointer):
            kind = self.setting("general.architecture")
            raise ValueError(
                f"{path} has a model of the type {kind}, which has an encoder; the gguf engine runs decoder-only chat "
                "models. Translators of the Marian type run with the engine onnx, others with transformers"
            )
        self.vocab = lib.llama_model_get_vocab(self.pointer)
        self.vocabulary: int = lib.llama_vocab_n_tokens(self.vocab)
        self.width: int = lib.llama_model_n_embd(self.pointer)
        self.window: int = lib.llama_model_n_ctx_train(self.pointer)
        self.in_float32 = self.setting("general.file_type") == _ALL_F32

    def setting(self, name: str) -> str | None:
        """Return one setting of the file as a text; None if it has none of this name."""
        size = self.library.llama_model_meta_val_str(self.pointer, name.encode(), None, 0)
        if size < 0:
            return None
        buffer = ctypes.create_string_buffer(size + 1)
        self.library.llama_model_meta_val_str(self.pointer, name.encode(), buffer, size + 1)
        return buffer.value.decode("utf-8", "replace")


def requantize(source: Path, target: Path) -> None:
    """Write the model in `source` with weights in Q8_0: 32 weights have one scale and 8 bits each."""
    params = library().llama_model_quantize_default_params()
    params.ftype, params.allow_requantize = library().LLAMA_FTYPE_MOSTLY_Q8_0, True
    _errors.clear()
    if library().llama_model_quantize(str(source).encode(), str(target).encode(), ctypes.byref(params)):
        raise ValueError(f"llama.cpp cannot convert {source} to Q8_0: {'; '.join(_errors)}")


_errors: list[str] = []  # that llama.cpp has logged since the last load began


@cache
def library() -> Any:
    """Return the module with the functions of llama.h; its log is silent."""
    try:
        from llama_cpp import llama_cpp
    except ImportError as error:
        raise ImportError(
            f"a GGUF file needs llama-cpp-python, which is not installed; {how_to_install('gguf')} (a C++ compiler "
            "builds it, which takes minutes)"
        ) from error

    def log(level: int, text: bytes, _: Any) -> None:
        if level == _ERROR:
            _errors.append(text.decode("utf-8", "replace").strip())

    llama_cpp.lengthwise_log = llama_cpp.llama_log_callback(log)  # it must live as long as the process
    llama_cpp.llama_log_set(llama_cpp.lengthwise_log, ctypes.c_void_p())
    return llama_cpp
