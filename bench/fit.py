"""What does the hard budget cost? Decoding steps of SmolLM2 at batch 32, plain and with `LengthBudgetLogitsProcessor`, in one run.

    python bench/fit.py [--device cuda] [--batch 32] [--threads 2] [--busy]

Greedy `generate` of 64 tokens, plain and with the processor in turns. Two figures: the time spent inside the processor
(the device waited for before and after) beside the time of a plain step, and the ratio of the whole runs. Budgets are
such that no row ends early and the last steps need their masks.
"""

import argparse
import statistics
import time
from typing import Any

import torch

from lengthwise.constraint.mask import LengthBudgetLogitsProcessor
from lengthwise.models.checkpoint import load


class Timed(LengthBudgetLogitsProcessor):
    """LengthBudgetLogitsProcessor with a stopwatch."""

    seconds = 0.0
    steps = 0

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        self.steps += 1
        began = now(scores.device)
        kept = super().__call__(input_ids, scores)
        self.seconds += now(scores.device) - began
        return kept


clock = time.perf_counter


def now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    return clock()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--model", default="smollm2-plain", help="a folder, say of random weights, measures as well")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--busy", action="store_true", help="others use this CPU: measure processor time, one thread")
    options = parser.parse_args()
    if options.busy:
        global clock
        clock, options.threads = time.process_time, 1
    torch.set_num_threads(options.threads)
    writer = load(options.model, device=options.device)
    model, device, tokens = writer.model, torch.device(options.device), options.tokens
    question = [{"role": "user", "content": "Tell me about the sea and the ships."}]
    prompts = writer.tokenizer.apply_chat_template(
        [question] * options.batch, add_generation_prompt=True, return_dict=True, return_tensors="pt"
    ).to(device)

    def step(fit: LengthBudgetLogitsProcessor | None) -> float:
        """Seconds a step."""
        began = now(device)
        with torch.inference_mode():
            written = model.generate(
                **prompts,
                logits_processor=[fit] if fit else None,
                do_sample=False,
                min_new_tokens=None if fit else tokens,
                max_new_tokens=tokens,
            )
        return (now(device) - began) / (written.shape[1] - prompts["input_ids"].shape[1])

    print(f"{options.model} ({model.dtype}) on {options.device}, {options.threads} threads, batch {options.batch}")
    print(f"{tokens} new tokens, median of {options.rounds} rounds")
    print("| unit | plain step, ms | inside fit, ms | share % | step with fit / plain |\n|---|---|---|---|---|")
    for unit, most in (
        ("tokens", tokens),
        ("chars", 5 * tokens),
        ("words", tokens),
        ("graphemes", 5 * tokens),
        ("tweet", 5 * tokens),
    ):
        high = torch.full((options.batch,), most)
        rounds = []
        for _ in range(options.rounds + 1):
            where = {"start": prompts["input_ids"].shape[1], "eos": writer.ends, "observe": True}
            timed = Timed(writer.meter(unit), high - most // 8, high, **where)
            plain, fitted = (
                step(None),
                step(LengthBudgetLogitsProcessor(writer.meter(unit), high - most // 8, high, **where)),
            )
            step(timed)
            rounds.append((plain, timed.seconds / timed.steps, fitted / plain))
        plain, inside, ratio = (statistics.median(column) for column in zip(*rounds[1:], strict=True))  # first: warm-up
        print(
            f"| {unit} | {1e3 * plain:.2f} | {1e3 * inside:.2f} | {100 * inside / plain:.1f} | {ratio:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
