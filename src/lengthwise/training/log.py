"""The log of a run: metrics.jsonl always, TensorBoard if it is installed, a progress bar if stderr is a terminal.

Where stderr is a file or a pipe, there is one line a minute, and one at each evaluation. This file knows numbers and
where to write them, not what they mean.
"""

import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from .. import atomic


class Log:
    """Opened at a step: rows that an interrupted run wrote after it are deleted, since they will be written again."""

    def __init__(self, run: Path, step: int, *, show: bool) -> None:
        self.file = run / "metrics.jsonl"
        rows = self.file.read_text("utf-8").splitlines() if self.file.exists() else []
        kept = [row for row in rows if _step_in(row) <= step]
        atomic.write_text(self.file, "".join(f"{row}\n" for row in kept))
        self.stream: TextIO = self.file.open("a", encoding="utf-8")
        self.board = _board(run, step)
        self.line = (_Bar() if sys.stderr.isatty() else _Lines()) if show else None

    def write(self, step: int, progress: float, **values: Any) -> None:
        """Write one row and show it with the share of the run that is done."""
        numbers = {key: round(value, 6) if isinstance(value, float) else value for key, value in values.items()}
        self.stream.write(json.dumps({"step": step} | numbers) + "\n")
        self.stream.flush()
        if self.board is not None:
            for key, value in values.items():
                self.board.add_scalar(key, value, step)
        if self.line is not None:
            self.line.show(step, progress, values)

    def status(self, step: int, what: str) -> None:
        """Show, without writing a row, what is done at this step."""
        if self.line is not None:
            self.line.status(f"step {step:,}: {what}")

    def close(self) -> None:
        self.stream.close()
        if self.board is not None:
            self.board.close()
        if self.line is not None:
            self.line.close()


def _step_in(row: str) -> float:
    try:
        return float(json.loads(row)["step"])
    except (ValueError, KeyError, TypeError):  # the run was killed while it wrote this line
        return float("inf")


def _board(run: Path, step: int) -> Any:
    if importlib.util.find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(run / "tensorboard"), purge_step=step + 1)


SECONDS_BETWEEN_LINES = 60.0
_SHOWN = (
    ("loss", "loss", ".4f"),
    ("dev_loss", "dev", ".4f"),
    ("dev_length_error", "off by", ".1f"),
    ("tokens_per_second", "tok/s", ",.0f"),
)


def _line(step: int, values: dict[str, Any]) -> str:
    parts = [f"{label} {values[key]:{form}}" for key, label, form in _SHOWN if key in values]
    return "  ".join([f"step {step:,}", *parts])


class Throughput:
    """Tokens and time since the last reading, and the part of the time that was spent waiting for data."""

    def __init__(self) -> None:
        self.began = self.idle_since = time.perf_counter()
        self.tokens, self.waiting = 0, 0.0

    def data_ready(self) -> None:
        self.waiting += time.perf_counter() - self.idle_since

    def step_done(self, tokens: int) -> None:
        self.tokens += tokens
        self.idle_since = time.perf_counter()

    def read(self) -> tuple[int, float, float]:
        """Return (tokens, seconds, seconds of waiting) and start again from 0."""
        now = time.perf_counter()
        seen = self.tokens, now - self.began, self.waiting
        self.began = self.idle_since = now
        self.tokens, self.waiting = 0, 0.0
        return seen


class _Bar:
    """A progress bar with the latest numbers."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self.bar = Progress(*columns, console=Console(stderr=True))
        self.task = self.bar.add_task("starting", total=1.0)
        self.latest: dict[str, Any] = {}
        self.bar.start()

    def show(self, step: int, progress: float, values: dict[str, Any]) -> None:
        self.latest |= values
        self.bar.update(self.task, completed=progress, description=_line(step, self.latest))

    def status(self, what: str) -> None:
        self.bar.update(self.task, description=what)

    def close(self) -> None:
        self.bar.stop()


class _Lines:
    """The latest numbers, once a minute."""

    def __init__(self) -> None:
        self.last = time.monotonic()

    def show(self, step: int, progress: float, values: dict[str, Any]) -> None:
        due = time.monotonic() - self.last >= SECONDS_BETWEEN_LINES
        if due and "dev_loss" not in values:  # the loop prints that one itself
            self.last = time.monotonic()
            print(f"{_line(step, values)}  {progress:.0%} done", file=sys.stderr, flush=True)

    def status(self, what: str) -> None:
        print(what, file=sys.stderr, flush=True)

    def close(self) -> None:
        pass
