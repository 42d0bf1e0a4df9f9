"""Load a model by name as a `Writer`: resolve the name, choose the engine and the device, load weights and controls.

Each engine imports what it needs when it is chosen: torch and transformers take seconds.
"""

import os
from collections.abc import Callable
from typing import Any

from ..engines.base import Engine
from ..engines.future_discriminator import FutureDiscriminator
from ..errors import needing_torch
from ..gc_paused import gc_paused
from .generator import Writer


def load(name: str, *, engine: str | None = None, device: Any = None, fitted: bool = False, **options: Any) -> Writer:
    """Return a writer for the model called `name`: a folder, a GGUF file, a bundled model, or one that can be fetched.

    `engine`: what runs the model, see `ENGINES`; the default is what `default_engine` returns. `device`: where it runs.
    The default is a GPU that CUDA can use, else the CPU. `fitted`: attach the bundled controls that were trained for
    this plain model, if there are any. Other options are for transformers' `from_pretrained`.
    """
    engine = engine or default_engine(name, device, **options)
    if engine not in ENGINES:
        raise ValueError(f"unknown engine {engine!r}; the engines are {', '.join(ENGINES)}")
    return Writer(ENGINES[engine](name, device=device, fitted=fitted, **options))


def default_engine(name: str, device: Any = None, **options: Any) -> str:
    """Return the engine for the model called `name`.

    It is gguf for a GGUF file, onnx on a CPU for a model that is converted for it, else transformers. A model with a
    short name is converted on first use. Options such as `dtype` are for transformers only.
    """
    from ..models.gguf_model import is_gguf
    from ..models.onnx_model import is_convertible

    if is_gguf(name):
        return "gguf"
    on_cpu = str(device) == "cpu" or (device is None and not _has_gpu())
    return "onnx" if on_cpu and not options and is_convertible(name) else "transformers"


def _has_gpu() -> bool:
    """Return whether CUDA can use a GPU. torch is asked only where a driver is: its import takes seconds."""
    if not os.path.exists("/dev/nvidiactl") and os.name != "nt":
        return False
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


@needing_torch
def _transformers(name: str, *, device: Any, fitted: bool, **options: Any) -> Engine:
    from ..models.registry import is_on_hub, resolve, source_of

    if not (is_on_hub(name) or source_of(name)):  # those may be fetched, which is of no use without torch
        resolve(name)  # raises if there is no such model
    import torch

    from ..controls.attached import core_of
    from ..engines.transformers import TransformersEngine
    from ..models.checkpoint import load_model
    from ..models.description import bundled_for

    place = _device(device)  # first: resolving the name can mean a download
    with gc_paused():
        folder = resolve(name)
        extra = bundled_for(name, folder) if fitted else None
        model, tokenizer = load_model(folder, device=place, fitted=extra, **options)
    if place.type == "cpu" and model.dtype == torch.float16 and "dtype" not in options:
        model.float()  # half precision saves disk space; a CPU computes slower with it
    if core_of(model) is not model and hasattr(model.base_model, "merge_adapter"):  # a prompt adapter has no weights
        model.merge_adapter()  # same weights, a third of the kernels; unmerge_adapter() takes it back
    engine = TransformersEngine(model, tokenizer, f"{extra.name} upon {name}" if extra else name)
    engine.discriminator = FutureDiscriminator.read(folder, model.get_input_embeddings().weight.shape[1])
    return engine


def _onnx(name: str, *, device: Any, fitted: bool, **options: Any) -> Engine:
    from ..engines.onnx import OnnxEngine
    from ..engines.onnx_marian import MarianEngine
    from ..models.onnx_model import OnnxModel, load_onnx
    from ..models.registry import BUNDLED, local_model

    if options:
        raise ValueError(
            f"the engine onnx takes no {next(iter(options))}; its numbers are those of the converted model"
        )
    if str(device) not in ("None", "cpu"):
        raise ValueError(f"the engine onnx runs on the CPU; got the device {str(device)!r}")
    with gc_paused():
        model = load_onnx(name, fitted=fitted)
        if not isinstance(model, OnnxModel):
            return MarianEngine(model)
        engine = OnnxEngine(model, name)
        place = local_model(name) or BUNDLED / name.lower()
        engine.discriminator = FutureDiscriminator.read(place, model.shape.width)
        return engine


def _gguf(name: str, *, device: Any, fitted: bool, **options: Any) -> Engine:
    from ..engines.gguf import GgufEngine
    from ..models.gguf_model import is_gguf, load_gguf

    if options:
        raise ValueError(f"the engine gguf takes no {next(iter(options))}; its numbers are those of the GGUF file")
    if (place := str(device)) not in ("None", "cpu", "cuda", "mps"):
        raise ValueError(f"the engine gguf runs on cpu, cuda or mps; got the device {place!r}")
    model = load_gguf(name, gpu=None if device is None else place != "cpu")
    return GgufEngine(model, "" if is_gguf(name) else name)  # a file's name without its folder


# Functions that load a model by name. A new engine adds a line.
ENGINES: dict[str, Callable[..., Engine]] = {"transformers": _transformers, "onnx": _onnx, "gguf": _gguf}


def _device(wanted: Any) -> Any:  # torch.device
    import torch

    if wanted is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(wanted)
        torch.empty(0, device=device)  # torch.device accepts names of absent devices
    except (RuntimeError, AssertionError, ImportError) as error:  # the type depends on the device
        why = str(error).partition("\n")[0].partition(". ")[0]
        if why.startswith("Expected one of"):  # torch lists some twenty names, most of them exotic
            why = "unknown device type; examples are cuda, cuda:1 and mps"
        raise ValueError(f"cannot run on device {str(wanted)!r} here: {why}; the device 'cpu' always works") from error
    return device
