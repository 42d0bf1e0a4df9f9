"""Settings: how the rows of a file were made, written beside it. Knows nothing of what they mean."""

import json
from pathlib import Path
from typing import Any


class SettingsMismatch(ValueError):
    """Rows were begun with other settings; the text says which."""


def claim(path: Path, settings: dict[str, Any], begun: bool) -> None:
    """Writes `settings` to `path`. Rows of two minds in one file would be nobody's: one that is `begun` goes on with
    the settings that it began with.
    """
    if begun and path.exists():
        before = json.loads(path.read_text("utf-8"))
        names = dict.fromkeys([*settings, *before])
        if changed := [name for name in names if before.get(name) != settings.get(name)]:
            told = ", ".join(f"{name} {before.get(name)!r}, now {settings.get(name)!r}" for name in changed)
            raise SettingsMismatch(f"{path.name} says that these rows were begun with {told}; name another file")
    path.write_text(json.dumps(settings) + "\n", encoding="utf-8")
