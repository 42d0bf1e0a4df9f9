"""Libraries that only evaluation needs, imported when a metric or a plot first uses one."""

from importlib import import_module
from typing import Any


def library(name: str) -> Any:
    """Return the module called `name`, or raise an error that says how to install it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name.partition(".")[0]):
            raise  # the library is installed, but one of its own dependencies is not
        package = name.partition(".")[0].replace("_", "-")
        raise ImportError(f"this needs {package}, which is not installed: pip install 'lengthwise[eval]'") from error
