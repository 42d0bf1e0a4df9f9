"""How many texts repeat themselves, and what does that cost? The loop guard beside plain decoding under hard budgets.

    python bench/loops.py [--prompts FILE …] [--skip 40] [--count 80] [--budget "at most 280 chars"]
        [--candidates 8] [--json OUT]
    python bench/loops.py --compare OUT [--against smollm2-plain]

FILE has a prompt per line (in a .tsv file the last column), or is JSON Lines (.jsonl, .jsonl.gz) with `prompt`; equal
prompts are used once. The default is bench/prompts.txt; bench/blocks.txt asks for lists, code, tables and letters.
bench/held.tsv is held out: choose nothing on it. One candidate is greedy, several are sampled. `off`:
`no_repeat_ngram_size=0`, which switches the guard off.

The columns: complete first drafts (those that repair leaves as they are), texts within the budget, complete texts,
looping texts (over half of the 16-character sequences of a text occurred in it before, in any script; the guard does
not use this measure), repeated 4-grams of words over all texts, and for each text its tokens, forward passes (a row of
a batch counts as one in each step; scoring of endings is not counted) and seconds of CPU time.

`--compare` writes no texts. It sets those of OUT beside greedy answers of a model that receives no length, cut to as
many tokens: NLL in nats per token by that model, and repeated 4-grams of words, with the interval of the difference.
"""

import argparse
import gzip
import json
import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before onnxruntime is imported

import lengthwise
from lengthwise.generation.unconstrained import UnconstrainedWriter
from lengthwise.metrics import Texts
from lengthwise.metrics.diversity import repetition
from lengthwise.metrics.likelihood import nll
from lengthwise.metrics.tally import Tally, as_comparison, as_score
from lengthwise.scoring.log_likelihood import CausalScorer

PROMPTS = Path(__file__).with_name("prompts.txt")
BUDGETS = ["at most 280 chars", "exactly 50 words", "60-80 words"]
SYSTEMS: dict[str, dict[str, Any]] = {"off": {"no_repeat_ngram_size": 0}, "guard": {}}
WINDOW = 16  # characters
ANSWER_TOKENS = 256  # of an answer of any length, at most
COLUMNS = ("budget", "system", "drafts", "within", "complete", "looping", "repeated", "tokens", "passes", "cpu")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--engine", default="onnx")
    parser.add_argument("--prompts", type=Path, action="append", help="can be repeated")
    parser.add_argument("--skip", type=int, default=0, help="leave out the first so many prompts")
    parser.add_argument("--count", type=int, help="use so many prompts")
    parser.add_argument("--budget", action="append", help="can be repeated")
    parser.add_argument("--only", choices=list(SYSTEMS), action="append", help="only this system; can be repeated")
    parser.add_argument("--candidates", type=int, default=1, help="write so many of each text and keep the best")
    parser.add_argument("--json", type=Path, help="also write every text to this file, as JSON Lines")
    parser.add_argument("--compare", type=Path, help="a file that --json wrote")
    parser.add_argument("--against", default="smollm2-plain", help="the model that --compare uses")
    options = parser.parse_args()
    if options.compare:
        return compare(options.compare, options.against, options.engine)
    found = [prompt for file in options.prompts or [PROMPTS] for prompt in read(file)]
    prompts = list(dict.fromkeys(found))[options.skip :][: options.count]
    writer = lengthwise.load(options.model, engine=options.engine)
    passes, drafts = count_passes(writer.engine), count_complete_drafts(writer)
    print(f"lengthwise {lengthwise.__version__}, {options.model}, {options.engine}, {len(prompts)} prompts")
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for budget in options.budget or BUDGETS:
        for system in options.only or SYSTEMS:
            passes[0], drafts[0], began = 0, 0, time.process_time()
            written = writer.write(prompts, budget, candidates=options.candidates, seed=0, **SYSTEMS[system])
            cpu = (time.process_time() - began) / len(prompts)
            texts = [one.text for one in written]
            row = {
                "budget": budget,
                "system": system,
                "drafts": drafts[0],
                "within": sum(one.fits for one in written),
                "complete": sum(one.complete for one in written),
                "looping": sum(map(loops, texts)),
                "repeated": round(as_score("repetition", repetition(Texts(texts)), 0).value, 4),
                "tokens": round(sum(one.tokens for one in written) / len(prompts), 1),
                "passes": round(passes[0] / len(prompts)),
                "cpu": round(cpu, 2),
            }
            print(f"| {' | '.join(str(row[column]) for column in COLUMNS)} |", flush=True)
            if options.json:
                with options.json.open("a", encoding="utf-8") as file:
                    for prompt, one in zip(prompts, written, strict=True):
                        text = {"prompt": prompt, "loops": loops(one.text), **one.as_json()}
                        file.write(json.dumps({"system": system} | text, ensure_ascii=False) + "\n")


