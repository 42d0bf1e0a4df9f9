"""What the README and the docs say is so."""

import doctest
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/lengthwise"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def make():
    spec = importlib.util.spec_from_file_location("make", ROOT / "docs/make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tree_is_current():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    assert make().with_tree(page) == page, "run `make docs`"


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 120


def test_the_tables_are_those_of_the_results():
    done = subprocess.run([sys.executable, ROOT / "docs/results.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\((?!http)([^)]+)\)", text):
        name, _, anchor = target.partition("#")
        other = (page.parent / name) if name else page
        assert other.exists(), f"{page.name} links to {target}"
        if anchor:
            heads = re.findall(r"^#+ (.+)$", other.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
            assert anchor in slugs, f"{page.name} links to {target}"


def test_every_page_is_in_the_site():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        assert page.relative_to(ROOT / "docs").as_posix() in nav, page


def test_the_help_in_the_docs_is_the_programs():
    assert (ROOT / "docs/cli.md").read_text(encoding="utf-8") == make().cli(), "run `make docs`"


def test_make_help_names_its_words():
    shown = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for word in ("demo", "test", "check", "bench", "docs", "regression", "wheel", "clean"):
        assert f"make {word}" in shown


def python_blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


@pytest.mark.real
@pytest.mark.parametrize(
    "path",
    [path for path in sorted(SOURCE.rglob("*.py")) if ">>>" in path.read_text("utf-8")],
    ids=lambda path: path.stem,
)
def test_examples_in_docstrings(path):
    module = importlib.import_module(".".join(path.relative_to(SOURCE.parent).with_suffix("").parts))
    assert doctest.testmod(module).failed == 0


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
