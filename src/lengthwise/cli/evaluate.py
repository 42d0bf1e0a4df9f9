"""`lengthwise evaluate`: a model writes a test set, and the outputs are scored."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .loading import Device, folder, load
from .terminal import SOME_DO_NOT_FIT, Json, UsageError, complain, console, print_json, progress_bar, telling_if_stopped

if TYPE_CHECKING:
    from rich.progress import Task

ReverseModel = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="Also coverage, tail, reverse: by this model, which translates back."),
]


def evaluate(
    model: Annotated[str, typer.Argument(help="A name that `lengthwise models` lists, a folder or hub id.")],
    data: Annotated[str, typer.Argument(help="The test set: JSON Lines, TSV, or two texts as 'test.en,test.it'.")],
    length: Annotated[
        str,
        typer.Option(help="'at most 75 chars', '1.0x' of the source, 'reference:words', ... Must be given."),
    ] = "",
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep outputs, scores and plots here.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only the first N texts.")] = None,
    fields: Annotated[str | None, typer.Option(metavar="A,B", help="What source and reference are called.")] = None,
    system: Annotated[str | None, typer.Option(help="Instructions that come before each text.")] = None,
    beams: Annotated[int, typer.Option(min=1, metavar="N", help="Search with so many beams.")] = 1,
    candidates: Annotated[int, typer.Option(min=1, metavar="N", help="Write so many and keep the best.")] = 1,
    soft: Annotated[bool, typer.Option("--soft", help="Soft control alone: told the length, not held to it.")] = False,
    truncate: Annotated[bool, typer.Option("--truncate", help="Baseline: cut what is written freely.")] = False,
    length_penalty: Annotated[
        str | None, typer.Option(metavar="FORM:N", help="Baseline: gnmt:0.5 or fairseq:0.5 over the n best.")
    ] = None,
    rerank: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="Baseline: of N best, the nearest to the source.")
    ] = None,
    metrics: Annotated[str | None, typer.Option(metavar="A,B", help="Only these. [default: all that apply]")] = None,
    reverse: ReverseModel = None,
    against: Annotated[Path | None, typer.Option(metavar="DIR", help="Test the difference to this evaluation.")] = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Score a model on a test set, at the lengths you say.

    \b
    lengthwise evaluate smollm2 test.jsonl --length reference:words --out results/fit
    lengthwise evaluate smollm2 test.jsonl --length reference:words --truncate --out results/cut --against results/fit

    What was decoded into --out before, with the same settings, is not decoded again. --against needs an evaluation of
    the same texts at the same --length. The baselines are not told the
    length, unless --soft is given too. Ends with 3 if a text could not be written; it counts as an empty one.
    """
    from ..evaluation.run import How, Length, look, mark
    from ..evaluation.run import evaluate as run

    if not length:
        raise UsageError("how long shall the texts be? For example --length 'at most 75 chars' or reference:chars")
    asked = Length.parse(length)
    how = How(system, beams, candidates, soft, truncate, length_penalty, rerank)
    names = names_of(fields)
    look(data, asked, names, against)
    weights = mark(folder(model))
    writer = load(model, device)
    with progress_bar() as bar:
        task = bar.add_task("writing", total=None)
        back = bar.add_task("translating back", total=None, visible=False)
        with telling_if_stopped(partial(_stopped, bar.tasks[task])):
            found = run(
                writer,
                data,
                asked,
                how,
                out=out,
                limit=limit,
                fields=names,
                metrics=split(metrics),
                reverse=reverse,
                against=against,
                model=weights,
                progress=lambda done, total: bar.update(task, completed=done, total=total),
                back_progress=lambda done, total: bar.update(back, completed=done, total=total, visible=True),
            )
    from ..evaluation.report import as_markdown, as_plain

    if as_json:
        print_json(as_plain(found))
    else:
        print(as_markdown(found), end="", flush=True)
    if out is not None:
        console().print(f"see {out}/scores.md", style="dim")
    if failed := found.about["not written"]:
        complain(f"of {len(found.texts)} texts, {failed} could not be written; they count as empty")
        raise typer.Exit(SOME_DO_NOT_FIT)


def _stopped(task: "Task") -> str:
    return f"stopped: {task.completed:,} of {task.total or 0:,} texts were written"


def split(names: str | None) -> list[str] | None:
    """'bleu,chrf' → its parts."""
    if names is None:
        return None
    found = [name.strip() for name in names.split(",") if name.strip()]
    if not found:
        raise UsageError(f"--metrics names metrics, for example bleu,mae; got {names!r}")
    return found


def names_of(fields: str | None) -> tuple[str, str] | None:
    if fields is None:
        return None
    parts = [part.strip() for part in fields.split(",")]
    if len(parts) != 2 or not all(parts):
        raise UsageError(f"--fields are two names, of the source and of the reference: title,text; got {fields!r}")
    return parts[0], parts[1]