def compare(path: Path, name: str, engine: str) -> None:
    """Print how the texts of the file differ from answers of any length by the model `name`, cut to as many tokens."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    model = lengthwise.load(name, engine=engine)
    scorer, encode = CausalScorer(model.engine), model.tokenizer
    prompts = list(dict.fromkeys(row["prompt"] for row in rows))
    free = UnconstrainedWriter(model, receives_length=False, token_limit=lambda request: ANSWER_TOKENS)
    found = free.write(prompts, "at least 1 char")
    answers = {prompt: encode(one.text)["input_ids"] for prompt, one in zip(prompts, found, strict=True)}
    print(f"lengthwise {lengthwise.__version__}, {name}, {engine}; {path.name} beside answers of any length")
    print("| budget | system | texts | nats | of answers | difference | repeated | of answers | difference |")
    print(f"|{'---|' * 9}")
    for budget, system in dict.fromkeys((row["budget"], row["system"]) for row in rows):
        some = [row for row in rows if (row["budget"], row["system"]) == (budget, system)]
        asked, texts = [row["prompt"] for row in some], [row["text"] for row in some]
        cut = [encode.decode(answers[row["prompt"]][: row["tokens"]]) for row in some]
        beside = [paired("nll", *(nll(Texts(hyps, srcs=asked), scorer) for hyps in (cut, texts)))]
        beside.append(paired("repetition", *(repetition(Texts(hyps)) for hyps in (cut, texts))))
        print(f"| {budget} | {system} | {len(some)} | {' | '.join(beside)} |", flush=True)


def paired(name: str, answers: Tally, texts: Tally) -> str:
    """Return the cells: the value of the texts, that of the answers, and the difference."""
    found = as_comparison(name, answers, texts)
    low, high = found.interval
    return f"{found.b:.3f} | {found.a:.3f} | {found.delta:+.3f} [{low:+.3f}, {high:+.3f}] (p={found.p:.3f})"


def read(path: Path) -> list[str]:
    """Return the prompts of a file."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file if line.strip()]
    if ".jsonl" in path.name:
        lines = [json.loads(line)["prompt"] for line in lines]
    return [line.rpartition("\t")[2] for line in lines] if path.suffix == ".tsv" else lines


def repeated(text: str) -> float:
    """Return the share of the 16-character sequences of `text` that occurred in it before."""
    grams = [text[at : at + WINDOW] for at in range(len(text) - WINDOW + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0


def loops(text: str) -> bool:
    """Return whether over half of the 16-character sequences of `text` occurred in it before."""
    return repeated(text) > 0.5


def count_passes(engine: Any) -> list[int]:
    """Return a counter of the rows that the engine decodes, over all steps."""
    prefill, counted = engine.prefill, [0]

    def counting(*args: Any, **more: Any) -> Any:
        rows = prefill(*args, **more)
        step = rows.step

        def counting_step(tokens: Any) -> None:
            counted[0] += len(tokens)
            step(tokens)

        rows.step = counting_step
        counted[0] += len(rows.scores)
        return rows

    engine.prefill = counting
    return counted


def count_complete_drafts(writer: Any) -> list[int]:
    """Return a counter of the requests with a complete draft before any repair."""
    repair, counted = writer._repair, [0]

    def counting(requests: list[Any], drafts: dict[int, list[Any]], options: Any) -> None:
        endings = [writer._ranked(request, drafts[request.place])[0][0] for request in requests]
        counted[0] += sum(ending.fits and ending.complete for ending in endings)
        repair(requests, drafts, options)

    writer._repair = counting
    return counted


if __name__ == "__main__":
    main()
