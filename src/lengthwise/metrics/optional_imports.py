"""Optional libraries: import sacreBLEU, rouge-score, matplotlib and others when a metric or a plot first needs them."""

from importlib import import_module
from typing import Any

from ..errors import how_to_install


def library(name: str) -> Any:
    """Return the module `name`, or raise an error with the command that installs it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name.partition(".")[0]):
            raise  # the library is installed, but one of its own dependencies is not
        package = name.partition(".")[0].replace("_", "-")
        raise ImportError(f"{package} is needed and not installed; {how_to_install('eval')}") from error
