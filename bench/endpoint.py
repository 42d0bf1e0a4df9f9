"""Do budgets hold without logits? A model behind an API, 40 prompts, three budgets: asked, cut, repaired.

    python bench/endpoint.py [--url http://localhost:11434/v1 --name llama3.2] [--max-calls 8] [--json OUT]

Prints the table of docs/endpoints.md. Without --url it starts an endpoint of its own on this machine: SmolLM2 as
shipped, on onnxruntime, without budgets (plain sampling). "Asked once" has the length in the prompt.
"Cut" is the same text, cut at the maximum after a whole word. "Repaired" is `lengthwise write`.
"""

import argparse
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

import lengthwise
from lengthwise.endpoints.client import Endpoint, EndpointError
from lengthwise.endpoints.writer import MAX_CALLS, EndpointWriter
from lengthwise.evaluation.baselines import truncate
from lengthwise.length.budget import Budget
from lengthwise.length.sentences import finished
from lengthwise.length.units import measure

PROMPTS = Path(__file__).with_name("prompts.txt").read_text().splitlines()
BUDGETS = ["at most 280 chars", "60-80 words", "exactly 50 words"]
ROW = "| {budget} | {system} | {within:.0f} | {complete:.0f} | {both:.0f} | {calls:.2f} | {tokens:.0f} | {length:.0f} |"


def serve_plain(model: str = "smollm2-plain") -> ThreadingHTTPServer:
    """Start an endpoint on a free port: plain sampling of a model that runs here, without budgets."""
    from lengthwise.engines.sampling import SeededSampler

    engine = lengthwise.load(model, engine="onnx").engine
    lock, count = threading.Lock(), iter(range(10**9))

    def sampled(body: dict[str, Any]) -> tuple[list[tuple[str, bool]], int]:
        """Return the texts, whether the model ended each, and the number of tokens."""
        chat = engine.tokenizer.apply_chat_template(body["messages"], add_generation_prompt=True, return_dict=True)
        each, limit = body.get("n", 1), min(body.get("max_tokens", 512), 512)
        seeds = [body.get("seed", next(count)) + 7919 * n for n in range(each)]
        sampler = SeededSampler(seeds, limit, temperature=body.get("temperature", 0.7), top_p=body.get("top_p", 0.9))
        rows = engine.prefill([chat["input_ids"]], each=each, max_new_tokens=limit)
        ids: list[list[int]] = [[] for _ in range(each)]
        ended = np.zeros(each, bool)
        for step in range(limit):
            tokens = sampler(rows.scores, step)
            for n, token in enumerate(tokens.tolist()):
                ended[n] |= token in engine.eos
                if not ended[n]:
                    ids[n].append(token)
            if ended.all() or step + 1 == limit:
                break
            rows.step(tokens)
        texts = [engine.tokenizer.decode(row, skip_special_tokens=True) for row in ids]
        return list(zip(texts, ended.tolist(), strict=True)), sum(map(len, ids))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                texts, tokens = sampled(body)
            choices = [
                {"message": {"content": text}, "finish_reason": "stop" if end else "length"} for text, end in texts
            ]
            data = json.dumps({"choices": choices, "usage": {"completion_tokens": tokens}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def asked_once(endpoint: Endpoint, prompts: list[str], budget: Budget) -> list[dict[str, Any]]:
    """Return one text for each prompt; the length is in the prompt, as usual practice has it."""
    wish, rows = str(budget).replace("chars", "characters"), []
    for seed, prompt in enumerate(prompts):
        answer = endpoint.ask([{"role": "user", "content": f"{prompt} Answer in {wish}."}], max_tokens=512, seed=seed)
        [reply] = answer.replies
        rows.append({"text": reply.text, "ended": reply.ended, "calls": 1, "tokens": answer.tokens})
    return rows


def cut(rows: list[dict[str, Any]], budget: Budget) -> list[dict[str, Any]]:
    """Return the same texts, cut at the maximum after a whole word."""
    return [row | {"text": truncate(row["text"], budget)} for row in rows]


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
    parser.add_argument("--only", choices=["asked once", "repaired"])
    parser.add_argument("--json", type=Path, help="also write every text to this file, as JSON Lines")
    options = parser.parse_args()
    url = options.url or f"http://127.0.0.1:{serve_plain().server_port}/v1"
    endpoint, prompts = Endpoint(options.name, url, timeout=600), PROMPTS[: options.prompts]
    writer = EndpointWriter(endpoint, max_calls=options.max_calls, concurrency=2)
    print(f"lengthwise {lengthwise.__version__}, {options.name}, {len(prompts)} prompts, {options.max_calls} calls")
    print("| budget | system | within % | complete % | both % | calls | tokens | mean length |\n" + "|---" * 8 + "|")
    log = options.json.open("w") if options.json else None
    for budget in map(Budget.parse, options.budget or BUDGETS):
        systems: dict[str, list[dict[str, Any]]] = {}
        if options.only != "repaired":
            systems["asked once"] = asked_once(endpoint, prompts, budget)
            systems["asked once, cut"] = cut(systems["asked once"], budget)
        if options.only != "asked once":
            began = time.perf_counter()
            written = writer.write(prompts, budget, seed=0)
            if failed := [one.error for one in written if one.error]:
                raise EndpointError(failed[0])
            name = "repaired" if not options.only else f"repaired ({time.perf_counter() - began:.0f} s)"
            systems[name] = [{"text": w.text, "calls": w.calls, "tokens": w.tokens} for w in written]
        for name, rows in systems.items():
            print(ROW.format(**report(budget, name, rows)), flush=True)
            if log:
                for prompt, row in zip(prompts, rows, strict=True):
                    row = {"budget": str(budget), "system": name, "prompt": prompt, **row}
                    log.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
