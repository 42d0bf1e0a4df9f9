"""`lengthwise data translations`: a model's own translations at different lengths, to train it on."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .loading import Device, load
from .terminal import Json, UsageError, print_json, progress_bar

if TYPE_CHECKING:
    from ..generation.generator import Writer


def translations(
    sources: Annotated[Path, typer.Argument(help='JSON Lines with a "source", or a text with one a line.')],
    out: Annotated[Path, typer.Argument(help="The file to write, or to go on with: .jsonl.")],
    model: Annotated[str, typer.Option(help="The translator: a name, a folder or hub id.")],
    reverse: Annotated[str, typer.Option(help="A translator in the other direction, which judges.")],
    standard: Annotated[
        str,
        typer.Option(metavar="MODEL", help="Its best translation is what others are compared with. [default: --model]"),
    ] = "",
    each: Annotated[int, typer.Option(min=1, metavar="N", help="Translations drawn of each sentence.")] = 12,
    ratios: Annotated[
        str,
        typer.Option(
            metavar="LIST", help="Lengths to ask for, if the model knows length: times the source's characters."
        ),
    ] = "0.8,0.9,1.0,1.1",
    thrift: Annotated[
        str, typer.Option(metavar="LIST", help="What a character costs in the draw, in nats, if it does not.")
    ] = "0,0.15,0.3",
    beams: Annotated[int, typer.Option(min=1, metavar="N", help="For the best translation.")] = 5,
    temperature: Annotated[float, typer.Option(min=0.01, metavar="T", help="How bold the draw is.")] = 0.7,
    top_p: Annotated[
        float,
        typer.Option(min=0, max=1, metavar="P", help="SeededSampler from the likeliest that make up P; 50 at most."),
    ] = 0.95,
    margin: Annotated[
        float, typer.Option(min=0, metavar="NATS", help="By how much the source may be harder to read back, a token.")
    ] = 0.25,
    tail_margin: Annotated[float, typer.Option(min=0, metavar="NATS", help="And its last quarter, a token.")] = 0.25,
    word_margin: Annotated[float, typer.Option(min=0, metavar="NATS", help="And any one of its tokens.")] = 4.0,
    doubt: Annotated[
        float, typer.Option(min=0, metavar="NATS", help="By how much a translation may be less likely, a token.")
    ] = 0.3,
    keep: Annotated[int, typer.Option(min=1, metavar="N", help="Translations of a sentence that are kept.")] = 4,
    batch: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Translations at a time. [default: 4096 on a GPU, else 96]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The same seed draws the same translations.")] = 0,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Let a translator translate at different lengths, and keep what a reverse model can still read.

    \b
    lengthwise data translations sources.jsonl translations.jsonl \\
      --model Helsinki-NLP/opus-mt-en-fr --reverse Helsinki-NLP/opus-mt-fr-en

    Of each sentence the model's best translation is kept and a few that say as much: from them --reverse reads the
    source, its end and each of its words as surely as from the best one, but for the margins, and --model finds them
    nearly as likely. The best one comes first, then by length. OUT.dropped.jsonl says why others were left out. A call
    that broke off goes on where it was. Both models translate from one language to one other.
    """
    if out.suffix != ".jsonl":
        raise UsageError(f"rows are added to OUT one by one, so it should be a .jsonl file; got {out}")
    asked_ratios, asked_thrift = _numbers("--ratios", ratios), _numbers("--thrift", thrift)
    if min(asked_ratios) <= 0:
        raise UsageError(f"--ratios are above 0; got {ratios}")
    from ..distill.translations import Settings, gather, sentences

    asked = sentences(sources)
    from ..distill.sampler import Sampler
    from ..scoring.reverse import ReverseModel

    settings = Settings(
        each=each,
        ratios=asked_ratios,
        thrift=asked_thrift,
        beams=beams,
        temperature=temperature,
        top_p=top_p,
        margin=margin,
        tail_margin=tail_margin,
        word_margin=word_margin,
        doubt=doubt,
        keep=keep,
        seed=seed,
    )
    draws: dict[str, Any] = {"temperature": temperature, "top_p": top_p}
    sampler = Sampler(_halved(load(model, device)), **draws)
    on_gpu = sampler.writer.model.device.type == "cuda"
    with progress_bar() as bar:
        task = bar.add_task("translating", total=len(asked))
        report = gather(
            sampler,
            ReverseModel(_halved(load(reverse, device))),
            asked,
            out,
            settings,
            standard=Sampler(_halved(load(standard, device)), **draws) if standard else None,
            rows=batch or (4096 if on_gpu else 96),
            progress=lambda done: bar.advance(task, done),
        )
    if as_json:
        print_json(report)
    else:
        _print(out, report)


def _halved(writer: "Writer") -> "Writer":
    """In half precision on a GPU: as it is stored, if that is half; else bfloat16, which overflows for no model."""
    import torch

    if writer.model.device.type == "cuda" and writer.model.dtype != torch.float16:
        writer.model.bfloat16()
    return writer


def _numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"{option} takes numbers with commas between them; got {text!r}") from None


def _print(out: Path, report: dict[str, Any]) -> None:
    print(f"{out}: {report['kept']:,} translations of {report['sentences']:,} sentences; none of {report['without']:,}")
    if report["kept"]:
        print(
            f"target/source characters: mean {report['ratio']:.3f}, of the best ones {report['best_ratio']:.3f}; "
            f"below 1.0x {report['below_1.0x']:.1%}, below 0.9x {report['below_0.9x']:.1%}"
        )
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in report["reasons"].items())
    print(f"left out: {report['dropped']:,}" + (f" ({reasons})" if reasons else ""))
