"""The folder of a run: created before training, completed with the final model after it.

out/recipe.yaml  out/metrics.jsonl  out/checkpoints/…  out/tokenizer/ (of a fresh or smaller model)  out/model/
"""

import shutil
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from .. import atomic
from ..models.checkpoint import save
from ..models.description import base_name
from ..settings_file import SettingsMismatch, check_settings
from . import run_state as state
from .fresh_model import fresh_tokenizer
from .model import build
from .recipe import Recipe, parse_recipe
from .smaller_model import save_smaller_tokenizer

# Keys that can differ when a run is resumed: they change no result.
_FREE = {"out", "batch.workers", "train.compile", "train.log_every", "train.keep", "train.save_every"}


class TrainingError(RuntimeError):
    """Training cannot continue; the text says why and what to do."""


def claim(recipe: Recipe, resume: bool, accelerator: Any) -> None:
    """Create the run's folder; raise an error if it holds another run."""
    own = recipe.out / "recipe.yaml"
    if state.checkpoints(recipe.out):
        if not resume:
            raise TrainingError(f"{recipe.out} has a run already; resume it, give another `out`, or delete the folder")
        try:
            check_settings(
                own, _flat(recipe), read=lambda text: _flat(parse_recipe(yaml.safe_load(text))), ignore=_FREE
            )
        except SettingsMismatch as error:
            shown = ", ".join(f"{key} ({old} → {new})" for key, (old, new) in sorted(error.changed.items())[:5])
            raise TrainingError(
                f"{recipe.out} has a run of another recipe: {shown}\n"
                "What to do: give another `out`, delete the folder, or resume with the recipe.yaml in it."
            ) from None
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        recipe.out.mkdir(parents=True, exist_ok=True)
        own.write_text(recipe.text(), encoding="utf-8")
    accelerator.wait_for_everyone()


def _flat(recipe: Recipe) -> dict[str, Any]:
    """Return the values of a recipe by their dotted keys: train.lr, …"""

    def flat(values: Any, path: str) -> dict[str, Any]:
        if not isinstance(values, dict):
            return {path.removeprefix("."): values}
        return {k: v for key, value in values.items() for k, v in flat(value, f"{path}.{key}").items()}

    return flat(recipe.model_dump(mode="json"), "")


def tokenizer_folder(recipe: Recipe, accelerator: Any) -> Path | None:
    """Return the folder of a fresh or smaller model's tokenizer, which one process makes when the run starts."""
    if not recipe.model.has_new_tokenizer:
        return None
    folder = recipe.out / "tokenizer"
    if accelerator.is_main_process and not folder.exists():
        with atomic.folder(folder, partial=folder.with_name(".tokenizer.partial")) as partial:
            if recipe.model.smaller:
                save_smaller_tokenizer(recipe, partial)
            else:
                fresh_tokenizer(recipe).save_pretrained(partial)
    accelerator.wait_for_everyone()
    return folder


def finished(recipe: Recipe) -> bool:
    """Return whether training is done and the model written. Its recipe.yaml is the last file that `finish` writes."""
    found = state.checkpoints(recipe.out)
    return bool(found) and state.read_progress(found[-1]).done and (recipe.out / "model" / "recipe.yaml").exists()


def finish(recipe: Recipe) -> Path:
    """Write the final model and return its folder: the average of the last checkpoints, the best on dev, or the last.

    The model is built again, because the weights of the trained one can be sharded.
    """
    found = state.checkpoints(recipe.out)
    if recipe.train.average:
        chosen = found[-recipe.train.average :]
    else:
        best = state.read_progress(found[-1]).best_step
        chosen = [path for path in found if state.step_of(path) == best] or found[-1:]
    built = build(recipe, recipe.out / "tokenizer" if recipe.model.has_new_tokenizer else None)
    trained = state.average([state.read_weights(path) for path in chosen])
    if unknown := built.model.load_state_dict(trained, strict=False).unexpected_keys:
        raise TrainingError(f"{chosen[-1]} has weights that the recipe's model does not have: {unknown[0]}, …")
    if recipe.train.half:
        for parameter in built.model.parameters():
            parameter.data = parameter.data.half()
    base = recipe.model.base and base_name(recipe.model.base)
    if base and Path(base).is_dir():
        base = str(Path(base).absolute())  # so that the adapter can be loaded from any current folder
    folder = save(built.model, built.tokenizer, recipe.out / "model", base=base, weights=not recipe.model.frozen)
    shutil.copy(recipe.out / "recipe.yaml", folder / "recipe.yaml")
    return folder
