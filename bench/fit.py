"""What does the hard budget cost? A decoding step of SmolLM2 at batch 32, with and without `Fit`, in one run.

    python bench/fit.py [--device cuda] [--batch 32]

Times `generate` (greedy, 64 new tokens) plain and with the processor, in turns, and reports the median ratio; then the
processor alone. Budgets are wide enough that no row ends early, and tight enough that masks are needed at the end.
"""

import argparse
import statistics
import time

import torch

from lengthwise.checkpoint import load
from lengthwise.decode.fit import Fit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    writer = load("smollm2", device=options.device)
    model, tokenizer, device = writer.model, writer.tokenizer, torch.device(options.device)
    prompts = tokenizer(["Tell me about the sea and the ships."] * options.batch, return_tensors="pt").to(device)
    start = prompts["input_ids"].shape[1]

    def generate(fit: Fit | None) -> float:
        began = time.perf_counter()
        model.generate(
            **prompts,
            logits_processor=[fit] if fit else None,
            do_sample=False,
            min_new_tokens=None if fit else options.tokens,
            max_new_tokens=options.tokens,
            pad_token_id=0,
        )
        if device.type == "cuda":
            torch.cuda.synchronize()
        return (time.perf_counter() - began) / options.tokens

    print(f"{options.device}, batch {options.batch}, {options.tokens} new tokens, median of {options.rounds} rounds")
    print("| unit | plain ms/step | with fit ms/step | cost % |\n|---|---|---|---|")
    for unit in ("tokens", "chars", "words"):
        least = {"tokens": options.tokens, "chars": 4 * options.tokens, "words": options.tokens}[unit]
        low = torch.full((options.batch,), least, device=device)
        plain, fitted = [], []
        with torch.inference_mode():
            for round_ in range(options.rounds + 1):
                fit = Fit(writer.meter(unit), low, 2 * low, start=start, eos=writer._eos(), observe=True)
                a, b = generate(None), generate(fit)
                if round_:  # the first warms up
                    plain.append(a)
                    fitted.append(b)
        a, b = statistics.median(plain), statistics.median(fitted)
        print(f"| {unit} | {1e3 * a:.2f} | {1e3 * b:.2f} | {100 * (b / a - 1):+.1f} |", flush=True)


if __name__ == "__main__":
    main()
