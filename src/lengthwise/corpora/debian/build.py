"""Build the Debian corpus: join descriptions with their translations, split into train, dev and test, write the files.

Two corpora are written: parallel documents (English and one other language), and titles (long → short description, in
English). This module joins, splits and writes them; `apt` fetches the indices and `descriptions` reads them.
"""

import bz2
import gzip
import json
import lzma
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ... import atomic
from ..document import DataError, Document
from ..writing import write_jsonl
from . import apt as apt_
from .descriptions import Description, descriptions, readable, reject_reason

Progress = Callable[[str], None]

SPLITS = ("train", "dev", "test")
HELD_OUT = 600  # documents in each of dev and test, at most
MIN_TEXT, MIN_TITLE = 120, 12  # characters; shorter descriptions repeat their title
SIBLINGS = 200  # descriptions with the same first 200 characters (libfoo, libfoo-dev) are siblings; one is kept
_PROGRESS_EVERY = 500  # entries

LICENCE = """\
# Licence of this data

These are descriptions of software packages, written by the maintainers of Debian (or Ubuntu) packages, and
translations of them by the volunteers of the Debian Description Translation Project (DDTP). They are distributed as
part of the free section of the archive, under free licences: each description under that of its package's `debian/`
folder, which its copyright file (`/usr/share/doc/PACKAGE/copyright`) states.

Lengthwise only joined, cut and split them. Please pass on this note with the data.
"""


def build(
    pair: str,
    out: Path,
    *,
    progress: Progress | None = None,
    seed: int = 0,
    held_out: int = HELD_OUT,
    rebuild: bool = False,
    indices: Path | None = None,
    apt: str = "apt-get",
) -> dict[str, Any]:
    """Write debian.PAIR.{train,dev,test}.jsonl.gz and debian.titles.* into `out`; return the counts in report.json.

    `pair` is en-it, en-pt_BR ... Corpora that an earlier call finished are kept unless `rebuild`. `indices` is a folder
    of Translation files to use instead of apt. Fetched indices stay in out/.indices until the corpora are built.
    """
    language = _language(pair)
    pair, out, progress = f"en-{language}", Path(out), progress or (lambda _: None)
    options = {"seed": seed, "held_out": held_out}
    todo = [name for name in (pair, "titles") if rebuild or not _finished(out, name, options)]
    if not todo:
        progress(f"{out} has debian.{pair} and debian.titles already")
        return _report(out)
    own = out / ".indices" / pair
    found = _indices(language, own, indices, progress, apt)
    # Train, dev and test of a corpus are always rebuilt together: a new train file could contain an old test document.
    for name in todo:
        progress(f"building debian.{name} ...")
        _record(out, name, None)  # until all files are written, the corpus counts as unfinished
        counts: Counter[str] = Counter()
        documents = []
        for document in _titles(found, counts) if name == "titles" else _parallel(found, language, counts):
            documents.append(document)
            if len(documents) % _PROGRESS_EVERY == 0:
                progress(f"building debian.{name}: {len(documents):,} entries paired")
        progress(f"building debian.{name}: splitting and writing ...")
        kept = _write(out, name, documents, options)
        _record(out, name, {**kept, **options, "counts": counts, "indices": [index.name for index in found]})
    atomic.write_text(out / "LICENCE.md", LICENCE)
    _remove(own)
    return _report(out)


def _language(pair: str) -> str:
    found = re.fullmatch(r"en-([a-z]{2,3})(?:[_-]([A-Za-z]{2}))?", pair)
    if found is None or found[1] == "en":
        advice = "the descriptions are translated from English; for the other direction, swap the sides when reading"
        raise DataError(f"a pair is English and one other language, as in en-it or en-pt_BR; got {pair!r}; {advice}")
    return found[1] + (f"_{found[2].upper()}" if found[2] else "")


def _indices(language: str, own: Path, given: Path | None, progress: Progress, apt: str) -> list[apt_.Indices]:
    if given is not None:
        if not given.is_dir():
            raise DataError(f"indices must be a folder of Translation files; {str(given)!r} is not a folder")
        return apt_.find(language, given)
    if (done := own / "fetched").exists():
        progress(f"using the indices fetched before, in {own}")
        return apt_.find(language, own / "lists")
    try:
        found = apt_.fetch(language, own, progress, apt)
    except apt_.UnknownLanguage:
        _remove(own)
        raise
    done.touch()
    return found


def _remove(own: Path) -> None:
    shutil.rmtree(own, ignore_errors=True)
    if own.parent.is_dir() and not any(own.parent.iterdir()):
        own.parent.rmdir()


