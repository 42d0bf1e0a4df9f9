"""Compare the onnx engine with the transformers engine: tokens/s of SmolLM2 under a hard budget, and the KL.

    python bench/engines.py [--batch 1,8,32] [--tokens 40] [--rounds 5] [--busy] [--json]

Both engines decode the same prompts greedily, with the hard budget and the countdown head, in turns; the end token is
out of reach, so every row has as many tokens. The ratio of each round is printed as median and range. The KL is that of
the next-token distributions on the tokens that transformers wrote, D(transformers || onnx), without a length.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROMPTS = (Path(__file__).parent / "prompts.txt").read_text("utf-8").splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", default="1,8,32")
    parser.add_argument("--tokens", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--busy", action="store_true", help="for a busy CPU: measure process time on one thread")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.busy:
        os.environ["OMP_NUM_THREADS"] = "1"  # before torch and onnxruntime are imported
    clock = time.process_time if options.busy else time.perf_counter
    from lengthwise import load

    writers = {name: load("smollm2", engine=name, device="cpu") for name in ("transformers", "onnx")}
    rows = [speeds(writers, int(size), options, clock) for size in options.batch.split(",")]
    found = {"cpu": cpu(), "threads": 1 if options.busy else os.cpu_count(), "speed": rows, "kl": divergence(writers)}
    if options.json:
        print(json.dumps(found))
        return
    for row in rows:
        figures = ", ".join(f"{name} {row[name]:.1f}" for name in writers)
        low, middle, high = row["ratio"]
        print(f"batch {row['batch']:2}: tokens/s {figures}; ratio {middle:.2f} ({low:.2f} to {high:.2f})")
    print(f"KL {found['kl']['mean']:.4f} (largest {found['kl']['largest']:.3f}); {found['cpu']}")


def speeds(writers: Any, size: int, options: Any, clock: Callable[[], float]) -> dict[str, Any]:
    """Return the best tokens/s of each engine, and the lowest, the median and the highest ratio of the rounds."""
    rounds = [
        {name: size * options.tokens / seconds(writer, size, options.tokens, clock) for name, writer in writers.items()}
        for _ in range(options.rounds)
    ]
    ratios = sorted(one["onnx"] / one["transformers"] for one in rounds)
    best = {name: max(one[name] for one in rounds) for name in writers}
    return {"batch": size, **best, "ratio": [ratios[0], statistics.median(ratios), ratios[-1]]}


def seconds(writer: Any, size: int, tokens: int, clock: Callable[[], float]) -> float:
    """Return the time of `tokens` steps after the prefill."""
    from lengthwise.constraint.mask import LengthConstraint
    from lengthwise.engines.base import LengthInputs

    engine = writer.engine
    prompts = [engine.prompt_ids(PROMPTS[n % len(PROMPTS)]) for n in range(size)]
    lengths = LengthInputs([200] * size, [engine.units.index("words")] * size, [False] * size, [0] * size)
    constraint = LengthConstraint(writer.meter("words"), [200] * size, [200] * size, eos=engine.eos)
    rows = engine.prefill(prompts, lengths, max_new_tokens=tokens + 1)
    began = clock()
    for _ in range(tokens):
        chosen = constraint.apply(rows.scores).argmax(1)
        constraint.update(chosen)
        rows.step(chosen)
    return clock() - began


def divergence(writers: Any, texts: int = 8, tokens: int = 60) -> dict[str, float]:
    """Return the mean and the largest KL at the tokens that transformers writes after some prompts."""
    import numpy as np

    engines = [writers[name].engine for name in ("transformers", "onnx")]
    prompts = [engines[0].prompt_ids(prompt) for prompt in PROMPTS[:texts]]
    rows, found = [engine.prefill(prompts) for engine in engines], []
    for _ in range(tokens):
        one, other = (np.asarray(each.scores, np.float64) for each in rows)
        one, other = (scores - np.logaddexp.reduce(scores, 1, keepdims=True) for scores in (one, other))
        found.append((np.exp(one) * (one - other)).sum(1))
        chosen = rows[0].scores.argmax(1)
        for each in rows:
            each.step(chosen)
    return {"mean": float(np.mean(found)), "largest": float(np.max(found))}


def cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown CPU"


if __name__ == "__main__":
    main()
