"""Options that several commands share, and how their values are parsed. Knows no command and no model."""

from typing import Annotated, Any

import typer

from .terminal import UsageError


def integer(help: str, minimum: int = 1) -> Any:
    """Return an option that is a whole number."""
    return typer.Option(min=minimum, metavar="N", help=help)


def nats(help: str) -> Any:
    """Return an option that is a difference of log-probabilities."""
    return typer.Option(min=0, metavar="NATS", help=help)


MODEL_HELP = "A name from `lengthwise models`, a folder or a hub id."
DTYPES = ("float32", "bfloat16", "float16")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Model = Annotated[str, typer.Option(help=MODEL_HELP)]
Device = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Device: cpu, cuda, cuda:1, ... [default: cuda if available, else cpu]"),
]
Dtype = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Number format: float32, bfloat16 (faster in batches on a CPU with AMX) or float16. "
        "[default: as saved, but float32 for float16 on a CPU]",
    ),
]
Beams = Annotated[int, integer("Beam size.")]
Candidates = Annotated[int, integer("Generate N candidates and keep the best one.")]
Seed = Annotated[int, integer("Seed for sampling.", 0)]
System = Annotated[str | None, typer.Option(help="System prompt: instructions before the prompt.")]
Temperature = Annotated[float, typer.Option(min=0.01, metavar="T", help="Sampling temperature.")]
TopP = Annotated[
    float, typer.Option(min=0, max=1, metavar="P", help="Top-p (nucleus) sampling among the top 50 tokens.")
]
Metrics = Annotated[str | None, typer.Option(metavar="A,B", help="Compute only these. [default: all that apply]")]
Fields = Annotated[str | None, typer.Option(metavar="A,B", help="Field names of source and target.")]
ReverseModel = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="Reverse model (target to source); adds the metrics coverage, tail, reverse."),
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
