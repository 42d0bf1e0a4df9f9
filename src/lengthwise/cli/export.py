"""`lengthwise export`: convert a model for the onnx engine, or pack its weights."""

from pathlib import Path
from typing import Annotated

from . import options
from .loading import folder
from .options import argument, option
from .terminal import UsageError, print_json


def export(
    model: Annotated[str, argument(options.MODEL_HELP)],
    out: Annotated[Path, argument("The new folder to write.")],
    bits: Annotated[
        int, option("Bits of the weights: 8, 32 for the same scores as with transformers, or 4 to pack them.", "N")
    ] = 8,
    engine: Annotated[str, option("The engine that the model is converted for: onnx, the only one so far.", "NAME")] = (
        "onnx"
    ),
    as_json: options.Json = False,
) -> None:
    """Convert a model for --engine onnx: Llama, Mistral, Qwen2, GPT-2 or Marian, plain or with a countdown head.

    A Marian model may have a length encoding instead; it is also converted on first use, and cached. So is a LoRA
    adapter of a Llama-type or Marian model, which is merged into its base. With --bits 4 the model is not converted:
    its matrices are packed into 4 bits, to be distributed. The engines transformers and onnx read packed weights.

    \b
    lengthwise export my-model my-model-onnx --engine onnx
    lengthwise write "Describe a lighthouse." --length "at most 280 chars" --engine onnx --model my-model-onnx
    """
    if bits not in (4, 8, 32):
        raise UsageError(f"--bits must be 4, 8 or 32; got {bits}")
    if engine != "onnx":
        raise UsageError(f"--engine must be onnx, the only one that models are converted for; got {engine}")
    if bits == 4:
        from ..models.conversion.packing import pack

        pack(folder(model), out)
    else:
        from ..models.conversion.checkpoint import export as convert

        convert(folder(model), out, bits=bits)
    size = sum(file.stat().st_size for file in out.iterdir())
    if as_json:
        print_json({"folder": str(out), "bits": bits, "bytes": size})
    else:
        print(f"{out}: {size / 1e6:.0f} MB")
