"""The loop: it learns, counts right over processes, restores global state, and stops with a reason."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from families import ENCODER_DECODERS, tiny
from fresh_process import in_two_processes
from lengthwise.controls.attached import controls_of
from lengthwise.corpora import DataError, read
from lengthwise.generation.generator import Writer
from lengthwise.generation.unconstrained import UnconstrainedWriter
from lengthwise.length.units import measure
from lengthwise.models.checkpoint import load_model
from lengthwise.training import TrainingError, loop, train
from lengthwise.training.recipe import parse_recipe
from lengthwise.training.run_state import checkpoints, read_progress, read_weights
from toy_corpora import corpus
from toy_training import FRESH, NO_DROPOUT, losses, small, values


def trained(recipe: dict[str, Any]) -> None:
    train(parse_recipe(recipe))


def length_error(model: Any, tokenizer: Any, dev: Path) -> float:
    """How far off the lengths of a finished model's texts are, in characters; each is asked for its reference's."""
    rows = [document.segments[0] for document in read(str(dev))]
    lengths = [measure(target, "chars") for _, target in rows]
    writer = UnconstrainedWriter(
        Writer(model, tokenizer, batch_size=32), receives_length=True
    )  # in one batch, as in training
    texts = writer.write([source for source, _ in rows], [f"exactly {length} chars" for length in lengths])
    return sum(abs(measure(t.text, "chars") - length) for t, length in zip(texts, lengths, strict=True)) / len(rows)


def test_it_learns_and_leaves_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dev = {"dev": corpus(tmp_path / "dev.jsonl", 20, seed=1)}
    recipe = small(tmp_path, data=dev, train={"steps": 40, "evaluate_every": 20})
    folder = train(recipe)
    found = losses(tmp_path / "run")
    assert list(found) == list(range(1, 41))
    assert found[40] < 0.7 * found[1]
    assert list(losses(tmp_path / "run", "dev_loss")) == [20, 40]
    error = losses(tmp_path / "run", "dev_length_error")[read_progress(checkpoints(tmp_path / "run")[-1]).best_step]
    assert sorted(path.name for path in (tmp_path / "run").iterdir() if path.name != "tensorboard") == [
        "checkpoints",
        "metrics.jsonl",
        "model",
        "recipe.yaml",
        "tokenizer",
    ]
    model, tokenizer = load_model(folder)
    assert controls_of(model)[0].config()["unit"] == "chars"
    assert error == pytest.approx(length_error(model, tokenizer, tmp_path / "dev.jsonl"), abs=1e-5)
    assert "\x1b" not in capsys.readouterr().err  # stderr is no terminal: no progress bar
    assert train(recipe) == folder  # done already: nothing is trained again
    assert losses(tmp_path / "run") == found


def test_a_model_that_writes_characters_is_trained_further(tmp_path: Path) -> None:
    dev = {"dev": corpus(tmp_path / "dev.jsonl", 20, seed=1)}
    recipe = small(tmp_path, data=dev, model={"fresh": FRESH | {"decoder": "chars"}})
    base = train(recipe)
    once = {"steps": 1, "lr": 1e-9, "evaluate_every": 1}
    for lora in (None, {"rank": 4, "dropout": 0.0}):
        out = tmp_path / f"on-{bool(lora)}"
        model = {"fresh": None, "base": str(base), "lora": lora}
        train(small(tmp_path, out=str(out), data=dev, model=model, controls=[], train=once))
        best = min(losses(tmp_path / "run", "dev_loss").values())
        assert losses(out, "dev_loss")[1] == pytest.approx(best, abs=1e-3)


def test_lora_and_shift(tmp_path: Path, byte_bpe: Any) -> None:
    base = tmp_path / "base"
    tiny("llama", byte_bpe).save_pretrained(base)
    byte_bpe.save_pretrained(base)
    controls = [{"control": "encoding", "gain": 0, "reader": 8}, {"control": "length_tokens"}]
    recipe = small(tmp_path, shift={"maximum": 50}, controls=controls, train={"steps": 20, "lr": 1e-2})
    for lora in ({"dropout": 0.0}, {"dropout": 0.05}):
        out = tmp_path / f"run-{lora['dropout']}"
        folder = train(parse_recipe(recipe.model_dump() | {"out": out, "model": {"base": str(base), "lora": lora}}))
        found = losses(out)
        assert found[20] < found[1]
        stored = read_weights(checkpoints(out)[-1])
        assert not [
            name for name in stored if "lora_" not in name and "length" not in name and "trainable_tok" not in name
        ]
        model, tokenizer = load_model(folder)
        assert controls_of(model)[0].outer.abs().max() > 1e-3  # silent until it is trained
        rows = model.get_input_embeddings()(torch.tensor([tokenizer.convert_tokens_to_ids("<len:short>")]))
        assert not torch.allclose(rows, model.get_input_embeddings()(torch.tensor([5])))
    packed = recipe.model_dump() | {"out": tmp_path / "packed", "model": {"base": str(base)}}
    packed["batch"] |= {"packing": True}
    train(parse_recipe(packed))
    assert losses(tmp_path / "packed")[20] < losses(tmp_path / "packed")[1]


@pytest.mark.parametrize("family", ENCODER_DECODERS)
def test_lora_trains_length_tokens(tmp_path: Path, byte_bpe: Any, family: str) -> None:
    """An encoder that shares its embedding with a decoder must read the rows that are trained."""
    base = tmp_path / "base"
    tiny(family, byte_bpe).save_pretrained(base)
    byte_bpe.save_pretrained(base)
    recipe = small(tmp_path, controls=[{"control": "length_tokens"}], train={"steps": 8, "lr": 1e-2})
    lora = {"dropout": 0.0, "targets": "all-linear"}
    folder = train(parse_recipe(recipe.model_dump() | {"model": {"base": str(base), "lora": lora}}))
    model, tokenizer = load_model(folder)
    ids = torch.tensor([tokenizer(f"<len:{name}> The cat sleeps.")["input_ids"] for name in ("short", "long")])
    start = torch.full((2, 1), model.config.decoder_start_token_id)
    with torch.no_grad():
        short, long = model(input_ids=ids, decoder_input_ids=start).logits
    assert (short - long).abs().max() > 1e-4  # new rows are all alike until they are trained


@pytest.mark.parametrize("family", ["marian", "llama"])
def test_no_step_waits_for_the_device(
    family: str, tmp_path: Path, byte_bpe: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(tensor: torch.Tensor) -> None:
        raise AssertionError("transformers looks into a tensor, for which the device has to be waited for")

    tiny(family, byte_bpe).save_pretrained(tmp_path / "base")
    byte_bpe.save_pretrained(tmp_path / "base")
    for question in ("fast_all", "find_packed_sequence_indices"):
        monkeypatch.setattr(transformers.masking_utils, question, asked)
    train(small(tmp_path, model={"fresh": None, "base": str(tmp_path / "base")}, train={"steps": 2}))


def test_two_processes_are_twice_the_accumulation(tmp_path: Path) -> None:
    dev = {"dev": corpus(tmp_path / "dev.jsonl", 20, seed=1)}
    length = {"steps": None, "epochs": 1}  # the last step has a batch for one process only
    alone = values(tmp_path, model=NO_DROPOUT, data=dev, batch={"accumulate": 4}, train=length)
    train(parse_recipe(alone))
    both = values(tmp_path, model=NO_DROPOUT, data=dev, batch={"accumulate": 2}, train=length)
    both["out"] = str(tmp_path / "both")
    in_two_processes(trained, both, folder=tmp_path)
    expected = losses(tmp_path / "run")
    assert losses(tmp_path / "both") == pytest.approx(expected, abs=1e-5)
    assert losses(tmp_path / "both", "dev_loss") == pytest.approx(losses(tmp_path / "run", "dev_loss"), abs=1e-5)
    for name, weight in read_weights(checkpoints(tmp_path / "both")[-1]).items():
        assert torch.allclose(weight, read_weights(checkpoints(tmp_path / "run")[-1])[name], atol=1e-4), name


def test_global_state_is_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On an ARM CPU without bfloat16 instructions, PyTorch disables oneDNN at the first product in bfloat16."""
    step = loop._Run._step

    def disables_onednn(self: Any, *arguments: Any) -> None:
        torch.backends.mkldnn.enabled = False
        step(self, *arguments)

    monkeypatch.setattr(loop._Run, "_step", disables_onednn)
    before = torch.backends.mkldnn.enabled
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(small(tmp_path, train={"steps": 1}))
    assert torch.equal(torch.rand(3), expected)
    assert torch.backends.mkldnn.enabled == before


