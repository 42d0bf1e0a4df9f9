"""Estimate the cost of a recipe before it is run: parameters, steps, tokens, memory, time.

Parameters are counted on the model itself. Tokens are counted on the first pool of documents and extrapolated. Time,
and on a GPU memory, is measured on a few training steps of a model that is discarded. Nothing is written.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import torch
from torch import nn
from torch.nn.attention import sdpa_kernel

from ..controls.attached import controls_of, core_of
from .batches import Batch
from .data_stream import Place, Stream, check_corpora, count_documents
from .layers import trainable
from .loop import ATTENTION, global_state_restored, out_of_memory
from .loss import summed_loss, unbiased_logits
from .model import build
from .recipe import Recipe
from .schedule import optimiser, too_short

_STEPS = 4  # timed, after one that is not
_SECONDS = 10.0  # if a batch would take longer, only a part of its rows is timed
_TOKENIZER_SAMPLE = 20_000  # documents: enough for the tokenizer of an estimate


@dataclass(frozen=True)
class Plan:
    """The cost of a run."""

    recipe: str
    parameters: int
    trainable: int
    documents: int  # per epoch
    steps: int
    tokens: int  # of the whole run, without padding
    padding: float  # share of all tokens
    memory: int  # bytes at the peak
    seconds: float
    device: str
    basis: str  # how memory and time were found
    warning: str = ""

    def __str__(self) -> str:
        s = self.seconds
        time = f"{s:.0f} s" if s < 90 else f"{s / 60:.0f} min" if s < 5400 else f"{s / 3600:.1f} h"
        rows = [
            ("parameters", f"{self.parameters:,} ({self.trainable:,} trained, {self.trainable / self.parameters:.1%})"),
            ("documents", f"{self.documents:,} per epoch"),
            ("steps", f"{self.steps:,}" + (f"; {self.warning}" if self.warning else "")),
            ("tokens", f"{self.tokens:,} (without padding, which is {self.padding:.0%} of all)"),
            ("memory", f"about {self.memory / 2**30:.1f} GiB at the peak"),
            ("time", f"about {time} on {self.device}"),
            ("basis", self.basis),
        ]
        return f"{self.recipe}\n" + "\n".join(f"  {name:<11}{value}" for name, value in rows)


@global_state_restored()
def plan(recipe: Recipe) -> Plan:
    """Return the cost of `recipe` on this machine, with one process."""
    check_corpora(recipe)
    if recipe.model.fresh:
        fewer = min(recipe.model.fresh.tokenizer_documents, _TOKENIZER_SAMPLE)
        fresh = recipe.model.fresh.model_copy(update={"tokenizer_documents": fewer})
        recipe = recipe.model_copy(update={"model": recipe.model.model_copy(update={"fresh": fresh})})
    built = build(recipe)
    documents, _ = count_documents(recipe)
    stream = Stream(recipe, built.maker, built.layout, documents).from_(Place())
    pool = [batch for batch, _ in takewhile(lambda item: item[1].pool == 0 and item[1].epoch == 1, stream)]
    per_epoch = max(1.0, documents / min(documents, recipe.batch.pool))  # pools
    batches = len(pool) * per_epoch * (recipe.train.epochs or 1)
    steps = recipe.train.steps or max(1, round(batches / recipe.batch.accumulate))
    real, padded = sum(batch.tokens for batch in pool), sum(batch.padded for batch in pool)
    used = steps * recipe.batch.accumulate / len(pool)  # the run's batches, in pools like this one
    seconds, memory, basis = _take_steps(recipe, built.model, pool)
    return Plan(
        recipe=recipe.name,
        parameters=sum(p.numel() for p in built.model.parameters()),
        trainable=sum(p.numel() for p in trainable(built.model)),
        documents=documents,
        steps=steps,
        tokens=round(used * real),
        padding=1 - real / padded,
        memory=memory or max(_memory(built.model, batch, recipe) for batch in pool),
        seconds=seconds * used * padded,
        device=torch.cuda.get_device_name() if torch.cuda.is_available() else "this CPU",
        basis=basis,
        warning=too_short(recipe.train, steps),
    )


# ---- measured steps


def _take_steps(recipe: Recipe, model: Any, pool: Sequence[Batch]) -> tuple[float, int, str]:
    """Return the seconds per padded token, the bytes at the peak (0: not measured), and how both were found.

    The first step, on the largest batch, warms up and has the peak memory; the others are timed.
    """
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    model = model.to(device).train()
    optimizer = optimiser(recipe.train, trainable(model), device)
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    try:
        # Without a peak to measure, the first step can be small. It decides how many rows are timed.
        largest = max(pool, key=lambda batch: batch.padded)
        first = largest if cuda else _part(largest, 1 / 16)
        slow = _seconds(recipe, model, optimizer, first, device) / first.padded
        share = 1.0 if cuda else min(1.0, _SECONDS / max(slow * largest.padded, 1e-9))
        batches = [_part(batch, share) for batch in pool[:_STEPS]]
        seconds = sum(_seconds(recipe, model, optimizer, batch, device) for batch in batches)
    except torch.OutOfMemoryError as error:
        raise out_of_memory(recipe, error) from error
    padded = sum(batch.padded for batch in batches)
    left_out = ", without train.compile" * recipe.train.compile + ", without the dev set" * bool(recipe.data.dev)
    basis = (
        f"time from {len(batches)} steps of {padded // len(batches):,} tokens on this machine after a first one, "
        f"by proportion{left_out}; memory {'measured in them' if cuda else 'from tensor sizes'}"
    )
    return seconds / padded, torch.cuda.max_memory_allocated() if cuda else 0, basis


def _seconds(recipe: Recipe, model: Any, optimizer: Any, batch: Batch, device: torch.device) -> float:
    """Return the time of one step, until the device has finished it."""
    began = time.perf_counter()
    batch = batch.to(device)
    with sdpa_kernel(ATTENTION):
        with torch.autocast(device.type, torch.bfloat16, enabled=recipe.train.precision == "bf16"):
            logits, bias = unbiased_logits(model, batch)
        loss = summed_loss(logits, batch.labels, recipe.train.label_smoothing, bias)
        (loss / batch.responses).backward()  # type: ignore[no-untyped-call]
    if recipe.train.clip:
        nn.utils.clip_grad_norm_(trainable(model), recipe.train.clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


def _part(batch: Batch, share: float) -> Batch:
    """Return the first rows of a batch, at least one."""
    height = len(batch.inputs["input_ids"])
    kept = max(1, round(share * height))
    ids = batch.inputs.get("decoder_input_ids", batch.inputs["input_ids"])
    inside = batch.rows < kept * ids.shape[1]
    return replace(
        batch.map_rows(lambda tensor: tensor[:kept]),
        rows=batch.rows[inside],
        labels=batch.labels[inside],
        responses=int(inside.sum()),
        padded=batch.padded * kept // height,
    )


# ---- estimated memory


def only_head_trained(model: Any) -> bool:
    """Return whether only controls after the last layer are trained: then no gradient passes through the layers."""
    heads = {p for control in controls_of(model) if control.edits_hidden for p in control.parameters()}
    return all(p in heads for p in trainable(model))


def layer_count(module: nn.Module) -> int:
    return max((len(m) for m in module.modules() if isinstance(m, nn.ModuleList)), default=0)


def _memory(model: Any, batch: Batch, recipe: Recipe) -> int:
    """Return the bytes of weights, gradients, Adam's two moments, activations and logits."""
    core = core_of(model)
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    learning = 12 * sum(p.numel() for p in trainable(model))
    size = 2 if recipe.train.precision == "bf16" else 4
    stacks = [core.get_decoder(), *([core.get_encoder()] if core.config.is_encoder_decoder else [])]
    layers = sum(map(layer_count, stacks))
    kept = 2 if recipe.train.checkpointing else 17  # values per token, layer and unit of width: Korthikanti et al. 2022
    activations = 0 if only_head_trained(model) else batch.padded * core.config.hidden_size * kept * size * layers
    logits = batch.responses * core.config.get_text_config().vocab_size * (size + 8)
    return int(weights + learning + activations + logits)
