"""Commands from the shell, with start-up: wall time, CPU time and peak memory of each."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any, NamedTuple

from . import texts
from .rounds import Spread

WRITE = ("write", "Describe a lighthouse.", "--length", "at most 280 chars")
TRANSLATE = ("translate", "Save as ...", "--to", "it", "--length", "at most 20 chars")
SHORTEN = ("shorten", "The operation could not be completed because the disk is full.", "--length", "25,40,60")
OTHERS = (("write", "Describe a lighthouse.", "--length", "exactly 30 words"), ("demo",), SHORTEN)
LINES = ("translate", "-", "--to", "it", "--length", "at most 1.0x")  # stdin: the first sentences of `texts`
MODELS = ("smollm2", "en-it")  # of the commands
_MEMORY_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes


class _Run(NamedTuple):
    seconds: float
    cpu: float | None  # where the system tells it of a child (not on Windows)
    memory: float | None  # peak, in MB


def measured(arguments: tuple[str, ...], rounds: int, sentences: int = 0) -> dict[str, Any]:
    """Return the figures of `lengthwise` with these arguments, run `rounds` times, with so many sentences on stdin."""
    lines = "".join(f"{line}\n" for line in texts.sentences(sentences))
    runs = [_run(arguments, lines) for _ in range(rounds)]
    given = f"head -n {sentences} sentences.txt | " if sentences else ""
    return {
        "command": given + " ".join(("lengthwise", *(f'"{one}"' if " " in one else one for one in arguments))),
        "seconds": Spread.of([run.seconds for run in runs]),
        "cpu_seconds": min((run.cpu for run in runs if run.cpu is not None), default=None),
        "peak_memory_mb": max((run.memory for run in runs if run.memory is not None), default=None),
    }


def _run(arguments: tuple[str, ...], lines: str) -> _Run:
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "lengthwise", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        if process.stdin:
            with suppress(BrokenPipeError):  # a command that ends before it has read them
                process.stdin.write(lines.encode())
                process.stdin.close()
        errors = process.stderr.read() if process.stderr else b""
        usage = None
        if hasattr(os, "wait4"):
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        code = process.wait()
    seconds = time.perf_counter() - began
    if code not in (0, 3):  # 3: a text does not fit, which takes as long
        raise ValueError(f"lengthwise {arguments[0]} ended with code {code}: {errors.decode('utf-8', 'replace')}")
    if usage is None:
        return _Run(seconds, None, None)
    return _Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _MEMORY_UNIT / 1e6)
