"""bench/within.py with the bundled en-it: what it measures, and the texts that it writes."""

import gzip
import json
import sys
from pathlib import Path
from runpy import run_path

BENCH = Path(__file__).parents[2] / "bench"
PAIRS = [
    ["The file could not be saved.", "Impossibile salvare il file."],
    [
        "This package contains the documentation and some examples.",
        "Questo pacchetto contiene documentazione ed esempi.",
    ],
    ["Are you sure you want to delete the selected folder?", "Eliminare la cartella selezionata?"],
]


def write_corpus(file):
    with gzip.open(file, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps({"segs": [pair, ["left", "out"]]}) + "\n" for pair in PAIRS)
    return file


def test_translations_within_a_length_are_measured_beside_free_ones(tmp_path, monkeypatch, capsys):
    corpus = write_corpus(tmp_path / "corpus.jsonl.gz")

    def run(*more):
        asked = ["within.py", corpus, "--model", "en-it", "--to", "it", "--skip", 1, *more]
        monkeypatch.setattr(sys, "argv", list(map(str, asked)))
        run_path(str(BENCH / "within.py"))["main"]()
        head, _, row = (line for line in capsys.readouterr().out.splitlines() if line.startswith("|"))
        return dict(zip(*(line.strip("| ").split(" | ") for line in (head, row)), strict=True))

    row = run("--out", tmp_path / "texts")
    free, within = (
        (tmp_path / "texts" / name).read_text("utf-8").splitlines() for name in ("en-it.free.txt", "en-it.txt")
    )
    sources = [source for source, _ in PAIRS[1:]]
    assert (tmp_path / "texts" / "src.txt").read_text("utf-8").splitlines() == sources
    assert len(free) == len(within) == 2
    assert all(len(text) <= len(source) for text, source in zip(within, sources, strict=True))
    ratios = [len(text) / len(source) for text, source in zip(within, sources, strict=True)]
    assert float(row["length"]) == round(sum(ratios) / 2, 3)
    assert int(row["near"]) == sum(0.9 <= ratio <= 1.1 for ratio in ratios)
    assert row["good"] == "2"
    assert float(row["cost"]) > 0
    assert int(run("--few-first")["wide"]) <= int(row["wide"])


def test_fields_reverse_the_corpus(tmp_path, monkeypatch):
    corpus, texts = write_corpus(tmp_path / "corpus.jsonl.gz"), tmp_path / "texts"
    asked = ["within.py", corpus, "--model", "en-it", "--to", "it", "--fields", "target,source", "--count", 1]
    monkeypatch.setattr(sys, "argv", [*map(str, asked), "--out", str(texts)])
    run_path(str(BENCH / "within.py"))["main"]()
    source, reference = PAIRS[0]
    assert (texts / "src.txt").read_text("utf-8") == f"{reference}\n"
    assert (texts / "ref.txt").read_text("utf-8") == f"{source}\n"
