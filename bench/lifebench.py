"""LIFEBench (arXiv 2505.16234): do texts have the length that their prompt asks for, from 16 to 8,192 words?

    git clone https://github.com/LIFEBench/LIFEBench
    python bench/lifebench.py --data LIFEBench --out runs/lifebench.jsonl [--items data_lite.jsonl] [--count 4]
        [--language en] [--method "equal to"] [--length 16 --length 32] [--only hard] [--table-only] [--json FILE]

Three systems write each text. `hard`: the model receives LIFEBench's prompt, which states the length, and the hard
budget "exactly", "at most" or "at least" so many `words-cjk`, the unit that counts as LIFEBench does; greedy.
`sampled`: the same at temperature 0.8, as LIFEBench decodes. `prompt`: the plain model with the prompt alone, greedy.
`--out` is the journal: a text that is in it is not written again, and `--table-only` prints the table of what is there.
`--json` writes the table's rows.

The columns, for each language, method, length and system: texts; LIFEBench's mean deviation in % and its score; the
share of texts within the limit; of complete texts (they end as a sentence or where the model ended them, and nothing
was cut or forced); of looping texts (over half of the 16-character sequences of a text occurred in it before); the mean
share of such sequences; seconds of CPU time a text. `prompt` may write 128 tokens and three for each word asked for; a
longer text is cut there, so its deviation is a lower bound.

An item is left out if the model's window does not hold its prompt and the text, or if its prompt is longer than
`--max-prompt`. Of the others, `--count` items of each language are used, from all categories in turn.
"""

import argparse
import itertools
import json
import math
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lengthwise
from lengthwise import Budget, Writer
from lengthwise.generation.requests import Request
from lengthwise.generation.unconstrained import UnconstrainedWriter
from loops import loops, repeated

LENGTHS = [2**n for n in range(4, 14)]
# The words for {word_count_type} in the prompts, and the budget.
METHODS = {
    "equal to": {"en": "equal to", "cn": "等于", "budget": "exactly"},
    "at most": {"en": "at most", "cn": "至多有", "budget": "at most"},
    "at least": {"en": "at least", "cn": "至少有", "budget": "at least"},
}
SYSTEMS = ("hard", "sampled", "prompt")
TEMPERATURE = 0.8
UNIT = "words-cjk"
TOKENS_PER_WORD = {"en": 1.75, "cn": 3.0}  # of SmolLM2, more than usual: whether a text fits into the window
COLUMNS = {
    "language": "",
    "method": "",
    "length": "",
    "system": "",
    "texts": "",
    "deviation": ".1f",
    "score": ".1f",
    "within": ".0f",
    "complete": ".0f",
    "looping": ".0f",
    "repeated": ".0f",
    "cpu": ".1f",
}
_GROUP = ("model", "engine", "language", "method", "system")  # the texts of a journal that are compared with no others


# ---- LIFEBench's measures


def count_words(text: str) -> int:
    r"""Return the length as LIFEBench counts it: Chinese characters, and words of ASCII letters, digits, ' and -.

    Its rule (exp/cache.py): matches of `[\u4e00-\u9fff]`, and of `\b[a-zA-Z0-9\'-]+\b`.
    """
    return len(re.findall(r"[\u4e00-\u9fff]", text)) + len(re.findall(r"\b[a-zA-Z0-9'-]+\b", text))


def deviation(words: int, length: int) -> float:
    """Return LIFEBench's length deviation, (words - length) / length: 0.25 is a quarter too long.

    A cell of its tables has the mean of the absolute values in %, for "at most" and "at least" too, so a text below its
    maximum deviates (evaluate/evaluate_all_results.py).
    """
    return (words - length) / length


def score(method: str, words: int, length: int) -> float:
    """Return LIFEBench's length score, 0 to 100: 100 e^(5 d) for a deviation d below 0, else 100 e^(-2 d).

    "At most" scores 100 below the length, "at least" above it. d is a share, not a percentage. The published code
    gives it in %, so that 1 % too short would score 0.7; the published scores (o3-mini: 97 at 16 words, 75.4 on
    average) can only come from shares.
    """
    off = deviation(words, length)
    if (method == "at most" and off < 0) or (method == "at least" and off > 0):
        return 100.0
    return 100 * math.exp(5 * off if off < 0 else -2 * off)


# ---- items


