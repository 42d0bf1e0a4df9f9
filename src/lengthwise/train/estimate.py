"""What a recipe will cost, before it is run: parameters, steps, tokens, memory, time.

Parameters are counted on the model itself, tokens on the first pool of documents and from there by proportion; memory
and time are estimates and say what they rest on. Trains nothing and writes nothing.
"""

import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ..attachment import core_of
from .batches import Batch
from .model import build
from .recipe import Recipe
from .stream import Place, Stream, count_documents

UTILISATION = 0.4  # of the speed of one large matrix product, that a training step reaches
_TOKENIZER_SAMPLE = 20_000  # documents; a plan need not wait for the real tokenizer


@dataclass(frozen=True)
class Plan:
    """The cost of a run."""

    recipe: str
    parameters: int
    trainable: int
    documents: int  # an epoch
    steps: int
    tokens: int  # of the whole run, padding aside
    padding: float  # share of all tokens
    memory: int  # bytes at the peak
    seconds: float
    device: str
    basis: str  # of memory and time

    def __str__(self) -> str:
        rows = [
            ("parameters", f"{self.parameters:,} ({self.trainable:,} trained, {self.trainable / self.parameters:.1%})"),
            ("documents", f"{self.documents:,} an epoch"),
            ("steps", f"{self.steps:,}"),
            ("tokens", f"{self.tokens:,} ({self.padding:.0%} padding besides)"),
            ("memory", f"about {self.memory / 2**30:.1f} GiB at the peak"),
            ("time", f"about {_duration(self.seconds)} on {self.device}"),
            ("basis", self.basis),
        ]
        return f"{self.recipe}\n" + "\n".join(f"  {name:<11}{value}" for name, value in rows)


def plan(recipe: Recipe) -> Plan:
    """The cost of `recipe` on this machine, with one process."""
    if recipe.model.fresh:
        fewer = min(recipe.model.fresh.tokenizer_documents, _TOKENIZER_SAMPLE)
        fresh = recipe.model.fresh.model_copy(update={"tokenizer_documents": fewer})
        recipe = recipe.model_copy(update={"model": recipe.model.model_copy(update={"fresh": fresh})})
    built = build(recipe)
    documents, _ = count_documents(recipe)
    pool = _first_pool(recipe, Stream(recipe, built.maker, built.layout, documents))
    per_epoch = max(1.0, documents / min(documents, recipe.batch.pool))  # pools
    batches = len(pool) * per_epoch * (recipe.train.epochs or 1)
    steps = recipe.train.steps or max(1, round(batches / recipe.batch.accumulate))
    real, padded = sum(batch.tokens for batch in pool), sum(batch.padded for batch in pool)
    used = steps * recipe.batch.accumulate / len(pool)  # how often the run reads as much as this pool
    flops = used * sum(training_flops(built.model, batch) for batch in pool)
    device, speed = _device_speed(recipe)
    return Plan(
        recipe=recipe.name,
        parameters=sum(p.numel() for p in built.model.parameters()),
        trainable=sum(p.numel() for p in built.model.parameters() if p.requires_grad),
        documents=documents,
        steps=steps,
        tokens=round(used * real),
        padding=1 - real / padded,
        memory=max(_memory(built.model, batch, recipe) for batch in pool),
        seconds=flops / (UTILISATION * speed),
        device=device,
        basis=f"memory from tensor sizes; time from {flops:.2g} FLOPs at {UTILISATION:.0%} of the "
        f"{speed / 1e12:.3g} TFLOP/s of a matrix product just measured here; no step was timed",
    )


def _first_pool(recipe: Recipe, stream: Stream) -> list[Batch]:
    batches = []
    for batch, place in stream.from_(Place()):
        if place.pool or place.epoch > 1:
            break
        batches.append(batch)
    return batches


def training_flops(model: Any, batch: Batch) -> float:
    """Floating point operations of one forward and backward pass over a batch, padding aside; by the usual count.

    A parameter takes 2 a token forward, 2 backward for the inputs, and 2 for its own gradient if it is trained.
    """
    core = core_of(model)
    head = core.config.hidden_size * _vocabulary(core) * batch.responses
    sides = _sides(core, batch)
    body = sum(_body(module) * tokens for module, tokens, _ in sides)
    attention = sum(2 * _layers(module) * core.config.hidden_size * width * tokens for module, tokens, width in sides)
    factor = 4 if any("lora_" in name for name, _ in model.named_parameters()) else 6
    return float(factor * (body + head) + 6 * attention)


def _sides(core: Any, batch: Batch) -> list[tuple[nn.Module, int, float]]:
    """(module, real tokens it reads, mean keys a query sees) of encoder and decoder."""
    rows = len(batch.names)
    if not core.config.is_encoder_decoder:
        return [(core.get_decoder(), batch.tokens, batch.tokens / rows / 2)]
    source = batch.tokens - batch.responses
    return [
        (core.get_encoder(), source, source / rows),
        (core.get_decoder(), batch.responses, batch.responses / rows / 2 + source / rows),
    ]


def _body(module: nn.Module) -> int:
    """Parameters that multiply: all but embeddings, which are looked up, and small adapters."""
    looked_up = {id(p) for m in module.modules() if isinstance(m, nn.Embedding) for p in m.parameters()}
    return sum(p.numel() for name, p in module.named_parameters() if id(p) not in looked_up and "lora_" not in name)


def _vocabulary(core: Any) -> int:
    return int(core.config.get_text_config().vocab_size)


def _layers(module: nn.Module) -> int:
    return max((len(m) for m in module.modules() if isinstance(m, nn.ModuleList)), default=0)


def _memory(model: Any, batch: Batch, recipe: Recipe) -> int:
    """Weights, gradients, Adam's two moments, what each layer keeps for the way back, and the logits."""
    core = core_of(model)
    parameters = list(model.parameters())
    weights = sum(p.numel() * p.element_size() for p in parameters)
    learning = 12 * sum(p.numel() for p in parameters if p.requires_grad)
    size = 2 if recipe.train.precision == "bf16" else 4
    layers = sum(_layers(module) for module, _, _ in _sides(core, batch))
    kept = 2 if recipe.train.checkpointing else 17  # values a token, layer and unit of width: Korthikanti et al. 2022
    activations = batch.padded * core.config.hidden_size * kept * size * layers
    logits = batch.responses * _vocabulary(core) * (size + 8)
    return int(weights + learning + activations + logits)


def _device_speed(recipe: Recipe) -> tuple[str, float]:
    """The device's name and what it multiplies a second, in the precision of the recipe."""
    cuda = torch.cuda.is_available()
    half = recipe.train.precision == "bf16"
    side = 8192 if cuda else 768
    matrix = torch.randn(side, side, device="cuda" if cuda else "cpu", dtype=torch.bfloat16 if half else None)
    best = float("inf")
    for _ in range(4):
        began = time.perf_counter()
        matrix @ matrix
        if cuda:
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - began)
    return (torch.cuda.get_device_name() if cuda else "this CPU"), 2 * side**3 / best


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
