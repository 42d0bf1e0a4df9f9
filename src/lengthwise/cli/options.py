"""Options that several commands share, and the parsing of their values."""

from pathlib import Path
from typing import Annotated, Any

import typer

from .terminal import UsageError


def argument(help: str) -> Any:
    return typer.Argument(help=help)


def option(help: str, metavar: str | None = None, *names: str, **limits: Any) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, **limits)


def flag(name: str, help: str, **more: Any) -> Any:
    return typer.Option(name, help=help, **more)


def integer(help: str, minimum: int = 1) -> Any:
    return option(help, "N", min=minimum)


MODEL_HELP = "A name from `lengthwise models`, a folder or a hub id."
WRITER_HELP = "A name from `lengthwise models`, a folder, a GGUF file or a hub id."
ENDPOINT_HELP = "Behind an API: openai:NAME@URL."
DTYPES = ("float32", "bfloat16", "float16")

Json = Annotated[bool, flag("--json", "Print JSON.")]
Model = Annotated[str, option(MODEL_HELP)]
Device = Annotated[str | None, option("Device: cpu, cuda, cuda:1, ... [default: cuda if available, else cpu]", "NAME")]
_DTYPE_HELP = "Number format: float32, bfloat16 (faster in batches on a CPU with AMX) or float16. "
_DTYPE_DEFAULT = "[default: as saved, but float32 for float16 on a CPU]"
Dtype = Annotated[str | None, option(_DTYPE_HELP + _DTYPE_DEFAULT, "NAME")]
_ENGINE_HELP = "What runs the model: onnx (on a CPU, without torch), gguf (llama.cpp) or transformers. "
_ENGINE_DEFAULT = (
    "[default: gguf for GGUF files, onnx on a CPU for models with a short name and exported ones, else transformers]"
)
Engine = Annotated[str | None, option(_ENGINE_HELP + _ENGINE_DEFAULT, "NAME")]
_RAY_HELP = "Many lines: ray, on the workers of a Ray cluster (ray:transformers names their engine). "
BulkEngine = Annotated[str | None, option(_ENGINE_HELP + _RAY_HELP + _ENGINE_DEFAULT, "NAME")]
RayAddress = Annotated[
    str | None, option("--engine ray: the cluster. [default: $RAY_ADDRESS, else this machine]", "HOST:PORT")
]
Workers = Annotated[int | None, integer("--engine ray: number of workers. [default: one per GPU, or per 4 cores]")]
Journal = Annotated[Path | None, option("--engine ray: keep finished texts here; the same command resumes.", "FILE")]
InPlace = Annotated[bool, flag("--in-place", "String files: write to FILE itself, not to --out.")]
Encoding = Annotated[str, option("The encoding of string files that are not UTF-8 and do not name one.", "NAME")]
Beams = Annotated[int, integer("Beam size.")]
Explain = Annotated[bool, flag("--explain", "Only say where the length lies among the model's usual ones.")]
MaxCalls = Annotated[int | None, integer("Calls of an API for one text at most. [default: 8]")]
Candidates = Annotated[int, integer("Generate N candidates and keep the best one.")]
Seed = Annotated[int, integer("Seed for sampling.", 0)]
System = Annotated[str | None, option("System prompt: instructions before the prompt.")]
Temperature = Annotated[float, option("Sampling temperature.", "T", min=0.01)]
TopP = Annotated[float, option("Top-p (nucleus) sampling among the top 50 tokens.", "P", min=0, max=1)]
Metrics = Annotated[str | None, option("Compute only these. [default: all that apply]", "A,B")]
Fields = Annotated[str | None, option("Field names of source and target.", "A,B")]
ReverseModel = Annotated[str | None, option("Target-to-source model, for coverage, tail and reverse.", "MODEL")]


def _jsonl(path: Path) -> Path:
    if path.suffix != ".jsonl":
        raise UsageError(f"OUT must be a .jsonl file, because rows are appended one by one; got {path}")
    return path


JsonlOut = Annotated[Path, typer.Argument(help="The .jsonl file to write, or to resume.", callback=_jsonl)]


def metric_names(text: str | None, reverse: str | None = None) -> list[str] | None:
    """'bleu,chrf' → ['bleu', 'chrf']; without the metrics that a model given by --reverse adds."""
    from ..metrics.likelihood import reverse_metrics

    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError(f"--metrics takes names such as bleu,mae; got {text!r}")
    added = {name.partition(":")[0] for name in reverse_metrics(reverse)}
    return [name for name in names if name.lower() not in added]


def field_names(text: str | None) -> tuple[str, str] | None:
    """'title,text' → ('title', 'text')"""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names):
        raise UsageError(f"--fields takes two names, of source and target, such as title,text; got {text!r}")
    return names[0], names[1]


def numbers(option: str, text: str) -> tuple[float, ...]:
    """'0.9,1.0' → (0.9, 1.0)"""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"{option} takes numbers separated by commas; got {text!r}") from None
