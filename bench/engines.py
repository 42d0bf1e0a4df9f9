"""Compare the onnx or the gguf engine with the transformers engine: speed under a hard budget, how far results differ.

    python bench/engines.py [--engine onnx] [--no-control] [--batch 1,8,32] [--tokens 40] [--rounds 5] [--busy] [--json]
    python bench/engines.py --translate MODEL [--searches 1/1,1/5,16/1,16/5] [--sentences N] [--rounds 5] [--busy]
    python bench/engines.py --translate MODEL --parallel FILE.tsv --searches 16/5 --rounds 1

Writing, tokens/s of SmolLM2: both engines decode the same prompts greedily, with the hard budget and, without
--no-control, the countdown head, in turns; the end token is out of reach, so every row has as many tokens. The ratio of
each round is printed as median and range. The KL is that of the next-token distributions on the tokens that
transformers wrote, D(transformers || engine), without a length.
Translating, sentences/s of an encoder-decoder: a search is sentences at once / beams. The hard budget is twice the
source, so it runs but rarely binds. FILE.tsv has sources and references; then the chrF of both engines is printed.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PROMPTS = (HERE / "prompts.txt").read_text("utf-8").splitlines()
REFERENCE = "transformers"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="onnx", help="compared with transformers")
    parser.add_argument("--no-control", action="store_true", help="SmolLM2 without its countdown head")
    parser.add_argument("--batch", default="1,8,32")
    parser.add_argument("--tokens", type=int, default=40)
    parser.add_argument("--translate", metavar="MODEL", help="measure the translations of this model instead")
    parser.add_argument("--searches", default="1/1,1/5,16/1,16/5", help="sentences at once / beams")
    parser.add_argument("--sentences", type=int, help="translate the first so many")
    parser.add_argument("--parallel", type=Path, metavar="FILE.tsv", help="sources and references")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--busy", action="store_true", help="for a busy CPU: measure process time on one thread")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.busy:
        os.environ["OMP_NUM_THREADS"] = "1"  # before torch and onnxruntime are imported
    clock = time.process_time if options.busy else time.perf_counter
    from lengthwise import load

    name = options.translate or ("smollm2-plain" if options.no_control else "smollm2")
    writers = {engine: load(name, engine=engine, device="cpu") for engine in (REFERENCE, options.engine)}
    found: dict[str, Any] = {"cpu": cpu(), "threads": 1 if options.busy else os.cpu_count(), "model": name}
    found["engines"] = list(writers)
    if options.translate:
        found["translate"] = translations(writers, options, clock)
    else:
        rows = [speeds(writers, int(size), options, clock) for size in options.batch.split(",")]
        found |= {"speed": rows, "kl": divergence(writers)}
    print(json.dumps(found) if options.json else "\n".join(lines(found)))


def lines(found: dict[str, Any]) -> list[str]:
    """Return the figures as lines of text."""
    printed = []
    for row in found.get("speed", []) + found.get("translate", []):
        what = f"batch {row['batch']:2}: tokens/s" if "batch" in row else f"{row['search']:>5}: sentences/s"
        low, middle, high = row["ratio"]
        figures = ", ".join(f"{engine} {row[engine]:.2f}" for engine in found["engines"])
        line = f"{what} {figures}; ratio {middle:.2f} ({low:.2f} to {high:.2f})"
        if "wall_ratio" in row:
            line += f"; of wall times {row['wall_ratio']:.2f}"
        if "same" in row:
            line += f"; {row['same']} of {row['sentences']} texts are the same"
        if "chrf" in row:
            line += "; chrF " + ", ".join(f"{engine} {score:.2f}" for engine, score in row["chrf"].items())
        printed.append(line)
    if "kl" in found:
        printed.append(f"KL {found['kl']['mean']:.4f} (largest {found['kl']['largest']:.3f})")
    return [*printed, found["cpu"]]


def translations(writers: Any, options: Any, clock: Callable[[], float]) -> list[dict[str, Any]]:
    """Return the best sentences/s of each engine in each search, the ratios, and how many texts are the same."""
    if options.parallel:
        pairs = [line.split("\t") for line in options.parallel.read_text("utf-8").splitlines()]
        sources, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    else:
        sources, references = (HERE / "sentences.txt").read_text("utf-8").splitlines(), None
    sources = sources[: options.sentences]
    for writer in writers.values():
        translated(writer, sources[:1], 1, 1, clock)  # tables of the hard budget are made on first use
    rows = []
    for search in options.searches.split(","):
        size, beams = map(int, search.split("/"))
        rounds = [
            {name: translated(writer, sources, size, beams, clock) for name, writer in writers.items()}
            for _ in range(options.rounds)
        ]
        ratios = sorted(one[REFERENCE][0] / one[options.engine][0] for one in rounds)
        texts = {name: rounds[0][name][1] for name in writers}
        row: dict[str, Any] = {"search": search, "sentences": len(sources)}
        row |= {name: len(sources) / min(one[name][0] for one in rounds) for name in writers}
        row |= {"ratio": [ratios[0], statistics.median(ratios), ratios[-1]]}
        row["same"] = sum(one == other for one, other in zip(*texts.values(), strict=True))
        if references:
            import sacrebleu

            row["chrf"] = {
                name: sacrebleu.corpus_chrf(some, [references[: len(some)]]).score for name, some in texts.items()
            }
        rows.append(row)
    return rows


def translated(
    writer: Any, sources: list[str], size: int, beams: int, clock: Callable[[], float]
) -> tuple[float, list[str]]:
    """Return the time of the translations, and their texts."""
    from lengthwise.constraint.mask import LengthConstraint
    from lengthwise.engines.base import LengthInputs

    engine, texts = writer.engine, []
    getattr(engine, "forget", lambda: None)()  # encoder outputs of the last search
    began = clock()
    for first in range(0, len(sources), size):
        some = sources[first : first + size]
        prompts, limits = [engine.prompt_ids(text) for text in some], [2 * len(text) for text in some]
        lengths = None
        if "chars" in engine.units:
            unit = engine.units.index("chars")
            lengths = LengthInputs(limits, [unit] * len(some), [True] * len(some), [0] * len(some))
        constraint = LengthConstraint(writer.meter("chars"), [1] * len(some), limits, eos=engine.eos)
        how: dict[str, Any] = {"max_new_tokens": 200, "processors": [constraint.apply_to], "beams": beams}
        found = engine.search(prompts, lengths, **how).ids
        texts += [engine.tokenizer.decode(ids, skip_special_tokens=True) for ids in found]
    return clock() - began, texts


def speeds(writers: Any, size: int, options: Any, clock: Callable[[], float]) -> dict[str, Any]:
    """Return the best tokens/s of each engine, and the lowest, the median and the highest ratio of the rounds."""
    rounds = [
        {name: seconds(writer, size, options.tokens, clock) for name, writer in writers.items()}
        for _ in range(options.rounds)
    ]
    ratios = sorted(one[REFERENCE][0] / one[options.engine][0] for one in rounds)
    walls = [one[REFERENCE][1] / one[options.engine][1] for one in rounds]
    best = {name: size * options.tokens / min(one[name][0] for one in rounds) for name in writers}
    found = {"batch": size, **best, "ratio": [ratios[0], statistics.median(ratios), ratios[-1]]}
    return found | {"wall_ratio": statistics.median(walls)}


def seconds(writer: Any, size: int, tokens: int, clock: Callable[[], float]) -> tuple[float, float]:
    """Return the time of `tokens` steps after the prefill, on this clock and on the wall."""
    from lengthwise.constraint.mask import LengthConstraint
    from lengthwise.engines.base import LengthInputs

    engine = writer.engine
    prompts = [engine.prompt_ids(PROMPTS[n % len(PROMPTS)]) for n in range(size)]
    lengths = None
    if "words" in engine.units:
        lengths = LengthInputs([200] * size, [engine.units.index("words")] * size, [False] * size, [0] * size)
    constraint = LengthConstraint(writer.meter("words"), [200] * size, [200] * size, eos=engine.eos)
    rows = engine.prefill(prompts, lengths, max_new_tokens=tokens + 1)
    began, began_wall = clock(), time.perf_counter()
    for _ in range(tokens):
        chosen = constraint.apply(rows.scores).argmax(1)
        constraint.update(chosen)
        rows.step(chosen)
    return clock() - began, time.perf_counter() - began_wall


def divergence(writers: Any, texts: int = 8, tokens: int = 60) -> dict[str, float]:
    """Return the mean and the largest KL at the tokens that transformers writes after some prompts."""
    import numpy as np

    engines = [writer.engine for writer in writers.values()]
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
