"""Speed on a GPU: recorded steps beside `generate` of transformers, and translations within a length.

    python bench/gpu.py write smollm2 --batches 1,64
    python bench/gpu.py translate Helsinki-NLP/opus-mt-en-fr --reverse Helsinki-NLP/opus-mt-fr-en --data FILE

`write` decodes greedily, so many tokens of each text:
    generate   transformers' own loop, without a budget
    steps      the hard budget, the loop guard and the model's length control; each step is launched kernel by kernel
    recorded   the same; a step of the model is one CUDA graph
`bound` is the time in which the GPU can read the weights and the KV cache, at the rate of a copy.

`translate` translates the sources of a corpus with five beams, at any length and within the source's length: by
`generate`, and with recorded steps.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import lengthwise
from lengthwise.benchmark.rounds import in_turns, times_as_fast
from lengthwise.benchmark.texts import prompts
from lengthwise.constraint.mask import LengthConstraint
from lengthwise.corpora.readers import read
from lengthwise.engines.base import LengthInputs
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.generation.loops import LoopGuard, loop_tables_of
from lengthwise.generation.token_choice import TokenChoice
from lengthwise.scoring.reverse import ReverseModel
from lengthwise.translation import Translator

_DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # a CPU is for trying the script out
_HALF = "float16" if _DEVICE == "cuda" else "float32"
_ROUNDS = 3
_WORDS = 1000  # of the budget: more than the tokens that are decoded


def seconds(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    if _DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


# ---- writing


def generated(engine: TransformersEngine, batch: int, tokens: int) -> None:
    inputs = engine._inputs([engine.prompt_ids(one) for one in prompts(batch)])
    engine.model.generate(**inputs, do_sample=False, max_new_tokens=tokens, min_new_tokens=tokens)


def decoded(writer: lengthwise.Writer, batch: int, tokens: int) -> None:
    engine: Any = writer.engine
    lengths = None
    if "words" in engine.units:
        unit = engine.units.index("words")
        lengths = LengthInputs([_WORDS] * batch, [unit] * batch, [False] * batch, [0] * batch)
    meter = writer.meter("words")
    constraint = LengthConstraint(meter, [_WORDS] * batch, [_WORDS] * batch, eos=engine.eos)
    choice = TokenChoice(engine, constraint, None, guard=LoopGuard(loop_tables_of(meter), [[]] * batch))
    rows = engine.prefill([engine.prompt_ids(one) for one in prompts(batch)], lengths, max_new_tokens=tokens + 1)
    choice(rows.scores)
    for _ in range(tokens - 1):
        rows.step(choice.last)
        choice(rows.scores)


def copy_rate() -> float:
    """Return bytes that a copy reads and writes in a second."""
    one = torch.empty(1 << 30, dtype=torch.uint8, device=_DEVICE)
    other = torch.empty_like(one)
    return 2 * len(one) / min(seconds(lambda: other.copy_(one)) for _ in range(5))


def writing(model: str, batches: list[int], tokens: int) -> dict[str, Any]:
    engine: Any = lengthwise.load(model, engine="transformers", dtype="bfloat16", device=_DEVICE).engine
    usual, fixed = (lengthwise.Writer(_with(engine, one)) for one in (False, True))
    weights, rate = sum(one.nbytes for one in engine.model.parameters()), copy_rate()
    found = []
    for batch in batches:
        runs: dict[str, Callable[[], Any]] = {
            "generate": lambda batch=batch: generated(engine, batch, tokens),
            "steps": lambda batch=batch: decoded(usual, batch, tokens),
            "recorded": lambda batch=batch: decoded(fixed, batch, tokens),
        }
        for run in runs.values():
            run()  # kernels are compiled and steps recorded
        turns = in_turns({name: lambda run=run: seconds(run) for name, run in runs.items()}, _ROUNDS)
        row = {
            "batch": batch,
            "tokens_per_second": {name: batch * tokens / min(own) for name, own in turns.items()},
            "milliseconds_a_token": {name: 1000 * min(own) / tokens for name, own in turns.items()},
            "recorded_is_times_as_fast_as": {
                name: times_as_fast(turns["recorded"], turns[name]) for name in ("generate", "steps")
            },
            "bound_milliseconds": 1000 * weights / rate,
        }
        print(json.dumps(row), flush=True)
        found.append(row)
    return {"model": model, "tokens": tokens, "weights": weights, "copy_rate": rate, "write": found}


# ---- translating


def translating(model: str, reverse: str, data: str, count: int, decodings: list[str]) -> dict[str, Any]:
    """Translate the first `count` sources by each of the `decodings`, generate and recorded: the same batches."""
    sources = [source for document in read(data) for source, _ in document.segments]
    loaded = lengthwise.load(model, engine="transformers", dtype=_HALF, device=_DEVICE).engine
    backward = lengthwise.load(reverse, engine="transformers", dtype=_HALF, device=_DEVICE).engine if reverse else None
    found = []
    for name in decodings:
        fixed = name == "recorded"
        back = ReverseModel(_with(backward, fixed)) if backward is not None else None
        translator = Translator(lengthwise.Writer(_with(loaded, fixed)), "en", "fr", reverse=back)
        for budget in (None, "at most 1.0x"):
            translator.translate(sources[-8:], budget)  # kernels are compiled
            times, kept = [], []
            for _ in range(1 + fixed):  # steps are recorded in the first round
                times.append(seconds(lambda: kept.append(translator.translate(sources[:count], budget))))  # noqa: B023
            row = {
                "decoding": name,
                "budget": budget,
                "sentences": count,
                "sentences_per_second": count / times[-1],
                "with_recording": count / times[0],
                "fits": sum(one.fits is not False for one in kept[-1]),
                "complete": sum(bool(one.complete) for one in kept[-1]),
            }
            print(json.dumps(row), flush=True)
            found.append(row | {"texts": [one.text for one in kept[-1]]})
    return {"model": model, "reverse": reverse, "translate": found}


def _with(engine: Any, fixed_cache: bool) -> TransformersEngine:
    return TransformersEngine(engine.model, engine.tokenizer, engine.name, fixed_cache=fixed_cache)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("write", "translate"))
    parser.add_argument("model")
    parser.add_argument("--batches", default="1,64")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--reverse", default="", metavar="MODEL")
    parser.add_argument("--data", metavar="FILE")
    parser.add_argument("--sentences", type=int, default=128, metavar="N")
    parser.add_argument("--decodings", default="generate,recorded", help="of translate: one of them, or both")
    parser.add_argument("--out", type=Path, metavar="FILE")
    asked = parser.parse_args()
    if asked.part == "write":
        found = writing(asked.model, [int(one) for one in asked.batches.split(",")], asked.tokens)
    else:
        decodings = asked.decodings.split(",")
        found = translating(asked.model, asked.reverse, asked.data, asked.sentences, decodings)
    found |= {"device": torch.cuda.get_device_name() if _DEVICE == "cuda" else _DEVICE, "torch": torch.__version__}
    if asked.out:
        asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
