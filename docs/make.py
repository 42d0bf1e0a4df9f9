"""Write the parts of the docs that quote the program: `make docs`. Tests check that they are current.

docs/cli.md             the help of every command
docs/architecture.md    the tree, with the first sentence of every file
docs/demo.svg           a run of the demo (only with --demo: it runs the model)
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
PACKAGE = ROOT / "src/lengthwise"
# From top to bottom: a room imports only from rooms above it.
ROOMS = (
    *("length", "formats", "constraint", "controls", "models", "engines", "scoring", "generation", "endpoints"),
    *("translation", "shortening", "localisation", "corpora", "distill", "training", "metrics", "evaluation"),
    *("integrations", "server", "benchmark", "cli"),
)
WIDTH = "100"


def commands() -> list[list[str]]:
    """Return the program and every command of it, subcommands too."""
    import typer

    from lengthwise.cli import app

    found: list[list[str]] = []

    def visit(command: object, path: list[str]) -> None:
        found.append(path)
        for name, child in getattr(command, "commands", {}).items():
            visit(child, [*path, name])

    visit(typer.main.get_command(app()), [])
    return found


def cli() -> str:
    """Return docs/cli.md as it should be."""
    parts = ["# The command line\n\nMade by `make docs` from the program's own help.\n"]
    for path in commands():
        run = [sys.executable, "-m", "lengthwise", *path, "--help"]
        env = {"COLUMNS": WIDTH, "PATH": "", "TERM": "dumb", "PYTHONPATH": str(PACKAGE.parent)}
        shown = subprocess.run(run, capture_output=True, text=True, check=True, env=env).stdout
        text = "\n".join(line.rstrip() for line in shown.strip().splitlines())
        parts.append(f"## {' '.join(['lengthwise', *path])}\n\n```\n{text}\n```\n")
    return "\n".join(parts)


def tree() -> str:
    """Return the tree of docs/architecture.md as it should be."""
    lines = ["```", "src/lengthwise/"]
    lines += [_line(file, 1) for file in sorted(PACKAGE.glob("*.py")) if not file.name.startswith("__")]
    for room in ROOMS:
        lines += _room(PACKAGE / room, 1)
    return "\n".join([*lines, "```"])


def _room(folder: Path, depth: int) -> list[str]:
    lines = [f"{'  ' * depth}{folder.name + '/':<{26 - 2 * depth}}  {_about(folder / '__init__.py')}"]
    lines += [_line(file, depth + 1) for file in sorted(folder.glob("*.py")) if file.name != "__init__.py"]
    for inner in sorted(path for path in folder.iterdir() if (path / "__init__.py").exists()):
        lines += _room(inner, depth + 1)
    return lines


def _line(file: Path, depth: int) -> str:
    return f"{'  ' * depth}{file.name:<{26 - 2 * depth}}  {_about(file)}"


def _about(file: Path) -> str:
    """Return the first sentence of a file's docstring, without the name that it may open with."""
    first = (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").split("\n\n")[0]
    first = " ".join(first.split())
    name, _, rest = first.partition(": ")
    first = rest if rest and len(name.split()) <= 4 else first
    return re.split(r"(?<!al)\. |; ", first)[0].rstrip(".")


def with_tree(page: str) -> str:
    """Return the page with the current tree between its markers."""
    before, _, rest = page.partition("<!-- tree -->\n")
    return f"{before}<!-- tree -->\n{tree()}\n<!-- /tree -->{rest.partition('<!-- /tree -->')[2]}"


def main() -> None:
    page = HERE / "architecture.md"
    page.write_text(with_tree(page.read_text(encoding="utf-8")), encoding="utf-8")
    (HERE / "cli.md").write_text(cli(), encoding="utf-8")
    if "--demo" in sys.argv:
        subprocess.run([sys.executable, "-m", "lengthwise", "demo", "--svg", str(HERE / "demo.svg")], check=True)


if __name__ == "__main__":
    main()
