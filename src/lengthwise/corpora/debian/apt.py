"""apt: fetches the package descriptions that every Debian or Ubuntu machine can have, in two languages.

Runs `apt-get update` on a state of its own: nothing of the system's apt is changed, no privilege is needed, and the
signatures are checked as always. The sources are the system's. Knows which files come out of it, not what is in them.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from ..document import DataError

# Descriptions of packages that are not free need not be free themselves.
_NOT_FREE = ("non-free", "non-free-firmware", "restricted", "multiverse")
_INDEX = re.compile(r"(?P<place>.*_(?P<component>[^_]+)_i18n_|)Translation-(?P<language>\w+)(?:\.gz|\.bz2|\.xz)?")
_OFFERED = re.compile(r"/i18n/Translation-([A-Za-z_]+)(?:\.[a-z0-9]+)?$", re.MULTILINE)

_LOOK = 0.2  # seconds between two looks at what has come

# The clear lines: the system's list may say "none"; we want no package lists, no icons, only translations; and its
# hooks (such as the one that empties the cache in a container) are for its own updates.
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

    name: str  # debian_dists_bookworm_main, say
    english: Path
    translated: Path


class UnknownLanguage(DataError):
    """Nothing is translated into it."""


def fetch(language: str, folder: Path, say: Callable[[str], None], apt: str = "apt-get") -> list[Indices]:
    """Fill `folder` with the indices of English and `language`; what a broken run left there is used."""
    command = _command(language, folder, apt)
    say(f"asking apt for the English and {language} package descriptions ...")
    status, errors = _run(command, lambda: say(_so_far(folder / "lists")))
    complaints = [line for line in errors if line.startswith(("E:", "W:"))]
    for line in complaints:  # somebody's broken third-party source is no reason to stop, if the rest came
        say(line)
    try:
        return find(language, folder / "lists")
    except UnknownLanguage:
        raise
    except DataError as error:
        if not status and not complaints:
            raise
        reasons = "\n  ".join(complaints or errors[-5:] or [f"exit status {status}"])
        raise DataError(f"apt-get could not fetch the package descriptions:\n  {reasons}\n{error}") from None


def _run(command: list[str], meanwhile: Callable[[], None]) -> tuple[int, list[str]]:
    """Runs a program, calling `meanwhile` now and then; its exit status and what it said on stderr."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C"},
    )
    try:
        while True:
            try:
                errors = process.communicate(timeout=_LOOK)[1]
                return process.returncode, errors.splitlines()
            except subprocess.TimeoutExpired:
                meanwhile()
    finally:  # also after Ctrl-C
        process.kill()
        process.wait()


def _so_far(lists: Path) -> str:
    """What apt has fetched: finished files, and the bytes of these and of those on their way."""
    finished, size = 0, 0
    for path in (*lists.glob("*_i18n_Translation-*"), *lists.glob("partial/*")):
        with suppress(OSError):  # it may have been renamed just now
            size += path.stat().st_size
            finished += path.parent == lists
    return f"fetching: {finished} files, {size / 1e6:,.1f} MB"


def _command(language: str, folder: Path, apt: str) -> list[str]:
    program = shutil.which(apt)
    if program is None:
        raise DataError(
            f"the Debian corpus is fetched with apt, and there is no {apt} on this machine.\n"
            "What to do: run this on Debian or Ubuntu (a container will do) and copy the result; or copy the "
            "Translation-* files from such a machine's /var/lib/apt/lists into a folder and give that as `indices`."
        )
    folder = folder.absolute()
    for made in ("lists/partial", "cache/archives/partial", "log"):
        (folder / made).mkdir(parents=True, exist_ok=True)
    config = folder / "apt.conf"
    config.write_text(_CONFIG.replace("LANGUAGE", language, 1), encoding="utf-8")
    own = {"State": "", "State::lists": "lists", "Cache": "cache", "Log": "log"}
    options = [f"-oDir::{key}={folder / place}" for key, place in own.items()]
    return [program, "-q", "-c", str(config), *options, "update"]


def find(language: str, folder: Path) -> list[Indices]:
    """The pairs of indices in `folder` (an apt lists folder, or any that holds files of such names).

    A release or component without translations (a security suite, a third party's packages) is left out.
    """
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.iterdir()):
        match = _INDEX.fullmatch(unquote(path.name))  # apt writes Translation-zh%5fCN
        if match and match["component"] not in _NOT_FREE:
            found.setdefault(match["place"], {})[match["language"]] = path
    pairs = [
        # The first part of a name is the machine it came from: of no interest to readers of a report.
        Indices(place.removesuffix("_i18n_").partition("_")[2] or str(folder), files["en"], files[language])
        for place, files in found.items()
        if "en" in files and language in files
    ]
    if not pairs:
        raise _none_found(language, folder, found)
    return pairs


def _none_found(language: str, folder: Path, found: dict[str, dict[str, Path]]) -> DataError:
    offered: set[str] = {name for files in found.values() for name in files}
    for path in [*folder.glob("*_InRelease"), *folder.glob("*_Release")]:
        offered |= set(_OFFERED.findall(path.read_text(encoding="utf-8", errors="replace")))
    missing = sorted({"en", language} & offered - {name for files in found.values() for name in files})
    offered.discard("en")
    kind = DataError
    if missing:
        said = f"apt's sources offer Translation-{missing[0]}, but it was not fetched"
        advice = "check the network and try again"
    elif offered and language not in offered:
        kind = UnknownLanguage
        said = f"no package descriptions in {language!r}; the languages found are {', '.join(sorted(offered))}"
        advice = f"ask for one of these, as in en-{min(offered)}"
    else:
        said = f"no translated package descriptions in {folder}"
        advice = "check that apt has a Debian or Ubuntu source (/etc/apt/sources.list, /etc/apt/sources.list.d)"
    return kind(f"{said}.\nWhat to do: {advice}.")
