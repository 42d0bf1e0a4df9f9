"""`lengthwise data translations`: sample a translator's translations at several lengths, to train it on."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from .. import options
from ..loading import load
from ..options import argument, integer, nats, option
from ..terminal import UsageError, print_json, progress_bar

if TYPE_CHECKING:
    from ...generation.generator import Writer


def translations(
    sources: Annotated[Path, argument('JSON Lines with a "source", or text with one sentence per line.')],
    out: Annotated[Path, argument("The .jsonl file to write, or to resume.")],
    model: Annotated[str, option("The translator: a name, a folder or a hub id.")],
    reverse: Annotated[str, option("The reverse model (target to source), which scores translations.")],
    reference_model: Annotated[
        str, option("Compare with the best translation of this model. [default: --model]", "MODEL")
    ] = "",
    samples: Annotated[int, integer("Translations sampled per sentence.")] = 12,
    ratios: Annotated[
        str, option("Target lengths relative to the source, for a model with length control.", "LIST")
    ] = "0.8,0.9,1.0,1.1",
    char_cost: Annotated[
        str, option("Penalty per character in sampling, in nats, for a model without it.", "LIST")
    ] = "0,0.15,0.3",
    beams: Annotated[int, integer("Beam size for the best translation.")] = 5,
    temperature: options.Temperature = 0.7,
    top_p: options.TopP = 0.95,
    reverse_margin: Annotated[float, nats("Loss in log P(source | translation), mean per token.")] = 0.25,
    tail_margin: Annotated[float, nats("The same for the last quarter of the source.")] = 0.25,
    token_margin: Annotated[float, nats("The same for each single token of the source.")] = 4.0,
    likelihood_margin: Annotated[float, nats("Loss in log P(translation | source), mean per token.")] = 0.3,
    keep: Annotated[int, integer("Translations kept per sentence, at most.")] = 4,
    batch_size: Annotated[int | None, integer("Translations at a time. [default: GPU 4096, else 96]")] = None,
    seed: options.Seed = 0,
    device: options.Device = None,
    as_json: options.Json = False,
) -> None:
    """Sample translations of several lengths.

    \b
    lengthwise data translations sources.jsonl translations.jsonl \\
      --model Helsinki-NLP/opus-mt-en-fr --reverse Helsinki-NLP/opus-mt-fr-en

    They are examples to train the translator on. For each sentence, its best translation is kept, and a few others.
    Given one of these, the reverse model must assign the source, its end and each of its tokens nearly the
    log-probability that it assigns given the best translation; each margin is a loss that is allowed. The best
    translation comes first, the others by length. OUT.dropped.jsonl says why translations were left out. The same
    command resumes an interrupted run. Both models translate one language pair.
    """
    if out.suffix != ".jsonl":
        raise UsageError(f"rows are added to OUT one by one, so it should be a .jsonl file; got {out}")
    targets, costs = options.numbers("--ratios", ratios), options.numbers("--char-cost", char_cost)
    if min(targets) <= 0:
        raise UsageError(f"--ratios are above 0; got {ratios}")
    from ...distill.prompts import sentences

    asked = sentences(sources)  # raises before torch is imported
    from ...distill.sampler import Sampler
    from ...distill.translations import Settings, gather
    from ...scoring.reverse import ReverseModel

    sampling: dict[str, Any] = {"temperature": temperature, "top_p": top_p}
    margins: dict[str, Any] = {"margin": reverse_margin, "tail_margin": tail_margin, "word_margin": token_margin}
    margins["likelihood_margin"] = likelihood_margin
    settings = Settings(
        each=samples, ratios=targets, char_cost=costs, beams=beams, keep=keep, seed=seed, **sampling, **margins
    )
    sampler = Sampler(_half_precision(load(model, device)), **sampling)
    rows = batch_size or (4096 if sampler.writer.model.device.type == "cuda" else 96)
    with progress_bar() as bar:
        advance = partial(bar.advance, bar.add_task("translating", total=len(asked)))
        reverse_model = ReverseModel(_half_precision(load(reverse, device)).engine)
        reference = Sampler(_half_precision(load(reference_model, device)), **sampling) if reference_model else None
        report = gather(
            sampler, reverse_model, asked, out, settings, reference_model=reference, rows=rows, progress=advance
        )
    if as_json:
        print_json(report)
        return
    print(f"{out}: {report['kept']:,} translations of {report['sentences']:,} sentences; none of {report['without']:,}")
    if report["kept"]:
        print(
            f"target/source characters: mean {report['ratio']:.3f}, of the best ones {report['best_ratio']:.3f}; "
            f"below 1.0x {report['below_1.0x']:.1%}, below 0.9x {report['below_0.9x']:.1%}"
        )
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in report["reasons"].items())
    print(f"left out: {report['dropped']:,}" + (f" ({reasons})" if reasons else ""))


def _half_precision(writer: "Writer") -> "Writer":
    """Convert a model on a GPU to bfloat16, which overflows for no model, unless it is stored as float16."""
    import torch

    if writer.model.device.type == "cuda" and writer.model.dtype != torch.float16:
        writer.model.bfloat16()
    return writer
