"""Filters: which rows and pairs of a corpus are kept, and a report of those that are not.

Pairs with an empty side, a side that is too long, or sides of too unequal length are dropped and counted. So are
duplicate documents and malformed rows. Too many malformed rows are an error, since the file may have another format.
"""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from hashlib import blake2b

from .document import DataError, Document
from .lines import Malformed

SAMPLES = 5  # malformed rows that a report shows
MIN_ROWS = 100  # before the share of malformed rows is checked
Documents = Iterator[Document]


@dataclass(frozen=True)
class Limits:
    """Limits of the pairs and rows of a corpus. None: no limit."""

    max_chars: int | None = None  # of either side of a pair
    max_ratio: float | None = None  # longer side over shorter, in chars; no default suits titles and translations
    duplicates: bool = False  # whether they are kept
    max_malformed: float = 0.01  # share of the rows of a file

    def __post_init__(self) -> None:
        if self.max_chars is not None and self.max_chars < 1:
            raise ValueError(f"max_chars must be at least 1; got {self.max_chars}")
        if self.max_ratio is not None and not self.max_ratio >= 1:
            raise ValueError(f"max_ratio is the longer side over the shorter, so at least 1; got {self.max_ratio}")
        if not 0 <= self.max_malformed <= 1:
            raise ValueError(f"max_malformed is a share, from 0 to 1; got {self.max_malformed}")


@dataclass
class Report:
    """Counts of pairs (a malformed row counts as one). `read` is the sum of the six counts below it."""

    read: int = 0
    kept: int = 0
    malformed: int = 0
    empty: int = 0
    too_long: int = 0
    bad_ratio: int = 0
    duplicate: int = 0
    documents: int = 0  # of the kept pairs
    samples: list[Malformed] = field(default_factory=list)

    def __str__(self) -> str:
        counts = [(name.replace("_", " "), count) for name, count in asdict(self).items() if name != "samples"]
        width = len(f"{self.read:,}")
        table = [f"{name:<10} {count:>{width},}" for name, count in counts if count or name in ("read", "kept")]
        return "\n".join(table + [f"  {sample}" for sample in self.samples])


class HashSet:
    """A set of 64-bit hashes. It takes 12 to 24 bytes per hash; Python's set takes 60 or more.

    Two of n different documents have the same hash with probability n²/2⁶⁵: 3 in a million for ten million documents.
    """

    def __init__(self) -> None:
        self._slots, self._count = array("Q", bytes(8 << 10)), 0  # open addressing; 0 is a free slot

    def add(self, key: int) -> bool:
        """Add a key that is not 0; return whether it was new."""
        slot = self._slot(key)
        if self._slots[slot]:
            return False
        self._slots[slot] = key
        self._count += 1
        if self._count * 3 > len(self._slots) * 2:
            old, self._slots = self._slots, array("Q", bytes(16 * len(self._slots)))
            for known in filter(None, old):
                self._slots[self._slot(known)] = known
        return True

    def _slot(self, key: int) -> int:
        slots, mask = self._slots, len(self._slots) - 1
        slot = key & mask
        while slots[slot] not in (0, key):
            slot = (slot + 1) & mask
        return slot


def fingerprint(segments: tuple[tuple[str, str], ...]) -> int:
    """Return a 64-bit hash, never 0, of the texts without surrounding white space."""
    texts = [text.strip() for pair in segments for text in pair]
    return int.from_bytes(blake2b(repr(texts).encode(), digest_size=8).digest(), "little") or 1


def drop_malformed(rows: Iterable[Document | Malformed], file: str, limits: Limits, report: Report) -> Documents:
    """Yield the documents of one file; raise as soon as more of its rows are malformed than the limits allow."""
    read = malformed = 0
    first: list[Malformed] = []  # of this file; the report's samples may all be of another
    for row in rows:
        read += 1
        if isinstance(row, Malformed):
            malformed += 1
            report.read += 1
            report.malformed += 1
            for samples in (first, report.samples):
                if len(samples) < SAMPLES:
                    samples.append(row)
        if read >= MIN_ROWS and malformed > limits.max_malformed * read:
            break
        if isinstance(row, Document):
            yield row
    if malformed > limits.max_malformed * read:
        counts = f"{malformed:,} of {read:,} rows read from {file} are malformed"
        advice = "correct the file, name its format or fields, or raise max_malformed (in a recipe: data.max_malformed)"
        raise DataError(
            "\n  ".join([f"{counts}; the limit is {limits.max_malformed:.1%}:", *map(str, first)])
            + f"\nWhat to do: {advice}."
        )


def filter_documents(documents: Iterable[Document], limits: Limits, report: Report, seen: HashSet) -> Documents:
    """Yield the documents without the pairs that are empty, too long or too unequal, each document once.

    `seen`: the hashes of the documents so far.
    """
    for document in documents:
        report.read += len(document.segments)
        pairs = tuple(pair for pair in document.segments if _keep(pair, limits, report))
        if pairs and not limits.duplicates and not seen.add(fingerprint(pairs)):
            report.duplicate += len(pairs)  # only of whole documents, because different texts may share a sentence
        elif pairs:
            report.kept += len(pairs)
            report.documents += 1
            yield document if len(pairs) == len(document.segments) else Document(document.id, pairs)


def _keep(pair: tuple[str, str], limits: Limits, report: Report) -> bool:
    short, long = sorted((len(pair[0].strip()), len(pair[1].strip())))
    if not short:
        report.empty += 1
    elif limits.max_chars is not None and long > limits.max_chars:
        report.too_long += 1
    elif limits.max_ratio is not None and long > limits.max_ratio * short:
        report.bad_ratio += 1
    else:
        return True
    return False
