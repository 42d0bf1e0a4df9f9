"""Write the claims, tables and commands in docs/*.md, docs/results/*.md and README.md from results/*.json.

    python docs/results.py            rewrite the marked blocks of every page
    python docs/results.py --check    change nothing; exit 1 if a page is stale

A page marks its blocks with comments, and the text between them is replaced:

    <!-- claim: encodings -->                                   the claim of results/encodings.json
    <!-- table: encodings/soft rows=1-3,9 columns=control,mae -->    rows count from 1; all rows and columns by default
    <!-- runs: encodings/soft -->                               each command with its date, machine and libraries
    ...
    <!-- /claim -->, <!-- /table -->, <!-- /runs -->

A file of results holds `title`, `claim` and `tables`. A table holds `title`, `columns` (`key`, and where they apply
`title`, `unit`, `decimals`, `signed`), `rows` (objects by column key), `runs` (`what`, `command`, `date`, `machine`,
`libraries`, `commit`: the one that published the figures, or null), `seed`, `signatures`, `notes` and `exceptions`. A
cell is a number, a text, or `{"value": 1.2, "interval": [1.0, 1.3], "p": 0.02}` (interval: 95 %). A text may quote
another cell: `{encodings/soft 2 mae}` is row 2, column mae.

Needs only the standard library.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from textwrap import fill
from typing import Any

README = Path(__file__).parents[1] / "README.md"
PAGES = Path(__file__).parent / "results"
FILES = Path(__file__).parents[1] / "results"
MOST_ROWS = 10  # of a table on a page; the full tables are in the files
BLOCK = re.compile(r"(<!-- (claim|table|runs): (\S+)(.*?) -->\n).*?(<!-- /\2 -->)", re.DOTALL)
QUOTED = re.compile(r"\{([\w-]+/[\w-]+) (\d+) (\w+)\}")


def load(name: str) -> dict[str, Any]:
    """Return the content of results/NAME.json."""
    return json.loads((FILES / f"{name}.json").read_text(encoding="utf-8"))


def load_table(place: str) -> dict[str, Any]:
    """Return a table by its place, FILE/TABLE."""
    name, _, table = place.partition("/")
    return load(name)["tables"][table]


def number(value: float, column: dict[str, Any]) -> str:
    """Return a number with the decimals and the sign of its column: 1.2, with 2 decimals → 1.20."""
    decimals = f".{column['decimals']}f" if "decimals" in column else ""
    return f"{value:{'+' if column.get('signed') else ''},{decimals}}"


def heading(column: dict[str, Any]) -> str:
    """Return the title of a column with its unit: "step, ms"."""
    return ", ".join(filter(None, [column.get("title", column["key"]), column.get("unit")]))


def cell(value: Any, column: dict[str, Any]) -> str:
    """Return a cell as Markdown: {"value": 1.2, "interval": [1.0, 1.3]} → 1.2 [1.0, 1.3]."""
    if value is None:
        return ""
    if isinstance(value, str):
        return QUOTED.sub(quote, value).replace("|", r"\|")
    if not isinstance(value, dict):
        return number(value, column)
    low_high = [number(end, column) for end in value.get("interval", ())]
    p = value.get("p")
    chance = "" if p is None else f" (p{p if isinstance(p, str) else f'={p}'})"
    return number(value["value"], column) + (f" [{', '.join(low_high)}]" if low_high else "") + chance


def quote(match: re.Match[str]) -> str:
    """Return the cell that a text quotes."""
    place, row, key = match.groups()
    table = load_table(place)
    column = next(column for column in table["columns"] if column["key"] == key)
    return cell(table["rows"][int(row) - 1][key], column)


def picked(numbers: str, total: int) -> list[int]:
    """Return the places of rows, from 0: "1-3,9" → [0, 1, 2, 8]."""
    spans = [span.partition("-") for span in numbers.split(",")] if numbers else [("1", "-", str(total))]
    return [row for first, _, last in spans for row in range(int(first) - 1, int(last or first))]


def table(place: str, options: dict[str, str]) -> str:
    """Return the chosen rows and columns of a table as Markdown."""
    found = load_table(place)
    keys = options["columns"].split(",") if "columns" in options else [column["key"] for column in found["columns"]]
    by_key = {column["key"]: column for column in found["columns"]}
    columns = [by_key[key] for key in keys]
    rows = [found["rows"][row] for row in picked(options.get("rows", ""), len(found["rows"]))]
    if len(rows) > MOST_ROWS:
        raise ValueError(f"{place}: a page shows at most {MOST_ROWS} rows; got {len(rows)}: choose some, rows=1,4-6")
    lines = [[heading(column) for column in columns], ["---"] * len(columns)]
    lines += [[cell(row.get(column["key"]), column) for column in columns] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def runs(place: str, options: dict[str, str]) -> str:
    """Return the commands that made a table, each with its date, machine, libraries and commit."""
    blocks = []
    for run in load_table(place)["runs"]:
        facts = [run["date"], run["machine"], run["libraries"], run["commit"] and f"commit {run['commit']}"]
        what = f"{run['what']}: " if run.get("what") else ""
        blocks.append(f"{what}{'; '.join(filter(None, facts))}.\n\n```sh\n{run['command']}\n```")
    return "\n\n".join(blocks)


def claim(name: str, options: dict[str, str]) -> str:
    """Return the claim of a file of results; no line begins with a percent sign."""
    return fill(load(name)["claim"].replace(" %", "\xa0%"), 120, break_on_hyphens=False).replace("\xa0", " ")


WRITERS = {"claim": claim, "table": table, "runs": runs}


def block(match: re.Match[str]) -> str:
    """Return a marked block with its text made from the results."""
    opening, kind, place, options, closing = match.groups()
    return f"{opening}\n{WRITERS[kind](place, dict(option.split('=', 1) for option in options.split()))}\n\n{closing}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a page is stale")
    options = parser.parse_args()
    stale = []
    for page in (README, *sorted(PAGES.parent.glob("*.md")), *sorted(PAGES.glob("*.md"))):
        before = page.read_text(encoding="utf-8")
        if (after := BLOCK.sub(block, before)) != before:
            stale.append(page.name)
            if not options.check:
                page.write_text(after, encoding="utf-8")
    if stale and options.check:
        print(f"stale: {', '.join(stale)}; run `python docs/results.py`", file=sys.stderr)
    return int(bool(stale and options.check))


if __name__ == "__main__":
    sys.exit(main())
