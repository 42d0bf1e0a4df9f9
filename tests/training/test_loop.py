"""The loop: it learns, survives being killed, counts right over processes, and stops with a reason."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

from families import ENCODER_DECODERS, tiny
from lengthwise.controls.attach import controls_of
from lengthwise.corpora import DataError, read
from lengthwise.generation.generator import Writer
from lengthwise.generation.unconstrained import PlainWriter
from lengthwise.length.units import measure
from lengthwise.models.checkpoint import load_model
from lengthwise.training import TrainingError, log, loop, train
from lengthwise.training.batches import Batch
from lengthwise.training.loss import response_logits
from lengthwise.training.model import compile_layers, fresh_model, trainable
from lengthwise.training.recipe import Fresh, Recipe, parse_recipe
from lengthwise.training.run_state import average, checkpoints, read_progress, read_weights
from toy_corpora import corpus

# Trains the recipe (JSON, in the first argument): in a process of its own, or in several.
SCRIPT = """
import json, sys, torch
torch.set_num_threads(1)
from lengthwise.training import train
from lengthwise.training.recipe import parse_recipe
train(parse_recipe(json.loads(sys.argv[1])))
"""


def values(folder: Path, **changes: dict[str, Any]) -> dict[str, Any]:
    """A small recipe: a tiny fresh encoder-decoder that counts characters."""
    sections: dict[str, Any] = {
        "name": "small",
        "out": str(folder / "run"),
        "model": {"fresh": {"size": "tiny", "vocabulary": 360, "dropout": 0.1}},
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


def length_error(model: Any, tokenizer: Any, dev: Path) -> float:
    """How far off the lengths of a finished model's texts are, in characters; each is asked for its reference's."""
    rows = [document.segments[0] for document in read(str(dev))]
    lengths = [measure(target, "chars") for _, target in rows]
    writer = PlainWriter(Writer(model, tokenizer, batch_size=32), told=True)  # in one batch, as in training
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
    assert "\x1b" not in capsys.readouterr().err  # nobody is watching: no moving bar
    assert train(recipe) == folder  # done already: nothing is trained again
    assert losses(tmp_path / "run") == found


def test_a_model_that_spells_its_letters_goes_on_to(tmp_path: Path) -> None:
    dev = {"dev": corpus(tmp_path / "dev.jsonl", 20, seed=1)}
    recipe = small(tmp_path, data=dev, model={"fresh": {"size": "tiny", "vocabulary": 360, "decoder": "chars"}})
    base = train(recipe)
    once = {"steps": 1, "lr": 1e-9, "evaluate_every": 1}
    for lora in (None, {"rank": 4, "dropout": 0.0}):
        out = tmp_path / f"on-{bool(lora)}"
        model = {"fresh": None, "base": str(base), "lora": lora}
        train(small(tmp_path, out=str(out), data=dev, model=model, controls=[], train=once))
        best = min(losses(tmp_path / "run", "dev_loss").values())
        assert losses(out, "dev_loss")[1] == pytest.approx(best, abs=1e-3)


def test_a_run_that_nobody_watches_says_how_far_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "MINUTE", 0.0)
    dev = {"dev": corpus(tmp_path / "dev.jsonl", 20, seed=1), "dev_texts": 3}
    train(small(tmp_path, data=dev, train={"steps": 4, "log_every": 2, "evaluate_every": 4}))
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "dev set" in line] == ["step 4: reading the dev set, writing 3 of its texts"]
    told = [line for line in lines if "done" in line]
    assert [line.split("  ")[0] for line in told] == ["step 2", "step 4"]
    assert told[1].endswith("100% done")


def test_a_bar_that_somebody_watches_says_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    shown = log.Log(tmp_path, 0, show=True)
    [task] = shown.line.bar.tasks
    shown.write(4, 0.5, loss=2.0)
    assert (task.description, task.completed) == ("step 4  loss 2.0000", 0.5)
    shown.doing(4, "reading the dev set")
    assert task.description == "step 4: reading the dev set"
    shown.write(4, 0.5, dev_loss=3.0)
    assert task.description == "step 4  loss 2.0000  dev 3.0000"
    shown.close()


def test_lora_and_shift(tmp_path: Path, byte_bpe: Any) -> None:
    base = tmp_path / "base"
    tiny("llama", byte_bpe).save_pretrained(base)
    byte_bpe.save_pretrained(base)
    controls = [{"control": "encoding", "volume": 0, "reader": 8}, {"control": "tokens"}]
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
def test_lora_hears_length_tokens(tmp_path: Path, byte_bpe: Any, family: str) -> None:
    """An encoder that shares its embedding with a decoder must read the rows that are trained."""
    base = tmp_path / "base"
    tiny(family, byte_bpe).save_pretrained(base)
    byte_bpe.save_pretrained(base)
    recipe = small(tmp_path, controls=[{"control": "tokens"}], train={"steps": 8, "lr": 1e-2})
    lora = {"dropout": 0.0, "targets": "all-linear"}
    folder = train(parse_recipe(recipe.model_dump() | {"model": {"base": str(base), "lora": lora}}))
    model, tokenizer = load_model(folder)
    ids = torch.tensor([tokenizer(f"<len:{name}> The cat sleeps.")["input_ids"] for name in ("short", "long")])
    start = torch.full((2, 1), model.config.decoder_start_token_id)
    with torch.no_grad():
        short, long = model(input_ids=ids, decoder_input_ids=start).logits
    assert (short - long).abs().max() > 1e-4  # new rows are all alike until they are trained


def test_tensorboard_has_the_same_numbers(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train(small(tmp_path, data={"dev": corpus(tmp_path / "dev.jsonl", 20, seed=1)}))
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    for key in ("loss", "lr", "tokens_per_second", "dev_loss", "dev_length_error"):
        written = {event.step: event.value for event in events.Scalars(key)}
        assert written, key
        assert written == pytest.approx(losses(tmp_path / "run", key), rel=1e-4, abs=1e-6), key


# ---- compiled

STILL = {"fresh": {"size": "tiny", "vocabulary": 360, "dropout": 0.0, "attention_dropout": 0.0}}


@pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="torch.compile needs a C++ compiler")
def test_compiled_is_the_same(tmp_path: Path) -> None:
    settings = values(tmp_path, model=STILL, train={"steps": 4})
    train(parse_recipe(settings))
    compiled = settings | {"out": str(tmp_path / "compiled"), "train": settings["train"] | {"compile": True}}
    train(parse_recipe(compiled))
    assert losses(tmp_path / "compiled") == pytest.approx(losses(tmp_path / "run"), rel=1e-4)


@pytest.mark.parametrize("precision", ["no", "bf16"])
def test_a_program_a_stack_for_any_shape(precision: str, byte_bpe: Any, traced: list[Any]) -> None:
    """All layers of a stack are one program, whatever the batch: compiling takes longer than many a step."""
    model = fresh_model(Fresh(size="compact"), byte_bpe).train()  # four layers a side
    compile_layers(model)
    for rows, source, target in ((2, 16, 24), (3, 24, 16), (4, 8, 8), (32, 32, 8), (5, 48, 16)):
        mask = torch.ones(rows, source)
        mask[0, 5:] = 0
        inputs = {"input_ids": torch.full((rows, source), 9), "decoder_input_ids": torch.full((rows, target), 9)}
        batch = Batch(inputs | {"attention_mask": mask}, rows=torch.arange(rows * target), **NO_NAMES)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            response_logits(model, batch).float().logsumexp(-1).mean().backward()
    assert len(traced) == 2, "one for the encoder, one for the decoder"


def test_layers_compiled_learn_the_same(byte_bpe: Any, traced: list[Any]) -> None:
    """Seven layers, before which the embeddings need no gradient; and an encoder-decoder in mixed precision."""
    torch.manual_seed(0)
    llama = LlamaForCausalLM(LlamaConfig(**SEVEN, vocab_size=100))
    llama = get_peft_model(llama, LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False))
    marian = tiny("marian", byte_bpe)
    for model, precision in ((llama, torch.float32), (marian, torch.bfloat16)):
        found = []
        for compiled in (False, True):
            if compiled:
                compile_layers(model)
            model.zero_grad()
            for shape in ((2, 16), (3, 24)):  # of the size of a head, too
                ids = torch.arange(shape[0] * shape[1]).view(shape) % 100
                both = {"decoder_input_ids": ids.flip(1)} if model is marian else {}
                with torch.autocast("cpu", precision, enabled=precision != torch.float32):
                    logits = model(input_ids=ids, **both, use_cache=False).logits
                logits.float().logsumexp(-1).mean().backward()
            gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
            with torch.compiler.set_stance("force_eager"):  # as a trial does
                found.append((gradients, model.generate(input_ids=ids, max_new_tokens=5, do_sample=False)))
        (plain, written), (compiled_too, again) = found
        assert plain.keys() == compiled_too.keys()
        assert len(plain) == len(trainable(model))
        for name, gradient in plain.items():
            assert gradient.dtype == compiled_too[name].dtype == torch.float32
            assert torch.allclose(gradient, compiled_too[name], rtol=0.02, atol=1e-6), name
        assert written.equal(again)
    assert len(traced) >= 3


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


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Programs are traced and counted, and not compiled."""
    programs: list[Any] = []

    def backend(program: Any, inputs: Any) -> Any:
        programs.append(program)
        return program

    compiled = torch.compile
    monkeypatch.setattr(torch, "compile", lambda function, **options: compiled(function, backend=backend, **options))
    torch._dynamo.reset()
    yield programs
    torch._dynamo.reset()


