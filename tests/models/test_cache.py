"""The cache of models: a broken, half or doubled build never becomes a model."""

import multiprocessing
import os

import pytest

from lengthwise.errors import ModelNotFound
from lengthwise.models.cache import MANIFEST
from lengthwise.models.registry import KNOWN, Source, resolve
from toy_models import left_in, write_model

PATIENCE = 600  # seconds: two Python processes start in that time on any machine, idle or busy


def test_a_whole_model_is_made_once(cache, toy):
    assert resolve("toy") == resolve("toy")
    assert len(toy) == 1
    assert left_in(cache) == ["toy-1"]


@pytest.mark.parametrize("harm", ["missing", "short", "no manifest", "bad manifest"])
def test_a_damaged_model_is_made_again(cache, toy, harm):
    folder = resolve("toy")
    weights, manifest = folder / "model.safetensors", folder / MANIFEST
    {
        "missing": weights.unlink,
        "short": lambda: weights.write_bytes(b"x"),
        "no manifest": manifest.unlink,
        "bad manifest": lambda: manifest.write_text("[1"),
    }[harm]()
    assert resolve("toy") == folder
    assert len(toy) == 2
    assert weights.stat().st_size == 100
    assert left_in(cache) == ["toy-1"]


def test_a_new_edition_is_made_beside_the_old(cache, toy, monkeypatch):
    resolve("toy")
    monkeypatch.setitem(KNOWN, "toy", Source("a toy", "MIT", 10, KNOWN["toy"].build, edition=2))
    assert resolve("toy") == cache / "toy-2"


@pytest.mark.parametrize("end", [KeyboardInterrupt, ValueError])
def test_an_interrupted_build_leaves_nothing(cache, monkeypatch, end):
    def build(folder, say):
        write_model(folder)
        raise end

    monkeypatch.setitem(KNOWN, "toy", Source("a toy", "MIT", 10, build))
    with pytest.raises(end):
        resolve("toy")
    assert left_in(cache) == []


def test_the_remains_of_a_killed_process_is_removed(cache, toy):
    write_model(cache / ".toy-1-abc.tmp" / "model")
    other = write_model(cache / ".other-1-abc.tmp")  # another model's lock guards this one
    resolve("toy")
    assert left_in(cache) == [other.name, "toy-1"]


def test_a_cache_that_cannot_be_written(cache, toy):
    cache.touch()
    with pytest.raises(ModelNotFound, match=r"cannot be written(.|\n)*set LENGTHWISE_CACHE"):
        resolve("toy")


def resolve_slowly(cache, log, waiting, answers):
    """One of two processes: its builder does not end before the other waits for it."""

    def build(folder, say):
        with open(log, "a") as file:
            file.write("built\n")
        assert waiting.wait(PATIENCE)
        write_model(folder)

    def say(message):
        assert message == "waiting for another process that is making slow ..."
        waiting.set()

    os.environ["LENGTHWISE_CACHE"] = str(cache)
    KNOWN["slow"] = Source("slow", "MIT", 10, build)
    answers.put(resolve("slow", say=say))


def test_two_processes_at_once_build_once(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    waiting, answers = spawn.Event(), spawn.Queue()
    cache, log = tmp_path / "cache", tmp_path / "log"
    pair = [spawn.Process(target=resolve_slowly, args=(cache, log, waiting, answers)) for _ in range(2)]
    for process in pair:
        process.start()
    assert [answers.get(timeout=PATIENCE) for _ in pair] == [cache / "slow-1"] * 2
    for process in pair:
        process.join()
    assert log.read_text() == "built\n"
    assert left_in(cache) == ["slow-1"]
