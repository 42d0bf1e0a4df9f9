"""Writes the parts of the docs that quote the program: `make docs`. A test checks that they are current.

docs/cli.md      the help of every command
docs/demo.svg    a real run of the demo (only with --demo: it runs the model)
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
TREE = "## The tree\n\n```\n"
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


FOLDERS = {
    "src/lengthwise": "the package",
    "recipes": "one commented YAML an experiment; accelerate/ has the settings for several GPUs",
    "bench": "speed and obedience, beside plain `generate` and the Hugging Face Trainer",
    "docs": "RESULTS.md (measured tables), LOG.md (what failed), HOWTOs, cli.md (every command's help)",
    "tests": "mirrors src/",
}


def tree() -> str:
    """The tree of the README, as it should be."""
    lines = []
    for folder, about in FOLDERS.items():
        lines.append(f"{folder + '/':<22} {about}")
        if folder in ("src/lengthwise", "bench"):
            lines += _files(ROOT / folder, "  ")
    return "\n".join(lines)


def _files(folder: Path, indent: str) -> list[str]:
    lines = []
    for path in sorted(folder.iterdir(), key=lambda path: (path.is_dir(), path.name)):
        if path.suffix == ".py" and (path.name != "__init__.py" or folder.name == "lengthwise"):
            lines.append(f"{indent + path.name:<22} {_about(path)}")
        elif (path / "__init__.py").exists():
            lines.append(f"{indent + path.name + '/':<22} {_about(path / '__init__.py')}")
            lines += _files(path, indent + "  ")
    return lines


def _about(file: Path) -> str:
    """The first sentence of a file's docstring, without the name that it may open with."""
    first = (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").split("\n\n")[0]
    first = " ".join(first.split())
    name, _, rest = first.partition(": ")
    first = rest if rest and len(name.split()) <= 4 else first
    return re.split(r"(?<!al)\. |; ", first)[0].rstrip(".")


def main() -> None:
    readme = ROOT / "README.md"
    before, _, after = readme.read_text(encoding="utf-8").partition(TREE)
    readme.write_text(before + TREE + tree() + "\n```" + after.partition("\n```")[2], encoding="utf-8")
    (HERE / "cli.md").write_text(cli(), encoding="utf-8")
    if "--demo" in sys.argv:
        subprocess.run([sys.executable, "-m", "lengthwise", "demo", "--svg", str(HERE / "demo.svg")], check=True)


if __name__ == "__main__":
    main()
