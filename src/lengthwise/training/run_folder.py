"""The folder of a run: claimed before training, and the model that is left in it afterwards.

    out/recipe.yaml  out/metrics.jsonl  out/checkpoints/…  out/tokenizer/ (of a fresh model)  out/model/
Knows what belongs together in a folder; does not train.
"""

import shutil
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from ..models.checkpoint import origin, save
from . import run_state as state
from .model import build, fresh_tokenizer
from .recipe import Recipe

# Keys that may change between the parts of a run: they move work about and change no result.
_FREE = {"out", "batch.workers", "train.compile", "train.log_every", "train.keep", "train.save_every"}


class TrainingError(RuntimeError):
    """Training cannot go on; the text says why and what to do."""


def claim(recipe: Recipe, resume: bool, accelerator: Any) -> None:
    """Makes the run's folder; an error if another run lives there."""
    own = recipe.out / "recipe.yaml"
    if state.checkpoints(recipe.out) and not resume:
        raise TrainingError(f"{recipe.out} holds a run already; resume it, name another `out`, or delete the folder")
    if own.exists() and state.checkpoints(recipe.out):
        before = _flat(yaml.safe_load(own.read_text("utf-8")))
        now = _flat(recipe.model_dump(mode="json"))
        keys = (before.keys() | now.keys()) - _FREE
        changed = sorted(key for key in keys if before.get(key) != now.get(key))
        if changed:
            shown = ", ".join(f"{key} ({before.get(key)} → {now.get(key)})" for key in changed[:5])
            raise TrainingError(
                f"{recipe.out} holds a run of another recipe: {shown}\n"
                "What to do: name another `out`, delete the folder, or resume with the recipe.yaml in it."
            )
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        recipe.out.mkdir(parents=True, exist_ok=True)
        own.write_text(recipe.text(), encoding="utf-8")
    accelerator.wait_for_everyone()


def _flat(values: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(values, dict):
        return {path: values}
    return {k: v for key, value in values.items() for k, v in _flat(value, f"{path}.{key}" if path else key).items()}


def tokenizer_folder(recipe: Recipe, accelerator: Any) -> Path | None:
    """Where a fresh model's tokenizer is; trained once, by one process, and not again on resuming."""
    if not recipe.model.fresh:
        return None
    folder = recipe.out / "tokenizer"
    if accelerator.is_main_process and not folder.exists():
        partial = folder.with_name(".tokenizer.partial")
        shutil.rmtree(partial, ignore_errors=True)
        fresh_tokenizer(recipe).save_pretrained(partial)
        partial.rename(folder)
    accelerator.wait_for_everyone()
    return folder


def finished(recipe: Recipe) -> bool:
    """Is the training over and the model there? Its recipe.yaml is the last file that `finish` writes."""
    found = state.checkpoints(recipe.out)
    return bool(found) and state.read_progress(found[-1]).done and (recipe.out / "model" / "recipe.yaml").exists()


def finish(recipe: Recipe) -> Path:
    """The final model folder, from the checkpoints: the average of the last ones, or the best on dev, or the last.

    The model is built once more, in the memory of this process: there it is whole, however it was sharded in training.
    """
    found = state.checkpoints(recipe.out)
    if recipe.train.average:
        chosen = found[-recipe.train.average :]
    else:
        best = state.read_progress(found[-1]).best_step
        chosen = [path for path in found if state.step_of(path) == best] or found[-1:]
    built = build(recipe, recipe.out / "tokenizer" if recipe.model.fresh else None)
    trained = state.average([state.read_weights(path) for path in chosen])
    unknown = built.model.load_state_dict(trained, strict=False).unexpected_keys
    if unknown:
        raise TrainingError(f"{chosen[-1]} holds weights that the recipe's model does not have: {unknown[0]}, …")
    if recipe.train.half:
        for parameter in built.model.parameters():
            parameter.data = parameter.data.half()
    base = recipe.model.base and origin(recipe.model.base)
    if base and Path(base).is_dir():
        base = str(Path(base).absolute())  # an adapter must find it from anywhere
    folder = save(built.model, built.tokenizer, recipe.out / "model", base=base, weights=not recipe.model.frozen)
    shutil.copy(recipe.out / "recipe.yaml", folder / "recipe.yaml")
    return folder