def test_a_loss_that_is_no_number_names_its_batch(tmp_path: Path) -> None:
    recipe = small(tmp_path, train={"lr": 1e30, "clip": None, "schedule": "constant"})
    with pytest.raises(TrainingError, match=r"not a number.* step \d+\. The first such batch holds segs0-\d+"):
        train(recipe)


def test_out_of_memory_says_what_to_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB")

    monkeypatch.setattr(loop, "unbiased_logits", full)
    with pytest.raises(TrainingError, match=r"batch\.tokens=300 batch\.accumulate=2"):
        train(small(tmp_path))


def test_malformed_rows(tmp_path: Path) -> None:
    recipe = small(tmp_path, train={"steps": 2})
    data = tmp_path / "train.jsonl"
    good = data.read_text() * 2
    data.write_text(good + '{"id": broken\n')
    said: list[str] = []
    train(recipe, say=said.append)
    assert "malformed" in "\n".join(said)
    assert "train.jsonl:201" in "\n".join(said)
    data.write_text('{"id": broken\n' * 5)
    with pytest.raises(DataError, match="not JSON"):
        train(parse_recipe(recipe.model_dump() | {"out": tmp_path / "other"}))
    values = recipe.model_dump() | {"out": tmp_path / "third"}
    values["batch"] |= {"workers": 2}
    values["data"] |= {"documents_per_epoch": 50}  # so that a worker is the first to read them
    shutil.copytree(recipe.out / "tokenizer", tmp_path / "third" / "tokenizer")
    with pytest.raises(DataError, match="not JSON") as found:
        train(parse_recipe(values))
    assert "Traceback" not in str(found.value)


def test_a_run_that_ends_in_its_warm_up_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    train(small(tmp_path, train={"steps": 2, "warmup": 2}), say=said.append)
    assert "the run ends after 2 steps: train.warmup = 2 is not over" in "\n".join(said)
    said.clear()
    train(small(tmp_path, out=str(tmp_path / "longer"), train={"steps": 3, "warmup": 2}), say=said.append)
    assert "warmup" not in "\n".join(said)


def test_examples_that_are_all_too_long(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"more than data\.max_tokens = 3"):
        train(small(tmp_path, data={"max_tokens": 3}))
