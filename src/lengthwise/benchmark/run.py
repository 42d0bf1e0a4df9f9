"""Run the benchmark: writing, translating, commands from the shell, passes, and the cost of a step."""

import datetime
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..engines.threads import threads
from ..models.description import base_name
from ..models.onnx_model import OnnxModel, load_onnx, resolve_onnx
from . import bulk, passes, shell, step_cost, texts, translating, writing
from .peers import NAMES, OURS, load_peers, versions, why_missing
from .rounds import Clock, Spread

REFERENCE = "transformers"


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    batches: tuple[int, ...] = (1, 8, 32)
    tokens: int = 30  # steps of a round
    searches: tuple[tuple[int, int], ...] = ((1, 1), (1, 5), (16, 1), (16, 5))  # sentences at once, beams
    sentences: int = 16
    rounds: int = 3
    commands: tuple[tuple[str, ...], ...] = shell.OTHERS  # beside one `write` and one `translate`
    lines: int = 20  # sentences of one `translate` of several lines
    command_rounds: int = 3
    budgets: tuple[str, ...] = ("at most 280 chars", "exactly 30 words", "40-60 words")  # of texts whose passes count
    cost_batches: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    contexts: tuple[int, ...] = (64, 512, 2048)
    divergence: tuple[int, int] | None = (8, 60)  # texts, tokens
    bulk: int = 16  # texts of whole calls


FULL = Plan()
QUICK = Plan(
    batches=(1, 8),
    tokens=6,
    searches=((1, 5),),
    sentences=4,
    rounds=2,
    commands=(),
    lines=0,
    command_rounds=1,
    budgets=("at most 100 chars",),
    cost_batches=(1, 8),
    contexts=(64, 1024),
    divergence=None,
    bulk=0,
)


def run(
    plan: Plan,
    *,
    writer: str = "smollm2",
    translator: str = "en-it",
    clock: Clock,
    say: Callable[[str], None] = lambda message: None,
) -> dict[str, Any]:
    """Return all figures as plain values. `say` receives what is measured next."""
    found: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "cpu": cpu(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": threads(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "clock": clock.name,
        "versions": versions(),
        "models": {"write": writer, "translate": translator},
        "missing": {},
    }
    for model in dict.fromkeys((writer, translator, *shell.MODELS)):  # none is fetched or converted while one runs
        resolve_onnx(model)
    found |= _shell(plan, say)
    found |= _writing(plan, writer, clock, found["missing"], say)
    found |= _translating(plan, translator, clock, found["missing"], say)
    return {**headline(found), **found}


def _shell(plan: Plan, say: Callable[[str], None]) -> dict[str, Any]:
    commands = [shell.WRITE, shell.TRANSLATE, *plan.commands]
    if plan.commands and why_missing(REFERENCE) is None:
        base_name(shell.MODELS[0])  # fetches its weights for this engine, too
        commands.append((*shell.WRITE, "--engine", REFERENCE))
    rows = []
    for arguments in commands:
        say(f"lengthwise {arguments[0]} from the shell, {plan.command_rounds} times")
        rows.append(shell.measured(arguments, plan.command_rounds))
    if plan.lines:
        say(f"lengthwise translate of {plan.lines} lines, {plan.command_rounds} times")
        rows.append(shell.measured(shell.LINES, plan.command_rounds, plan.lines))
    return {"cli": rows}


def _writing(
    plan: Plan, model: str, clock: Clock, missing: dict[str, str], say: Callable[[str], None]
) -> dict[str, Any]:
    say(f"loading {model} on each engine")
    peers = load_peers(model, (REFERENCE, "gguf"))
    missing |= peers.missing
    rows = []
    for size in plan.batches:
        say(f"writing in batches of {size}: {', '.join(NAMES.get(one, one) for one in peers.writers)}")
        rows.append(writing.speeds(peers.writers, size, plan.tokens, plan.rounds, clock))
    found: dict[str, Any] = {"write": rows}
    if plan.divergence is not None and REFERENCE in peers.writers:
        say("comparing next-token distributions")
        found["kl"] = writing.divergence(peers.writers, REFERENCE, *plan.divergence)
    ours = peers.writers[OURS]
    if plan.bulk:
        say(f"writing {plan.bulk} whole texts")
        found["bulk"] = bulk.written(ours, plan.bulk, "at most 280 chars", clock)
    say("counting passes")
    found["passes"] = passes.of_texts(ours, texts.prompts(len(plan.budgets)), plan.budgets)
    converted = load_onnx(model)
    if isinstance(converted, OnnxModel):
        say("the cost of a step")
        found["step_cost"] = step_cost.costs(converted, plan.cost_batches, plan.contexts, clock, steps=5)
    return found


def _translating(
    plan: Plan, model: str, clock: Clock, missing: dict[str, str], say: Callable[[str], None]
) -> dict[str, Any]:
    say(f"loading {model} on each engine")
    peers = load_peers(model, (REFERENCE,))
    missing |= peers.missing
    known = translating.translators(peers.writers, model, missing)
    rows = []
    for size, beams in plan.searches:
        say(f"translating {size} at once with {beams} beam{'s' if beams > 1 else ''}: {', '.join(known)}")
        sources = texts.sentences(plan.sentences)
        rows.append(translating.speeds(known, sources, size, beams, plan.rounds, clock))
    return {"translate": rows}


def headline(found: dict[str, Any]) -> dict[str, Any]:
    """Return the figures to watch, each a number or None, and the range of each over the rounds."""
    figures: dict[str, Spread | None] = {f"write_batch{size}_vs_{REFERENCE}": None for size in (1, 8)}
    figures |= {f"write_batch{row['batch']}_vs_{REFERENCE}": _ratio(row) for row in found["write"]}
    beams = [row for row in found["translate"] if row["beams"] == 5]
    figures[f"translate_beam5_vs_{REFERENCE}"] = _ratio(beams[0]) if beams else None
    figures["cli_write_seconds"] = found["cli"][0]["seconds"]
    figures["cli_translate_seconds"] = found["cli"][1]["seconds"]
    medians = {name: None if one is None else one.median for name, one in figures.items()}
    return {**medians, "spread": {name: (one.low, one.high) for name, one in figures.items() if one is not None}}


def _ratio(row: dict[str, Any]) -> Spread | None:
    ratio: Spread | None = row["times_as_fast_as"].get(REFERENCE)
    return ratio


def cpu() -> str:
    """Return the name of the processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text("utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"
