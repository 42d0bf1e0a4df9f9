"""`lengthwise data translations`: sample a translator's translations at several lengths, as training data."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from .. import options
from ..loading import load_in_bfloat16
from ..options import argument, integer, option
from ..terminal import UsageError, print_json, progress_bar


def translations(
    sources: Annotated[Path, argument('JSON Lines with a "source", or text with one sentence per line.')],
    out: options.JsonlOut,
    model: Annotated[str, option("The translator: a name, a folder or a hub id.")],
    reverse: Annotated[str, option("The target-to-source model, which scores translations.")],
    reference_model: Annotated[str, option("Model that makes the best translation. [default: --model]", "MODEL")] = "",
    samples: Annotated[int, integer("Translations sampled per sentence.")] = 12,
    ratios: Annotated[str, option("Lengths relative to the source (with length control).", "LIST")] = "0.8,0.9,1.0,1.1",
    char_cost: Annotated[str, option("Penalties in nats per character (no length control).", "LIST")] = "0,0.15,0.3",
    beams: Annotated[int, integer("Beam size for the best translation.")] = 5,
    temperature: options.Temperature = 0.7,
    top_p: options.TopP = 0.95,
    reverse_margin: Annotated[float, option("Loss in mean log P(source | translation).", "NATS", min=0)] = 0.25,
    tail_margin: Annotated[float, option("The same for the last quarter of the source.", "NATS", min=0)] = 0.25,
    token_margin: Annotated[float, option("The same for each single token of the source.", "NATS", min=0)] = 4.0,
    likelihood_margin: Annotated[float, option("Loss in mean log P(translation | source).", "NATS", min=0)] = 0.3,
    keep: Annotated[int, integer("Translations kept per sentence, at most.")] = 4,
    batch_size: Annotated[int | None, integer("Translations per batch. [default: GPU 4096, else 96]")] = None,
    seed: options.Seed = 0,
    device: options.Device = None,
    as_json: options.Json = False,
) -> None:
    """Sample translations of several lengths, as training data.

    \b
    lengthwise data translations sources.jsonl translations.jsonl \\
      --model Helsinki-NLP/opus-mt-en-fr --reverse Helsinki-NLP/opus-mt-fr-en

    For each sentence, the best translation (by beam search) and a few others are kept. Another
    translation is kept if log P(source | translation) and log P(translation | source) are nearly those of the best
    one; each margin is the largest difference that is accepted. The best translation comes first, the others by length.
    OUT.dropped.jsonl has the translations that were left out, with the reasons. The same command resumes an
    interrupted run. Both models must be for one language pair.
    """
    targets, costs = options.numbers("--ratios", ratios), options.numbers("--char-cost", char_cost)
    if min(targets) <= 0:
        raise UsageError(f"--ratios must be above 0; got {ratios}")
    from ...distill.prompts import sentences

    asked = sentences(sources)  # raises before torch is imported
    from ...distill.sampler import Sampler
    from ...distill.translations import Settings, gather
    from ...scoring.reverse import ReverseModel

    sampling: dict[str, Any] = {"temperature": temperature, "top_p": top_p}
    margins: dict[str, Any] = {"margin": reverse_margin, "tail_margin": tail_margin, "word_margin": token_margin}
    others: dict[str, Any] = {"likelihood_margin": likelihood_margin, "beams": beams, "keep": keep, "seed": seed}
    settings = Settings(each=samples, ratios=targets, char_cost=costs, **sampling, **margins, **others)
    sampler = Sampler(load_in_bfloat16(model, device), **sampling)
    more: dict[str, Any] = {"rows": batch_size or (4096 if sampler.writer.model.device.type == "cuda" else 96)}
    with progress_bar() as bar:
        more["progress"] = partial(bar.advance, bar.add_task("translating", total=len(asked)))
        reverse_model = ReverseModel(load_in_bfloat16(reverse, device).engine)
        if reference_model:
            more["reference_model"] = Sampler(load_in_bfloat16(reference_model, device), **sampling)
        report = gather(sampler, reverse_model, asked, out, settings, **more)
    if as_json:
        print_json(report)
        return
    print(f"{out}: {report['kept']:,} translations of {report['sentences']:,} sentences; {report['without']:,} without")
    if report["kept"]:
        shares = f"below 1.0x {report['below_1.0x']:.1%}, below 0.9x {report['below_0.9x']:.1%}"
        print(f"target/source characters: mean {report['ratio']:.3f}, best {report['best_ratio']:.3f}; {shares}")
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in report["reasons"].items())
    print(f"left out: {report['dropped']:,}" + (f" ({reasons})" if reasons else ""))
