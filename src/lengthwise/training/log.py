"""The log of a run: metrics.jsonl always, TensorBoard if it is installed, a progress bar if stderr is a terminal.

Where stderr is a file or a pipe, there is one line per minute and one at each evaluation.
"""

import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from .. import atomic

SECONDS_BETWEEN_LINES = 60.0
_SHOWN = (
    ("loss", "loss", ".4f"),
    ("dev_loss", "dev", ".4f"),
    ("dev_length_error", "off by", ".1f"),
    ("tokens_per_second", "tok/s", ",.0f"),
)


class Log:
    """Opened at a step: rows that an interrupted run wrote after it are deleted, since they will be written again."""

    def __init__(self, run: Path, step: int) -> None:
        file = run / "metrics.jsonl"
        rows = file.read_text("utf-8").splitlines() if file.exists() else []
        atomic.write_text(file, "".join(f"{row}\n" for row in rows if _step_in(row) <= step))
        self.stream: TextIO = file.open("a", encoding="utf-8")
        self.board = _board(run, step)
        self.bar = _bar() if sys.stderr.isatty() else None
        self.latest: dict[str, Any] = {}  # shown by the bar
        self.last_line = time.monotonic()

    def write(self, step: int, progress: float, **values: Any) -> None:
        """Write one row and show it with the share of the run that is done."""
        numbers = {key: round(value, 6) if isinstance(value, float) else value for key, value in values.items()}
        self.stream.write(json.dumps({"step": step} | numbers) + "\n")
        self.stream.flush()
        if self.board is not None:
            for key, value in values.items():
                self.board.add_scalar(key, value, step)
        if self.bar is not None:
            self.latest |= values
            self.bar.update(self.bar.task_ids[0], completed=progress, description=_line(step, self.latest))
        elif "dev_loss" not in values and time.monotonic() - self.last_line >= SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()  # the loop itself prints the dev loss
            print(f"{_line(step, values)}  {progress:.0%} done", file=sys.stderr, flush=True)

    def status(self, step: int, what: str) -> None:
        """Show, without writing a row, what is done at this step."""
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], description=f"step {step:,}: {what}")
        else:
            print(f"step {step:,}: {what}", file=sys.stderr, flush=True)

    def close(self) -> None:
        self.stream.close()
        if self.board is not None:
            self.board.close()
        if self.bar is not None:
            self.bar.stop()


def _step_in(row: str) -> float:
    try:
        return float(json.loads(row)["step"])
    except (ValueError, KeyError, TypeError):  # the run was killed while it wrote this line
        return float("inf")


def _line(step: int, values: dict[str, Any]) -> str:
    parts = [f"{label} {values[key]:{form}}" for key, label, form in _SHOWN if key in values]
    return "  ".join([f"step {step:,}", *parts])


def _board(run: Path, step: int) -> Any:
    if importlib.util.find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(run / "tensorboard"), purge_step=step + 1)


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True))
    bar.add_task("starting", total=1.0)
    bar.start()
    return bar


class Throughput:
    """Tokens and time since it was made, and the part of the time that was spent waiting for data."""

    def __init__(self) -> None:
        self.began = self.idle_since = time.perf_counter()
        self.tokens, self.waiting = 0, 0.0

    def data_ready(self) -> None:
        self.waiting += time.perf_counter() - self.idle_since

    def step_done(self, tokens: int) -> None:
        self.tokens += tokens
        self.idle_since = time.perf_counter()
