"""Train a future discriminator on a model's own answers, and write it into the model's folder.

The network is that of `engines/future_discriminator.py`. Its labels need no annotation: after each token of an answer,
every later end of a sentence, a list item, a table row or the answer itself is one, at the distance in which it lies.
Beyond the answer nothing is known.

    "It rains. It"    after the first "It", in words:  r = 0 no end,  r = 1 an end,  r = 2, 3, … unknown

FUDGE (Yang & Klein 2021) steers a frozen model by a classifier of prefixes, GeDi (Krause et al. 2021) by a
class-conditional model, NADO (Meng et al. 2022) by a network per token that is trained on the model's own samples;
NeuroLogic A* (Lu et al. 2022) looks ahead by decoding. Here one network predicts all distances in one pass, and the
model's own answers are the samples. `distill/answers.py` makes them.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, rms_norm, silu

from .. import atomic
from ..controls.attached import core_of
from ..corpora import Document
from ..corpora.document import DataError
from ..engines.base import Engine
from ..engines.transformers import TransformersEngine
from ..generation.decoding import spelled
from ..length.blocks import block_ends
from ..length.meter import Meter, meter_of
from ..length.sentences import finished_ends
from ..models.description import DESCRIPTION, DISCRIMINATOR, FORMAT
from ..version import __version__
from .loop import global_state_restored

UNITS = ("tokens", "words", "chars")
REACH = 96  # units
SHORTEST, LONGEST = 5, 700  # tokens of an answer; of an answer with its prompt
HELD_OUT = 50  # one in so many answers measures the loss; with fewer answers there would be none

_WIDTH = 1024
_ROWS = 32  # answers that the model reads at once
_BATCH = 8192  # tokens of a step
_RATE = 1e-3
_LEAST = 1e-4  # of a constant rate: the logarithm of 0 has no value

Ids = list[int]
Pair = tuple[Ids, Ids]  # prompt and answer
Progress = Callable[[str, int, int], None]  # what is done, how much of it, of how much
Logits = Callable[[Tensor, Tensor], Tensor]  # of hidden states and embeddings


@dataclass(frozen=True)
class Training:
    """What a training used and what it reached. Losses are in nats per label of the held-out answers, by unit."""

    answers: int
    held_out: int
    tokens: int  # of the other answers
    steps: int
    loss: dict[str, float]
    loss_of_rates: dict[str, float]  # if each distance always had the same probability
    seconds: float


@dataclass(frozen=True)
class Features:
    """The tokens of answers, each with the model's normed hidden state before it and its labels."""

    hidden: Tensor  # (tokens, width), half precision
    tokens: Tensor  # (tokens,)
    labels: Tensor  # (tokens, units, REACH + 1), as `labels_of` returns them


class Network(nn.Module):
    """The network with gradients. It begins near constant rates, whose logits are `rates`: (units, REACH + 1)."""

    def __init__(self, width: int, rates: Tensor) -> None:
        super().__init__()
        self.inner = nn.Linear(2 * width, _WIDTH)
        self.middle = nn.Linear(_WIDTH, _WIDTH)
        self.outer = nn.Linear(_WIDTH, rates.numel())
        with torch.no_grad():
            self.outer.bias.copy_(rates.flatten())

    def forward(self, hidden: Tensor, embedded: Tensor) -> Tensor:
        """Return the logits of hidden states and embeddings (tokens, width): (tokens, units, REACH + 1)."""
        z = silu(self.inner(torch.cat([_normed(hidden), _normed(embedded)], -1)))
        z = z + silu(self.middle(z))
        logits: Tensor = self.outer(z)
        return logits.view(-1, len(UNITS), REACH + 1)


