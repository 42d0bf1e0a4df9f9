"""`lengthwise data`: corpora are built and looked at. What a corpus is, `lengthwise.data` knows."""

import json
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from .evaluate import names_of
from .loading import Device, load
from .terminal import SOME_DO_NOT_FIT, Json, UsageError, complain, console, print_json, progress_bar
from .translations import translations

app = typer.Typer(add_completion=False, rich_markup_mode=None, invoke_without_command=True)
app.command()(translations)


@app.callback()
def data(context: typer.Context) -> None:
    """Build and check corpora.

    \b
    lengthwise data debian --pair en-it corpus
    lengthwise data check corpus/debian.en-it.train.jsonl.gz
    lengthwise data prompts prompts.jsonl --topics topics.txt --templates templates.txt
    lengthwise data answers prompts.jsonl answers.jsonl
    lengthwise data translations sources.jsonl translations.jsonl --model opus/en-fr --reverse opus/fr-en
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def debian(
    out: Annotated[Path, typer.Argument(help="The folder to write to.")],
    pair: Annotated[str, typer.Option(help="English and another language: en-it, en-pt_BR, ...")],
    indices: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Translation files to use, without asking apt.")
    ] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Also what is there already.")] = False,
    as_json: Json = False,
) -> None:
    """Build a corpus of package descriptions and their translations, and one of titles, from what apt serves.

    \b
    lengthwise data debian --pair en-it corpus

    Nothing of the system is changed and no privilege is needed. A build that broke off goes on where it was.
    """
    from ..corpora.debian.build import build

    def say(message: str) -> None:
        if message.startswith(("E:", "W:")):
            complain(message)
        else:
            status.update(message)

    with console().status("looking") as status:
        report = build(pair, out, progress=say, rebuild=rebuild, indices=indices)
    if as_json:
        print_json(report)
        return
    for name, made in report.items():
        sizes = ", ".join(f"{part} {made[part]['documents']:,}" for part in ("train", "dev", "test"))
        print(f"{out}/debian.{name}: {sizes} documents; target/source {made['target_to_source_characters']} characters")


@app.command()
def prompts(
    out: Annotated[Path, typer.Argument(help="The file to write: .jsonl, .jsonl.gz, or a text with one a line.")],
    topics: Annotated[Path, typer.Option(metavar="FILE", help="Topics, one a line, under [headings].")],
    templates: Annotated[Path, typer.Option(metavar="FILE", help="Prompts with a {topic} in them, likewise.")],
    count: Annotated[int, typer.Option(min=1, metavar="N", help="How many prompts.")] = 20000,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Which ones, and in which order.")] = 0,
) -> None:
    """Make prompts: topics in the templates that suit them.

    \b
    lengthwise data prompts prompts.jsonl --topics recipes/prompts/topics.txt \\
      --templates recipes/prompts/templates.txt

    A template goes with the topics under the same [heading], one under [any] with all. None comes twice.
    """
    from ..distill.prompts import combine, write_prompts

    write_prompts(out, combine(topics, templates, count, seed))
    print(f"{out}: {count:,} prompts")


@app.command()
def answers(
    prompts: Annotated[Path, typer.Argument(help='JSON Lines with a "prompt", or a text with one a line.')],
    out: Annotated[Path, typer.Argument(help="The file to write, or to go on with: .jsonl.")],
    model: Annotated[
        str, typer.Option(help="A name that `lengthwise models` lists, a folder or hub id.")
    ] = "smollm2-plain",
    each: Annotated[int, typer.Option(min=1, metavar="N", help="Answers to each prompt.")] = 1,
    temperature: Annotated[float, typer.Option(min=0.01, metavar="T", help="How bold the draw is.")] = 0.8,
    top_p: Annotated[
        float,
        typer.Option(min=0, max=1, metavar="P", help="SeededSampler from the likeliest that make up P; 50 at most."),
    ] = 0.95,
    most: Annotated[int, typer.Option(min=1, metavar="N", help="Tokens of an answer; then it is cut.")] = 448,
    least: Annotated[int, typer.Option(min=0, metavar="N", help="Tokens before which it may not be over.")] = 0,
    batch: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Answers at a time. [default: 512 on a GPU, else 32]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The same seed draws the same answers.")] = 0,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Let a model answer prompts: examples to train it on, in its own words.

    \b
    lengthwise data answers prompts.jsonl answers.jsonl --model smollm2-plain

    An answer that is not over after --most tokens is cut back to its last finished sentence. Empty, repetitive and
    broken ones go to OUT.dropped.jsonl, with the reason. A call that broke off goes on where it was.
    """
    from ..distill.prompts import questions

    if out.suffix != ".jsonl":
        raise UsageError(f"rows are added to OUT one by one, so it should be a .jsonl file; got {out}")
    asked = questions(prompts, each)
    writer = load(model, device)
    from ..distill.answers import answer

    on_gpu = writer.model.device.type == "cuda"
    if on_gpu:
        writer.model.bfloat16()
    with progress_bar() as bar:
        task = bar.add_task("writing", total=len(asked))
        report = answer(
            writer,
            asked,
            out,
            temperature=temperature,
            top_p=top_p,
            most=most,
            least=least,
            rows=batch or (512 if on_gpu else 32),
            seed=seed,
            progress=lambda done: bar.advance(task, done),
        )
    if as_json:
        print_json(report)
        return
    print(f"{out}: {report['kept']:,} answers, {report['finished']:,} as they ended and {report['cut']:,} cut")
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in report["reasons"].items())
    print(f"left out: {report['dropped']:,}" + (f" ({reasons})" if reasons else ""))


