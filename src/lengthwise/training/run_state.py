"""Checkpoints of a run: weights, optimiser state, random state and progress, to resume it with the same result.

  checkpoints/step-00000500/   weights.pt (trained ones), optimiser.pt, random-0.pt (one per process), progress.json
A folder is complete or absent. Frozen weights are not stored: the recipe rebuilds them.
"""

import json
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)

from .. import atomic
from .data_stream import Place

Weights = dict[str, Tensor]


@dataclass
class Progress:
    """The progress of a run, as stored in its checkpoints."""

    step: int = 0
    place: Place = field(default_factory=Place)
    tokens: int = 0  # without padding
    seconds: float = 0.0
    best: float | None = None  # dev loss
    best_step: int = 0
    stale: int = 0  # evaluations since the best
    done: bool = False
    interrupted: bool = False  # saved at Ctrl-C: deleted once there is a later checkpoint


def checkpoints(run: Path) -> list[Path]:
    """Return the complete checkpoints of a run, oldest first."""
    return sorted((run / "checkpoints").glob("step-" + "[0-9]" * 8))


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("step-"))


def save_checkpoint(run: Path, progress: Progress, model: Any, optimizer: Any, accelerator: Any) -> Path:
    """Write a checkpoint and return its folder. Every process calls this: sharded weights are gathered from all."""
    place = run / "checkpoints" / f"step-{progress.step:08d}"
    partial = place.with_name(f".{place.name}.partial")
    options = StateDictOptions(full_state_dict=True, cpu_offload=True, ignore_frozen_params=True)
    # ignore_frozen_params misses the second name of a frozen weight: an output layer tied to frozen embeddings.
    frozen = {name for name, p in model.named_parameters(remove_duplicate=False) if not p.requires_grad}
    weights = {k: v for k, v in get_model_state_dict(model, options=options).items() if k not in frozen}
    moments = get_optimizer_state_dict(model, optimizer, options=options)
    if accelerator.is_main_process:
        atomic.empty_folder(partial)
        torch.save(weights, partial / "weights.pt")
        torch.save(moments, partial / "optimiser.pt")
        (partial / "progress.json").write_text(json.dumps(asdict(progress), indent=1), encoding="utf-8")
    accelerator.wait_for_everyone()
    random = {"cpu": torch.get_rng_state()} | (
        {"cuda": torch.cuda.get_rng_state()} if torch.cuda.is_available() else {}
    )
    torch.save(random, partial / f"random-{accelerator.process_index}.pt")
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        atomic.replace_folder(place, partial)
    accelerator.wait_for_everyone()
    return place


def load_checkpoint(checkpoint: Path, model: Any, optimizer: Any, accelerator: Any) -> Progress:
    """Restore model, optimiser and random state, and return the progress of the run."""
    options = StateDictOptions(full_state_dict=True, strict=False)
    set_model_state_dict(model, dict[str, Any](read_weights(checkpoint)), options=options)
    moments = torch.load(checkpoint / "optimiser.pt", map_location="cpu", weights_only=True)
    options = StateDictOptions(full_state_dict=True, ignore_frozen_params=True)
    set_optimizer_state_dict(model, optimizer, moments, options=options)
    file = checkpoint / f"random-{accelerator.process_index}.pt"
    if file.exists():  # missing if there were fewer processes: the new ones start from their seeds
        random = torch.load(file, map_location="cpu", weights_only=True)
        torch.set_rng_state(random["cpu"])
        if "cuda" in random and torch.cuda.is_available():
            torch.cuda.set_rng_state(random["cuda"])
    return read_progress(checkpoint)


def read_progress(checkpoint: Path) -> Progress:
    values = json.loads((checkpoint / "progress.json").read_text("utf-8"))
    return Progress(**(values | {"place": Place(**values["place"])}))


def read_weights(checkpoint: Path) -> Weights:
    return torch.load(checkpoint / "weights.pt", map_location="cpu", weights_only=True)


def average(weights: list[Weights]) -> Weights:
    """Return the mean of each tensor; tensors of integers, and those that are all equal, are taken from the last."""
    mean: Weights = {}
    for name, last in weights[-1].items():
        same = not last.is_floating_point() or all(torch.equal(w[name], last) for w in weights)
        mean[name] = last if same else torch.stack([w[name].double() for w in weights]).mean(0).to(last.dtype)
    return mean


def prune(run: Path, keep: int, best: int) -> None:
    """Delete all checkpoints except the last `keep` and the best, and incomplete ones of killed runs.

    A checkpoint of an interrupt is not counted, and is deleted with the next one: otherwise an interrupted run would
    average other checkpoints.
    """
    found = checkpoints(run)
    extra = [path for path in found if read_progress(path).interrupted]
    regular = [path for path in found if path not in extra]
    for old in [*regular[:-keep], *(path for path in extra if path != found[-1])]:
        if step_of(old) != best:
            shutil.rmtree(old)
    for incomplete in (run / "checkpoints").glob(".step-*.partial"):
        shutil.rmtree(incomplete, ignore_errors=True)
