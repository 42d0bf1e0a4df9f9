"""Files and folders are complete at their path or not there; what a failure leaves behind."""

import os
import stat

import pytest

from lengthwise import atomic


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def interrupt(error, _written):
    raise error


# ---- files


def test_a_file_appears_when_the_block_ends(tmp_path):
    path = tmp_path / "new" / "a.txt"
    with atomic.file(path) as stream:
        stream.write(b"one")
        assert not path.exists()
    assert (path.read_bytes(), names(path.parent)) == (b"one", ["a.txt"])
    atomic.write_text(path, "due è\n")
    assert path.read_bytes() == "due è\n".encode()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failed_block_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(error), atomic.file(path) as stream:
        interrupt(error, stream.write(b"new"))
    assert (path.read_text(), names(tmp_path)) == ("old", ["a.txt"])


def test_a_file_has_the_mode_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        atomic.write_text(tmp_path / "a.txt", "")
    finally:
        assert os.umask(before) == 0o027
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640


# ---- files whose lines survive a failure


def test_a_partial_file_is_renamed_and_keeps_the_mode(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(0o600)
    with atomic.partial_file(path) as stream:
        print("new", file=stream, flush=True)
        assert (path.read_text(), (tmp_path / "a.txt.partial").read_text()) == ("old", "new\n")
    assert (path.read_text(), names(tmp_path), stat.S_IMODE(path.stat().st_mode)) == ("new\n", ["a.txt"], 0o600)


def test_lines_of_a_failed_block_stay_in_the_partial_file(tmp_path):
    path = tmp_path / "a.txt"
    with pytest.raises(KeyboardInterrupt), atomic.partial_file(path):
        raise KeyboardInterrupt
    assert names(tmp_path) == []  # nothing was written
    with pytest.raises(KeyboardInterrupt), atomic.partial_file(path) as stream:
        interrupt(KeyboardInterrupt, print("one", file=stream, flush=True))
    assert (names(tmp_path), (tmp_path / "a.txt.partial").read_text()) == (["a.txt.partial"], "one\n")
    with pytest.raises(ValueError, match=r"a\.txt\.partial exists: an interrupted run left it"):
        atomic.partial_path(path)


def test_a_link_is_written_to_directly(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with atomic.partial_file(tmp_path / "link") as stream:
        stream.write("one")
    assert ((tmp_path / "target").read_text(), names(tmp_path)) == ("one", ["link", "target"])


def test_places_that_cannot_be_written_are_refused(tmp_path):
    with pytest.raises(ValueError, match="there is no folder"):
        atomic.partial_path(tmp_path / "none" / "a.txt")
    with pytest.raises(ValueError, match="is a folder; name a file"):
        atomic.partial_path(tmp_path)


# ---- folders


def fill(folder, **files):
    for name, text in files.items():
        (folder / name).write_text(text)


@pytest.mark.parametrize("old", [False, True])
def test_a_folder_replaces_the_old_one(tmp_path, old):
    path = tmp_path / "new" / "model"
    if old:
        path.mkdir(parents=True)
        fill(path, a="old", b="old")
    with atomic.folder(path) as partial:
        fill(partial, a="new")
        assert path.exists() == old
        assert partial.name == f".model.{os.getpid()}.partial"
    assert (names(path), (path / "a").read_text(), names(path.parent)) == (["a"], "new", ["model"])


def test_a_failed_block_leaves_the_old_folder(tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    fill(path, a="old")
    with pytest.raises(KeyboardInterrupt), atomic.folder(path) as partial:
        interrupt(KeyboardInterrupt, fill(partial, a="new"))
    assert ((path / "a").read_text(), names(tmp_path)) == ("old", ["model"])


def test_files_can_be_rescued_from_the_old_folder(tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    fill(path, a="old", notes="mine")
    with atomic.folder(path, rescue=lambda old, new: (old / "notes").replace(new / "notes")) as partial:
        fill(partial, a="new")
    assert ((path / "a").read_text(), (path / "notes").read_text(), names(tmp_path)) == ("new", "mine", ["model"])


def test_a_failed_rename_restores_the_old_folder(tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    fill(path, a="old")
    with pytest.raises(OSError, match="missing"):
        atomic.replace_folder(path, tmp_path / ".missing.partial")
    assert ((path / "a").read_text(), names(tmp_path)) == ("old", ["model"])


def test_remains_of_a_killed_process_are_removed(tmp_path):
    path, partial, old = (tmp_path / name for name in ("model", ".model.partial", ".model.old.partial"))
    for place in (path, partial, old):
        place.mkdir()
        fill(place, b="remains")
    with atomic.folder(path, partial=partial) as found:
        assert (found, names(found)) == (partial, [])
        fill(found, a="new")
    assert (names(path), names(tmp_path)) == (["a"], ["model"])
