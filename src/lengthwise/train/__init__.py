"""Training: recipes, batches, and the loop that turns them into a model folder."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {
    "Recipe": "recipe",
    "RecipeError": "recipe",
    "load_recipe": "recipe",
    "Plan": "plan",
    "plan": "plan",
    "TrainingError": "loop",
    "train": "loop",
}

__all__ = list(_HOME)

if TYPE_CHECKING:
    from .loop import TrainingError, train
    from .plan import Plan, plan
    from .recipe import Recipe, RecipeError, load_recipe


def __getattr__(name: str) -> Any:
    # Submodules keep their own names out of the way: `lengthwise.train.plan` is the function.
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module 'lengthwise.train' has no attribute {name!r}")
