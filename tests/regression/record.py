"""Record what Lengthwise writes, scores, trains and complains about, and compare later code with the recording.

    python tests/regression/record.py --check                          compare everything: an hour of one core
    python tests/regression/record.py --check --only greedy,errors     compare these groups
    python tests/regression/record.py --check --only greedy --limit 4  compare the first 4 prompts of each budget
    python tests/regression/record.py --record --only errors           record these groups again
    python tests/regression/record.py --mark --device cuda             run again; mark what differs as unstable

Each group is a function that returns rows: a key that says what was run, and the JSON that came out. Rows are stored in
recorded/GROUP.json.gz. Numbers are compared with a relative tolerance of 1e-4, all else must be equal.

A row is *unstable* if float noise changes it: it came out differently on another device or with another batch size.
`--check` reports unstable rows that differ, but only a difference in a stable row makes it exit with 1.

This file uses the public interface only: `lengthwise.load`, `Writer.write`, `Writer.stream` and the command line.
"""

import argparse
import contextlib
import gzip
import io
import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from bad_usage import FILES, command_lines

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing here needs the hub; read when its library is imported

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RECORDED = HERE / "recorded"
PROMPTS = (ROOT / "bench" / "prompts.txt").read_text("utf-8").splitlines()

Rows = dict[str, Any]


class Settings:
    """Where and how models run. `limit`: prompts or lines of each case at most."""

    device: str = "cpu"
    batch_size: int = 16
    limit: int | None = None


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# ---- write

BUDGETS = ("at most 280 chars", "at most 60 tokens", "60-80 words", "exactly 50 words", "exactly 200 chars")
SEARCHES: dict[str, dict[str, Any]] = {
    "sampled": {"temperature": 0.8, "seed": 7},
    "beams": {"num_beams": 4},
    "candidates": {"candidates": 4, "seed": 7},
}


@cache
def writer(name: str = "smollm2") -> Any:
    import torch

    import lengthwise

    made = lengthwise.load(name, device=Settings.device, dtype=torch.float32)
    made.batch_size = Settings.batch_size
    return made


def written(case: str, budget: str, prompts: list[str], **options: Any) -> Rows:
    """Return the row of each prompt, all written in one call."""
    answers = writer().write(prompts, budget, **options)
    return {f"{case} | {budget} | {prompt}": answer.as_json() for prompt, answer in zip(prompts, answers, strict=True)}


def greedy() -> Iterator[Rows]:
    """An exact length takes five times as long as a limit, since most of its texts are repaired."""
    for budget in BUDGETS:
        yield written("greedy", budget, PROMPTS[: Settings.limit])


def search() -> Iterator[Rows]:
    """Sampling with a seed, beams, candidates."""
    for case, options in SEARCHES.items():
        for budget in BUDGETS:
            slow = case == "candidates" and not budget.startswith("at most")  # every candidate may be repaired
            yield written(case, budget, PROMPTS[: 2 if slow else 12][: Settings.limit], **options)


def stream() -> Iterator[Rows]:
    """The parts that `stream` yields."""
    for budget in ("at most 280 chars", "60-80 words", "exactly 50 words"):
        for prompt in PROMPTS[:6][: Settings.limit]:
            yield {f"stream | {budget} | {prompt}": list(writer().stream(prompt, budget))}


# ---- commands


@contextlib.contextmanager
def folder(**files: bytes) -> Iterator[Path]:
    """Work in a new folder that holds these files."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as made:
        for name, data in files.items():
            (Path(made) / name).parent.mkdir(exist_ok=True)
            (Path(made) / name).write_bytes(data)
        os.chdir(made)
        try:
            yield Path(made)
        finally:
            os.chdir(before)


@contextlib.contextmanager
def stdin(data: bytes) -> Iterator[None]:
    """Let file descriptor 0 read `data`: commands read stdin past `sys.stdin`."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        before = os.dup(0)
        os.dup2(file.fileno(), 0)
        try:
            yield
        finally:
            os.dup2(before, 0)
            os.close(before)


def command(*args: str, data: bytes = b"") -> dict[str, Any]:
    """Run a command in this process and return its exit code, stdout and stderr, masked."""
    from lengthwise.cli import main

    out, err = io.StringIO(), io.StringIO()
    with stdin(data), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code: Any = main(args)
        except Exception as error:  # a bug: a user would see a traceback
            code = repr(error)
    # Progress bars of libraries go to stderr and have carriage returns in them; a conversion is announced once.
    lines = err.getvalue().splitlines(True)
    said = "".join(line for line in lines if "\r" not in line and not line.startswith("converting "))
    return {"code": code, "out": _parsed(_masked(out.getvalue())), "err": _masked(said)}


