"""Toy corpora for the training tests: a few hundred made-up lines, the same ones each time."""

import json
from pathlib import Path
from random import Random
from typing import Any

_WORDS = ("the", "a", "cat", "dog", "bird", "runs", "sleeps", "sings", "over", "big", "house", "river", "and", "slowly")

_FIELDS = {
    "pair": ("source", "target"),
    "prompt": ("prompt", "response"),
    "title": ("text", "title"),
    "translated": ("source", "text"),  # as `lengthwise translate --json` writes them
}


def sentence(random: Random, most: int = 9) -> str:
    words = [_WORDS[int(random.random() * len(_WORDS))] for _ in range(2 + int(random.random() * most))]
    return " ".join(words).capitalize() + "."


def rows(count: int, kind: str = "segs", seed: int = 0) -> list[dict[str, Any]]:
    """`segs`: documents of one to four sentences; `pair`: source and target; `prompt`; `title`; `translated`."""
    random = Random(seed)
    found: list[dict[str, Any]] = []
    for n in range(count):
        pairs = [[(text := sentence(random)), text.upper()[: 4 + int(random.random() * len(text))]] for _ in range(4)]
        row: dict[str, Any] = {"id": f"{kind}{seed}-{n}"}
        if kind == "segs":
            row["segs"] = pairs[: 1 + n % 4]
        else:
            row |= dict(zip(_FIELDS[kind], pairs[0], strict=True))
        found.append(row)
    return found


def corpus(path: Path, count: int = 120, kind: str = "segs", seed: int = 0) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(count, kind, seed)), encoding="utf-8")
    return str(path)


# Pairs of sentences for a translator with two SentencePiece models.
PAIRS = [
    ("The quick brown fox jumps over the lazy dog.", "Le vif renard brun saute par-dessus le chien."),
    ("Where is the station? It is 5 km away.", "Où est la gare ? Elle est à 5 km."),
    ("Save the file.", "Enregistrez le fichier."),
    ("The dog sleeps.", "Le chien dort."),
]
OTHER_PAIRS = [
    ("Turn the page, then close the window slowly.", "Tournez la page, puis fermez lentement la fenêtre."),
    ("A quiet morning in the mountains with my brother.", "Un matin calme dans les montagnes avec mon frère."),
]
