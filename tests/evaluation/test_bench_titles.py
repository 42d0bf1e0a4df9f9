"""bench/titles.py on untrained models: which titles it asks for, what it scores, and that it resumes."""

import json
import sys
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
import torch

from lengthwise.controls import EncodingControl
from lengthwise.controls.attach import attach
from lengthwise.models.checkpoint import save
from lengthwise.training.fresh_model import fresh_model, train_tokenizer
from lengthwise.training.recipe import Fresh

BENCH = Path(__file__).parents[2] / "bench/titles.py"
ROWS = [{"id": str(n), "text": f"The model number {n} reads a text.", "title": "Model " + "x" * n} for n in range(24)]

pytest.importorskip("rouge_score")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tokenizer = train_tokenizer([row[key] for row in ROWS for key in ("text", "title")], 300)
    for name, controls in {"plain": [], "ldpe": [EncodingControl(scale=1.0)]}.items():
        torch.manual_seed(0)
        model = fresh_model(Fresh(size="tiny", decoder="chars"), tokenizer)
        save(attach(model, controls, tokenizer) if controls else model, tokenizer, tmp_path / name / "model")
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path


def run(folder: Path, monkeypatch: Any, *more: str) -> Any:
    models = [str(folder / name / "model") for name in ("plain", "ldpe")]
    arguments = [*models, "--data", str(folder / "test.jsonl"), "--out", str(folder / "out"), "--beams", "2", *more]
    monkeypatch.setattr(sys, "argv", [str(BENCH), *arguments])
    bench = run_path(str(BENCH))
    bench["main"].__globals__.update(_LONGEST=12, _OVERRUN=2, _HYPOTHESES=3)
    bench["main"]()


def test_decodes_scores_and_resumes(folder: Path, monkeypatch: Any) -> None:
    options = ["--targets", "12,reference", "--baselines", "plain", "--words", str(folder / "test.jsonl")]
    run(folder, monkeypatch, *options, "--decode")
    files = {name: folder / "out/titles" / f"{name}.json" for name in ("plain", "ldpe")}
    plain, ldpe = (json.loads(file.read_text())["cells"] for file in files.values())
    assert set(plain) == {"free", "12/hard"}
    assert set(ldpe) == {"12/soft", "12/hard", "12/rerank", "reference/soft"}
    assert len(ldpe["12/soft"]["texts"]) == 11  # titles of 7 to 17 characters
    assert {len(text) for text in ldpe["12/hard"]["texts"]} == {12}
    assert not (folder / "out/scores.json").exists()

    before = {name: file.read_bytes() for name, file in files.items()}
    run(folder, monkeypatch, *options, "--against", "ldpe:ldpe")
    assert {name: file.read_bytes() for name, file in files.items()} == before  # nothing is decoded again
    found = json.loads((folder / "out/scores.json").read_text())
    assert found["scores"]["ldpe"]["12/hard"]["variance"]["value"] == 0
    cut = found["scores"]["plain"]["12/cut"]
    assert cut["mae"]["value"] >= 0
    assert set(cut) >= {"rouge-1-recall:target", "exact", "whole-phrase", "known-word", "whole"}
    kinds = [(one["kind"], one["a"], one["b"]) for one in found["comparisons"]]
    assert ("best baseline", "plain/12/free", "ldpe/12/soft") in kinds
    same = next(one for one in found["comparisons"] if one["kind"] == "pair")
    assert same["tests"]["rouge-1-recall:target"]["p"] == 1
    assert (folder / "out/lengths.png").exists()


def test_other_settings_are_refused(folder: Path, monkeypatch: Any) -> None:
    run(folder, monkeypatch, "--targets", "12", "--modes", "soft", "--decode")
    with pytest.raises(SystemExit, match="other settings"):
        run(folder, monkeypatch, "--targets", "12", "--modes", "soft", "--decode", "--rows", "9")


def test_scores_the_titles_of_one_file_alone(folder: Path, monkeypatch: Any) -> None:
    long = [row | {"text": f"Another text, {row['id']}.", "title": "T" * 40} for row in ROWS]
    other = folder / "other.jsonl"
    other.write_text("".join(json.dumps(row) + "\n" for row in long))
    options = ["--targets", "12,40", "--modes", "soft", "--data", str(folder / "test.jsonl"), str(other)]
    run(folder, monkeypatch, *options, "--of", str(folder / "test.jsonl"))
    found = json.loads((folder / "out/scores.json").read_text())
    assert found["rows"] == {"12": 11, "40": 0}
    assert set(found["scores"]["ldpe"]) == {"12/soft"}
    titles = json.loads((folder / "out/titles/ldpe.json").read_text())["cells"]
    assert len(titles["40/soft"]["texts"]) == 24  # decoded, but not scored
