"""Fresh processes that start at once, for tests that kill a training or spread it over processes.

They are forks of a server that has imported the training loop and has run nothing: a new interpreter would import
PyTorch and transformers for seconds, and a fork of the tests would keep the state of the tests before.
"""

import os
import socket
import sys
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

_CONTEXT = get_context("forkserver")
_CONTEXT.set_forkserver_preload(["accelerate", "lengthwise.cli.train", "lengthwise.training.loop"])


def fresh_process(function: Callable[..., Any], *arguments: Any, stderr: int, stdout: int | None = None) -> BaseProcess:
    """Start a process that calls the function, and return it; its output goes to the open files given by number."""
    outputs = [Connection(os.dup(file)) for file in (stderr if stdout is None else stdout, stderr)]
    process = _CONTEXT.Process(target=_call, args=(outputs, function, arguments))
    process.start()
    for output in outputs:
        output.close()
    return process


def _call(outputs: list[Connection], function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    import torch

    os.setsid()  # so that a signal to its group reaches this process and its workers only
    for number, output in enumerate(outputs, 1):
        os.dup2(output.fileno(), number)
        output.close()
    # New streams: the server's have noted of what kind its own files are.
    sys.stdout, sys.stderr = (os.fdopen(number, "w", 1, closefd=False) for number in (1, 2))
    torch.set_num_threads(1)
    sys.exit(function(*arguments))


def in_two_processes(function: Callable[..., Any], *arguments: Any, folder: Path) -> None:
    """Call the function in two processes that exchange gradients, and fail if it fails in one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with open(folder / "stderr", "w+") as stderr:
        processes = [
            fresh_process(_joined, rank, port, function, arguments, stderr=stderr.fileno()) for rank in range(2)
        ]
        while running := [process for process in processes if process.exitcode is None]:
            wait([process.sentinel for process in running])
            if any(process.exitcode for process in processes):
                for process in running:  # it would wait for the one that has failed
                    process.kill()
        stderr.seek(0)
        assert [process.exitcode for process in processes] == [0, 0], stderr.read()[-3000:]


def _joined(rank: int, port: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2, "MASTER_PORT": port}
    os.environ |= {name: str(number) for name, number in place.items()}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "ACCELERATE_USE_CPU": "true"}
    function(*arguments)
