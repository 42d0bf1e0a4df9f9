"""The rooms of the package: who may import whom, and what must stay out of which."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src/lengthwise"
WITHOUT_TORCH = ("length", "formats", "constraint", "localisation", "corpora")


def rooms() -> tuple[str, ...]:
    spec = importlib.util.spec_from_file_location("make", ROOT / "docs/make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ROOMS


ROOMS = rooms()
FILES = sorted(PACKAGE.rglob("*.py"))


NAMES = {".".join(f.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): f for f in FILES}


def imported(file: Path) -> set[str]:
    """The modules of ours that a file imports, anywhere in it; "" is the package itself."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").split(".")[0] == "lengthwise"):
            base = [] if not node.level else list(file.relative_to(PACKAGE).parts[: -node.level])
            named = (node.module or "").split(".")[0 if node.level else 1 :]
            module = ".".join([*base, *filter(None, named)])
            for alias in node.names:  # a module, or a name inside one
                inner = f"{module}.{alias.name}".strip(".")
                found.add(inner if inner in NAMES else module)
        elif isinstance(node, ast.Import):
            ours = [alias.name.split(".")[1:] for alias in node.names if alias.name.split(".")[0] == "lengthwise"]
            found |= {".".join(module) for module in ours}
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            ours = ast.unparse(node.args[0]).lstrip("f'\"").startswith((".", "lengthwise"))
            assert not ours or file.name == "__init__.py", f"{file} hides an import"
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
        room = module.split(".")[0]
        if len(parts) == 1:
            assert room not in ROOMS, f"{file.name} is in no room, and imports {module}"
        elif room in ROOMS:
            assert ROOMS.index(room) <= ROOMS.index(parts[0]), f"{file.name} imports {module}"


def test_no_circle():
    edges = {name: imported(file) - {name} for name, file in NAMES.items() if name}
    done: set[str] = set()

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


ATTACHING = ("attach.py", "attached.py", "attention.py", "length_inputs.py")  # of controls/


def test_the_insides_of_transformers_are_known_in_two_places():
    """Caches, masks and attention functions are used in engines/, and where controls are attached to models, only."""
    inside = (
        *("AttentionInterface", "DynamicLayer", "DynamicCache", "_update_model_kwargs", "past_key_values"),
        *(".crop(", "reorder_cache", "_attn_implementation", "prepare_inputs_for_generation"),
    )
    for file in FILES:
        room = file.relative_to(PACKAGE).parts
        if room[0] == "engines" or (room[0] == "controls" and room[1] in ATTACHING):
            continue
        text = file.read_text(encoding="utf-8")
        assert not [name for name in inside if name in text], file
