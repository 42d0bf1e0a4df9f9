"""What the README and the docs say is so."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def make():
    spec = importlib.util.spec_from_file_location("make", ROOT / "docs/make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tree_names_every_file():
    assert make().tree() in README, "run `make docs`"
    for file in (ROOT / "src/lengthwise").rglob("*.py"):
        assert file.name == "__init__.py" or file.name in README


def test_links_lead_somewhere():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_help_in_the_docs_is_the_programs():
    assert (ROOT / "docs/cli.md").read_text(encoding="utf-8") == make().cli(), "run `make docs`"


def test_make_help_names_its_words():
    shown = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for word in ("demo", "test", "check", "bench", "docs", "clean"):
        assert f"make {word}" in shown


def python_blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


@pytest.mark.real
def test_the_python_example_of_the_readme_runs(capsys):
    exec(python_blocks(README)[0], {})
    assert "True True" in capsys.readouterr().out


@pytest.mark.real
def test_the_first_example_of_the_controls_page_runs():
    found = {}
    exec(python_blocks((ROOT / "docs/controls.md").read_text(encoding="utf-8"))[0], found)
    assert found["loss"].isfinite()


def test_the_session_in_the_budgets_page():
    import doctest

    session = python_blocks((ROOT / "docs/budgets.md").read_text(encoding="utf-8"))[0]
    test = doctest.DocTestParser().get_doctest(session, {}, "budgets.md", None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0
