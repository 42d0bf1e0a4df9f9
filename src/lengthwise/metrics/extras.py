"""Extras: libraries that only evaluation needs, imported when a measure or a plot first asks for one.

This file knows where to send the user when a library is missing, and nothing of what it is for.
"""

from importlib import import_module
from typing import Any


def library(name: str) -> Any:
    """The module called `name`, or an error that says how to install it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name.partition(".")[0]):
            raise  # the library is here; what it needs itself is not
        package = name.partition(".")[0].replace("_", "-")
        raise ImportError(f"this needs {package}, which is not installed: pip install 'lengthwise[eval]'") from error
