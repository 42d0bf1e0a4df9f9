"""The log of a run: metrics.jsonl always, TensorBoard if it is installed, a moving line if somebody is watching.

Where stderr is a file or a pipe, a line a minute says how far it is, and one that the dev set is read.

Knows numbers and where to put them, not what they mean.
"""

import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, TextIO


class Log:
    """Opened at a step: what an interrupted run wrote after it is dropped, since it will be written again."""

    def __init__(self, run: Path, step: int, *, show: bool) -> None:
        self.file = run / "metrics.jsonl"
        rows = self.file.read_text("utf-8").splitlines() if self.file.exists() else []
        kept = [row for row in rows if _step_in(row) <= step]
        run.mkdir(parents=True, exist_ok=True)
        partial = self.file.with_name(".metrics.jsonl.partial")
        partial.write_text("".join(f"{row}\n" for row in kept), encoding="utf-8")
        os.replace(partial, self.file)
        self.stream: TextIO = self.file.open("a", encoding="utf-8")
        self.board = _board(run, step)
        self.line = (_Line() if sys.stderr.isatty() else _Lines()) if show else None

    def write(self, step: int, progress: float, **values: Any) -> None:
        """One row; also shown, with the share of the run that is done."""
        numbers = {key: round(value, 6) if isinstance(value, float) else value for key, value in values.items()}
        self.stream.write(json.dumps({"step": step} | numbers) + "\n")
        self.stream.flush()
        if self.board is not None:
            for key, value in values.items():
                self.board.add_scalar(key, value, step)
        if self.line is not None:
            self.line.show(step, progress, values)

    def doing(self, step: int, what: str) -> None:
        """Shown, and not written: what takes its time at this step."""
        if self.line is not None:
            self.line.doing(f"step {step:,}: {what}")

    def close(self) -> None:
        self.stream.close()
        if self.board is not None:
            self.board.close()
        if self.line is not None:
            self.line.close()


def _step_in(row: str) -> float:
    try:
        return float(json.loads(row)["step"])
    except (ValueError, KeyError, TypeError):  # the line that was being written when the run was killed
        return float("inf")


def _board(run: Path, step: int) -> Any:
    if importlib.util.find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(run / "tensorboard"), purge_step=step + 1)


MINUTE = 60.0  # between two lines
_SHOWN = (
    ("loss", "loss", ".4f"),
    ("dev_loss", "dev", ".4f"),
    ("dev_length_error", "off by", ".1f"),
    ("tokens_per_second", "tok/s", ",.0f"),
)


def _told(step: int, known: dict[str, Any]) -> str:
    parts = [f"{label} {known[key]:{form}}" for key, label, form in _SHOWN if key in known]
    return "  ".join([f"step {step:,}", *parts])


class _Line:
    """A progress bar with the latest numbers."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self.bar = Progress(*columns, console=Console(stderr=True))
        self.task = self.bar.add_task("starting", total=1.0)
        self.known: dict[str, Any] = {}
        self.bar.start()

    def show(self, step: int, progress: float, values: dict[str, Any]) -> None:
        self.known |= values
        self.bar.update(self.task, completed=progress, description=_told(step, self.known))

    def doing(self, what: str) -> None:
        self.bar.update(self.task, description=what)

    def close(self) -> None:
        self.bar.stop()


class _Lines:
    """The latest numbers, once a minute."""

    def __init__(self) -> None:
        self.last = time.monotonic()

    def show(self, step: int, progress: float, values: dict[str, Any]) -> None:
        if time.monotonic() - self.last >= MINUTE and "dev_loss" not in values:  # which the loop itself says
            self.last = time.monotonic()
            print(f"{_told(step, values)}  {progress:.0%} done", file=sys.stderr, flush=True)

    def doing(self, what: str) -> None:
        print(what, file=sys.stderr, flush=True)

    def close(self) -> None:
        pass
