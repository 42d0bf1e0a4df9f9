"""`lengthwise data student`: translate sentences with a teacher, as training data for a smaller translator."""

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

from .. import options
from ..loading import load
from ..options import argument, integer, option
from ..terminal import UsageError, print_json, progress_bar


def student(
    sources: Annotated[Path, argument('JSON Lines with a "source", or text with one sentence per line.')],
    out: options.JsonlOut,
    model: Annotated[str, option("The teacher: a Marian translator, by name, folder or hub id.")],
    beams: Annotated[int, integer("Beam size.")] = 4,
    char_cost: Annotated[str, option("Costs in nats per character, one drawn per sentence.", "LIST")] = "0",
    margin: Annotated[float, option("How much less probable a shorter beam may be, per token.", "NATS", min=0)] = 0.1,
    batch_tokens: Annotated[int | None, integer("Source tokens per batch. [default: GPU 32768, else 1024]")] = None,
    seed: options.Seed = 0,
    device: options.Device = None,
    as_json: options.Json = False,
) -> None:
    """Translate sentences with a teacher, as training data for a smaller translator.

    \b
    lengthwise data student sentences.txt student.jsonl --model Helsinki-NLP/opus-mt-en-fr --char-cost 0,0,0.3

    The best of `--beams` translations is kept, and a shorter one that is nearly as probable. With a cost, translations
    are shorter; a student that receives a length needs short and long ones. On a GPU every step is a CUDA graph. The
    same command resumes an interrupted run.
    """
    costs = options.numbers("--char-cost", char_cost)
    if min(costs) < 0:
        raise UsageError(f"--char-cost must be at least 0; got {char_cost}")
    from ...distill.prompts import sentences

    asked = sentences(sources)  # raises before torch is imported
    from ...distill.student_pairs import MAX_SOURCE, Settings, gather

    writer = load(model, device, engine="transformers")
    if (gpu := writer.model.device.type == "cuda") and str(writer.model.dtype) == "torch.float32":
        writer.model.bfloat16()
    settings = Settings(beams=beams, char_costs=costs, margin=margin, seed=seed)
    with progress_bar() as bar:
        advance = partial(bar.advance, bar.add_task("translating", total=len(asked)))
        size = batch_tokens or (32768 if gpu else 1024)
        report = gather(writer, asked, out, settings, batch_tokens=size, progress=advance)
    if as_json:
        print_json(asdict(report))
        return
    print(f"{out}: {report.written:,} translations of {report.sentences:,} sentences in this run")
    if report.unfinished or report.too_long:
        print(f"left out: {report.unfinished:,} that did not end, {report.too_long:,} of more than {MAX_SOURCE} tokens")