def train(
    engine: Engine,
    answers: Iterable[Document],
    folder: Path,
    *,
    base: str | None = None,
    most: int = 8000,
    epochs: int = 6,
    seed: int = 0,
    progress: Progress = lambda what, done, total: None,
) -> Training:
    """Train a discriminator for the model of `engine`, and write it into the model's folder.

    `answers`: documents of one pair, a prompt and the model's answer. `most`: more of them are not used; these are
    drawn at random, because the first answers of a file are short. `base`: see `write`.
    """
    engine, began = steerable(engine), time.perf_counter()
    documents = list(answers)
    pairs = usable_pairs(engine, Random(seed).sample(documents, min(most, len(documents))))
    with global_state_restored():
        torch.manual_seed(seed)
        order = torch.randperm(len(pairs)).tolist()
        held_out = len(pairs) // HELD_OUT
        chosen = [[pairs[n] for n in some] for some in (order[:held_out], order[held_out:])]
        dev, data = (features(engine, some, progress) for some in chosen)
        rates = constant_rates(data.labels)
        network = Network(data.hidden.shape[1], rates).to(engine.device)
        steps = _fit(network, engine, data, epochs, progress)
        loss = _dev_loss(network, engine, dev)
        loss_of_rates = _dev_loss(lambda hidden, _: rates.expand(len(hidden), -1, -1), engine, dev)
    write(network, folder, base)
    counts = {"answers": len(pairs), "held_out": held_out, "tokens": len(data.tokens), "steps": steps}
    return Training(**counts, loss=loss, loss_of_rates=loss_of_rates, seconds=time.perf_counter() - began)


def write(network: Network, folder: Path, base: str | None = None) -> None:
    """Write the network as `FutureDiscriminator.read` reads it, into the folder of a model.

    `base`: the folder is a new one, and its model is the plain model of this name.
    """
    weights = {name: weight.detach().half().cpu().contiguous() for name, weight in network.state_dict().items()}
    content = save(weights, metadata={"units": json.dumps(UNITS), "reach": str(REACH)})
    if base is None:
        with atomic.file(folder / DISCRIMINATOR) as stream:
            stream.write(content)
        return
    description = {"format": FORMAT, "lengthwise": __version__, "controls": [], "units": {}, "base_model": base}
    with atomic.folder(folder) as new:
        (new / DISCRIMINATOR).write_bytes(content)
        atomic.write_text(new / DESCRIPTION, json.dumps(description, indent=2, ensure_ascii=False) + "\n")


def steerable(engine: Engine) -> TransformersEngine:
    """Return the engine; raise if its model cannot be steered by a discriminator."""
    if engine.encoder_decoder or not isinstance(engine, TransformersEngine):
        raise ValueError(f"a future discriminator needs a decoder-only model of transformers; got {engine.name}")
    if not engine.plain_without_length:
        problem = f"{engine.name} needs a length with every text, and a steered text has none"
        raise ValueError(f"{problem}; a future discriminator is for plain models and those with a countdown head")
    return engine


# ---- data


def usable_pairs(engine: TransformersEngine, answers: Sequence[Document]) -> list[Pair]:
    """Return the ids of prompts and answers, without those that are too short or too long; raise if few are left."""
    longest, found = min(LONGEST, engine.window), []
    for document in answers:
        [(prompt, answer)] = document.segments
        pair = engine.prompt_ids(prompt), engine.tokenizer(answer, add_special_tokens=False)["input_ids"]
        if len(pair[1]) >= SHORTEST and sum(map(len, pair)) <= longest:
            found.append(pair)
    if len(found) < HELD_OUT:
        what = f"{SHORTEST} tokens or more, and at most {longest} with their prompts"
        raise DataError(
            f"{len(found):,} of the {len(answers):,} answers can be used ({what}); at least {HELD_OUT} are needed\n"
            "What to do: make more with `lengthwise data answers`; some thousand are better."
        )
    return found


@torch.no_grad()
def features(engine: TransformersEngine, pairs: list[Pair], progress: Progress) -> Features:
    """Return the features of the tokens of the answers, those of the shortest pairs first."""
    decoder, meters = core_of(engine.model).get_decoder(), {unit: meter_of(engine.tokenizer, unit) for unit in UNITS}
    pairs = sorted(pairs, key=lambda pair: len(pair[0]) + len(pair[1]))
    hidden, labels = [], []
    for first in range(0, len(pairs), _ROWS):
        progress("reading answers", first, len(pairs))
        some = pairs[first : first + _ROWS]
        width = max(len(prompt) + len(answer) for prompt, answer in some)
        # Padded on the right: no token attends to what follows it.
        ids = [[*prompt, *answer] + [engine.pad] * (width - len(prompt) - len(answer)) for prompt, answer in some]
        states = decoder(input_ids=torch.tensor(ids, device=engine.device), use_cache=False).last_hidden_state
        for row, (prompt, answer) in enumerate(some):
            before = states[row, len(prompt) - 1 : len(prompt) + len(answer) - 1]
            hidden.append(_normed(before).half())  # normed: half precision has no room for large states
            labels.append(torch.from_numpy(labels_of(answer, meters)))
    progress("reading answers", len(pairs), len(pairs))
    tokens = torch.tensor([token for _, answer in pairs for token in answer])
    return Features(torch.cat(hidden), tokens.to(engine.device), torch.cat(labels).to(engine.device))


