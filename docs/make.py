"""Writes the parts of the docs that quote the program: `make docs`. A test checks that they are current.

docs/cli.md      the help of every command
docs/demo.svg    a real run of the demo (only with --demo: it runs the model)
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
WIDTH = "100"


def commands() -> list[list[str]]:
    """The program and every command of it, commands of commands too."""
    import typer

    from lengthwise.cli import app

    found: list[list[str]] = []

    def visit(command: object, path: list[str]) -> None:
        found.append(path)
        for name, child in getattr(command, "commands", {}).items():
            visit(child, [*path, name])

    visit(typer.main.get_command(app), [])
    return found


def cli() -> str:
    """docs/cli.md, as it should be."""
    parts = ["# The command line\n\nMade by `make docs` from the program's own help.\n"]
    for path in commands():
        run = [sys.executable, "-m", "lengthwise", *path, "--help"]
        env = {"COLUMNS": WIDTH, "PATH": "", "TERM": "dumb"}
        shown = subprocess.run(run, capture_output=True, text=True, check=True, env=env).stdout
        text = "\n".join(line.rstrip() for line in shown.strip().splitlines())
        parts.append(f"## {' '.join(['lengthwise', *path])}\n\n```\n{text}\n```\n")
    return "\n".join(parts)


def main() -> None:
    (HERE / "cli.md").write_text(cli(), encoding="utf-8")
    if "--demo" in sys.argv:
        subprocess.run([sys.executable, "-m", "lengthwise", "demo", "--svg", str(HERE / "demo.svg")], check=True)


if __name__ == "__main__":
    main()
