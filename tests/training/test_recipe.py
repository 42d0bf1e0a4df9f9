"""Recipes: what they refuse, and that every one in recipes/ still runs."""

import re
from pathlib import Path
from random import Random
from typing import Any, get_args

import pytest
import yaml

import lengthwise
from lengthwise.controls.attached import controls_of
from lengthwise.models.checkpoint import load_model
from lengthwise.training import RecipeError, load_recipe, train
from lengthwise.training.data_stream import epoch_documents
from lengthwise.training.fresh_model import SIZES
from lengthwise.training.model import build
from lengthwise.training.recipe import Fresh, parse_recipe
from lengthwise.training.run_state import checkpoints
from toy_training import mute, toy_recipe

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.yaml"))
LEAST: dict[str, Any] = {
    "name": "least",
    "out": "runs/least",
    "model": {"base": "smollm2"},
    "data": {"train": "a.jsonl"},
    "train": {"epochs": 1},
}


def test_least_recipe() -> None:
    recipe = parse_recipe(LEAST)
    assert recipe.data.train[0].files == "a.jsonl"
    assert parse_recipe(yaml.safe_load(recipe.text())) == recipe


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"train": {"epochs": 1, "lrr": 1}}, "train: unknown key 'lrr'; did you mean 'lr'?"),
        ({"model": {"base": "a", "lora": {"rnk": 4}}}, "model.lora: unknown key 'rnk'; did you mean 'rank'?"),
        ({"optimizer": {}}, "unknown key 'optimizer'"),
        ({"data": {"train": [{"files": "a", "wieght": 2}]}}, "unknown key 'wieght'; did you mean 'weight'?"),
        ({"controls": [{"control": "encodin"}]}, "unknown control 'encodin'; did you mean 'encoding'?"),
        ({"controls": [{"control": "encoding", "knid": "ratio"}]}, "does not take these options"),
        ({"model": {}}, "either base"),
        ({"model": {"base": "a", "fresh": {}}}, "either base"),
        ({"model": {"fresh": {}, "lora": {}}}, "lora adapts a base model"),
        ({"train": {}}, "either epochs or steps"),
        ({"train": {"epochs": 1, "steps": 5}}, "either epochs or steps"),
        ({"train": {"epochs": 0}}, "greater than or equal to 1; got 0"),
        ({"train": {"epochs": 1, "schedule": "inverse_sqrt"}}, "needs train.warmup above 0"),
        ({"train": {"epochs": 1, "patience": 3}}, "needs a dev loss; set data.dev"),
        ({"shift": {}, "model": {"fresh": {}}}, "shift needs a 'difference' encoding, a countdown head or"),
        ({"unit": "parsecs"}, "unknown unit 'parsecs'"),
        ({"controls": [{"control": "encoding", "at_most": True}]}, "at_most: true is trained with a shift"),
        ({"shift": {"share": 0.5}, "controls": [{"control": "encoding"}]}, "add at_most: true to a control"),
        ({"unit": "words", "controls": [{"control": "encoding", "unit": "chars"}]}, "write unit: [chars] at the top"),
        ({"batch": {"tokens": 100}}, "raise the first or lower the second"),
        ({"batch": {"packing": True}, "controls": [{"control": "encoding", "scale": "frobenius"}]}, "norm over one"),
    ],
)
def test_refusals_say_what_is_wrong(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(RecipeError) as caught:
        parse_recipe(LEAST | changes)
    assert said in str(caught.value)


def test_every_size_is_known() -> None:
    assert set(SIZES) == set(get_args(Fresh.model_fields["size"].annotation))


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(RecipeError) as caught:
        parse_recipe(LEAST | {"train": {"lrr": 1}, "model": {"bse": "a"}})
    assert "lrr" in str(caught.value)
    assert "'bse'; did you mean 'base'?" in str(caught.value)


def test_overrides(tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    file.write_text(yaml.safe_dump(LEAST | {"controls": [{"control": "encoding"}]}), encoding="utf-8")
    overrides = ["train.lr=3e-4", "controls.0.kind=ratio", "data.train=b.jsonl", "model.lora.rank=4", "batch.workers=0"]
    recipe = load_recipe(file, overrides)
    assert recipe.train.lr == 3e-4
    assert recipe.build_controls()[0].config()["kind"] == "ratio"
    assert recipe.data.train[0].files == "b.jsonl"
    assert recipe.model.lora is not None
    assert recipe.model.lora.rank == 4
    for wrong in ("train.lr", "controls.3.kind=ratio", "name.first=x"):
        with pytest.raises(RecipeError):
            load_recipe(file, [wrong])
    with pytest.raises(RecipeError, match=r"did you mean 'lr'"):
        load_recipe(file, ["train.l_r=1"])
    with pytest.raises(RecipeError, match="cannot read the recipe"):
        load_recipe(tmp_path / "none.yaml")


# ---- every recipe, on a toy corpus


@pytest.fixture(scope="module")
def toy_translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the Lakew recipes start from: their own baseline, made of a toy corpus."""
    folder = tmp_path_factory.mktemp("baseline")
    return train(toy_recipe(RECIPES[[r.stem for r in RECIPES].index("lakew-en-it-baseline")], folder, "", []), say=mute)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_runs(
    recipe: Path, tmp_path: Path, toy_base: Path, toy_translator: Path, toy_marian: Path
) -> None:
    values = yaml.safe_load(recipe.read_text(encoding="utf-8"))
    assert values["paper"]
    assert values["name"] == recipe.stem
    smaller = "smaller" in values["model"]
    base = toy_base if "smollm2" in recipe.stem else toy_marian if smaller else toy_translator
    small = toy_recipe(recipe, tmp_path, str(base), [])
    folder = train(small, say=mute)
    model, tokenizer = load_model(folder)
    assert load_recipe(folder / "recipe.yaml") == small
    assert (folder.parent / "metrics.jsonl").exists()
    assert len(checkpoints(tmp_path / "run")) >= 1
    assert len(tokenizer) > (60 if smaller else 300)
    assert len(controls_of(model)) == len(small.controls) + small.lengths.joins_sentences


@pytest.mark.parametrize("kind", ["difference", "ratio"])
def test_a_decoder_of_subwords_counts_the_characters_of_titles(kind: str, tmp_path: Path) -> None:
    recipe = next(path for path in RECIPES if path.stem == "takase-titles-ldpe")
    small = toy_recipe(recipe, tmp_path, "", ["model.fresh.decoder=bpe", f"controls.0.kind={kind}"])
    maker = build(small).maker
    titles = {document.id: document.segments[0][1].strip() for document in epoch_documents(small, 0)}
    found, _ = maker.examples(list(epoch_documents(small, 0)), 1, Random(0))
    assert found
    for example in found:
        assert example.length == len(titles[example.name])
        assert len(example.target) < example.length
    writer = lengthwise.load(str(train(small, say=mute)))
    assert writer.engine.units == ("chars",)
    [title] = writer.write(["A text about tokens."], ["exactly 21 chars"])
    assert len(title.text) == 21


PAPERS = [path for path in RECIPES if path.stem.startswith(("lakew", "takase", "zhang", "smollm2-"))]


@pytest.mark.parametrize("recipe", PAPERS, ids=lambda path: path.stem)
def test_a_header_says_where_the_data_come_from(recipe: Path) -> None:
    text = recipe.read_text(encoding="utf-8")
    header = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
    asked = load_recipe(recipe)
    for corpus_ in [*asked.data.train, *(asked.data.dev or [])]:
        name, _, _ = str(corpus_.files).removesuffix(".jsonl.gz").rpartition(".")
        assert name.startswith("data/")
        assert name in header
    if "debian" in text:  # the command writes the files under these names
        [pair] = set(re.findall(r"lengthwise data debian --pair (en-..) data\n", header))
        made = {f"data/debian.{name}.{part}.jsonl.gz" for name in (pair, "titles") for part in ("train", "dev", "test")}
        assert set(re.findall(r"data/debian\.[\w.-]+\.gz", text)) <= made
    # In place of corpora that no command makes, the header offers what its commands build.
    instead = re.findall(r"--set (data\S+)", header)
    assert all(str(one.files).startswith("data/") for one in load_recipe(recipe, instead).data.train)


def test_separator_must_be_a_token(tmp_path: Path, toy_base: Path) -> None:
    recipe = next(path for path in RECIPES if path.stem == "smollm2-ldpe")
    odd = toy_recipe(recipe, tmp_path, str(toy_base), ["lengths.kind=documents", "lengths.separator=<sep>"])
    with pytest.raises(RecipeError, match="not a token of this model"):
        train(odd, say=mute)


def test_accelerate_reads_the_fsdp_config() -> None:
    from accelerate.commands.config.config_args import load_config_from_file

    config = load_config_from_file(str(RECIPES[0].parent / "accelerate" / "fsdp.yaml"))
    assert config.distributed_type == "FSDP"
    assert config.fsdp_config["fsdp_version"] == 2


def test_no_is_a_word(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(yaml.safe_dump(LEAST))
    assert load_recipe(tmp_path / "r.yaml", ["train.precision=no"]).train.precision == "no"
