"""Sessions of onnxruntime: a graph, its threads, and inputs and outputs that are numpy arrays without copies."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ..models.cache import cache_dir
from ..models.conversion.overflow import signed_weights_overflow
from .threads import thread_limit

UNSIGNED_WEIGHTS = "session.x64quantprecision"  # an option of onnxruntime: signed 8-bit weights are made unsigned


class Session:
    """A session that runs a graph on the CPU. A thread opens it, so that vocabularies are read at the same time."""

    def __init__(self, graph: Path) -> None:
        opener = ThreadPoolExecutor(1)
        self._opened = opener.submit(_open, graph)
        opener.shutdown(wait=False)
        if not graph.is_relative_to(cache_dir()):
            self._opened.result()  # the caller may delete the folder

    def run(self, outputs: list[str], inputs: dict[str, NDArray[Any]]) -> list[Any]:
        return self._opened.result().run(outputs, inputs)

    def io_binding(self) -> Any:
        """Return an object to which inputs and outputs are bound."""
        return self._opened.result().io_binding()

    def run_with_iobinding(self, binding: Any) -> None:
        self._opened.result().run_with_iobinding(binding)


def _open(graph: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors
    options.intra_op_num_threads = thread_limit() or 0  # 0: one per core
    # The search for buffers that can be reused takes as long as the rest of the start: its time grows with the square
    # of the nodes. Without it, steps are as fast and peak memory is the same.
    options.enable_mem_reuse = False
    options.enable_mem_pattern = False  # it keeps a plan for each shape of the inputs, and a server has endlessly many
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # it slows down busy machines
    # Models that were converted on such a CPU have unsigned weights already. onnxruntime would change signed ones on
    # every x86 CPU, also on those with VNNI, where products of unsigned weights take more than twice as long.
    if signed_weights_overflow():
        options.add_session_config_entry(UNSIGNED_WEIGHTS, "1")
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def cache_name(n: int) -> str:
    """Return the name in a graph of one of the 2 · layers keys and values of a KV cache."""
    return f"{('key', 'value')[n % 2]}.{n // 2}"


def wrapped(array: NDArray[Any]) -> Any:
    """Return a value of onnxruntime with the memory of `array`, which must be contiguous."""
    import onnxruntime

    return onnxruntime.OrtValue.ortvalue_from_numpy(array)
