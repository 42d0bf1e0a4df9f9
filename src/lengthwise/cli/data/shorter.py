"""`lengthwise data shorter`: make shorter texts of texts, as training data for a model that rewrites."""

import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

from .. import options
from ..loading import load_in_bfloat16
from ..options import argument, integer, option
from ..terminal import UsageError, print_json, progress_bar


def shorter(
    texts: Annotated[Path, argument('English texts: one per line, or JSON Lines with a "source".')],
    out: options.JsonlOut,
    model: Annotated[str, option("A Marian translator from English, by name, folder or hub id.")],
    back: Annotated[str, option("A Marian translator into English.", "MODEL")],
    language_model: Annotated[str, option("A causal language model of English.", "MODEL")] = "smollm2-plain",
    beams: Annotated[int, integer("Beam size.")] = 2,
    char_cost: Annotated[float, option("Cost of a paraphrase, per character.", "NATS", min=0)] = 0.15,
    forms: Annotated[int, integer("Forms of a sentence that rules draw in each of five ranges of lengths.")] = 3,
    batch_tokens: Annotated[int | None, integer("Source tokens per batch. [default: GPU 32768, else 1024]")] = None,
    workers: Annotated[int | None, integer("Processes that apply the rules. [default: one per core]", 0)] = None,
    seed: options.Seed = 0,
    device: options.Device = None,
    as_json: options.Json = False,
) -> None:
    """Make shorter texts of English texts, as training data for a model that rewrites.

    \b
    lengthwise data shorter texts.txt shorter.jsonl --model Helsinki-NLP/opus-mt-en-fr \\
      --back Helsinki-NLP/opus-mt-fr-en

    Rules leave parts of each sentence, and of a paraphrase of it by both translators, out in many ways. The
    translators and a language model choose the form that says most in each of five ranges of lengths, if it is sound.
    Of a text of several sentences, some are left out. Texts without a shorter one are written to OUT.dropped.jsonl. The
    same command resumes an interrupted run.
    """
    from ...distill.prompts import sentences

    asked = sentences(texts)  # raises before torch is imported
    from ...distill.marian import Marian
    from ...distill.shorter_pairs import Models, Settings, gather

    there, opposite, causal = (load_in_bfloat16(name, device) for name in (model, back, language_model))
    gpu = there.model.device.type == "cuda"
    if causal.engine.encoder_decoder:
        raise UsageError(f"--language-model must have only a decoder; {language_model} also has an encoder")
    size = batch_tokens or (32768 if gpu else 1024)
    models = Models(Marian(there, beams, size), Marian(opposite, beams, size), causal.engine)
    if gpu:
        causal.engine.batch_tokens = size
    settings = Settings(beams=beams, char_cost=char_cost, forms=forms, seed=seed)
    count = (os.cpu_count() or 1) if workers is None else workers
    processes = ProcessPoolExecutor(count, get_context("spawn")) if count else nullcontext()
    with processes as pool, progress_bar() as bar:
        advance = partial(bar.advance, bar.add_task("shortening", total=len(asked)))
        report = gather(models, asked, out, settings, pool=pool, progress=advance)
    if as_json:
        print_json(asdict(report))
        return
    print(f"{out}: {report.written:,} shorter texts of {report.texts:,} texts in this run, {report.without:,} without")
