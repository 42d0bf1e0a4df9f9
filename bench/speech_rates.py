"""How long translations from English are, in characters, by language: what the rates of speech are made of.

python bench/speech_rates.py --catalogs FOLDER      messages of gettext catalogs (.mo), such as those of Django
python bench/speech_rates.py --pairs FILE...        corpora of the recipes (.jsonl.gz): rows of [source, target]

Prints for each language or file: texts, English characters, and the length relative to English. docs/subtitles.md
quotes it. Messages that are short, have a placeholder or are not translated are left out.
"""

import argparse
import gettext
import gzip
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from lengthwise import measure

MIN_CHARS = 25  # of an English message; shorter ones are labels


def catalogs(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Return the messages and their translations, by language."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for path in sorted(folder.rglob("LC_MESSAGES/django.mo")):
        with path.open("rb") as file:
            entries = gettext.GNUTranslations(file)._catalog.items()  # type: ignore[attr-defined]
        for source, target in entries:
            plain = isinstance(source, str) and len(source) >= MIN_CHARS and not {"%", "\x04"} & set(source)
            if plain and target not in ("", source):
                found[path.parts[-3]].append((source, target))
    return found


def pairs(path: Path) -> list[tuple[str, str]]:
    """Return the segments of a corpus."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [(source, target) for line in file for source, target in json.loads(line)["segs"]]


def show(name: str, rows: Iterable[tuple[str, str]]) -> None:
    sources, targets = zip(*rows, strict=True)
    english = sum(map(measure, sources))
    print(f"{name:<24} {len(sources):>6} {english:>8} {sum(map(measure, targets)) / english:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--catalogs", type=Path)
    parser.add_argument("--pairs", type=Path, nargs="*", default=[])
    args = parser.parse_args()
    if args.catalogs:
        for language, rows in sorted(catalogs(args.catalogs).items()):
            show(language, rows)
    for path in args.pairs:
        show(path.name.removesuffix(".jsonl.gz"), pairs(path))


if __name__ == "__main__":
    main()
