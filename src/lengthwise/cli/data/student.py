"""`lengthwise data student`: translate sentences with a teacher, as training data for a smaller translator."""

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from .. import options
from ..loading import load_in_bfloat16
from ..options import argument, integer, option
from ..terminal import UsageError, print_json, progress_bar


def student(
    sources: Annotated[Path, argument('JSON Lines with a "source", or text with one sentence per line.')],
    out: options.JsonlOut,
    model: Annotated[str, option("The teacher: a Marian translator, by name, folder or hub id.")],
    beams: Annotated[int, integer("Beam size.")] = 4,
    char_cost: Annotated[str, option("Costs in nats per character: one a sentence; with --ratios, all.", "LIST")] = "0",
    margin: Annotated[float, option("How much less probable a shorter beam may be, per token.", "NATS", min=0)] = 0.1,
    ratios: Annotated[str, option("Also translate within these multiples of the source's length.", "LIST")] = "",
    reverse: Annotated[str, option("Target-to-source model that chooses what --ratios adds.", "MODEL")] = "",
    reverse_margin: Annotated[float, option("Its loss, per token, compared with no limit.", "NATS", min=0)] = 0.75,
    abridged: Annotated[int, integer("With --ratios: forms of a sentence without some words to translate.", 0)] = 0,
    batch_tokens: Annotated[int | None, integer("Source tokens per batch. [default: GPU 32768, else 1024]")] = None,
    seed: options.Seed = 0,
    device: options.Device = None,
    as_json: options.Json = False,
) -> None:
    """Translate sentences with a teacher, as training data for a smaller translator.

    \b
    lengthwise data student sentences.txt student.jsonl --model Helsinki-NLP/opus-mt-en-fr --char-cost 0,0,0.3

    The best of `--beams` translations is kept, and a shorter one that is nearly as probable. With a cost, translations
    are shorter; a student that receives a length needs short and long ones. With `--ratios 0.9,1.0,1.1`, sentences are
    also translated within these multiples of their length in characters, with each of the costs, and `--reverse`
    chooses the translation that says most; `--abridged 16` adds translations of 16 forms of the sentence without some
    of its words. On a GPU every step is a CUDA graph. The same command resumes an interrupted
    run.
    """
    costs = options.numbers("--char-cost", char_cost)
    if min(costs) < 0:
        raise UsageError(f"--char-cost must be at least 0; got {char_cost}")
    limits = options.numbers("--ratios", ratios) if ratios else ()
    if min(limits, default=1) <= 0:
        raise UsageError(f"--ratios must be above 0; got {ratios}")
    if abridged and not limits:
        raise UsageError("--abridged needs --ratios, the lengths that are looked for")
    if bool(limits) != bool(reverse):
        raise UsageError("--ratios and --reverse belong together: the reverse model chooses among the translations")
    from ...distill.prompts import sentences

    asked = sentences(sources)  # raises before torch is imported
    from ...distill.student_pairs import MAX_SOURCE, Settings, gather
    from ...scoring.reverse import ReverseModel

    writer = load_in_bfloat16(model, device)
    reverse_model = ReverseModel(load_in_bfloat16(reverse, device).engine) if reverse else None
    gpu = writer.model.device.type == "cuda"
    more: dict[str, Any] = {"ratios": limits, "reverse_margin": reverse_margin, "abridged": abridged, "seed": seed}
    settings = Settings(beams=beams, char_costs=costs, margin=margin, **more)
    with progress_bar() as bar:
        advance = partial(bar.advance, bar.add_task("translating", total=len(asked)))
        size = batch_tokens or (32768 if gpu else 1024)
        report = gather(writer, asked, out, settings, reverse=reverse_model, batch_tokens=size, progress=advance)
    if as_json:
        print_json(asdict(report))
        return
    print(f"{out}: {report.written:,} translations of {report.sentences:,} sentences in this run")
    if report.unfinished or report.too_long:
        print(f"left out: {report.unfinished:,} that did not end, {report.too_long:,} of more than {MAX_SOURCE} tokens")
