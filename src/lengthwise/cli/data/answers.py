"""`lengthwise data answers`: sample a model's answers to prompts, as training data."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from .. import options
from ..loading import load
from ..options import argument, integer
from ..terminal import print_json, progress_bar


def answers(
    prompts: Annotated[Path, argument('JSON Lines with a field "prompt", or text with one prompt per line.')],
    out: options.JsonlOut,
    model: options.Model = "smollm2-plain",
    samples: Annotated[int, integer("Answers sampled per prompt.")] = 1,
    temperature: options.Temperature = 0.8,
    top_p: options.TopP = 0.95,
    max_tokens: Annotated[int, integer("Maximum tokens per answer; longer ones are cut.")] = 448,
    min_tokens: Annotated[int, integer("Minimum tokens per answer.", 0)] = 0,
    batch_size: Annotated[int | None, integer("Answers per batch. [default: GPU 512, else 32]")] = None,
    seed: options.Seed = 0,
    device: options.Device = None,
    as_json: options.Json = False,
) -> None:
    """Sample a model's answers to prompts, as training data.

    \b
    lengthwise data answers prompts.jsonl answers.jsonl --model smollm2-plain

    An answer of more than --max-tokens is cut after its last whole sentence, list item or table row. Empty, repetitive
    and broken answers are written to OUT.dropped.jsonl, with the reason. The same command resumes an interrupted run.
    """
    from ...distill.prompts import questions

    asked = questions(prompts, samples)
    writer = load(model, device)
    from ...distill.answers import answer

    on_gpu = writer.model.device.type == "cuda"
    if on_gpu:
        writer.model.bfloat16()
    sampling: dict[str, Any] = {"temperature": temperature, "top_p": top_p, "seed": seed}
    limits = {"max_tokens": max_tokens, "min_tokens": min_tokens, "rows": batch_size or (512 if on_gpu else 32)}
    with progress_bar() as bar:
        advance = partial(bar.advance, bar.add_task("writing", total=len(asked)))
        report = answer(writer.engine, asked, out, **sampling, **limits, progress=advance)
    if as_json:
        print_json(report)
        return
    print(f"{out}: {report['kept']:,} answers, {report['finished']:,} complete and {report['cut']:,} cut")
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in report["reasons"].items())
    print(f"left out: {report['dropped']:,}" + (f" ({reasons})" if reasons else ""))
