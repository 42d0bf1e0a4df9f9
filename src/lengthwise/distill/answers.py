"""Answers: a model's own, drawn for each prompt; those that are no good as examples are left out and counted.

What a model wrote itself teaches it length and changes nothing else of what it knows. Rows are written as they come, so
that a run that broke off goes on where it was. Knows when an answer is a bad example; not how it is drawn (`rolling`),
nor whether it is true.

    answers.jsonl            {"id", "prompt", "response", "finished"}
    answers.dropped.jsonl    {"id", "prompt", "response", "reason"}
    answers.settings.json    how they were drawn
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

from ..corpora.document import DataError
from ..corpora.lines import lines
from ..engines.continuous import Completion, Request, SamplingParams, generate_continuous
from ..generation.generator import Writer
from ..length.sentences import finished_ends
from ..settings_file import claim
from .prompts import Question

REPEATED = 0.2  # of the sequences of four words: above this, an answer goes round in circles
TIMES = 3  # that a line of three words or more may not be said
_BROKEN = ("Cc", "Cn", "Co", "Cs")  # control characters, and code points that are nobody's
_ROLE = re.compile(r"(?m)^\W*(?:user|assistant|system)\W*$", re.IGNORECASE)


def answer(
    writer: Writer,
    asked: list[Question],
    out: Path,
    *,
    temperature: float = 0.8,
    top_p: float = 0.95,
    most: int = 448,
    least: int = 0,
    rows: int = 32,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Append to `out` the answers that are not there yet; the account of all that are there then.

    What is drawn for a prompt depends on `seed` and its id. The same call on the same machine writes the same rows;
    with other `rows`, or where a run went on, sums are rounded in another order, and a few answers take another turn.
    """
    if writer.model.config.is_encoder_decoder:
        raise ValueError(f"{writer.name} translates; answers are written by a decoder alone")
    dropped = out.with_name(f"{out.name.removesuffix('.jsonl')}.dropped.jsonl")
    out.parent.mkdir(parents=True, exist_ok=True)
    settings = {"model": writer.name, "temperature": temperature, "top_p": top_p, "most": most, "seed": seed}
    settings |= {"least": least} if least else {}  # it came later: what was begun before had none
    claim(out.with_name(f"{out.name.removesuffix('.jsonl')}.settings.json"), settings, out.exists())
    known = _known(out, asked) | _known(dropped, asked)
    todo = [question for question in asked if question.id not in known]
    if progress:
        progress(len(asked) - len(todo))
    with out.open("ab") as kept, dropped.open("ab") as left:
        for question, row in _answers(writer, todo, temperature, top_p, most, least, rows, seed):
            stream = left if "reason" in row else kept
            stream.write(json.dumps({"id": question.id, "prompt": question.prompt, **row}, ensure_ascii=False).encode())
            stream.write(b"\n")
            stream.flush()
            if progress:
                progress(1)
    return _account(out, dropped)


def _answers(
    writer: Writer, asked: list[Question], temperature: float, top_p: float, most: int, least: int, rows: int, seed: int
) -> Iterator[tuple[Question, dict[str, Any]]]:
    jobs, places = [], []
    for place, question in enumerate(asked):
        prompt = writer.prompt_ids(question.prompt)
        if len(prompt) + most > writer.window:
            yield question, {"response": "", "reason": "prompt too long"}
        else:
            jobs.append(Request(prompt, _seed(seed, question.id)))
            places.append(place)
    manner = SamplingParams(writer.ends, writer.pad, most, temperature, top_p, least)
    done = generate_continuous(writer.model, jobs, manner, rows=rows)
    special = set(writer.tokenizer.all_special_ids)
    for one in done:
        question = asked[places[one.place]]
        yield question, _judged(question, one, writer.tokenizer, special, free=not least)


def _seed(seed: int, id_: str) -> int:
    return int.from_bytes(blake2b(f"{seed}/{id_}".encode(), digest_size=8).digest()) >> 1


def _judged(question: Question, done: Completion, tokenizer: Any, special: set[int], free: bool) -> dict[str, Any]:
    """The row. One that was not `free` to end early is not finished of its own accord, wherever it ends."""
    text = tokenizer.decode(done.ids, clean_up_tokenization_spaces=False).strip()
    if not special.isdisjoint(done.ids):
        return {"response": text, "reason": "template"}
    whole = text if done.ended else text[: max(finished_ends(text), default=0)]
    reason = fault(question.prompt, whole) if whole or done.ended else "no finished sentence"
    return {"response": text, "reason": reason} if reason else {"response": whole, "finished": done.ended and free}


def fault(prompt: str, text: str) -> str | None:
    """Why this answer is a bad example; None if nothing speaks against it."""
    if not any(character.isalnum() for character in text):
        return "empty"
    if any(character == "\ufffd" or unicodedata.category(character) in _BROKEN for character in set(text) - {*"\n\t"}):
        return "broken characters"
    if _ROLE.search(text) or text.casefold() == prompt.strip().casefold():
        return "template"
    words = text.lower().split()
    grams = list(zip(words, words[1:], words[2:], words[3:], strict=False))
    said = Counter(line.strip().lower() for line in text.splitlines() if len(line.split()) >= 3)
    if len(grams) - len(set(grams)) > REPEATED * len(grams) or max(said.values(), default=0) >= TIMES:
        return "repetitive"
    return None


# Rows that are there already


def _known(path: Path, asked: list[Question]) -> set[str]:
    """The ids of the rows in `path`. A last row of ours that breaks off in the middle is cut off."""
    if not path.exists():
        return set()
    written = path.read_bytes()
    end = written.rfind(b"\n") + 1
    if written[end:] and not written[end:].startswith(b'{"id": '):
        raise DataError(f"{path} is no file of answers; name another")
    prompts = {question.id: question.prompt for question in asked}
    known = set()
    rows = list(_rows(path, written[:end].count(b"\n")))
    if end < len(written):
        with path.open("r+b") as stream:
            stream.truncate(end)
    for row in rows:
        if prompts.get(row["id"], row["prompt"]) != row["prompt"]:
            raise DataError(
                f"{path} has an answer to another prompt as id {row['id']!r}: asked for is {prompts[row['id']]!r}, "
                f"found {row['prompt']!r}; give these prompts a file of their own"
            )
        known.add(row["id"])
    return known


def _rows(path: Path, most: int | None = None) -> Iterator[dict[str, Any]]:
    for number, line in islice(lines(path), most):
        try:
            row = json.loads(str(line))
        except ValueError:
            row = None
        if not isinstance(row, dict) or not {"id", "prompt", "response"} <= set(row):
            raise DataError(f"{path}:{number} is no row of answers: {str(line)[:60]!r}; name another file")
        yield row


def _account(out: Path, dropped: Path) -> dict[str, Any]:
    kept = [row.get("finished") for row in _rows(out)]
    reasons = Counter(row.get("reason") for row in _rows(dropped))
    return {
        "kept": len(kept),
        "finished": sum(map(bool, kept)),
        "cut": len(kept) - sum(map(bool, kept)),
        "dropped": sum(reasons.values()),
        "reasons": dict(reasons.most_common()),
    }