def read_items(path: Path, languages: list[str]) -> list[dict[str, Any]]:
    """Return the items of these languages; each has `id`, `category`, `lang` and `task`, the prompt with two blanks."""
    if not path.is_file():
        raise SystemExit(f"{path} is not there; give a clone of github.com/LIFEBench/LIFEBench with --data")
    items = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if blank := [item["id"] for item in items if "{word_count}" not in item["task"]]:
        raise SystemExit(
            f"{path.name}: item {blank[0]} has no {{word_count}} in its task; choose another file of --data"
        )
    return [item for item in items if item["lang"] in languages]


def prompt_of(item: dict[str, Any], method: str, length: int) -> str:
    """Return the prompt of an item for a method and a length."""
    task: str = item["task"]
    return task.replace("{word_count_type}", METHODS[method][item["lang"]]).replace("{word_count}", str(length))


def chosen(items: list[dict[str, Any]], count: int | None) -> list[dict[str, Any]]:
    """Return `count` items of each language, from its categories in turn."""
    picked = []
    for language in dict.fromkeys(item["lang"] for item in items):
        own = [item for item in items if item["lang"] == language]
        columns = [
            [item for item in own if item["category"] == one] for one in dict.fromkeys(i["category"] for i in own)
        ]
        turns = itertools.chain(*itertools.zip_longest(*columns))
        picked += [item for item in turns if item is not None][:count]
    return picked


def with_prompt_tokens(writer: Writer, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items, each with the number of tokens of its prompt."""
    return [{**item, "tokens": len(writer.engine.prompt_ids(item["task"], None))} for item in items]


def held(item: dict[str, Any], length: int, window: int, max_prompt: int | None) -> bool:
    """Return whether the prompt is short enough, and the window holds it and a text of this length."""
    tokens: int = item["tokens"]
    return tokens + TOKENS_PER_WORD[item["lang"]] * length < window and (max_prompt is None or tokens <= max_prompt)


# ---- writing


def write(writer: Writer, system: str, prompts: list[str], budget: Budget) -> list[lengthwise.Written]:
    """Return the texts of a system for prompts that ask for the same length."""
    if system != "prompt":
        return writer.write(prompts, budget, seed=0, **({"temperature": TEMPERATURE} if system == "sampled" else {}))
    tokens = 128 + 3 * int(budget.target)

    def limit(request: Request) -> int:
        return min(tokens, writer.engine.window - len(request.prompt) - 1)

    return [*UnconstrainedWriter(writer, receives_length=False, token_limit=limit).write(prompts, budget)]


def rows(writer: Writer, cell: dict[str, Any], items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a row of the journal for each item of a cell: a system, a method and a length."""
    method, length = cell["method"], cell["length"]
    budget = Budget.parse(f"{METHODS[method]['budget']} {length} {UNIT}")
    began, cpu_began = time.perf_counter(), time.process_time()
    texts = write(writer, cell["system"], [prompt_of(item, method, length) for item in items], budget)
    cpu, seconds = time.process_time() - cpu_began, time.perf_counter() - began
    for item, one in zip(items, texts, strict=True):
        yield {
            **cell,
            "language": item["lang"],
            "id": item["id"],
            "category": item["category"],
            "words": count_words(one.text),
            "complete": one.complete,
            "tokens": one.tokens,
            "cpu": round(cpu / len(items), 2),
            "seconds": round(seconds / len(items), 2),
            "text": one.text,
            **({"error": one.error} if one.error else {}),
        }


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("model", "engine", "system", "method", "length", "language", "id"))


