"""Conversions in the cache: one for each content, made again when a model changes, removed when no folder has it."""

import json
import os
import shutil

import pytest

from lengthwise.models import conversions
from lengthwise.models.conversion import checkpoint


@pytest.fixture
def made(monkeypatch):
    """The folders that were converted."""
    made = []

    def convert(folder, fresh, **_):
        made.append(folder)
        (fresh / "graph").write_text((folder / "weights").read_text())

    monkeypatch.setattr(checkpoint, "convert", convert)
    return made


@pytest.fixture
def convert(tmp_path, monkeypatch, made):
    """Returns a function that writes a model, if it gets its content, converts it, and returns where."""
    monkeypatch.setenv("LENGTHWISE_CACHE", str(tmp_path / "cache"))

    def make(name, content=None):
        folder = tmp_path / name
        folder.mkdir(parents=True, exist_ok=True)
        if content is not None:
            (folder / "weights").write_text(content)
        return conversions.converted_once("m", folder, lambda message: None)

    return make


def test_folders_with_the_same_content_share_a_conversion(convert, made):
    place = convert("clones/one/model", "a")
    assert convert("clones/two/model", "a") == convert("clones/one/model") == place
    assert len(made) == 1
    assert convert("clones/two/model", "b") != place
    assert len(made) == 2


def test_a_new_conversion_replaces_the_old_one_that_no_other_folder_has(convert, made):
    first = convert("runs/one/model", "a")
    assert convert("runs/other/model", "a") == first
    second = convert("runs/one/model", "longer")
    assert (second != first, (first / "graph").read_text()) == (True, "a"), "the other folder has it"
    assert convert("runs/other/model", "longer") == second
    assert (first.exists(), len(made)) == (False, 2)


def test_a_folder_that_is_gone_keeps_no_conversion(convert, tmp_path):
    first = convert("clones/one/model", "a")
    convert("clones/two/model", "a")
    shutil.rmtree(tmp_path / "clones/two")
    convert("clones/one/model", "b")
    assert not first.exists()


def test_a_change_of_the_same_size_and_time_is_seen(convert, tmp_path):
    convert("model", "a")
    weights = tmp_path / "model/weights"
    kept = weights.stat()
    weights.write_text("b")
    os.utime(weights, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    assert (convert("model") / "graph").read_text() == "b"


def test_a_renamed_or_an_additional_file_is_a_change(convert, tmp_path):
    places = [convert("model", "a")]
    (tmp_path / "model/more").write_text("a")
    places.append(convert("model"))
    (tmp_path / "model/more").rename(tmp_path / "model/other")
    places.append(convert("model"))
    assert len(set(places)) == 3


def test_the_content_is_read_once(convert, monkeypatch):
    place = convert("model", "a")
    monkeypatch.setattr(conversions, "_content", lambda file: pytest.fail(f"{file} was read again"))
    assert convert("model") == place


@pytest.mark.parametrize("damage", ["", "[1]", "{}", '{"state": 1}'])
def test_a_damaged_record_is_written_again(convert, made, damage):
    place = convert("model", "a")
    [record] = place.parent.glob("*.json")
    before = json.loads(record.read_text())
    record.write_text(damage)
    assert convert("model") == place
    assert (json.loads(record.read_text()), len(made)) == (before, 1)


def test_a_conversion_that_was_removed_is_made_again(convert, made):
    shutil.rmtree(place := convert("model", "a"))
    assert convert("model") == place
    assert ((place / "graph").exists(), len(made)) == (True, 2)


def test_a_change_of_the_conversion_makes_all_again(convert, made, monkeypatch):
    first = convert("model", "a")
    monkeypatch.setattr(conversions, "_EDITION", 99)
    assert convert("model") != first
    assert (first.exists(), len(made)) == (False, 2)


def test_a_cache_without_records_works_without_being_written(convert, made, monkeypatch):
    place = convert("one/model", "a")

    def refuse(path, text):
        raise PermissionError(f"no permission to write to {path}")

    monkeypatch.setattr("lengthwise.models.conversions.atomic.write_text", refuse)
    assert convert("two/model", "a") == place
    assert len(made) == 1


def test_conversions_of_earlier_versions_are_removed(convert, tmp_path):
    folder = tmp_path / "runs/model"
    old = tmp_path / "cache" / f"onnx-model-{conversions._digest(str(folder))}-0123456789ab-2"
    other = tmp_path / "cache" / "onnx-model-0123456789ab-0123456789ab-2"
    for place in (old, other):
        place.mkdir(parents=True)
    convert("runs/model", "a")
    assert (old.exists(), other.exists()) == (False, True)
