"""`lengthwise models`: the models that have a short name."""

import sys
from dataclasses import asdict

from .terminal import Json, print_json


def models(as_json: Json = False) -> None:
    """List the models that have a short name.

    \b
    lengthwise models
    lengthwise write "Describe a lighthouse." --length "at most 20 words" --model ./my-model

    --model takes these names, the path of a folder in Hugging Face's layout, and hub ids (owner/name).
    """
    from ..models import known

    rows = known()
    if as_json:
        print_json([asdict(row) | {"path": row.path and str(row.path)} for row in rows])
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("model", "", "size", "licence", "where", box=None, pad_edge=False)
    for row in rows:
        size = f"{row.size / 1e6:.0f} MB {'on disk' if row.path else ''}"
        table.add_row(row.name, row.description, size, row.licence, row.where + (f": {row.path}" if row.path else ""))
    console = Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else 1000)  # a pipe has no edge
    console.print(table)
    console.print("\n--model takes these names, a folder, or a hub id (owner/name).")
