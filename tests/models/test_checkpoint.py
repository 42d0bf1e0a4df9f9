"""Saved and loaded, a model writes the same; damaged, it is refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import peft
import pytest
import torch

from controlled_models import World, world_of
from families import CONTROLS, ENCODER_DECODERS, FAMILIES, PAIRS, tiny
from lengthwise.controls import EncodingControl, LengthTokens
from lengthwise.controls.attach import detach
from lengthwise.controls.attached import controls_of
from lengthwise.generation.load import load
from lengthwise.models.checkpoint import load_model, save


@pytest.fixture
def world(byte_bpe: Any) -> World:
    return world_of("llama", byte_bpe, [EncodingControl()])


def with_lora(world: World, **options: Any) -> None:
    torch.manual_seed(1)
    kind = "SEQ_2_SEQ_LM" if world.family in ENCODER_DECODERS else "CAUSAL_LM"
    config = peft.LoraConfig(task_type=kind, r=2, target_modules="all-linear", init_lora_weights=False, **options)
    world.model = peft.get_peft_model(world.model, config).eval()


def same_beams(world: World, folder: Path) -> None:
    expected, _ = world.write(num_beams=3)
    configs = [control.config() for control in controls_of(world.model)]
    world.model, world.tokenizer = load_model(folder)
    assert [control.config() for control in controls_of(world.model)] == configs
    assert torch.equal(expected, world.write(num_beams=3)[0])


@pytest.mark.parametrize(("family", "control"), [pair for pair in PAIRS if pair[1] not in ("difference", "whole")])
def test_full_model(family: str, control: str, tmp_path: Path, byte_bpe: Any, sp_unigram: Any) -> None:
    world = world_of(family, sp_unigram if family in ENCODER_DECODERS else byte_bpe, CONTROLS[control]())
    save(world.model, world.tokenizer, tmp_path / "model")
    same_beams(world, tmp_path / "model")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("control", ["difference", "progress+tokens"])
def test_adapter(family: str, control: str, tmp_path: Path, byte_bpe: Any, sp_unigram: Any) -> None:
    tokenizer = sp_unigram if family in ENCODER_DECODERS else byte_bpe
    tiny(family, tokenizer).save_pretrained(tmp_path / "base")
    world = world_of(family, tokenizer, CONTROLS[control]())
    with_lora(world)
    save(world.model, world.tokenizer, tmp_path / "adapter", base=str(tmp_path / "base"))
    assert not (tmp_path / "adapter" / "model.safetensors").exists()
    same_beams(world, tmp_path / "adapter")
    written, logits = world.write()
    world.model = world.model.merge_and_unload()
    save(world.model, world.tokenizer, tmp_path / "merged")
    world.model, world.tokenizer = load_model(tmp_path / "merged")
    merged, merged_logits = world.write()
    assert torch.equal(written, merged)
    torch.testing.assert_close(logits, merged_logits, atol=1e-4, rtol=1e-4)


def test_a_writer_of_an_adapter_is_merged_and_may_lack_a_tokenizer(byte_bpe: Any, tmp_path: Path) -> None:
    tiny("llama", byte_bpe).save_pretrained(tmp_path / "base")
    byte_bpe.save_pretrained(tmp_path / "base")
    world = world_of("llama", byte_bpe, CONTROLS["units"]())
    with_lora(world)
    save(world.model, world.tokenizer, tmp_path / "adapter", base=str(tmp_path / "base"))
    for file in (tmp_path / "adapter").glob("*token*"):
        file.unlink()
    written, logits = world.write()
    writer = load(str(tmp_path / "adapter"), device="cpu")
    assert any(module.merged for module in writer.model.modules() if hasattr(module, "merged"))
    world.model, world.tokenizer = writer.model, writer.tokenizer
    merged, merged_logits = world.write()
    assert torch.equal(written, merged)
    torch.testing.assert_close(logits, merged_logits, atol=1e-4, rtol=1e-4)


def test_trained_length_tokens_travel_with_the_adapter(byte_bpe: Any, tmp_path: Path) -> None:
    tiny("llama", byte_bpe).save_pretrained(tmp_path / "base")
    world = world_of("llama", byte_bpe, [LengthTokens()])
    new = list(range(len(byte_bpe), len(world.tokenizer)))
    with_lora(world, trainable_token_indices=new)
    with torch.no_grad():
        for name, weight in world.model.named_parameters():
            if "trainable_tokens" in name:
                weight.normal_()
    save(world.model, world.tokenizer, tmp_path / "adapter", base=str(tmp_path / "base"))
    rows = world.model.get_input_embeddings()(torch.tensor(new))
    loaded, _ = load_model(tmp_path / "adapter")
    assert torch.equal(loaded.get_input_embeddings()(torch.tensor(new)), rows)


def test_trained_controls_travel_with_the_adapter(world: World, byte_bpe: Any, tmp_path: Path) -> None:
    tiny("llama", byte_bpe).save_pretrained(tmp_path / "base")
    with_lora(world, modules_to_save=["length_control"])
    controls_of(world.model)[0].factor.fill_(0.77)
    save(world.model, world.tokenizer, tmp_path / "adapter", base=str(tmp_path / "base"))
    loaded, _ = load_model(tmp_path / "adapter")
    assert controls_of(loaded)[0].factor.item() == pytest.approx(0.77)


def test_plain_folders_are_plain_models(byte_bpe: Any, tmp_path: Path) -> None:
    model = tiny("gpt2", byte_bpe)
    model.save_pretrained(tmp_path / "hf")
    byte_bpe.save_pretrained(tmp_path / "hf")
    save(model, byte_bpe, tmp_path / "ours")
    ids = torch.randint(3, 99, (1, 5))
    for folder in ("hf", "ours"):
        loaded, _ = load_model(tmp_path / folder, dtype=torch.float32, device="cpu")
        assert not controls_of(loaded)
        assert torch.equal(loaded(ids).logits, model(ids).logits)


def test_what_the_folder_says(world: World, tmp_path: Path) -> None:
    folder = save(world.model, world.tokenizer, tmp_path / "model")
    about = json.loads((folder / "lengthwise.json").read_text("utf-8"))
    assert about["controls"][0]["kind"] == "difference"
    assert about["units"] == {"chars": "unit:chars|norm:nfc|ws:keep|v1"}
    assert json.loads((folder / "config.json").read_text("utf-8"))["lengthwise"] == ["encoding"]
    loaded, tokenizer = load_model(folder)
    detach(loaded).save_pretrained(tmp_path / "plain")  # a model set free of its control is a plain model again
    tokenizer.save_pretrained(tmp_path / "plain")
    assert not controls_of(load_model(tmp_path / "plain")[0])
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_failed_save_leaves_the_good_folder(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save(world.model, world.tokenizer, tmp_path / "model")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def fail(*args: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(type(world.tokenizer), "save_pretrained", fail)
    with pytest.raises(OSError, match="disk full"):
        save(world.model, world.tokenizer, folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_saving_again_replaces_only_our_folders(world: World, tmp_path: Path) -> None:
    save(world.model, world.tokenizer, tmp_path / "model")
    save(world.model, world.tokenizer, tmp_path / "model")
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("Dear")
    with pytest.raises(ValueError, match="was not written by Lengthwise"):
        save(world.model, world.tokenizer, tmp_path / "letters")


def test_saving_again_keeps_what_others_put_there(world: World, byte_bpe: Any, tmp_path: Path) -> None:
    tiny("llama", byte_bpe).save_pretrained(tmp_path / "base")
    folder = save(world.model, world.tokenizer, tmp_path / "model")
    plain = {path.name for path in folder.iterdir()}
    (folder / "notes.txt").write_text("a good one")
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: main")
    (folder / "model_card.json").symlink_to("notes.txt")
    theirs = {"notes.txt", ".git", "model_card.json"}
    (folder / "model-00001-of-00002.safetensors").write_bytes(b"of a larger model")
    save(world.model, world.tokenizer, folder)
    assert {path.name for path in folder.iterdir()} == plain | theirs
    with_lora(world)
    save(world.model, world.tokenizer, folder, base=str(tmp_path / "base"))
    assert not (folder / "model.safetensors").exists()
    (folder / "README.md").write_text("how it was made")
    save(world.model, world.tokenizer, folder, base=str(tmp_path / "base"))
    assert (folder / "README.md").read_text() == "how it was made"
    same_beams(world, folder)
    world.model = world.model.merge_and_unload()
    save(world.model, world.tokenizer, folder)
    assert {path.name for path in folder.iterdir()} == plain | theirs | {"README.md"}
    assert (folder / "model_card.json").read_text() == "a good one"
    assert (folder / ".git" / "HEAD").read_text() == "ref: main"
    same_beams(world, folder)
    assert {path.name for path in tmp_path.iterdir()} == {"base", "model"}


def test_the_old_folder_goes_only_when_strangers_are_safe(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save(world.model, world.tokenizer, tmp_path / "model")
    (folder / "notes.txt").write_text("a good one")

    def fail(*args: Any) -> None:
        raise OSError("no")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="no"):
        save(world.model, world.tokenizer, folder)
    assert [path.read_text() for path in tmp_path.rglob("notes.txt")] == ["a good one"]


def edit(file: Path, **entries: Any) -> None:
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | entries), "utf-8")


DAMAGE: dict[str, tuple[Any, str]] = {
    "no lengthwise.json": (lambda f: (f / "lengthwise.json").unlink(), "lengthwise.json is missing"),
    "garbage": (lambda f: (f / "lengthwise.json").write_text("{"), "lengthwise.json is damaged"),
    "half": (lambda f: (f / "lengthwise.json").write_text('{"format": 1}'), "is damaged .it has only format"),
    "future": (lambda f: edit(f / "lengthwise.json", format=99), "has format 99"),
    "unknown control": (
        lambda f: edit(f / "lengthwise.json", controls=[{"control": "telepathy"}]),
        "cannot build the controls in .*: unknown control 'telepathy'",
    ),
    "unknown option": (
        lambda f: edit(f / "lengthwise.json", controls=[{"control": "encoding", "tone": 1}]),
        "cannot build the controls in .*: control 'encoding' does not take these options",
    ),
    "other rule": (lambda f: edit(f / "lengthwise.json", units={"chars": "unit:chars|v0"}), "counts chars by the rule"),
    "no control weights": (lambda f: (f / "lengthwise.safetensors").unlink(), "safetensors is missing or damaged"),
    "cut control weights": (lambda f: (f / "lengthwise.safetensors").write_bytes(b"12"), "missing or damaged"),
    "other control": (
        lambda f: edit(f / "lengthwise.json", controls=[{"control": "encoding"}] * 2),
        r"missing or damaged .*1\.factor",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_model_without_its_control_is_refused(damage: str, world: World, tmp_path: Path) -> None:
    folder = save(world.model, world.tokenizer, tmp_path / "model")
    harm, message = DAMAGE[damage]
    harm(folder)
    with pytest.raises(ValueError, match=f"(?s){message}"):
        load_model(folder)


def test_missing_weights_are_refused(world: World, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = save(world.model, world.tokenizer, tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    weights.pop("model.norm.weight")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"damaged: model\.norm\.weight not in its weights"):
        load_model(folder)


def test_damaged_adapters_are_refused(world: World, byte_bpe: Any, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    tiny("llama", byte_bpe).save_pretrained(tmp_path / "base")
    with_lora(world)
    world.model.active_peft_config.base_model_name_or_path = None
    with pytest.raises(ValueError, match="base model, which has no name"):
        save(world.model, world.tokenizer, tmp_path / "adapter")
    folder = save(world.model, world.tokenizer, tmp_path / "adapter", base=str(tmp_path / "base"))
    shutil.copy(tmp_path / "base" / "config.json", folder)  # as other tools do: an adapter it is all the same
    assert hasattr(load_model(folder)[0], "peft_config")
    (folder / "config.json").unlink()
    (folder / "adapter_config.json").rename(tmp_path / "aside.json")
    with pytest.raises(ValueError, match=r"it has no adapter_config.json"):
        load_model(folder)
    (tmp_path / "aside.json").rename(folder / "adapter_config.json")
    weights = load_file(folder / "adapter_model.safetensors")
    weights.pop(next(iter(weights)))
    save_file(weights, folder / "adapter_model.safetensors")
    with pytest.raises(ValueError, match="does not fit its base model"):
        load_model(folder)
    (folder / "adapter_model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"adapter_model.safetensors is missing"):
        load_model(folder)
    shutil.rmtree(tmp_path / "base")
    with pytest.raises(ValueError, match=r"needs its base model .*base', which cannot be found"):
        load_model(folder)


def test_an_empty_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no model in"):
        load_model(tmp_path)
