"""apt: fetch the package descriptions of the machine's Debian or Ubuntu sources, in two languages.

`apt-get update` runs on a state folder of its own, so the system's apt does not change and no privilege is needed.
Signatures are checked.
"""

import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from urllib.parse import unquote

from ..document import DataError

# Descriptions of packages that are not free may not be free themselves.
_NOT_FREE = ("non-free", "non-free-firmware", "restricted", "multiverse")
_INDEX = re.compile(r"(?P<place>.*_(?P<component>[^_]+)_i18n_|)Translation-(?P<language>\w+)(?:\.gz|\.bz2|\.xz)?")
_OFFERED = re.compile(r"/i18n/Translation-([A-Za-z_]+)(?:\.[a-z0-9]+)?$", re.MULTILINE)
_POLL = 0.2  # seconds between two progress messages

# The #clear lines remove the system's settings: its languages may be "none", its index targets include package lists
# and icons, and its hooks (such as one that empties the cache in a container) are for its own updates.
_CONFIG = """\
#clear Acquire::Languages;
#clear Acquire::IndexTargets;
#clear APT::Update;
Acquire::Languages { "en"; "LANGUAGE"; };
Acquire::GzipIndexes "false";
Acquire::Retries "2";
Acquire::IndexTargets::deb::Translations
{
  MetaKey "$(COMPONENT)/i18n/Translation-$(LANGUAGE)";
  ShortDescription "Translation-$(LANGUAGE)";
  Description "$(RELEASE)/$(COMPONENT) Translation-$(LANGUAGE)";
};
"""


@dataclass(frozen=True)
class Indices:
    """The English descriptions of one component of one release, and their translations."""

    name: str  # such as debian_dists_bookworm_main
    english: Path
    translated: Path


class UnknownLanguage(DataError):
    """No package description is translated into this language."""


def fetch(language: str, folder: Path, progress: Callable[[str], None], apt: str = "apt-get") -> list[Indices]:
    """Fetch the indices of English and `language` into `folder`; files of an interrupted run are not fetched again."""
    command = _command(language, folder, apt)
    progress(f"asking apt for the English and {language} package descriptions ...")
    status, errors = _run(command, lambda: progress(_fetched(folder / "lists")))
    complaints = [line for line in errors if line.startswith(("E:", "W:"))]
    for line in complaints:  # no error yet: a broken third-party source does not matter if the indices are found
        progress(line)
    try:
        return find(language, folder / "lists")
    except DataError as error:
        if isinstance(error, UnknownLanguage) or not (status or complaints):
            raise
        reasons = "\n  ".join(complaints or errors[-5:] or [f"exit status {status}"])
        raise DataError(f"apt-get could not fetch the package descriptions:\n  {reasons}\n{error}") from None


def _run(command: list[str], meanwhile: Callable[[], None]) -> tuple[int, list[str]]:
    """Run a program, call `meanwhile` repeatedly, and return the exit status and the lines of stderr."""
    env = os.environ | {"LC_ALL": "C"}
    process = Popen(command, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE, text=True, errors="replace", env=env)
    try:
        while True:
            try:
                errors = process.communicate(timeout=_POLL)[1]
                return process.returncode, errors.splitlines()
            except TimeoutExpired:
                meanwhile()
    finally:  # also after Ctrl-C
        process.kill()
        process.wait()


def _fetched(lists: Path) -> str:
    finished, size = 0, 0
    for path in (*lists.glob("*_i18n_Translation-*"), *lists.glob("partial/*")):
        with suppress(OSError):  # apt may rename the file meanwhile
            size += path.stat().st_size
            finished += path.parent == lists
    return f"fetching: {finished} files, {size / 1e6:,.1f} MB"


def _command(language: str, folder: Path, apt: str) -> list[str]:
    program = shutil.which(apt)
    if program is None:
        raise DataError(
            f"the Debian corpus is fetched with apt, but this machine has no {apt}.\n"
            "What to do: run this on Debian or Ubuntu, for example in a container, and copy the result; or copy the "
            "Translation-* files of such a machine's /var/lib/apt/lists into a folder and give that as `indices`."
        )
    folder = folder.absolute()
    for made in ("lists/partial", "cache/archives/partial", "log"):
        (folder / made).mkdir(parents=True, exist_ok=True)
    (folder / "apt.conf").write_text(_CONFIG.replace("LANGUAGE", language, 1), encoding="utf-8")
    own = {"State": "", "State::lists": "lists", "Cache": "cache", "Log": "log"}
    options = [f"-oDir::{key}={folder / place}" for key, place in own.items()]
    return [program, "-q", "-c", str(folder / "apt.conf"), *options, "update"]


def find(language: str, folder: Path) -> list[Indices]:
    """Return the pairs of indices in `folder`, an apt lists folder or any other with files of such names."""
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.iterdir()):
        match = _INDEX.fullmatch(unquote(path.name))  # apt writes Translation-zh%5fCN
        if match and match["component"] not in _NOT_FREE:
            found.setdefault(match["place"], {})[match["language"]] = path
    pairs = [
        # The first part of a name is the host it was fetched from, which does not matter in a report.
        Indices(place.removesuffix("_i18n_").partition("_")[2] or str(folder), files["en"], files[language])
        for place, files in found.items()
        if "en" in files and language in files  # a security suite or a third party may have no translations
    ]
    if pairs:
        return pairs
    fetched = offered = {name for files in found.values() for name in files}
    for path in [*folder.glob("*_InRelease"), *folder.glob("*_Release")]:
        offered = offered.union(_OFFERED.findall(path.read_text(encoding="utf-8", errors="replace")))
    others = sorted(offered - {"en"})
    if missing := sorted({"en", language} & offered - fetched):
        problem = f"apt's sources list Translation-{missing[0]}, but it was not fetched"
        raise DataError(f"{problem}.\nWhat to do: check the network and try again.")
    if others and language not in others:
        problem = f"no package descriptions in {language!r}; the languages found are {', '.join(others)}"
        raise UnknownLanguage(f"{problem}.\nWhat to do: choose one of these, for example en-{others[0]}.")
    advice = "check that apt has a Debian or Ubuntu source (/etc/apt/sources.list, /etc/apt/sources.list.d)"
    raise DataError(f"no translated package descriptions in {folder}.\nWhat to do: {advice}.")
