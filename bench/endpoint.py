"""Do budgets hold without logits? A model behind an API, 40 prompts, three budgets: asked, cut, repaired.

    python bench/endpoint.py [--url http://localhost:11434/v1 --name llama3.2] [--max-calls 8] [--json OUT]

Prints the table of docs/endpoints.md. Without --url it starts an endpoint of its own on this machine: SmolLM2 as
shipped, on onnxruntime, without budgets (plain sampling). "Asked once" has the length in the prompt.
"Cut" is the same text, cut at the maximum after a whole word. "Repaired" is `lengthwise write`.
"""

import argparse
import json
import queue
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

import lengthwise
from lengthwise.endpoints.client import Endpoint, EndpointError
from lengthwise.endpoints.writer import MAX_CALLS, EndpointWriter
from lengthwise.engines.sampling import sample, uniforms
from lengthwise.evaluation.baselines import truncate
from lengthwise.length.budget import Budget
from lengthwise.length.sentences import finished
from lengthwise.length.units import measure

# (kind, prompt): questions, lists, letters, code, ... None of them was used to choose the wording of the requests.
PROMPTS = [line.split("\t") for line in Path(__file__).with_name("kinds.tsv").read_text("utf-8").splitlines()]
CONCURRENCY = 8
SAMPLING: dict[str, Any] = {"temperature": 0.7, "top_p": 0.9, "top_k": None}  # of the endpoint
BUDGETS = ["at most 280 chars", "60-80 words", "exactly 50 words"]
ROW = "| {budget} | {system} | {within:.0f} | {complete:.0f} | {both:.0f} | {calls:.2f} | {tokens:.0f} | {length:.0f} |"


class Sampler:
    """Plain sampling of a model that runs here, without budgets. Requests that wait are sampled together."""

    def __init__(self, model: str, max_rows: int = 32) -> None:
        self.engine = lengthwise.load(model, engine="onnx").engine
        self.max_rows, self.waiting = max_rows, queue.Queue[tuple[dict[str, Any], Future[Any]]]()
        threading.Thread(target=self._work, daemon=True).start()

    def __call__(self, body: dict[str, Any]) -> Any:
        """Return the texts of a request, whether the model ended each, and the number of tokens."""
        result: Future[Any] = Future()
        self.waiting.put((body, result))
        return result.result()

    def _work(self) -> None:
        while True:
            batch = [self.waiting.get()]
            while not self.waiting.empty() and sum(body.get("n", 1) for body, _ in batch) < self.max_rows:
                batch.append(self.waiting.get())
            try:
                texts = iter(self._sample([body for body, _ in batch]))
                for body, result in batch:
                    result.set_result([next(texts) for _ in range(body.get("n", 1))])
            except Exception as error:  # the handler of the request reports it
                for _, result in batch:
                    result.set_exception(error)

    def _sample(self, bodies: list[dict[str, Any]]) -> list[tuple[str, bool, int]]:
        template, eos = self.engine.tokenizer.apply_chat_template, self.engine.eos
        prompts, limits, seeds = [], [], []
        for body in bodies:
            ids = template(body["messages"], add_generation_prompt=True, return_dict=True)["input_ids"]
            for n in range(body.get("n", 1)):
                prompts.append(ids)
                limits.append(min(body.get("max_tokens", 512), 512))
                seeds.append(body.get("seed", 0) + 7919 * n)
        numbers = uniforms(seeds, max(limits))
        rows = self.engine.prefill(prompts, max_new_tokens=max(limits))
        texts: list[list[int]] = [[] for _ in prompts]
        ended, live = [False] * len(prompts), list(range(len(prompts)))
        for step in range(max(limits)):
            drawn = {n: sample(rows.scores[k], numbers[n, step], **SAMPLING) for k, n in enumerate(live)}
            for n, token in drawn.items():
                ended[n] = token in eos
                texts[n] += [] if ended[n] else [token]
            going = [k for k, n in enumerate(live) if not ended[n] and len(texts[n]) < limits[n]]
            if not going:
                break
            if len(going) < len(live):  # a selection copies the KV cache
                live = [live[k] for k in going]
                rows.select(np.array(going))
            rows.step(np.array([drawn[n] for n in live]))
        decode = self.engine.tokenizer.decode
        return [(decode(ids, skip_special_tokens=True), end, len(ids)) for ids, end in zip(texts, ended, strict=True)]