SEVEN = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 7, "num_attention_heads": 2}
SEVEN |= {"num_key_value_heads": 1}
NO_NAMES: dict[str, Any] = {"names": [], "responses": 1, "tokens": 1, "padded": 1}
NO_NAMES |= {key: torch.zeros(0) for key in ("labels", "chance", "furthest")}


# ---- resuming


def start(recipe: dict[str, Any]) -> subprocess.Popen[bytes]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SCRIPT, json.dumps(recipe)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_killed_and_resumed_is_uninterrupted(tmp_path: Path) -> None:
    dev = {"dev": corpus(tmp_path / "dev.jsonl", 20, seed=1)}
    kept = values(tmp_path, data=dev, train={"steps": 60, "log_every": 2, "save_every": 5, "evaluate_every": 7})
    whole = kept | {"out": str(tmp_path / "whole")}
    run = Path(kept["out"])
    for least in (8, 25):  # killed twice, wherever it is after so many steps
        process = start(kept)
        deadline = time.monotonic() + 240
        while not (run / "metrics.jsonl").exists() or max(losses(run), default=0) < least:
            assert process.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert 0 < read_progress(checkpoints(run)[-1]).step < 60
    (run / "checkpoints" / ".step-00000099.partial").mkdir()  # as a kill in the middle of saving leaves it
    train(parse_recipe(kept))
    train(parse_recipe(whole))
    assert losses(run) == losses(tmp_path / "whole")
    assert losses(run, "dev_loss") == losses(tmp_path / "whole", "dev_loss")
    for name, weight in read_weights(checkpoints(run)[-1]).items():
        assert torch.equal(weight, read_weights(checkpoints(tmp_path / "whole")[-1])[name]), name
    assert not list((run / "checkpoints").glob(".step*"))


