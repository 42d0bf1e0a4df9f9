"""Toy trainings for the tests: small recipes, and examples and batches of tiny models."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import yaml
from torch import Tensor

from lengthwise.corpora import Document
from lengthwise.length.meter import Meter
from lengthwise.training.batches import Batch, Layout
from lengthwise.training.examples import Example, ExampleMaker
from lengthwise.training.loss import unbiased_logits
from lengthwise.training.recipe import Recipe, ShiftSection, load_recipe, parse_recipe
from toy_corpora import corpus, rows

FRESH = {"size": "tiny", "vocabulary": 360, "max_positions": 256}  # Marian computes a sinusoid for each position slowly
# So that two ways of computing a step can be compared.
NO_DROPOUT = {"fresh": FRESH | {"dropout": 0.0, "attention_dropout": 0.0}}


def values(folder: Path, **changes: dict[str, Any]) -> dict[str, Any]:
    """A small recipe: a tiny fresh encoder-decoder that counts characters."""
    sections: dict[str, Any] = {
        "name": "small",
        "out": str(folder / "run"),
        "model": {"fresh": FRESH | {"dropout": 0.1}},
        "controls": [{"control": "encoding", "scale": 1.0}],
        "data": {"train": corpus(folder / "train.jsonl", 100), "max_tokens": 256},
        "batch": {"tokens": 600, "pool": 40, "workers": 0},
        "train": {"steps": 12, "lr": 2e-3, "precision": "no", "log_every": 1, "save_every": 4, "evaluate_every": 4},
    }
    for key, value in changes.items():
        sections[key] = {**sections[key], **value} if isinstance(value, dict) and key in sections else value
    return sections


def small(folder: Path, **changes: dict[str, Any]) -> Recipe:
    return parse_recipe(values(folder, **changes))


def losses(run: Path, key: str = "loss") -> dict[int, float]:
    rows = [json.loads(row) for row in (run / "metrics.jsonl").read_text().splitlines()]
    return {row["step"]: row[key] for row in rows if key in row}


def documents(count: int = 12, kind: str = "segs") -> list[Document]:
    return [Document(row["id"], tuple(map(tuple, row["segs"]))) for row in rows(count, kind)]


def maker_for(tokenizer: Any, *units: str, **options: Any) -> ExampleMaker:
    settings = {"controls": [], "encoder_decoder": False, "end": tokenizer.eos_token_id} | options
    return ExampleMaker(tokenizer=tokenizer, meters=[Meter(tokenizer, unit) for unit in units or ["chars"]], **settings)


def layout_for(model: Any, tokens: int = 256, multiple: int = 8, **options: Any) -> Layout:
    both = model.config.is_encoder_decoder
    first = model.config.decoder_start_token_id if both else None
    return Layout(tokens, multiple, both, model.config.pad_token_id, model.config.eos_token_id, first, **options)


def examples_for(model: Any, tokenizer: Any, *units: str, count: int = 12) -> list[Example]:
    attached = getattr(model, "length_control", None)
    controls = list(attached.controls) if attached is not None else []
    shift = ShiftSection(share=0.5) if len(units) > 1 else None
    maker = maker_for(tokenizer, *units, encoder_decoder=model.config.is_encoder_decoder, shift=shift)
    maker = replace(maker, controls=[c for c in controls if c.name == "encoding"])
    return maker.examples(documents(count), 1, Random(0))[0]


def response_logits(model: Any, batch: Batch) -> Tensor:
    """The logits at `batch.rows`: (responses, vocabulary)."""
    logits, bias = unbiased_logits(model, batch)
    return logits if bias is None else logits + bias


def mute(text: str) -> None:
    pass


def toy_recipe(recipe: Path, folder: Path, base: str, more: list[str]) -> Any:
    """The recipe at a size that takes seconds: its corpora, model and steps are small, all else is as written."""
    values = yaml.safe_load(recipe.read_text(encoding="utf-8"))
    titles = recipe.stem.startswith(("takase-titles", "headlines"))
    kind = "title" if titles else "prompt" if "smollm2" in recipe.stem else "segs"
    data = corpus(folder / "toy.jsonl", 60, kind)
    overrides = [f"out={folder / 'run'}", "batch.workers=0", "batch.multiple=8", "batch.tokens=1200"]
    overrides += [f"data.dev={data}", "data.dev_texts=2", "train.precision='no'", "train.compile=false"]
    overrides += ["train.epochs=null", "train.steps=2"]
    overrides += ["train.evaluate_every=2", "train.save_every=1", "train.log_every=1", "data.duplicates=true"]
    train_files = values["data"]["train"]
    if isinstance(train_files, list):
        translated = corpus(folder / "translated.jsonl", 60, "translated")
        for n, one in enumerate(train_files):
            overrides.append(f"data.train.{n}.files={translated if 'text' in one.get('fields', ()) else data}")
    else:
        overrides.append(f"data.train={data}")
    if "fresh" in values["model"]:
        overrides += ["model.fresh.size=tiny", "model.fresh.vocabulary=400", "model.fresh.max_positions=512"]
    else:
        overrides.append(f"model.base={base}")
    if "separator" in values.get("lengths", {}):
        overrides.append("lengths.separator=<sep>")  # the toy translator has no other
    if values["train"].get("warmup"):
        overrides.append("train.warmup=1")
    return load_recipe(recipe, overrides + more)
