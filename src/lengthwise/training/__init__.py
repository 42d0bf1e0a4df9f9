"""Training: recipes, batches, and the loop that turns them into a model folder.

The training loop is imported when it is first used: reading a recipe does not need it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .recipe import Recipe, RecipeError, load_recipe

_HOME = {"Plan": "estimate", "plan": "estimate", "TrainingError": "run_folder", "train": "loop"}

__all__ = ["Plan", "Recipe", "RecipeError", "TrainingError", "load_recipe", "plan", "train"]

if TYPE_CHECKING:
    from .estimate import Plan, plan
    from .loop import train
    from .run_folder import TrainingError


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module 'lengthwise.training' has no attribute {name!r}")
