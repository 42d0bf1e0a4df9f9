"""`lengthwise discriminator`: train a future discriminator, by which generation steers to exact lengths and windows."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from . import options
from .loading import folder as resolve
from .loading import load_in_bfloat16
from .options import argument, integer, option
from .terminal import UsageError, print_json, progress_bar

if TYPE_CHECKING:
    from rich.progress import TaskID


def discriminator(
    answers: Annotated[Path, argument("Answers of the model, as `lengthwise data answers` writes them.")],
    folder: Annotated[Path, argument("The folder of the model, into which the file is put, or a new folder.")],
    model: Annotated[str | None, option("For a new folder: its plain model. [default: smollm2-plain]", "MODEL")] = None,
    epochs: Annotated[int, integer("Times that all answers are read.")] = 6,
    max_answers: Annotated[int, option("Use N answers at most, drawn at random.", "N", "--answers", min=50)] = 8000,
    seed: options.Seed = 0,
    device: options.Device = None,
    as_json: options.Json = False,
) -> None:
    """Train a future discriminator, by which generation steers to exact lengths and windows.

    \b
    lengthwise data answers prompts.jsonl answers.jsonl --model my-model
    lengthwise discriminator answers.jsonl my-steered-model --model my-model
    lengthwise write "Describe a lighthouse." --length "exactly 300 chars" --model my-steered-model

    It is a small network that predicts, from the model's last hidden state and a next token, how probable it is that a
    sentence, a list item or a table row ends exactly so many tokens, words or characters later. The answers are its
    labels, so sample them from the model itself, to prompts such as those that it will get. FOLDER: that of a
    decoder-only model, plain or with a countdown head. A new one gets only the file, and the name of its plain model.
    The engines transformers and onnx steer by the file. One in 50 answers is held out, and the loss on them is printed
    beside that of constant rates, which must be higher. An earlier file is replaced at the end.
    """
    from ..corpora.readers import read

    documents = read(answers, format="jsonl", fields=("prompt", "response"))  # raises before torch is imported
    base = _base(folder, model)
    writer = load_in_bfloat16(base or str(folder), device)
    from ..models.description import DISCRIMINATOR
    from ..training.future_discriminator import train

    with progress_bar() as bar:
        tasks: dict[tuple[str, int], TaskID] = {}

        def show(what: str, done: int, total: int) -> None:
            if (what, total) not in tasks:
                tasks[what, total] = bar.add_task(what, total=total)
            bar.update(tasks[what, total], completed=done)

        given = {"most": max_answers, "epochs": epochs, "seed": seed}
        found = train(writer.engine, documents, folder, base=base, **given, progress=show)
    if as_json:
        print_json({"file": str(folder / DISCRIMINATOR), **asdict(found)})
        return
    print(f"{folder / DISCRIMINATOR}: {found.answers:,} answers, {found.steps:,} steps, {found.seconds:.0f} s")
    for unit, loss in found.loss.items():
        print(f"{unit:<8} loss {loss:.4f}, of constant rates {found.loss_of_rates[unit]:.4f}")


def _base(folder: Path, model: str | None) -> str | None:
    """Return the name of the plain model of a new folder; None if the folder has a model. Nothing is loaded."""
    from ..models.description import name_of_base
    from ..models.registry import local_model

    if local_model(str(folder)) is not None:
        if model is not None:
            raise UsageError(f"--model is for a new folder, and {folder} has a model; leave out --model")
        if not os.access(folder, os.W_OK):
            raise UsageError(f"no permission to write to {folder}")  # before a training, not after it
        return None
    if folder.exists():
        raise UsageError(f"{folder} exists and has no model; name the folder of a model, or a new one")
    name = model or "smollm2-plain"
    if not (resolve(name) / "config.json").exists():
        other = name_of_base(resolve(name))
        raise UsageError(f"--model must have weights of its own, and those of {name} are those of {other}; give that")
    return str(Path(name).absolute()) if Path(name).is_dir() else name
