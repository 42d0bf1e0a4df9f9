"""Do budgets hold? The model as shipped, 60 prompts, four budgets: with the length in the prompt, and with `fit`.

    python bench/obey.py [--model smollm2-plain] [--device cuda] [--only fit] [--json OUT]

Prints the table of docs/results/budgets-hold.md. "Asked in the prompt" is the usual practice: the length is in the
prompt, and plain `generate` may write 512 tokens. `fit` is the hard budget.
"""

import argparse
import json
import time
from pathlib import Path

import torch

import lengthwise
from lengthwise.length.budget import Budget
from lengthwise.length.sentences import finished
from lengthwise.length.units import measure

PROMPTS = Path(__file__).with_name("prompts.txt").read_text().splitlines()
BUDGETS = ["at most 280 chars", "at most 40 words", "exactly 60 tokens", "50-80 words"]
ROW = "| {budget} | {system} | {within:.0f} | {complete:.0f} | {both:.0f} | {length:.0f} | {seconds:.0f} |"
SYSTEMS = {"fit": {}, "fit, 8 candidates": {"candidates": 8}}
NAMES = ["asked in the prompt", *SYSTEMS]


def asked(writer: lengthwise.Writer, budget: Budget, free: int = 512) -> list[tuple[str, int, bool]]:
    """Return (text, length, complete) of plain `generate` with the length in the prompt."""
    tokenizer, model = writer.tokenizer, writer.model
    wish = str(budget).replace("chars", "characters")
    chats = [[{"role": "user", "content": f"{prompt} Answer in {wish}."}] for prompt in PROMPTS]
    results = []
    for n in range(0, len(chats), 30):
        inputs = tokenizer.apply_chat_template(
            chats[n : n + 30],
            add_generation_prompt=True,
            return_dict=True,
            return_tensors="pt",
            padding=True,
            tokenizer_kwargs={"padding_side": "left"},
        ).to(model.device)
        with torch.inference_mode():
            out = model.generate(**inputs, max_new_tokens=free, do_sample=False)
        for row in out[:, inputs["input_ids"].shape[1] :].tolist():
            ended = tokenizer.eos_token_id in row
            ids = [i for i in row if i not in tokenizer.all_special_ids]
            text = tokenizer.decode(ids).strip()
            length = len(ids) if budget.unit == "tokens" else measure(text, budget.unit)
            results.append((text, length, ended or finished(text)))
    return results


def report(budget: Budget, name: str, rows: list[tuple[str, int, bool]], seconds: float) -> dict[str, object]:
    within = [budget.fits(length) for _, length, _ in rows]
    return {
        "budget": str(budget),
        "system": name,
        "within": 100 * sum(within) / len(rows),
        "complete": 100 * sum(complete for _, _, complete in rows) / len(rows),
        "both": 100 * sum(w and c for w, (_, _, c) in zip(within, rows, strict=True)) / len(rows),
        "length": sum(length for _, length, _ in rows) / len(rows),
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-plain")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", choices=NAMES, action="append", help="only this system; can be repeated")
    parser.add_argument("--json", type=Path, help="also write every text to this file, as JSON Lines")
    options = parser.parse_args()
    writer = lengthwise.load(options.model, engine="transformers", device=options.device)
    writer.batch_size = 64
    print(f"lengthwise {lengthwise.__version__}, {options.model}, {options.device}, {len(PROMPTS)} prompts, seed 0")
    print("| budget | system | within % | complete % | both % | mean length | s |\n|---|---|---|---|---|---|---|")
    log = options.json.open("w") if options.json else None
    for budget in map(Budget.parse, BUDGETS):
        for name in options.only or NAMES:
            began = time.perf_counter()
            if name in SYSTEMS:
                written = writer.write(PROMPTS, budget, seed=0, **SYSTEMS[name])
                rows = [(w.text, w.length, w.complete) for w in written]
            else:
                rows = asked(writer, budget)
            line = report(budget, name, rows, time.perf_counter() - began)
            print(ROW.format(**line), flush=True)
            if log:
                for prompt, (text, length, complete) in zip(PROMPTS, rows, strict=True):
                    row = {"prompt": prompt, "text": text, "length": length, "complete": complete}
                    log.write(json.dumps(line | row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
