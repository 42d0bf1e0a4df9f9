"""bench/documents.py on an untrained model: what it decodes and scores; bench/shuffled_documents.py: what it keeps."""

import json
import sys
from pathlib import Path
from random import Random
from runpy import run_path
from typing import Any

import pytest
import torch

from lengthwise.controls import SentenceSeparator
from lengthwise.controls.attach import attach
from lengthwise.models.checkpoint import save
from lengthwise.training.fresh_model import fresh_model, train_tokenizer
from lengthwise.training.recipe import Fresh

BENCH = Path(__file__).parents[2] / "bench"
DOCUMENTS = [[(f"Word {n} of {m}.", f"Wort {n} von {m}.") for n in range(1 + 2 * m)] for m in range(3)]  # 1, 3, 5

pytest.importorskip("sacrebleu")
pytest.importorskip("matplotlib")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tokenizer = train_tokenizer([text for document in DOCUMENTS for pair in document for text in pair], 300)
    torch.manual_seed(0)
    model = fresh_model(Fresh(size="tiny"), tokenizer)
    save(attach(model, SentenceSeparator("<sep>", 32), tokenizer), tokenizer, tmp_path / "model")
    rows = [{"id": str(n), "segs": segments} for n, segments in enumerate(DOCUMENTS)]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def run(folder: Path, monkeypatch: Any, *more: str) -> list[dict[str, Any]]:
    arguments = [str(folder / "model"), "--data", str(folder / "test.jsonl"), "--out", str(folder / "out.json")]
    monkeypatch.setattr(sys, "argv", ["documents.py", *arguments, "--beams", "2", *more])
    run_path(str(BENCH / "documents.py"))["main"]()
    [cells] = json.loads((folder / "out.json").read_text()).values()
    return cells


def test_decodes_then_scores(folder: Path, monkeypatch: Any) -> None:
    methods = ["--methods", "whole:1+16+64,segments:64"]
    cells = run(folder, monkeypatch, *methods, "--decode")
    assert [(cell["method"], cell["length"]) for cell in cells] == [("whole", n) for n in (1, 16, 64)] + [
        ("segments", 64)
    ]
    assert [len(cell["pieces"]) for cell in cells][::2] == [9, 3]
    for cell in cells:
        assert "scores" not in cell
        assert 0 <= cell["right_count"] <= cell["kept_count"] <= 1
        assert [len(texts) for texts in cell["texts"]] == [sentences for sentences, _ in cell["pieces"]]
    # The first document has one sentence: with any length it is the same piece, and is translated alone.
    assert len({cell["texts"][0][0] for cell in cells}) == 1

    reference = ["--against", f"{folder / 'model'}:whole:1", "--plot", str(folder / "curve")]
    scored = run(folder, monkeypatch, *methods, *reference)
    assert [cell["texts"] for cell in scored] == [cell["texts"] for cell in cells]
    for cell in scored:
        assert set(cell["scores"]) == {"bleu", "d-bleu", "chrf", "d-chrf", "consistency"}
        assert [len(document) for document in cell["outputs"]] == [1, 3, 5]
        assert ("p" in cell["scores"]["d-bleu"]) == (cell is not scored[0])
    assert (folder / "curve.svg").exists()


def test_parts_of_documents_and_other_metrics(folder: Path, monkeypatch: Any) -> None:
    chosen = ["--metrics", "bleu,d-bleu", "--positions", "3", "--against", f"{folder / 'model'}:whole:1"]
    first, second = run(folder, monkeypatch, "--methods", "whole:1+16", *chosen)
    assert set(first["scores"]) == set(second["scores"]) == {"bleu", "d-bleu"}
    assert "p" in second["scores"]["d-bleu"]
    assert list(first["positions"]) == ["1/3", "2/3", "3/3"]  # of the documents with 3 and 5 sentences
    assert set(first["positions"]["3/3"]) == {"bleu", "chrf"}


def test_a_reverse_model_scores_candidates(folder: Path, monkeypatch: Any, capsys: Any) -> None:
    methods = ["--methods", "candidates-reverse:64", "--window", "16", "--decode"]
    with pytest.raises(SystemExit):
        run(folder, monkeypatch, *methods)
    assert "candidates-reverse needs --reverse MODEL" in capsys.readouterr().err
    [cell] = run(folder, monkeypatch, *methods, "--reverse", str(folder / "model"))
    assert (cell["method"], [len(texts) for texts in cell["texts"]]) == ("candidates-reverse", [1, 3, 5])


def test_shuffled_documents_keep_their_sizes_and_lengths() -> None:
    shuffled = run_path(str(BENCH / "shuffled_documents.py"))["shuffled"]
    random = Random(1)
    documents = [[("s" * random.randint(1, 90), str(n)) for _ in range(n)] for n in range(1, 40)]
    found = shuffled(documents, Random(0))
    assert [len(document) for document in found] == [len(document) for document in documents]
    assert sorted(pair for one in found for pair in one) == sorted(pair for one in documents for pair in one)
    pairs = [
        (len(a[0]), len(b[0]))
        for one, other in zip(documents, found, strict=True)
        for a, b in zip(one, other, strict=True)
    ]
    assert max(abs(before - after) for before, after in pairs) < 20
    stayed = sum(a == b for one, other in zip(documents, found, strict=True) for a, b in zip(one, other, strict=True))
    assert stayed < len(pairs) / 5


def test_a_curve_goes_from_short_to_long() -> None:
    score = {"value": 1.0, "interval": (0.0, 2.0), "signature": ""}
    cells = [{"method": "whole", "length": n, "scores": {"d-bleu": score | {"value": n}}} for n in (128, 1, 512, 64)]
    [(lengths, scores)] = run_path(str(BENCH / "documents.py"))["curves"]({"runs/one/model": cells}).values()
    assert lengths == [64, 128, 512]
    assert [one.value for one in scores] == lengths
