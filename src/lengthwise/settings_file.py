"""Settings files: check that the rows in a file were made with the same settings as the current run."""

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any


class SettingsMismatch(ValueError):
    """The rows were made with other settings. `changed`: name -> (before, now)."""

    def __init__(self, path: Path, changed: dict[str, tuple[Any, Any]]) -> None:
        self.path, self.changed = path, changed
        super().__init__(f"{path.name} has other settings: the rows were made with {self.listed}; give another file")

    @property
    def listed(self) -> str:
        return ", ".join(f"{name} {before!r}, now {now!r}" for name, (before, now) in self.changed.items())


def check_settings(
    path: Path,
    settings: Mapping[str, Any],
    *,
    read: Callable[[str], dict[str, Any]] = json.loads,
    renamed: Mapping[str, str] | None = None,
    ignore: Collection[str] = (),
) -> None:
    """Raise `SettingsMismatch` if `path` exists and its settings differ from `settings`.

    `read` parses the file's text. `renamed`: from the names of settings in older files to the current names.
    `ignore`: settings that change no row.
    """
    if not path.exists():
        return
    current = renamed or {}
    before = {current.get(name, name): value for name, value in read(path.read_text("utf-8")).items()}
    if changed := changed_settings(before, settings, ignore):
        raise SettingsMismatch(path, changed)


def changed_settings(
    before: Mapping[str, Any], settings: Mapping[str, Any], ignore: Collection[str] = ()
) -> dict[str, tuple[Any, Any]]:
    """Return the settings that differ from those read from a file: name -> (before, now)."""
    now = json.loads(json.dumps(dict(settings)))  # a tuple is a list in the file
    names = [name for name in dict.fromkeys([*now, *before]) if name not in ignore]
    return {name: (before.get(name), now.get(name)) for name in names if before.get(name) != now.get(name)}
