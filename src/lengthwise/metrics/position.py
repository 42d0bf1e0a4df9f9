"""Position in the document: which sentences are in its first quarter, and which in its last?"""

from collections.abc import Hashable, Sequence
from itertools import groupby


def positions(docs: Sequence[Hashable], parts: int = 4) -> dict[str, list[int]]:
    """Return the rows of each part of the documents, by sentence index. Documents with fewer sentences are left out.

    >>> positions(["a", "a", "a", "b", "c", "c"], parts=2)
    {'1/2': [0, 1, 4], '2/2': [2, 5]}
    """
    if parts < 1:
        raise ValueError(f"parts must be at least 1; got {parts}")
    rows: dict[str, list[int]] = {f"{part + 1}/{parts}": [] for part in range(parts)}
    for _, run in groupby(range(len(docs)), key=docs.__getitem__):
        document = list(run)
        for index, row in enumerate(document if len(document) >= parts else ()):
            rows[f"{index * parts // len(document) + 1}/{parts}"].append(row)
    if not all(rows.values()):
        raise ValueError(f"no document has {parts} sentences; give fewer parts")
    return rows
