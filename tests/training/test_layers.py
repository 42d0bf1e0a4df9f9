"""Compiled layers, and layers with merged LoRA, compute the same; sharded weights are saved and restored."""

import shutil
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from peft import LoraConfig, get_peft_model
from torch._inductor import config as inductor
from transformers import LlamaConfig, LlamaForCausalLM

from families import tiny
from fresh_process import in_two_processes
from lengthwise.training import train
from lengthwise.training.batches import Batch, collate
from lengthwise.training.data_stream import Place, Stream
from lengthwise.training.fresh_model import fresh_model
from lengthwise.training.layers import compile_layers, compile_settings, merge_in_forward, shard, trainable
from lengthwise.training.loss import summed_loss, unbiased_logits
from lengthwise.training.model import build
from lengthwise.training.recipe import Fresh, parse_recipe
from lengthwise.training.run_state import Progress, checkpoints, load_checkpoint, read_weights, save_checkpoint
from toy_training import examples_for, layout_for, losses, response_logits, values

SEVEN = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 7, "num_attention_heads": 2}
SEVEN |= {"num_key_value_heads": 1}
NO_EXAMPLES: dict[str, Any] = {"names": [], "responses": 1, "tokens": 1, "padded": 1}
NO_EXAMPLES |= {key: torch.zeros(0) for key in ("labels", "uniform", "max_shift")}


@pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="torch.compile needs a C++ compiler")
def test_compiled_is_the_same(tmp_path: Path, toy_base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a decoder: the C++ compiler takes long, and an encoder-decoder has twice as many programs."""
    monkeypatch.setattr(inductor.cpp, "vec_isa_ok", False)  # vector instructions take it twice as long
    settings = values(tmp_path, model={"fresh": None, "base": str(toy_base)}, train={"steps": 4})
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
        batch = Batch(inputs | {"attention_mask": mask}, rows=torch.arange(rows * target), **NO_EXAMPLES)
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
    with compile_settings():
        yield programs
    torch._dynamo.reset()


def test_the_settings_of_the_compiler_are_restored() -> None:
    before = (torch._dynamo.config.recompile_limit, torch.fx.experimental._config.use_duck_shape)
    with compile_settings():
        assert (torch._dynamo.config.recompile_limit, torch.fx.experimental._config.use_duck_shape) == (64, False)
    assert (torch._dynamo.config.recompile_limit, torch.fx.experimental._config.use_duck_shape) == before


def sharded_training(values: dict[str, Any]) -> None:
    """Train a sharded model beside a whole one, and resume it from its checkpoint, in each of two processes."""
    accelerator = Accelerator(cpu=True)
    recipe = parse_recipe(values)
    built = build(recipe, recipe.out / "tokenizer")
    batch, _ = next(Stream(recipe, built.maker, built.layout, 100).from_(Place()))
    model = built.model.eval()  # no dropout
    plain = deepcopy(model)
    shard(model)
    optimizers = {m: torch.optim.AdamW(trainable(m), lr=1e-2) for m in (plain, model)}

    def step(model: Any) -> float:
        logits, bias = unbiased_logits(model, batch)
        loss = summed_loss(logits, batch.labels, bias=bias)
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


def test_sharded_weights_are_saved_and_restored(tmp_path: Path) -> None:
    """FSDP 2 on gloo, without Accelerate: that shards on GPUs only. Tied embeddings stay tied."""
    recipe = values(tmp_path, train={"steps": 1})
    train(parse_recipe(recipe))
    for old in checkpoints(tmp_path / "run"):
        old.rename(tmp_path / old.name)
    in_two_processes(sharded_training, recipe, folder=tmp_path)
    whole = read_weights(next(path for path in tmp_path.glob("step-*")))
    sharded = read_weights(checkpoints(tmp_path / "run")[-1])
    assert {name: w.shape for name, w in whole.items()} == {name: w.shape for name, w in sharded.items()}


def test_merged_lora_is_lora(byte_bpe: Any) -> None:
    model = tiny("llama", byte_bpe)
    config = LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False)
    model = get_peft_model(model, config)
    batch = collate(examples_for(model.get_base_model(), byte_bpe), layout_for(model.get_base_model()))

    def gradients() -> list[torch.Tensor]:
        model.zero_grad()
        summed_loss(response_logits(model, batch), batch.labels).backward()
        return [p.grad.clone() for p in model.parameters() if p.requires_grad]

    plain = gradients()
    assert merge_in_forward(model) == 14
    for expected, found in zip(plain, gradients(), strict=True):
        assert torch.allclose(expected, found, atol=1e-4, rtol=1e-3)
