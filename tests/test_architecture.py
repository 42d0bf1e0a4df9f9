"""The rooms of the package: who may import whom, and what must stay out of which."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src/lengthwise"
WITHOUT_TORCH = ("length", "constraint", "corpora")


def rooms() -> tuple[str, ...]:
    spec = importlib.util.spec_from_file_location("make", ROOT / "docs/make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ROOMS


ROOMS = rooms()
FILES = sorted(PACKAGE.rglob("*.py"))


def imported(file: Path) -> list[list[str]]:
    """The parts, below the package, of each module of ours that a file imports."""
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = file.relative_to(PACKAGE).parts[: -node.level]
            module = [*base, *(node.module.split(".") if node.module else [])]
            found += [module] if module else [[alias.name] for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "lengthwise":
            found.append(node.module.split(".")[1:])
        elif isinstance(node, ast.Import):
            found += [alias.name.split(".")[1:] for alias in node.names if alias.name.split(".")[0] == "lengthwise"]
    return found


def test_every_folder_is_a_room():
    assert {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()} == set(ROOMS)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(PACKAGE).as_posix())
def test_a_room_imports_only_from_rooms_above_it(file):
    parts = file.relative_to(PACKAGE).parts
    if parts == ("__init__.py",) or parts == ("__main__.py",):
        return
    for module in imported(file):
        assert module, f"{file.name} imports the package itself"
        if len(parts) == 1:
            assert module[0] not in ROOMS, f"{file.name} is in no room, and imports {module[0]}"
        elif module[0] in ROOMS:
            assert ROOMS.index(module[0]) <= ROOMS.index(parts[0]), f"{file.name} imports {'.'.join(module)}"


def graph() -> dict[str, set[str]]:
    """For each file, the files that it imports when it is imported (not those inside functions)."""
    names = {".".join(file.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__") for file in FILES}
    found: dict[str, set[str]] = {}
    for file in FILES:
        name = ".".join(file.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        body = ast.parse(file.read_text(encoding="utf-8")).body
        edges = set()
        for node in body:
            if isinstance(node, ast.ImportFrom) and node.level:
                base = file.relative_to(PACKAGE).parts[: -node.level]
                module = ".".join([*base, *(node.module.split(".") if node.module else [])])
                inner = {f"{module}.{alias.name}".strip(".") for alias in node.names} & names
                edges |= inner or ({module} & names)
        found[name] = edges - {name}
    return found


def test_no_circle():
    edges, done = graph(), set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join((*path[path.index(name) :], name))
        if name not in done:
            for other in sorted(edges.get(name, ())):
                visit(other, (*path, name))
            done.add(name)

    for name in edges:
        visit(name, ())


@pytest.mark.parametrize("room", WITHOUT_TORCH)
def test_rooms_without_torch(room):
    """Every file of the room is imported in a fresh process."""
    files = [".".join(f.relative_to(PACKAGE.parent).with_suffix("").parts) for f in (PACKAGE / room).rglob("*.py")]
    modules = [name.removesuffix(".__init__") for name in files]
    code = f"import sys, importlib; [importlib.import_module(m) for m in {modules!r}]; "
    code += "sys.exit(', '.join({'torch', 'transformers'} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_insides_of_transformers_are_known_in_two_places():
    """Caches, masks and attention functions are used in controls/attach and engines/ only."""
    inside = ("AttentionInterface", "DynamicLayer", "DynamicCache", "_update_model_kwargs", "past_key_values")
    for file in FILES:
        room = file.relative_to(PACKAGE).parts
        if room[0] == "engines" or room[:2] == ("controls", "attach.py"):
            continue
        text = file.read_text(encoding="utf-8")
        assert not [name for name in inside if name in text], file
