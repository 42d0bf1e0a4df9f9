"""Write, then rename: a file or a folder is either complete at its path or absent.

Content is written beside its destination under another name. The last step renames it, which is atomic within a folder.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TextIO


@contextmanager
def file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that appears at `path` when the block ends, and is deleted if the block fails.

    A file that it replaces must be writable, and hands on its permissions.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(f"no permission to write to {path}")
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        umask = os.umask(0)  # it can only be read by setting it
        os.umask(umask)
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~umask
        os.chmod(name, mode)  # mkstemp lets only the owner read
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` as UTF-8."""
    with file(path) as stream:
        stream.write(text.encode())


@contextmanager
def partial_file(path: Path, newline: str | None = None) -> Iterator[TextIO]:
    """Open PATH.partial, which is renamed to `path` when the block ends. If the block fails, its lines stay there.

    `newline`: as for `open`. A path that is not a regular file, such as a pipe or a link, is written to directly.
    """
    partial = partial_path(path)
    with partial.open("w" if partial == path else "x", encoding="utf-8", newline=newline) as stream:
        try:
            yield stream
        except BaseException:
            if partial != path and not stream.tell():
                partial.unlink()
            raise
    if partial != path:
        if path.exists():
            shutil.copymode(path, partial)
        partial.replace(path)


def partial_path(path: Path) -> Path:
    """Return the path that `partial_file` writes to; raise if it cannot be written or already exists."""
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {str(path.parent)!r} for {path.name}")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file to write to")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"no permission to write to {path}")
    if path.is_symlink() or (path.exists() and not path.is_file()):
        return path
    partial = path.with_name(f"{path.name}.partial")
    if partial.exists():
        what = f"{partial} exists: an interrupted run left it, or another run writes it"
        raise ValueError(f"{what}; move or delete it, or name another file to write")
    return partial


@contextmanager
def folder(
    path: Path, *, partial: Path | None = None, rescue: Callable[[Path, Path], None] | None = None
) -> Iterator[Path]:
    """Make an empty folder that replaces `path` when the block ends, and is deleted if the block fails.

    `partial`: the folder to fill until then, beside `path`. `rescue`: see `replace_folder`.
    """
    partial = empty_folder(partial or path.with_name(f".{path.name}.{os.getpid()}.partial"))
    try:
        yield partial
        replace_folder(path, partial, rescue)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def empty_folder(path: Path) -> Path:
    """Make the folder `path`, and delete what a killed process left in it."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def replace_folder(path: Path, new: Path, rescue: Callable[[Path, Path], None] | None = None) -> None:
    """Rename the folder `new` to `path`, and delete the folder that was there, unless renaming fails.

    `rescue(old, path)` may move files from the old folder to the new one before the old one is deleted.
    """
    if not path.exists():
        new.rename(path)
        return
    old = new.with_name(f"{new.stem}.old{new.suffix}")
    shutil.rmtree(old, ignore_errors=True)
    path.rename(old)  # a rename cannot replace a folder that has files
    try:
        new.rename(path)
    except OSError:
        old.rename(path)
        raise
    if rescue:
        rescue(old, path)
    shutil.rmtree(old, ignore_errors=True)