def serve_plain(model: str = "smollm2-plain") -> ThreadingHTTPServer:
    """Start an endpoint on a free port."""
    sampler = Sampler(model)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            texts = sampler(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            choices = [
                {"message": {"content": text}, "finish_reason": "stop" if end else "length"} for text, end, _ in texts
            ]
            usage = {"completion_tokens": sum(tokens for *_, tokens in texts)}
            data = json.dumps({"choices": choices, "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def systems(
    endpoint: Endpoint, writer: EndpointWriter, prompts: list[str], budget: Budget, seed: int
) -> dict[str, list[dict[str, Any]]]:
    """Return the texts of each system for the prompts."""
    once = asked_once(endpoint, prompts, budget, seed)
    written = writer.write(prompts, budget, seed=seed)
    if failed := [one.error for one in written if one.error]:
        raise EndpointError(failed[0])
    cut = [row | {"text": truncate(row["text"], budget)} for row in once]
    repaired = [{"text": one.text, "calls": one.calls, "tokens": one.tokens} for one in written]
    return {"asked once": once, "asked once, cut": cut, "repaired": repaired}


def asked_once(endpoint: Endpoint, prompts: list[str], budget: Budget, seed: int) -> list[dict[str, Any]]:
    """Return one text for each prompt; the length is in the prompt, as usual practice has it."""
    wish = str(budget).replace("chars", "characters")

    def ask(place: int) -> dict[str, Any]:
        message = {"role": "user", "content": f"{prompts[place]} Answer in {wish}."}
        answer = endpoint.ask([message], max_tokens=512, seed=seed + place)
        return {"text": answer.replies[0].text, "calls": 1, "tokens": answer.tokens}

    with ThreadPoolExecutor(CONCURRENCY) as pool:
        return list(pool.map(ask, range(len(prompts))))


def report(budget: Budget, name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    within = [budget.fits(measure(row["text"], budget.unit)) for row in rows]
    complete = [finished(row["text"]) for row in rows]
    share = 100 / len(rows)
    return {
        "budget": str(budget),
        "system": name,
        "within": share * sum(within),
        "complete": share * sum(complete),
        "both": share * sum(w and c for w, c in zip(within, complete, strict=True)),
        "calls": sum(row["calls"] for row in rows) / len(rows),
        "tokens": sum(row["tokens"] for row in rows) / len(rows),
        "length": sum(measure(row["text"], budget.unit) for row in rows) / len(rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="an endpoint that runs already")
    parser.add_argument("--name", default="smollm2", help="the model there")
    parser.add_argument("--max-calls", type=int, default=MAX_CALLS)
    parser.add_argument("--prompts", type=int, default=40)
    parser.add_argument("--budget", action="append", help="only this budget; can be repeated")
    parser.add_argument("--json", type=Path, help="also write every text to this file, as JSON Lines")
    options = parser.parse_args()
    url = options.url or f"http://127.0.0.1:{serve_plain().server_port}/v1"
    endpoint, asked = Endpoint(options.name, url, timeout=600), PROMPTS[: options.prompts]
    writer = EndpointWriter(endpoint, max_calls=options.max_calls, concurrency=CONCURRENCY)
    print(f"lengthwise {lengthwise.__version__}, {options.name}, {len(asked)} prompts, {options.max_calls} calls")
    log = options.json.open("w") if options.json else None
    results: dict[tuple[Budget, str], list[dict[str, Any]]] = {}
    for start in range(0, len(asked), CONCURRENCY):  # in parts, so that an interrupted run leaves rows of all budgets
        part = asked[start : start + CONCURRENCY]
        for budget in map(Budget.parse, options.budget or BUDGETS):
            for name, rows in systems(endpoint, writer, [one for _, one in part], budget, start).items():
                results.setdefault((budget, name), []).extend(rows)
                for (kind, prompt), row in zip(part, rows, strict=True):
                    row = {"budget": str(budget), "system": name, "kind": kind, "prompt": prompt, **row}
                    print(json.dumps(row, ensure_ascii=False), file=log, flush=True) if log else None
    print("| budget | system | within % | complete % | both % | calls | tokens | mean length |\n" + "|---" * 8 + "|")
    for (budget, name), rows in results.items():
        print(ROW.format(**report(budget, name, rows)))


if __name__ == "__main__":
    main()