def labels_of(ids: Ids, meters: Mapping[str, Meter]) -> NDArray[np.int8]:
    """Return the labels of an answer: (tokens, units, REACH + 1).

    1: the text may end r units after the token; 0: it may not; -1: not known, because the answer ends before that.
    """
    text, reach = spelled(meters["tokens"], ids)
    found = np.full((len(ids), len(UNITS), REACH + 1), -1, np.int8)
    ends = sorted(
        {end for end in (*finished_ends(text), *block_ends(text), len(text.rstrip())) if 0 < end <= reach[-1]}
    )
    if not ends:
        return found
    closing = np.searchsorted(reach, ends)  # (ends,) the token that completes each end
    later = closing >= np.arange(len(ids))[:, None]  # (tokens, ends)
    for n, unit in enumerate(UNITS):
        meter = meters[unit]
        after = meter.running(np.array([ids]), np.array([0]))[0]  # (tokens,) units up to each token
        at = closing + 1 if unit == "tokens" else np.array([meter.unit.measure(text[:end]) for end in ends])
        distance = at - after[:, None]  # (tokens, ends)
        found[:, n][later[:, -1:] & (np.arange(REACH + 1) <= distance[:, -1:])] = 0
        tokens, which = ((distance >= 0) & (distance <= REACH) & later).nonzero()
        found[tokens, n, distance[tokens, which]] = 1
    return found


def constant_rates(labels: Tensor) -> Tensor:
    """Return the logit of the share of ends at each distance: (units, REACH + 1)."""
    ends, known = (labels == 1).sum(0), (labels >= 0).sum(0)
    return (ends / known.clamp(min=1)).clamp(_LEAST, 1 - _LEAST).logit()


# ---- training


def _fit(network: Network, engine: TransformersEngine, data: Features, epochs: int, progress: Progress) -> int:
    """Train the network and return the number of steps."""
    count, size = len(data.tokens), min(_BATCH, len(data.tokens))
    steps, done = epochs * (count // size), 0
    optimizer = torch.optim.AdamW(network.parameters(), lr=_RATE, betas=(0.9, 0.99), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=max(steps, 2), pct_start=0.1)
    for _ in range(epochs):
        shuffled = torch.randperm(count, device=data.tokens.device)
        for some in torch.split(shuffled[: count // size * size], size):
            progress("training", done, steps)
            with _autocast(engine):
                summed, known = _summed_loss(network, engine, data, some)
            optimizer.zero_grad()
            (summed / known.clamp(min=1)).sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            done += 1
    progress("training", done, steps)
    return steps


def _summed_loss(logits_of: Logits, engine: TransformersEngine, data: Features, some: Tensor) -> tuple[Tensor, Tensor]:
    """Return the summed loss of the known labels of these tokens, and their number, by unit: (units,)."""
    labels = data.labels[some]
    logits, known = logits_of(data.hidden[some], engine.embedded(data.tokens[some])), labels >= 0
    loss = binary_cross_entropy_with_logits(logits, labels.clamp(min=0).float(), reduction="none")
    return (loss * known).sum((0, 2)), known.sum((0, 2))


@torch.no_grad()
def _dev_loss(logits_of: Logits, engine: TransformersEngine, dev: Features) -> dict[str, float]:
    """Return the mean loss of the known labels of each unit."""
    parts = torch.split(torch.arange(len(dev.tokens), device=dev.tokens.device), _BATCH)
    summed, known = zip(*(_summed_loss(logits_of, engine, dev, some) for some in parts), strict=True)
    means = torch.stack(summed).sum(0) / torch.stack(known).sum(0).clamp(min=1)
    return dict(zip(UNITS, means.tolist(), strict=True))


def _autocast(engine: TransformersEngine) -> Any:
    return torch.autocast(engine.device.type, torch.bfloat16, enabled=engine.device.type == "cuda")


def _normed(x: Tensor) -> Tensor:
    return rms_norm(x.float(), x.shape[-1:])
