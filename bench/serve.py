"""A soak of the server: clients with mixed budgets for some minutes; speed, latency, fits, and memory over time.

    python bench/serve.py --seconds 300 --clients 16

Starts `lengthwise serve` on a free port of 127.0.0.1. Clients ask for texts of several lengths and units, whole or as
streams; some go away in the middle of a stream. Latencies are also given in CPU seconds of the server, which other
work on the machine changes little. Needs Linux, for the memory and the CPU time of the server in /proc.
"""

import argparse
import http.client
import json
import os
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
    "at most 1200 chars",
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
    soak = Soak(port, server.pid, options.seconds, options.leave)
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
    """What the clients do and see.

    Rows: status, whether the text fits and is complete, its tokens, and the seconds and CPU seconds until its first
    part (of a stream) and its end.
    """

    def __init__(self, port: int, pid: int, seconds: float, leave: float) -> None:
        self.port, self.pid, self.leave = port, pid, leave
        self.start, self.end = time.monotonic(), time.monotonic() + seconds
        self.rows: list[dict[str, object]] = []

    def since(self, start: tuple[float, float] = (0.0, 0.0)) -> tuple[float, float]:
        """Return the seconds and the CPU seconds of the server since `start`."""
        return time.monotonic() - start[0], cpu_seconds(self.pid) - start[1]

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
            start = self.since()
            row = self.ask(body, start, leaves=bool(body["stream"]) and draw.random() < self.leave)
            self.rows.append(row | {"end": self.since(start), "length": body["length"]})

    def ask(self, body: dict[str, object], start: tuple[float, float], leaves: bool) -> dict[str, object]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
            reply = connection.getresponse()
            if leaves:
                reply.readline()
                return {"status": "left"}
            text, row = "", {}
            while body["stream"] and reply.status == 200 and (line := reply.readline().decode()):
                text += line
                if "first" not in row and '"content": "' in line and '"content": ""' not in line:
                    row["first"] = self.since(start)
            text += reply.read().decode()
            if reply.status != 200:
                return {"status": reply.status}
            lines = (
                [line[6:] for line in text.split("\n\n") if line.startswith("data: {")] if body["stream"] else [text]
            )
            usage = json.loads(lines[-1])["usage"]
            complete = '"complete": true' in text
            return row | {"status": 200, "fits": usage["length"]["fits"], "complete": complete} | usage
        finally:
            connection.close()


def report(rows: list[dict], memory: list[int], metrics: str, seconds: float) -> dict[str, object]:
    done = [row for row in rows if row["status"] == 200]
    counts = {str(status): sum(row["status"] == status for row in rows) for status in {row["status"] for row in rows}}
    batches = [float(re.search(rf"lengthwise_batch_rows_{name} (\S+)", metrics)[1]) for name in ("sum", "count")]
    fifth = max(1, len(memory) // 5)
    return {
        "seconds": round(seconds),
        "replies": counts,
        "texts per second": round(len(done) / seconds, 2),
        "tokens per second": round(sum(row["completion_tokens"] for row in done) / seconds, 1),
        "rows per batch": round(batches[0] / batches[1], 1),
        "until the end, median and p95": latency([row["end"] for row in done]),
        "of texts up to 60 chars": latency([row["end"] for row in done if row["length"] == LENGTHS[0]]),
        "until the first part of a stream": latency([row["first"] for row in done if "first" in row]),
        "fits": round(sum(row["fits"] for row in done) / len(done), 4),
        "complete": round(sum(row["complete"] for row in done) / len(done), 4),
        "memory in MB, mean of each fifth": [
            round(sum(memory[n * fifth : (n + 1) * fifth]) / fifth / 1e6, 1) for n in range(5) if memory[n * fifth :]
        ],
    }


def latency(times: list[tuple[float, float]]) -> dict[str, list[float]]:
    """Return the median and the 95th percentile of seconds and of CPU seconds."""
    found = {}
    for name, column in zip(("seconds", "CPU seconds"), zip(*times, strict=True), strict=False):
        column = sorted(column)
        found[name] = [round(column[int(share * len(column))], 2) for share in (0.5, 0.95)]
    return found


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process, of user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    """Return the resident memory of a process in bytes."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) * 1024


def get(port: int, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    return connection.getresponse().read().decode()


if __name__ == "__main__":
    main()
