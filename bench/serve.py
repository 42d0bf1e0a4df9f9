"""A soak of the server: clients with mixed budgets for some minutes; speed, latency, fits, and memory over time.

    python bench/serve.py --seconds 300 --clients 16

Starts `lengthwise serve` on a free port of 127.0.0.1. Clients ask for texts of several lengths and units, whole or as
streams; some go away in the middle of a stream. Needs Linux, for the memory of the server in /proc.
"""

import argparse
import http.client
import json
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

PROMPTS = (Path(__file__).parent / "prompts.txt").read_text(encoding="utf-8").splitlines()
LENGTHS = (
    "at most 60 chars",
    "at most 140 chars",
    "at most 280 chars",
    "exactly 12 words",
    "~25 words",
    "at most 40 tokens",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--engine")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--leave", type=float, default=0.05, help="share of the streams that are left")
    options = parser.parse_args()
    command = [sys.executable, "-m", "lengthwise", "serve", "--json", "--port", "0"]
    command += ["--model", options.model, *(["--engine", options.engine] if options.engine else [])]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    port = int(json.loads(server.stdout.readline())["url"].rpartition(":")[2])
    threading.Thread(target=server.stdout.read, daemon=True).start()  # its log of requests
    soak = Soak(port, options.seconds, options.leave)
    threads = [threading.Thread(target=soak.client, args=(n,)) for n in range(options.clients)]
    for thread in threads:
        thread.start()
    memory = []
    while any(thread.is_alive() for thread in threads):
        memory.append(resident(server.pid))
        time.sleep(2)
    seconds = time.monotonic() - soak.start
    metrics = get(port, "/metrics")
    server.send_signal(signal.SIGTERM)
    code = server.wait(60)
    print(
        json.dumps(
            report(soak.rows, memory, metrics, seconds) | {"clients": options.clients, "exit code": code}, indent=1
        )
    )


class Soak:
    """What the clients do and see. Rows: seconds, status, whether the text fits and is complete, its tokens."""

    def __init__(self, port: int, seconds: float, leave: float) -> None:
        self.port, self.leave, self.start, self.end = port, leave, time.monotonic(), time.monotonic() + seconds
        self.rows: list[dict[str, object]] = []

    def client(self, number: int) -> None:
        draw = random.Random(number)
        while time.monotonic() < self.end:
            body = {
                "messages": [{"role": "user", "content": draw.choice(PROMPTS)}],
                "length": draw.choice(LENGTHS),
                "stream": draw.random() < 0.3,
                "stream_options": {"include_usage": True},
            }
            body |= {"temperature": 0.8, "seed": number} if draw.random() < 0.3 else {}
            start = time.monotonic()
            row = self.ask(body, leaves=bool(body["stream"]) and draw.random() < self.leave)
            self.rows.append(row | {"seconds": time.monotonic() - start})

    def ask(self, body: dict[str, object], leaves: bool) -> dict[str, object]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
            reply = connection.getresponse()
            if leaves:
                reply.readline()
                return {"status": "left"}
            text = reply.read().decode()
            if reply.status != 200:
                return {"status": reply.status}
            lines = (
                [line[6:] for line in text.split("\n\n") if line.startswith("data: {")] if body["stream"] else [text]
            )
            usage = json.loads(lines[-1])["usage"]
            complete = '"complete": true' in text
            return {"status": 200, "fits": usage["length"]["fits"], "complete": complete} | usage
        finally:
            connection.close()


def report(rows: list[dict], memory: list[int], metrics: str, seconds: float) -> dict[str, object]:
    done = [row for row in rows if row["status"] == 200]
    times = sorted(row["seconds"] for row in done)
    counts = {str(status): sum(row["status"] == status for row in rows) for status in {row["status"] for row in rows}}
    batches = [float(re.search(rf"lengthwise_batch_rows_{name} (\S+)", metrics)[1]) for name in ("sum", "count")]
    fifth = max(1, len(memory) // 5)
    return {
        "seconds": round(seconds),
        "replies": counts,
        "texts per second": round(len(done) / seconds, 2),
        "tokens per second": round(sum(row["completion_tokens"] for row in done) / seconds, 1),
        "rows per batch": round(batches[0] / batches[1], 1),
        "median seconds": round(times[len(times) // 2], 2),
        "p95 seconds": round(times[int(0.95 * len(times))], 2),
        "fits": round(sum(row["fits"] for row in done) / len(done), 4),
        "complete": round(sum(row["complete"] for row in done) / len(done), 4),
        "memory in MB, mean of each fifth": [
            round(sum(memory[n * fifth : (n + 1) * fifth]) / fifth / 1e6, 1) for n in range(5) if memory[n * fifth :]
        ],
    }


def resident(pid: int) -> int:
    """Return the resident memory of a process in bytes."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) * 1024


def get(port: int, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    return connection.getresponse().read().decode()


if __name__ == "__main__":
    main()
