"""`lengthwise evaluate`: write the texts of a test set with a model, and score them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from . import options
from .loading import folder, load
from .options import argument, flag, integer, option
from .terminal import (
    SOME_DO_NOT_FIT,
    UsageError,
    console,
    counted,
    print_json,
    print_message,
    progress_bar,
    report_interrupt,
)


def evaluate(
    model: Annotated[str, argument(options.MODEL_HELP)],
    data: Annotated[str, argument("The test set: JSON Lines, TSV, or two text files as 'test.en,test.it'.")],
    length: Annotated[str, option("Required: 'at most 75 chars', '1.0x' of the source, 'reference:words', ...")] = "",
    out: Annotated[Path | None, option("Save outputs, scores and plots here.", "DIR")] = None,
    limit: Annotated[int | None, integer("Use only the first N texts.")] = None,
    fields: options.Fields = None,
    system: options.System = None,
    beams: options.Beams = 1,
    candidates: options.Candidates = 1,
    soft: Annotated[bool, flag("--soft", "The model receives the length, but no token is masked.")] = False,
    truncate: Annotated[bool, flag("--truncate", "Baseline: write without a budget, then truncate.")] = False,
    length_penalty: Annotated[str | None, option("Baseline: rank beams by gnmt:0.5 or fairseq:0.5.", "FORM:N")] = None,
    rerank: Annotated[int | None, integer("Baseline: of the N best, keep the one with most source words.", 2)] = None,
    metrics: options.Metrics = None,
    reverse: options.ReverseModel = None,
    against: Annotated[Path | None, option("Test the difference to this evaluation (paired bootstrap).", "DIR")] = None,
    device: options.Device = None,
    as_json: options.Json = False,
) -> None:
    """Evaluate a model on a test set, at a given length.

    \b
    lengthwise evaluate smollm2 test.jsonl --length reference:words --out results/fit
    lengthwise evaluate smollm2 test.jsonl --length reference:words --truncate --out results/cut --against results/fit

    Outputs in --out that were made with the same settings are reused. --against needs an evaluation of the same texts
    at the same --length. With a baseline, the model receives the length only if --soft is given.
    Exit code 3: a text could not be written; it counts as an empty text.
    """
    from ..evaluation.baselines import DecodingMode
    from ..evaluation.run import check_inputs, fingerprint
    from ..evaluation.run import evaluate as run
    from ..evaluation.target_length import TargetLength

    if not length:
        raise UsageError("--length is missing; give for example --length 'at most 75 chars' or reference:chars")
    asked = TargetLength.parse(length)
    mode = DecodingMode(system, beams, candidates, soft, truncate, length_penalty, rerank)
    names = options.field_names(fields)
    check_inputs(data, asked, names, against)
    settings: dict[str, Any] = {"limit": limit, "fields": names, "metrics": options.metric_names(metrics, reverse)}
    settings |= {"reverse": reverse, "against": against, "weights": fingerprint(folder(model))}
    writer = load(model, device)
    with progress_bar() as bar:
        task = bar.add_task("writing", total=None)
        back = bar.add_task("translating back", total=None, visible=False)
        shown = bar.tasks[task]
        with report_interrupt(lambda: f"stopped: {shown.completed:,} of {shown.total or 0:,} texts were written"):
            settings["progress"] = lambda done, total: bar.update(task, completed=done, total=total)
            settings["back_progress"] = lambda done, total: bar.update(back, completed=done, total=total, visible=True)
            found = run(writer, data, asked, mode, out=out, **settings)
    from ..evaluation.report import as_markdown, as_plain

    if as_json:
        print_json(as_plain(found))
    else:
        print(as_markdown(found), end="", flush=True)
    if out is not None:
        console().print(f"see {out}/scores.md", style="dim")
    if failed := found.about["not written"]:
        print_message(f"of {counted(len(found.texts), 'text')}, {failed:,} could not be written; they count as empty")
        raise typer.Exit(SOME_DO_NOT_FIT)
