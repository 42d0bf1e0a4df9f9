"""Names become folders, in the promised order; errors say what was tried."""

from pathlib import Path

import pytest

from lengthwise.errors import ModelNotFound
from lengthwise.models.registry import known, resolve
from toy_models import write_model


def test_order_is_path_then_bundled_then_known(cache, toy, tmp_path):
    assert resolve("toy") == cache / "toy-1"
    bundled = write_model(tmp_path / "bundled" / "toy")
    assert resolve("toy") == bundled
    local = write_model(Path("toy"))
    assert resolve("toy") == local.absolute()
    assert resolve("./toy") == local.absolute()


def test_a_folder_that_is_no_model_does_not_hide_a_known_one(cache, toy):
    Path("toy").mkdir()
    assert resolve("toy") == cache / "toy-1"


def test_names_ignore_case(cache, toy):
    assert resolve("Toy") == cache / "toy-1"


def test_home_is_expanded(cache, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    mine = write_model(tmp_path / "mine")
    assert resolve("~/mine") == mine


@pytest.mark.parametrize("name", ["./gone", "../gone", "~/gone", "/no/such/place", "a/b/c", ""])
def test_a_path_that_is_not_there(cache, name):
    with pytest.raises(ModelNotFound, match=r"no model at .*(does not exist|holds no model)(.|\n)*What to do: give"):
        resolve(name)


def test_a_path_that_is_no_model(cache):
    Path("empty").mkdir()
    Path("file.gguf").touch()
    with pytest.raises(ModelNotFound, match="holds no model"):
        resolve("./empty")
    with pytest.raises(ModelNotFound, match="is a file"):
        resolve("./file.gguf")


def test_an_unknown_name_says_the_nearest(cache):
    with pytest.raises(ModelNotFound) as error:
        resolve("smolm")
    text = str(error.value)
    assert text.startswith("no model called 'smolm'. Tried, in order:\n  1. a local folder: ")
    assert "2. the bundled models: none in this version" in text
    assert "3. the known models: smollm2-plain" in text
    assert "did you mean smollm2-plain? A hub model is written owner/name." in text


def test_a_name_near_to_nothing_lists_them_all(cache):
    with pytest.raises(ModelNotFound, match="use one of smollm2-plain"):
        resolve("gpt-17-ultra")


def test_known_says_where_each_model_is(cache, toy, tmp_path):
    assert [(row.name, row.where, row.path) for row in known()] == [
        ("smollm2-plain", "to fetch", None),
        ("toy", "to fetch", None),
    ]
    folder = resolve("toy")
    small = write_model(tmp_path / "bundled" / "small")
    card = "---\nlicense: mit\n---\n# A small one\n\nMore.\n"
    (small / "README.md").write_text(card)
    rows = {row.name: row for row in known()}
    assert (rows["toy"].where, rows["toy"].path, rows["toy"].size > 100) == ("cached", folder, True)
    assert (rows["small"].where, rows["small"].path, rows["small"].size) == ("bundled", small, 102 + len(card))
    assert (rows["small"].description, rows["small"].licence) == ("A small one", "mit")
    for bad in ("", "no front matter", "---\n[\n---\n# x\n", "---\na: 1\n---\nno title"):
        (small / "README.md").write_text(bad)
        assert next(row.licence for row in known() if row.name == "small") == "see its folder"
