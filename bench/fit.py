"""Measure the share of the hard budget in a decoding step: SmolLM2 at batch 32, without and with `LengthConstraint`.

    python bench/fit.py [--device cuda] [--batch 32] [--threads 2] [--busy]

Greedy `generate` of 64 tokens, alternately without and with the constraint. Two figures: the time inside the constraint
(synchronised with the device before and after) / the time of a plain step, and the ratio of the whole runs. The budgets
are chosen so that no row ends early and the last steps are masked.
"""

import argparse
import statistics
import time
from typing import Any

import torch
from transformers import LogitsProcessor

from lengthwise import load
from lengthwise.constraint.mask import LengthConstraint


class Constrained(LogitsProcessor):
    """The constraint as the decoding loop uses it: it receives the last token, then masks the scores."""

    def __init__(self, constraint: LengthConstraint, timed: bool) -> None:
        self.constraint, self.timed = constraint, timed
        self.seconds, self.steps = 0.0, 0

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        began = now(scores.device) if self.timed else 0.0
        if self.steps:
            self.constraint.update(input_ids[:, -1])
        kept = self.constraint.apply(scores)
        self.seconds += now(scores.device) - began if self.timed else 0.0
        self.steps += 1
        return kept


clock = time.perf_counter


def now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    return clock()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--model", default="smollm2-plain", help="a name or folder; random weights suffice")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--busy", action="store_true", help="for a busy CPU: measure process time on one thread")
    options = parser.parse_args()
    if options.busy:
        global clock
        clock, options.threads = time.process_time, 1
    torch.set_num_threads(options.threads)
    writer = load(options.model, engine="transformers", device=options.device)
    model, device, tokens = writer.model, torch.device(options.device), options.tokens
    question = [{"role": "user", "content": "Tell me about the sea and the ships."}]
    prompts = writer.tokenizer.apply_chat_template(
        [question] * options.batch, add_generation_prompt=True, return_dict=True, return_tensors="pt"
    ).to(device)

    def step(processor: Constrained | None) -> float:
        """Return the seconds per decoding step."""
        began = now(device)
        with torch.inference_mode():
            written = model.generate(
                **prompts,
                logits_processor=[processor] if processor else None,
                do_sample=False,
                min_new_tokens=None if processor else tokens,
                max_new_tokens=tokens,
            )
        return (now(device) - began) / (written.shape[1] - prompts["input_ids"].shape[1])

    def constrained(unit: str, high: int, timed: bool) -> Constrained:
        low = [high - high // 8] * options.batch
        return Constrained(
            LengthConstraint(writer.meter(unit), low, [high] * options.batch, eos=writer.engine.eos), timed
        )

    print(f"{options.model} ({model.dtype}) on {options.device}, {options.threads} threads, batch {options.batch}")
    print(f"{tokens} new tokens, median of {options.rounds} rounds")
    print("| unit | plain step, ms | constraint, ms | share % | constrained / plain |\n|---|---|---|---|---|")
    for unit, per_token in {"tokens": 1, "chars": 5, "words": 1, "graphemes": 5, "tweet": 5}.items():
        rounds = []
        for _ in range(options.rounds + 1):
            plain, whole = step(None), step(constrained(unit, per_token * tokens, timed=False))
            timed = constrained(unit, per_token * tokens, timed=True)
            step(timed)
            rounds.append((plain, timed.seconds / timed.steps, whole / plain))
        plain, inside, ratio = (statistics.median(column) for column in zip(*rounds[1:], strict=True))  # first: warm-up
        print(
            f"| {unit} | {1e3 * plain:.2f} | {1e3 * inside:.2f} | {100 * inside / plain:.1f} | {ratio:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
