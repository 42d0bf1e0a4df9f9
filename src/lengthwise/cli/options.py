"""Options that several commands share, and how their values are parsed. Knows no command and no model."""

from typing import Annotated, Any

import typer

from .terminal import UsageError


def argument(help: str) -> Any:
    return typer.Argument(help=help)


def option(help: str, metavar: str | None = None, *names: str, **limits: Any) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, **limits)


def flag(name: str, help: str) -> Any:
    return typer.Option(name, help=help)


def integer(help: str, minimum: int = 1) -> Any:
    return option(help, "N", min=minimum)


def nats(help: str) -> Any:
    """Return an option that is a difference of log-probabilities."""
    return option(help, "NATS", min=0)


MODEL_HELP = "A name from `lengthwise models`, a folder or a hub id."
DTYPES = ("float32", "bfloat16", "float16")

Json = Annotated[bool, flag("--json", "Print JSON.")]
Model = Annotated[str, option(MODEL_HELP)]
Device = Annotated[str | None, option("Device: cpu, cuda, cuda:1, ... [default: cuda if available, else cpu]", "NAME")]
Dtype = Annotated[
    str | None,
    option(
        "Number format: float32, bfloat16 (faster in batches on a CPU with AMX) or float16. "
        "[default: as saved, but float32 for float16 on a CPU]",
        "NAME",
    ),
]
Beams = Annotated[int, integer("Beam size.")]
Candidates = Annotated[int, integer("Generate N candidates and keep the best one.")]
Seed = Annotated[int, integer("Seed for sampling.", 0)]
System = Annotated[str | None, option("System prompt: instructions before the prompt.")]
Temperature = Annotated[float, option("Sampling temperature.", "T", min=0.01)]
TopP = Annotated[float, option("Top-p (nucleus) sampling among the top 50 tokens.", "P", min=0, max=1)]
Metrics = Annotated[str | None, option("Compute only these. [default: all that apply]", "A,B")]
Fields = Annotated[str | None, option("Field names of source and target.", "A,B")]
ReverseModel = Annotated[
    str | None, option("Reverse model (target to source); adds the metrics coverage, tail, reverse.", "MODEL")
]


def metric_names(text: str | None) -> list[str] | None:
    """'bleu,chrf' → ['bleu', 'chrf']"""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError(f"--metrics names metrics, for example bleu,mae; got {text!r}")
    return names


def field_names(text: str | None) -> tuple[str, str] | None:
    """'title,text' → ('title', 'text')"""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names):
        raise UsageError(f"--fields are two names, of the source and of the reference: title,text; got {text!r}")
    return names[0], names[1]


def numbers(option: str, text: str) -> tuple[float, ...]:
    """'0.9,1.0' → (0.9, 1.0)"""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"{option} takes numbers with commas between them; got {text!r}") from None