def _masked(text: str) -> str:
    """Replace what differs from run to run: the folder, and the versions in signatures."""
    return re.sub(r"\bversion(:|\": \")[\w.]+", r"version\1*", text.replace(str(Path.cwd()), "FOLDER"))


def _parsed(text: str) -> Any:
    """Return the values of JSON Lines, so that numbers are compared as numbers; other text as it is."""
    try:
        return [json.loads(line) for line in text.splitlines()] or ""
    except ValueError:
        return text


def commands() -> Iterator[Rows]:
    """SmolLM2 by the command line: a prompt, lines of stdin, the demo, sampled answers."""
    on = ["--device", Settings.device]
    lines = b"What is a lighthouse for?\n\nWhy do cats purr?\ncaf\xe9\n"
    with folder(**{"prompts.txt": b"Name three planets.\nWhat is tea?\n"}):
        yield {"write": command("write", "Describe a lighthouse.", "--length", "at most 120 chars", "--json", *on)}
        yield {"write, text": command("write", "Describe a lighthouse.", "--length", "20-30 words", *on)}
        ask = ["--length", "at most 25 words", "--system", "Be brief."]
        yield {"write -": command("write", "-", *ask, *on, data=lines)}
        yield {"write - sampled": command("write", "-", *ask, "--temperature", "0.7", "--seed", "3", *on, data=lines)}
        if Settings.device == "cpu":  # on a GPU this command computes in bfloat16, and writes other answers
            answers = command("data", "answers", "prompts.txt", "answers.jsonl", "--samples", "2", *on)
            files = {name: _rows(Path(name)) for name in ("answers.jsonl", "answers.dropped.jsonl")}
            yield {"data answers": answers | files}


