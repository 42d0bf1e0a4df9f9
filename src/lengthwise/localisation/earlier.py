"""Earlier texts: those of the file that will be replaced, which are kept if it is certain what they translate."""

import re
from collections import Counter
from collections.abc import Sequence

from ..formats import Entry

_INDEX = re.compile(r"(?P<array>.+)(?:\.\d+|\[\d+\])")  # steps.0, steps[0]


def earlier_texts(entries: Sequence[Entry], replaced: Sequence[Entry]) -> dict[str, Entry]:
    """Return the translations in the file that will be replaced, by id.

    Left out are texts that are no translation yet, ids that a file has twice, and arrays that have another size now: an
    index does not tell which text of them is which.
    """
    counts = Counter(entry.id for entry in replaced), Counter(entry.id for entry in entries)
    sizes, new_sizes = _sizes(replaced), _sizes(entries)
    found: dict[str, Entry] = {}
    for entry in replaced:
        array = _array(entry)
        if not entry.text.strip() or "new" in entry.flags or max(count[entry.id] for count in counts) > 1:
            continue
        if array is None or sizes[array] == new_sizes[array]:
            found[entry.id] = entry
    return found


def _array(entry: Entry) -> str | None:
    index = None if entry.form or entry.source is not None else _INDEX.fullmatch(entry.id)
    return index["array"] if index else None


def _sizes(entries: Sequence[Entry]) -> Counter[str]:
    return Counter(array for entry in entries if (array := _array(entry)) is not None)
