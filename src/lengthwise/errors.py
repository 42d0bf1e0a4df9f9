"""`ModelNotFound`, an error that several packages raise or handle."""

from collections.abc import Sequence


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
