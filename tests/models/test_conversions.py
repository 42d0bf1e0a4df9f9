"""Conversions in the cache: made once for a checkpoint, and replaced when it changes."""

import pytest

from lengthwise.models import onnx_model
from lengthwise.models.conversion import checkpoint


@pytest.fixture
def convert(tmp_path, monkeypatch):
    """Returns a function that converts a folder of this name with this content, and returns where."""
    monkeypatch.setenv("LENGTHWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(checkpoint, "convert", lambda folder, fresh, **_: (fresh / "graph").write_text("x"))

    def make(name, content):
        folder = tmp_path / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "weights").write_text(content)
        return onnx_model._converted_once("m", folder, lambda message: None)

    return make


def test_a_new_conversion_replaces_the_old_one_of_the_same_checkpoint(convert):
    other = convert("runs/other/model", "a")  # the same name in another folder
    first = convert("runs/one/model", "a")
    assert convert("runs/one/model", "longer") != first
    assert not first.exists()
    assert (other / "graph").exists()
    assert convert("runs/other/model", "other").exists()
    assert not other.exists()