def read_journal(path: Path) -> list[dict[str, Any]]:
    """Return the rows of the journal; a last line that an interruption cut off is dropped."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    if lines[-1]:
        path.write_text("".join(f"{line}\n" for line in lines[:-1]), encoding="utf-8")
    return [json.loads(line) for line in lines[:-1]]


def fill(options: argparse.Namespace) -> None:
    """Write the texts that the journal does not have."""
    items = read_items(options.data / "data" / options.items, options.language or ["en", "cn"])
    writer = lengthwise.load(options.model, engine=options.engine)
    items, window = with_prompt_tokens(writer, items), writer.engine.window
    done = {key(row) for row in read_journal(options.out)}
    cells = itertools.product(options.length or LENGTHS, options.method or METHODS, options.only or SYSTEMS)
    for length, method, system in cells:
        cell = {"model": options.model, "engine": options.engine or "", "system": system}
        cell |= {"method": method, "length": length}
        usable = [item for item in items if held(item, length, window, options.max_prompt)]
        todo = [
            item
            for item in chosen(usable, options.count)
            if key({**cell, "language": item["lang"], "id": item["id"]}) not in done
        ]
        if not usable:
            print(f"{length} words: no item and its text fit into the window of {window} tokens", file=sys.stderr)
        for first in range(0, len(todo), options.batch):
            some = todo[first : first + options.batch]
            with options.out.open("a", encoding="utf-8") as file:
                for row in rows(writer, cell, some):
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
            print(f"{system} {method} {length}: {first + len(some)} of {len(todo)} texts", file=sys.stderr, flush=True)


# ---- the table


def table(journal: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each model, language, method, length and system, and the means over lengths (`length`: "mean").

    As in LIFEBench, a text of at most one word is a refusal: it counts for no measure and is in `refused`.
    """
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    order = [*SYSTEMS], [*METHODS], ["en", "cn"]
    for row in journal:
        cells.setdefault(tuple(row[name] for name in (*_GROUP, "length")), []).append(row)
    found = [summary(cells[place]) for place in sorted(cells, key=lambda p: (*p[:2], *places(p[2:5], order), p[5]))]
    result = []
    for _, group in itertools.groupby(found, key=lambda row: [row[name] for name in _GROUP]):
        own = list(group)
        result += own
        means = {name: mean([one[name] for one in own]) for name, form in COLUMNS.items() if form}
        result.append({**own[0], "length": "mean", **means, "texts": sum(one["texts"] for one in own)})
    return result


def places(place: tuple[Any, ...], order: tuple[list[str], ...]) -> tuple[int, ...]:
    """Return the sort key of (language, method, system)."""
    systems, methods, languages = order
    return languages.index(place[0]), methods.index(place[1]), systems.index(place[2])


def mean(values: list[float | None]) -> float | None:
    """Return the mean of the values that are known; None if none is."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def summary(texts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the table's row for the texts of one cell."""
    first, counted = texts[0], [row for row in texts if row["words"] > 1]
    method, length = first["method"], first["length"]
    budget = Budget.parse(f"{METHODS[method]['budget']} {length} {UNIT}")
    return {
        **{name: first[name] for name in (*_GROUP, "length")},
        "texts": len(counted),
        "refused": len(texts) - len(counted),
        "deviation": mean([100 * abs(deviation(row["words"], length)) for row in counted]),
        "score": mean([score(method, row["words"], length) for row in counted]),
        "within": mean([100 * budget.fits(row["words"]) for row in counted]),
        "complete": mean([100 * row["complete"] for row in counted]),
        "looping": mean([100 * loops(row["text"]) for row in counted]),
        "repeated": mean([100 * repeated(row["text"]) for row in counted]),
        "cpu": mean([row["cpu"] for row in counted]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a clone of github.com/LIFEBench/LIFEBench")
    parser.add_argument("--items", default="data.jsonl", help="its file of items (default: %(default)s, 360 items)")
    parser.add_argument("--out", type=Path, required=True, help="the journal, JSON Lines")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--engine", help="default: as `lengthwise.load` chooses")
    parser.add_argument("--language", choices=["en", "cn"], action="append", help="can be repeated")
    parser.add_argument("--length", type=int, action="append", help="words; can be repeated (default: 16 to 8192)")
    parser.add_argument("--method", choices=list(METHODS), action="append", help="can be repeated")
    parser.add_argument("--only", choices=SYSTEMS, action="append", help="only this system; can be repeated")
    parser.add_argument("--count", type=int, help="use so many items of each language (default: all)")
    parser.add_argument("--max-prompt", type=int, help="leave out items with more tokens")
    parser.add_argument("--batch", type=int, default=4, help="texts that are written together (default: %(default)s)")
    parser.add_argument("--table-only", action="store_true", help="write no texts; print the table of the journal")
    parser.add_argument("--json", type=Path, help="also write the rows of the table to this file")
    options = parser.parse_args()
    if not options.table_only:
        if options.data is None:
            parser.error("--data is missing: a clone of github.com/LIFEBench/LIFEBench")
        options.out.parent.mkdir(parents=True, exist_ok=True)
        fill(options)
    found = table(read_journal(options.out))
    for (model, engine), rows in itertools.groupby(found, key=lambda row: (row["model"], row["engine"])):
        print(f"\n{model}{f' ({engine})' if engine else ''}\n")
        print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
        for row in rows:
            cells = ("" if row[name] is None else format(row[name], form) for name, form in COLUMNS.items())
            print(f"| {' | '.join(cells)} |")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
