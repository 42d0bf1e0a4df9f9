"""`lengthwise data`: corpora are built and looked at. What a corpus is, `lengthwise.data` knows."""

import json
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from .evaluate import names_of
from .terminal import SOME_DO_NOT_FIT, Json, complain, console, print_json, progress_bar

app = typer.Typer(add_completion=False, rich_markup_mode=None, invoke_without_command=True)


@app.callback()
def data(context: typer.Context) -> None:
    """Build and check corpora.

    \b
    lengthwise data debian --pair en-it corpus
    lengthwise data check corpus/debian.en-it.train.jsonl.gz
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
    from ..data.debian import build

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
    from ..data import Limits, Report, read

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
