"""Documents without context: the sentences of a corpus, each in the place of another of about the same length.

    python bench/shuffled_documents.py data/libreoffice-help.en-de.train.jsonl.gz shuffled.train.jsonl.gz

Every document keeps its number of sentences and, nearly, their lengths, but the sentences come from other documents. A
model that learns as much from it as from the corpus itself learns nothing from context.
"""

import argparse
import gzip
import json
from pathlib import Path
from random import Random

from lengthwise.corpora.filters import Limits
from lengthwise.corpora.readers import read

_TOGETHER = 64  # sentences of similar length that change places


def shuffled(documents: list[list[tuple[str, str]]], random: Random) -> list[list[tuple[str, str]]]:
    """Return documents of the same sizes: sentences are sorted by length, and change places within groups."""
    places = [(n, place) for n, document in enumerate(documents) for place in range(len(document))]
    order = sorted(range(len(places)), key=lambda n: sum(map(len, documents[places[n][0]][places[n][1]])))
    result = [list(document) for document in documents]
    for first in range(0, len(order), _TOGETHER):
        group = order[first : first + _TOGETHER]
        for here, there in zip(group, random.sample(group, len(group)), strict=True):
            (n, place), (other, where) = places[here], places[there]
            result[n][place] = documents[other][where]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", help="parallel documents")
    parser.add_argument("out", type=Path, help="JSON lines, .gz")
    asked = parser.parse_args()
    found = list(read(asked.corpus, limits=Limits(duplicates=True)))
    texts = shuffled([list(document.segments) for document in found], Random(0))
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(asked.out, "wt", encoding="utf-8") as file:
        for document, segments in zip(found, texts, strict=True):
            file.write(json.dumps({"id": document.id, "segs": segments}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
