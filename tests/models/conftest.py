"""A cache of models and a known model for the tests of names and caches."""

import pytest

from lengthwise.models import registry
from lengthwise.models.registry import KNOWN, Source
from toy_models import write_model


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and a current folder with nothing in it."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("LENGTHWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(registry, "BUNDLED", tmp_path / "bundled")
    return tmp_path / "cache"


@pytest.fixture
def toy(cache, monkeypatch):
    """A known model `toy`, made at once; the list counts how often."""
    made = []

    def build(folder, say):
        made.append(folder)
        write_model(folder)

    monkeypatch.setitem(KNOWN, "toy", Source("a toy", "MIT", 10, build))
    return made