def _stanzas(path: Path, language: str, counts: Counter[str]) -> Iterator[Description]:
    packed: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    with packed[path.suffix](path) if path.suffix in packed else path.open("rb") as stream:
        for description in descriptions(stream, language):
            if description:
                yield description
            else:
                counts["malformed"] += 1


def _parallel(found: list[apt_.Indices], language: str, counts: Counter[str]) -> Iterator[Document]:
    """Yield documents whose segments correspond, each text once. Package and md5 identify an original."""
    seen: set[str | tuple[tuple[str, str], ...]] = set()  # ids, since releases overlap, and texts
    for index in found:
        english = {(d.package, d.md5): d for d in _stanzas(index.english, "en", counts)}
        for target in _stanzas(index.translated, language, counts):
            counts["translations"] += 1
            source = english.get((target.package, target.md5))
            if source is None:
                counts["no_original"] += 1
            elif reason := reject_reason(source, target):
                counts[reason] += 1
            else:
                pairs = tuple((s.text, t.text) for s, t in zip(source.segments, target.segments, strict=True))
                fresh = seen.isdisjoint((source.id, pairs))
                counts["kept" if fresh else "duplicate"] += 1
                if fresh:
                    seen |= {source.id, pairs}
                    yield Document(source.id, pairs)


def _titles(found: list[apt_.Indices], counts: Counter[str]) -> Iterator[Document]:
    """Yield (long, short) descriptions; of those with the same beginning only the first."""
    seen: set[str] = set()
    for index in found:
        for description in _stanzas(index.english, "en", counts):
            counts["descriptions"] += 1
            title, *paragraphs = (segment.text for segment in description.segments)
            text = "\n".join(paragraphs)
            if not readable(description):
                counts["empty"] += 1
            elif len(text) < MIN_TEXT or len(title) < MIN_TITLE:
                counts["too_short"] += 1
            elif text[:SIBLINGS] in seen:
                counts["sibling"] += 1
            else:
                seen.add(text[:SIBLINGS])
                counts["kept"] += 1
                yield Document(description.id, ((text, title),))


def split(documents: Iterable[Document], seed: int, held_out: int = HELD_OUT) -> dict[str, list[Document]]:
    """Return train, dev and test, where no segment of dev or test, in either language, occurs in any other document.

    Documents are ordered by a hash of their id and the seed. Test is taken from the low end and dev from the high end,
    so that a test document of one corpus is rarely a dev document of another, and a newer archive splits similarly.
    """
    documents = sorted(documents, key=lambda one: blake2b(f"{seed}/{one.id}".encode(), digest_size=8).digest())
    uses = Counter(part for document in documents for part in _parts(document))
    alone = [document for document in documents if all(uses[part] == 1 for part in _parts(document))]
    size = min(held_out, len(documents) // 20, len(alone) // 2)
    test, dev = alone[:size], alone[len(alone) - size :]
    apart = {document.id for document in test + dev}
    return {"train": [document for document in documents if document.id not in apart], "dev": dev, "test": test}


def _parts(document: Document) -> set[tuple[int, str]]:
    """Return the segments of each side, split into paragraphs, in folded case."""
    return {
        (side, paragraph.casefold())
        for pair in document.segments
        for side, text in enumerate(pair)
        for paragraph in text.split("\n")
    }


def _file(out: Path, name: str, part: str) -> Path:
    return out / f"debian.{name}.{part}.jsonl.gz"


def _report(out: Path) -> dict[str, Any]:
    try:
        found = json.loads((out / "report.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _record(out: Path, name: str, result: dict[str, Any] | None) -> None:
    report = {key: value for key, value in {**_report(out), name: result}.items() if value is not None}
    atomic.write_text(out / "report.json", json.dumps(report, indent=1) + "\n")


def _finished(out: Path, name: str, options: dict[str, int]) -> bool:
    same_options = options.items() <= _report(out).get(name, {}).items()
    return same_options and all(_file(out, name, part).is_file() for part in SPLITS)


def _write(out: Path, name: str, documents: list[Document], options: dict[str, int]) -> dict[str, Any]:
    if not documents:
        raise DataError(f"no document for debian.{name}: no description could be used")
    kept: dict[str, Any] = {}
    for part, members in split(documents, **options).items():
        titles = ({"id": one.id, "text": one.segments[0][0], "title": one.segments[0][1]} for one in members)
        write_jsonl(_file(out, name, part), titles if name == "titles" else members)
        kept[part] = {"documents": len(members), "segments": sum(len(member.segments) for member in members)}
    source, target = (sum(len(pair[side]) for d in documents for pair in d.segments) for side in (0, 1))
    return {**kept, "target_to_source_characters": round(target / source, 3)}
