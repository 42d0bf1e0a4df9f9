"""Training: recipes, batches, and the loop that turns them into a model folder.

Each module is imported when one of its names is first used: reading a recipe does not import the training loop.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {
    "Recipe": "recipe",
    "RecipeError": "recipe",
    "load_recipe": "recipe",
    "Plan": "estimate",
    "plan": "estimate",
    "TrainingError": "run_folder",
    "train": "loop",
}

__all__ = ["Plan", "Recipe", "RecipeError", "TrainingError", "load_recipe", "plan", "train"]

if TYPE_CHECKING:
    from .estimate import Plan, plan
    from .loop import train
    from .recipe import Recipe, RecipeError, load_recipe
    from .run_folder import TrainingError


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module 'lengthwise.training' has no attribute {name!r}")