def _rows(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


# ---- translate

LINES = (HERE / "lines.en.txt").read_text("utf-8").splitlines()
LENGTHS = ("at most 60 chars", "1.0x", "0.9x", "at most 9 words", "12-60 bytes", "soon")


def translate() -> Iterator[Rows]:
    """English to Italian by the command line, a row for each line.

    In transformers: the 8-bit products of the default engine on a CPU are not rounded alike on every CPU.
    """
    for options, count in ((), 100), (("1.0x",), 40), (("at most 1.0x",), 40):
        yield translated("lines.txt", LINES[:count], *(("--length", *options) if options else ()))
    tsv = [f"{line}\t{LENGTHS[n % len(LENGTHS)]}" for n, line in enumerate(LINES[40:52])]
    yield translated("lines.tsv", tsv, "--beams", "2", "--candidates", "2")
    placeholders = (HERE / "placeholders.en.txt").read_text("utf-8").splitlines()
    yield translated("placeholders.txt", placeholders, "--length", "at most 1.0x", "--min-limit", "12")


def translated(file: str, lines: list[str], *options: str) -> Rows:
    lines = lines[: Settings.limit]
    ask = ["translate", file, "--to", "it", "--json", "--device", Settings.device, "--engine", "transformers", *options]
    with folder(**{file: "".join(f"{line}\n" for line in lines).encode()}):
        done = command(*ask)
    case = " ".join([file, *options])
    rows = {f"{case} | {line}": row for line, row in zip(lines, done["out"], strict=True)}
    return rows if Settings.limit else rows | {case: {"code": done["code"], "err": done["err"]}}


# ---- evaluate and score


def evaluate() -> Iterator[Rows]:
    """The reports of `evaluate --json` and the outputs in its folder."""
    pairs, answers = ((HERE / name).read_bytes() for name in ("pairs.en-it.tsv", "answers.jsonl"))
    with folder(**{"pairs.tsv": pairs, "answers.jsonl": answers}):
        words = ["smollm2", "answers.jsonl", "--length", "reference:words"]
        for case, ask in {
            "soft": [*words, "--soft"],
            "truncate": [*words, "--truncate", "--limit", "2"],
            "hard": ["en-it", "pairs.tsv", "--length", "1.0x", "--beams", "2"],
            "penalty": ["en-it", "pairs.tsv", "--length", "1.0x", "--length-penalty", "gnmt:0.5", "--against", "hard"],
            "rerank": ["en-it", "pairs.tsv", "--length", "at most 1.0x", "--rerank", "4", "--soft"],
        }.items():
            done = command("evaluate", *ask, "--out", case, "--json", "--device", Settings.device)
            done["out"][0]["about"].pop("weights")  # made of the times of files
            yield {case: done, f"{case} | outputs": _rows(Path(case, "outputs.jsonl"))}


def score() -> Iterator[Rows]:
    """The reports of `score --json` and `score`."""
    pairs = [line.split("\t") for line in (HERE / "pairs.en-it.tsv").read_text("utf-8").splitlines()]
    sources, references = zip(*pairs, strict=True)
    short = [" ".join(text.split()[:-1]) for text in references]
    rows = [{"text": text, "budget": f"at most {10 * n} chars", "complete": n > 4} for n, text in enumerate(short, 1)]
    files = {name: "".join(f"{line}\n" for line in lines).encode() for name, lines in {
        "short.it": short, "test.it": references, "test.en": sources,
        "short.jsonl": [json.dumps(row) for row in rows],
        "whole.jsonl": [json.dumps(row | {"text": text}) for row, text in zip(rows, references, strict=True)],
    }.items()}  # fmt: skip
    beside = ["--ref", "test.it", "--src", "test.en"]
    with folder(**files):
        for ask in (
            ["--hyp", "short.it", *beside, "--length", "1.0x", "--bins", "--json"],
            ["--hyp", "short.it", *beside, "--length", "reference:words", "--against", "test.it", "--json"],
            ["--hyp", "short.jsonl", "--against", "whole.jsonl", "--ref", "test.it", "--json"],
            ["--hyp", "short.jsonl", "--src", "test.en", "--metrics", "mae,within:5,repetition:2,lr-src"],
        ):
            yield {" ".join(ask): command("score", *ask)}


# ---- train

TIMES = ("tokens_per_second", "waiting_for_data")
STEPS = [f"train.{key}" for key in ("steps=20", "warmup=5", "log_every=1", "evaluate_every=10", "save_every=8")]
CONTROLS = {
    "toy": "",
    "ratio": "[{control: encoding, kind: ratio}]",
    "progress": "[{control: encoding, kind: progress, steps: 4}]",
    "frobenius": "[{control: encoding, kind: difference, scale: frobenius, end_index: 1, positions: replace}]",
    "tokens": "[{control: tokens}]",
    "at most": "[{control: encoding, at_most: true}]",
}


def train() -> Iterator[Rows]:
    """What metrics.jsonl says of short runs of recipes/toy.yaml, times aside."""
    with folder() as out:
        os.chdir(ROOT)  # the recipe names its data from here
        for case in list(CONTROLS)[: Settings.limit]:
            yield {case: trained(case, out / case)}
        yield {"toy, resumed": resumed(out / "resumed")}


def toy(case: str, out: Path) -> list[str]:
    """Return the command that trains this case."""
    sets = [*STEPS, *([f"controls={CONTROLS[case]}"] if CONTROLS[case] else [])]
    sets += ["shift={share: 0.5, maximum: 64}"] if case == "at most" else []
    return ["train", "recipes/toy.yaml", "--out", str(out), *(word for text in sets for word in ("--set", text))]


def metrics(out: Path) -> list[Any]:
    return [{key: row[key] for key in row if key not in TIMES} for row in _rows(out / "metrics.jsonl")]


def trained(case: str, out: Path) -> list[Any]:
    done = command(*toy(case, out))
    if done["code"]:
        raise SystemExit(f"training {case!r} failed: {done['err']}")
    return metrics(out)


def resumed(out: Path) -> list[Any]:
    """Stop the run of toy.yaml with Ctrl-C after a few steps, run the same command again, return its metrics."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a script in the background may have it ignored
    running = subprocess.Popen(
        [sys.executable, "-m", "lengthwise", *toy("toy", out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    log = out / "metrics.jsonl"
    while not log.exists() or log.read_text("utf-8").count("\n") < 4:
        if running.poll() is not None:
            raise SystemExit("training ended before it could be stopped")
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    if running.wait() != 130:
        raise SystemExit(f"training that is stopped exits with 130; got {running.returncode}")
    return trained("toy", out)


# ---- errors


def errors() -> Iterator[Rows]:
    """Exit code, stdout and stderr of every command line of bad_usage.py, and the errors of rows of `write`."""
    lines = list(command_lines())
    for n in range(0, len(lines), 10):
        yield {line: failed(line) for line in lines[n : n + 10]}
    yield row_errors()


def failed(line: str) -> dict[str, Any]:
    """Run a command line of bad_usage.py in a folder of its files."""
    with folder(**FILES):
        return command(*shlex.split(line), data=command_lines()[line])


def row_errors() -> Rows:
    """The errors that `Writer.write` sets or raises, and those of `Writer.stream`."""
    texts = ["", "  ", 3, "\ud800", "word " * 5000, "The cat.", "The cat.", "The cat.", "The cat."]
    budgets = [*["at most 9 words"] * 5, "exactly 99,999 words", "short", 5, "0x"]
    rows = writer("en-it").write(texts, budgets, num_beams=1)
    found: Rows = {f"row {n}": row.error for n, row in enumerate(rows)}
    for name, call in {
        "two budgets for one text": lambda: writer("en-it").write(["a"], ["at most 9 words"] * 2),
        "bytes as a budget": lambda: writer("en-it").write(["a"], b"at most 9 words"),
        "max_new_tokens": lambda: writer("en-it").write(["a"], "at most 9 words", max_new_tokens=5),
        "beams in a stream": lambda: list(writer("en-it").stream("a", "at most 9 words", num_beams=2)),
        "no candidates": lambda: writer("en-it").write(["a"], "at most 9 words", candidates=0),
    }.items():
        try:
            found[name] = repr(call())
        except (TypeError, ValueError) as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


GROUPS: dict[str, Callable[[], Iterator[Rows]]] = {
    group.__name__: group for group in (greedy, search, stream, commands, translate, evaluate, score, train, errors)
}


# ---- recorded files


def read(group: str) -> tuple[Rows, set[str]]:
    """Return the recorded rows of a group and the keys of the unstable ones."""
    with gzip.open(RECORDED / f"{group}.json.gz", "rt", encoding="utf-8") as file:
        stored = json.load(file)
    return stored["rows"], set(stored["unstable"])


def save(group: str, rows: Rows, unstable: set[str]) -> None:
    """Write one row a line; the same rows give the same bytes."""
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(row, ensure_ascii=False)}" for key, row in rows.items())
    text = f'{{"unstable": {json.dumps(sorted(unstable & set(rows)))},\n"rows": {{\n{lines}\n}}}}\n'
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / f"{group}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal, numbers within the tolerance."""
    if isinstance(one, float) or isinstance(other, float):
        numbers = isinstance(one, int | float) and isinstance(other, int | float)
        return numbers and math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-6)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def difference(one: Any, other: Any, where: str = "") -> str:
    """Return the first place where two JSON values differ, and both values there."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        key = next(key for key in one if not same(one[key], other[key]))
        return difference(one[key], other[key], f"{where}.{key}")
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        n = next(n for n in range(len(one)) if not same(one[n], other[n]))
        return difference(one[n], other[n], f"{where}[{n}]")
    return f"  at {where or 'the top'}\n  recorded {json.dumps(one)}\n  found    {json.dumps(other)}"


def run(group: str) -> Rows:
    """Run a group and return its rows."""
    began, rows = time.monotonic(), {}
    for some in GROUPS[group]():
        rows |= some
        say(f"{group}: {len(rows)} rows, {time.monotonic() - began:.0f} s")
    return rows


def check(group: str, found: Rows) -> int:
    """Print what differs from the recording and return the number of stable rows that do."""
    recorded, unstable = read(group)
    differ = [key for key in found if not same(recorded.get(key), found[key])]
    for key in differ:
        print(f"{'unstable' if key in unstable else 'DIFFERS'}: {key}\n{difference(recorded.get(key), found[key])}")
    missing = [] if Settings.limit else [key for key in recorded if key not in found]
    for key in missing:
        print(f"MISSING: {key}")
    noise = sum(key in unstable for key in differ)
    faults = len(differ) - noise + len(missing)
    print(f"{group}: {len(found)} rows compared, {faults} differ, {noise} unstable ones differ too", flush=True)
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true", help="compare with the recording; exit with 1 on a difference")
    what.add_argument("--record", action="store_true", help="record; the marks of unstable rows stay")
    what.add_argument("--mark", action="store_true", help="mark the rows that differ as unstable")
    parser.add_argument("--only", metavar="GROUP,...", help=f"of {', '.join(GROUPS)}")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N prompts or lines of each case")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1, help="of torch, on a CPU")
    given = parser.parse_args()
    groups = given.only.split(",") if given.only else list(GROUPS)
    if unknown := [group for group in groups if group not in GROUPS]:
        parser.error(f"no group {unknown[0]!r}; the groups are {', '.join(GROUPS)}")
    if given.record and given.limit:
        parser.error("--record takes no --limit: it records whole groups")
    Settings.device, Settings.batch_size, Settings.limit = given.device, given.batch_size, given.limit
    import torch

    import lengthwise

    torch.set_num_threads(given.threads)
    os.environ["OMP_NUM_THREADS"] = str(given.threads)  # of the processes that are started
    say(f"lengthwise from {Path(lengthwise.__file__).parent}")
    faults = 0
    for group in groups:
        found = run(group)
        if given.check:
            faults += check(group, found)
        elif given.record:
            marks = read(group)[1] if (RECORDED / f"{group}.json.gz").exists() else set()
            save(group, found, marks)
        else:
            recorded, unstable = read(group)
            differ = {key for key in found if not same(recorded[key], found[key])}
            save(group, recorded, unstable | differ)
            say(f"{group}: {len(differ)} of {len(found)} rows differ; {len(unstable | differ)} are unstable now")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