def test_resuming_another_recipe_is_refused(tmp_path: Path) -> None:
    train(small(tmp_path))
    with pytest.raises(TrainingError, match=r"train\.lr \(0\.002 → 0\.01\)"):
        train(small(tmp_path, train={"lr": 1e-2}))
    with pytest.raises(TrainingError, match="holds a run already"):
        train(small(tmp_path), resume=False)
    train(small(tmp_path, batch={"workers": 0}, train={"log_every": 3}))  # changes no result


# ---- several processes


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def in_two_processes(script: str, *arguments: str, folder: Path) -> None:
    file = folder / "script.py"
    file.write_text(script, encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", f"--master_port={free_port()}"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    done = subprocess.run(
        [*command, str(file), *arguments], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_two_processes_are_twice_the_accumulation(tmp_path: Path) -> None:
    still = {"fresh": {"size": "tiny", "vocabulary": 360, "dropout": 0.0, "attention_dropout": 0.0}}
    dev = {"dev": corpus(tmp_path / "dev.jsonl", 20, seed=1)}
    length = {"steps": None, "epochs": 1}  # the last step has a batch for one process only
    alone = values(tmp_path, model=still, data=dev, batch={"accumulate": 4}, train=length)
    train(parse_recipe(alone))
    both = values(tmp_path, model=still, data=dev, batch={"accumulate": 2}, train=length)
    both["out"] = str(tmp_path / "both")
    in_two_processes(SCRIPT, json.dumps(both), folder=tmp_path)
    expected = losses(tmp_path / "run")
    assert losses(tmp_path / "both") == pytest.approx(expected, abs=1e-5)
    assert losses(tmp_path / "both", "dev_loss") == pytest.approx(losses(tmp_path / "run", "dev_loss"), abs=1e-5)
    for name, weight in read_weights(checkpoints(tmp_path / "both")[-1]).items():
        assert torch.allclose(weight, read_weights(checkpoints(tmp_path / "run")[-1])[name], atol=1e-4), name


SHARDED = """
import json, sys, torch, torch.distributed as dist
from pathlib import Path
from accelerate import Accelerator
from copy import deepcopy
from lengthwise.training.loss import response_logits, summed_loss
from lengthwise.training.model import build, shard, trainable
from lengthwise.training.recipe import parse_recipe
from lengthwise.training.run_state import Progress, checkpoints, load_checkpoint, save_checkpoint
from lengthwise.training.data_stream import Place, Stream

torch.set_num_threads(1)
accelerator = Accelerator(cpu=True)
recipe = parse_recipe(json.loads(sys.argv[1]))
built = build(recipe, recipe.out / "tokenizer")
batch, _ = next(Stream(recipe, built.maker, built.layout, 100).from_(Place()))
model = built.model.eval()  # no dropout
plain = deepcopy(model)
shard(model)
optimizers = {m: torch.optim.AdamW(trainable(m), lr=1e-2) for m in (plain, model)}

def step(model):
    loss = summed_loss(response_logits(model, batch), batch.labels)
    (loss / batch.responses).backward()
    optimizers[model].step()
    optimizers[model].zero_grad()
    return loss.item() / batch.responses

# Both processes have the same batch, so the mean of their gradients is that of one.
for _ in range(3):
    expected, found = step(plain), step(model)
    assert abs(found - expected) < 1e-3, (found, expected)
save_checkpoint(recipe.out, Progress(step=1), model, optimizers[model], accelerator)
fourth = step(model)
step(model)
load_checkpoint(checkpoints(recipe.out)[-1], model, optimizers[model], accelerator)
assert abs(step(model) - fourth) < 1e-5
"""


def test_sharded_weights_are_saved_and_restored(tmp_path: Path) -> None:
    """FSDP 2 on gloo, without Accelerate: that shards on GPUs only. Tied embeddings stay tied."""
    recipe = values(tmp_path)
    train(parse_recipe(recipe))
    for old in checkpoints(tmp_path / "run"):
        old.rename(tmp_path / old.name)
    in_two_processes(SHARDED, json.dumps(recipe), folder=tmp_path)
    whole = read_weights(next(path for path in tmp_path.glob("step-*")))
    sharded = read_weights(checkpoints(tmp_path / "run")[-1])
    assert {name: w.shape for name, w in whole.items()} == {name: w.shape for name, w in sharded.items()}


# ---- what is kept


def test_average() -> None:
    first = {"w": torch.tensor([1.0, 3.0]), "n": torch.tensor(4), "still": torch.tensor(float("nan"))}
    second = {"w": torch.tensor([3.0, 5.0]), "n": torch.tensor(5), "still": torch.tensor(float("nan"))}
    mean = average([first, second])
    assert mean["w"].tolist() == [2.0, 4.0]
    assert int(mean["n"]) == 5
    assert average([first])["w"].tolist() == [1.0, 3.0]


def test_final_model_is_the_average(tmp_path: Path) -> None:
    folder = train(small(tmp_path, train={"average": 3}))
    saved = checkpoints(tmp_path / "run")
    assert [path.name for path in saved] == ["step-00000004", "step-00000008", "step-00000012"]
    model, _ = load_model(folder)
    name = "model.decoder.layers.0.fc1.weight"
    expected = torch.stack([read_weights(path)[name] for path in saved]).mean(0)
    assert torch.allclose(model.state_dict()[name], expected, atol=1e-6)


@pytest.mark.parametrize(("average", "taken"), [(None, 0), (1, 1)])  # the best on dev, unless the last is asked for
def test_best_and_last_are_kept_and_patience_ends(tmp_path: Path, average: int | None, taken: int) -> None:
    dev = {"dev": corpus(tmp_path / "dev.jsonl", 20, seed=1)}
    rates = {
        "steps": 200,
        "lr": 1e-3,
        "warmup": 8,
        "schedule": "constant",
        "evaluate_every": 2,
        "keep": 1,
        "patience": 2,
        "average": average,
    }
    recipe = small(tmp_path, data=dev, train=rates)
    rate = loop.learning_rate
    loop.learning_rate = lambda train, step, share: 1e-3 if step < 8 else 0.5  # from there on it only gets worse
    try:
        folder = train(recipe)
    finally:
        loop.learning_rate = rate
    found = losses(tmp_path / "run", "dev_loss")
    best = min(found, key=lambda step: found[step])
    last = max(losses(tmp_path / "run"))
    assert best < last < 200
    assert [int(path.name.removeprefix("step-")) for path in checkpoints(tmp_path / "run")] == [best, last]
    model, _ = load_model(folder)
    name = "model.decoder.layers.0.fc1.weight"
    best_and_last = [read_weights(path)[name] for path in checkpoints(tmp_path / "run")]
    assert not torch.equal(*best_and_last)
    assert torch.equal(model.state_dict()[name], best_and_last[taken])


# ---- what goes wrong


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
    values["data"] |= {"documents_per_epoch": 50}  # so that nobody counts them before a worker reads them
    shutil.copytree(recipe.out / "tokenizer", tmp_path / "third" / "tokenizer")
    with pytest.raises(DataError, match="not JSON") as found:
        train(parse_recipe(values))
    assert "Traceback" not in str(found.value)


def test_a_run_that_ends_in_its_warm_up_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    train(small(tmp_path, train={"steps": 2, "warmup": 2}), say=said.append)
    assert "the run ends after 2 steps: train.warmup = 2 is not over then" in "\n".join(said)
    said.clear()
    train(small(tmp_path, out=str(tmp_path / "longer"), train={"steps": 3, "warmup": 2}), say=said.append)
    assert "warmup" not in "\n".join(said)


def test_examples_that_are_all_too_long(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"more than data\.max_tokens = 3"):
        train(small(tmp_path, data={"max_tokens": 3}))
