"""`lengthwise models`: a list of the models that have a short name."""

from dataclasses import asdict
from itertools import zip_longest
from textwrap import wrap

from . import options
from .terminal import print_json


def models(as_json: options.Json = False) -> None:
    """List the models that have a short name.

    \b
    lengthwise models
    lengthwise write "Describe a lighthouse." --length "at most 20 words" --model ./my-model

    --model takes one of these names, a folder that save_pretrained wrote, or a hub id (owner/name).
    """
    from ..models.registry import known

    rows = known()
    if as_json:
        print_json([asdict(row) | {"path": row.path and str(row.path)} for row in rows])
        return
    indent = 2 + max(len(row.name) for row in rows)
    for row in rows:
        is_named = row.needs is None or f"(base: {row.needs})" in row.description
        needs = "" if is_named else f", needs {row.needs}"
        facts = f"{row.size / 1e6:.0f} MB, {row.where}{needs}; licence {row.licence}"
        lines = [line for text in (row.description, facts) for line in wrap(text, 80 - indent, break_on_hyphens=False)]
        lines += [str(row.path)] if row.where == "cached" else []
        for name, line in zip_longest([row.name], lines, fillvalue=""):
            print(f"{name:<{indent}}{line}")
    print("\n--model takes these names, a folder, or a hub id (owner/name).")