@app.command()
def check(
    files: Annotated[list[str], typer.Argument(help="Corpora: JSON Lines, TSV, or two texts as 'a.en,a.it'.")],
    fields: Annotated[str | None, typer.Option(metavar="A,B", help="What source and target are called.")] = None,
    as_json: Json = False,
) -> None:
    """Read a corpus to its end and say what is in it: pairs, malformed rows, lengths.

    \b
    lengthwise data check corpus.jsonl.gz
    lengthwise data check corpus.en,corpus.it --json

    Ends with 3 if more rows are malformed than training accepts.
    """
    from ..corpora import Limits, Report, read

    report, accepted = Report(), Limits().max_malformed
    sides = array("L"), array("L")  # characters of each source and target: a corpus may have millions
    with progress_bar() as bar:
        task = bar.add_task("reading", total=None)
        for document in read(list(files), fields=names_of(fields), limits=Limits(max_malformed=1), report=report):
            for pair in document.segments:
                for side, text in zip(sides, pair, strict=True):
                    side.append(len(text.strip()))
            bar.update(task, completed=report.kept)
    lengths = {"source": _spread(sides[0]), "target": _spread(sides[1])}
    lengths["target/source"] = _spread(t / s for s, t in zip(*sides, strict=True))
    if as_json:
        print_json({**json.loads(report.json()), "characters": lengths})
    else:
        print(report)
        _print_lengths(lengths)
    if report.malformed > accepted * report.read:
        complain(f"{report.malformed:,} of {report.read:,} rows are malformed; training accepts {accepted:.0%}")
        raise typer.Exit(SOME_DO_NOT_FIT)


def _spread(values: Iterable[float]) -> dict[str, Any]:
    import numpy as np

    column = np.fromiter(values, dtype=np.float64)
    shares = {"min": 0, "5 %": 5, "median": 50, "95 %": 95, "max": 100}
    found = {name: round(float(np.percentile(column, share)), 2) for name, share in shares.items()}
    return {**found, "mean": round(float(column.mean()), 2)}


def _print_lengths(lengths: dict[str, dict[str, Any]]) -> None:
    print(f"\n{'characters':<14}" + "".join(f"{name:>10}" for name in lengths["source"]))
    for name, spread in lengths.items():
        print(f"{name:<14}" + "".join(f"{value:>10,g}" for value in spread.values()))
