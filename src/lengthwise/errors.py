"""Errors that several packages raise or handle: a model that is not found, PyTorch that is not installed."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class ModelNotFound(LookupError, ValueError):
    """No model called `name` was found.

    `tried`: the places that were searched, in order, each with the reason why the model was not found there.
    `str(error)` lists all of them; `error.short` leaves them out, except for the reason that the hub gave.
    """

    def __init__(self, name: str, problem: str, advice: str, tried: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(name, problem, advice, tried)
        self.name, self.problem, self.advice, self.tried = name, problem, advice, list(tried)
        self.before = self.after = ""

    def put_within(self, before: str, after: str = "") -> None:
        """Make this error's message part of a longer one."""
        self.before, self.after = before + self.before, self.after + after

    @property
    def short(self) -> str:
        reasons = [reason for place, reason in self.tried if place == "the hub"]
        hub = f" The hub: {reasons[0].partition('. ')[0].rstrip('.')}." if reasons else ""
        return self._message(hub)

    def __str__(self) -> str:
        steps = "".join(f"\n  {n}. {place}: {reason}" for n, (place, reason) in enumerate(self.tried, 1))
        return self._message(f" Tried, in order:{steps}" if steps else "")

    def _message(self, tried: str) -> str:
        return f"{self.before}{self.problem}{tried}\nWhat to do: {self.advice}{self.after}"


def how_to_install(extra: str) -> str:
    """Return how to install the packages of one of Lengthwise's extras, such as torch."""
    return f"run pip install '.[{extra}]' in a clone of Lengthwise"


def without_torch(error: ImportError) -> ImportError | None:
    """Return an error that says how to install PyTorch, if its absence is the cause of `error`; else None."""
    package = (error.name or "").partition(".")[0]
    if package not in ("torch", "transformers", "peft", "accelerate"):
        return None
    return ImportError(f"this needs {package}, which is not installed; {how_to_install('torch')}")


def needing_torch(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with errors that say how to install PyTorch, if it is absent."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except ImportError as error:
            if (advice := without_torch(error)) is None:
                raise
            raise advice from error

    return called
