"""Answers: sample a model's answers to prompts; bad examples are left out and counted.

Training on a model's own answers teaches it length and changes little else. Rows are written one by one, so that an
interrupted run can be continued. Whether an answer is true is not checked.

    answers.jsonl            {"id", "prompt", "response", "finished"}
    answers.dropped.jsonl    {"id", "prompt", "response", "reason"}
    answers.settings.json    how they were sampled
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..engines.base import Engine
from ..engines.continuous import Completion, SamplingParams, SeededPrompt, generate_continuous
from ..engines.transformers import TransformersEngine
from ..length.blocks import block_ends
from ..length.sentences import finished_ends
from ..protocols import Tokenizer
from .prompts import Prompt
from .row_files import RowFiles, append

MAX_REPEATED = 0.2  # share of the four-word sequences of an answer that may be repetitions
MAX_SAME_LINES = 2  # how often a line of three words or more may occur
_BROKEN = ("Cc", "Cn", "Co", "Cs")  # control characters and code points without a character
_ROLE = re.compile(r"(?m)^\W*(?:user|assistant|system)\W*$", re.IGNORECASE)
_FIELDS = ("id", "prompt", "response")
_RENAMED = {"most": "max_tokens", "least": "min_tokens"}  # in settings files of older versions


def answer(
    engine: Engine,
    prompts: list[Prompt],
    out: Path,
    *,
    temperature: float = 0.8,
    top_p: float = 0.95,
    max_tokens: int = 448,
    min_tokens: int = 0,
    rows: int = 32,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Append the answers that `out` does not have yet, and return the counts of all answers there.

    An answer depends on `seed` and the prompt's id. The same call on the same machine writes the same rows. With other
    `rows`, or in a continued run, sums are rounded in another order, which changes a few answers.
    """
    if engine.encoder_decoder or not isinstance(engine, TransformersEngine):
        raise ValueError(f"answers need a decoder-only model of transformers; got {engine.name}")
    files = RowFiles(out, "answers")
    settings = {"model": engine.name, "temperature": temperature, "top_p": top_p, "max_tokens": max_tokens}
    settings |= {"seed": seed} | ({"min_tokens": min_tokens} if min_tokens else {})  # older files have no minimum
    files.begin(settings, _RENAMED)
    kept_ids, dropped_ids = (
        files.known(path, _FIELDS, prompts, "an answer to another prompt", "prompts") for path in (out, files.dropped)
    )
    todo = [prompt for prompt in prompts if prompt.id not in kept_ids | dropped_ids]
    progress = progress or (lambda _: None)
    progress(len(prompts) - len(todo))
    params = SamplingParams(engine.eos, engine.pad, max_tokens, temperature, top_p, min_tokens)
    with out.open("ab") as kept, files.dropped.open("ab") as dropped:
        for prompt, row in _answers(engine, todo, params, rows, seed):
            append(dropped if "reason" in row else kept, [{"id": prompt.id, "prompt": prompt.text, **row}])
            progress(1)
    finished = [bool(row.get("finished")) for row, _ in files.rows(out, _FIELDS)]
    reasons = Counter(row.get("reason") for row, _ in files.rows(files.dropped, _FIELDS))
    counts = {"kept": len(finished), "finished": sum(finished), "cut": len(finished) - sum(finished)}
    return {**counts, "dropped": sum(reasons.values()), "reasons": dict(reasons.most_common())}


def _answers(
    engine: TransformersEngine, prompts: list[Prompt], params: SamplingParams, rows: int, seed: int
) -> Iterator[tuple[Prompt, dict[str, Any]]]:
    """Yield each prompt and its row, in the order in which answers end."""
    requests, asked = [], []
    for prompt in prompts:
        ids = engine.prompt_ids(prompt.text)
        if len(ids) + params.max_tokens > engine.window:
            yield prompt, {"response": "", "reason": "prompt too long"}
        else:
            requests.append(SeededPrompt(ids, prompt.seed(seed)))
            asked.append(prompt)
    special = set(engine.tokenizer.all_special_ids)
    for done in generate_continuous(engine.model, requests, params, rows=rows):
        prompt = asked[done.place]
        yield prompt, _row(prompt, done, engine.tokenizer, special, may_end=not params.min_tokens)


def _row(prompt: Prompt, done: Completion, tokenizer: Tokenizer, special: set[int], may_end: bool) -> dict[str, Any]:
    """Return the row of an answer. `may_end`: no minimum length was set, so the model chose the end."""
    text = tokenizer.decode(done.ids, clean_up_tokenization_spaces=False).strip()
    if not special.isdisjoint(done.ids):
        return {"response": text, "reason": "template"}
    whole = text if done.ended else text[: max((*finished_ends(text), *block_ends(text)), default=0)]
    reason = reject_reason(prompt.text, whole) if whole or done.ended else "no whole sentence or item"
    return {"response": text, "reason": reason} if reason else {"response": whole, "finished": done.ended and may_end}


def reject_reason(prompt: str, text: str) -> str | None:
    """Return why this answer is a bad example; None if it is a good one."""
    if not any(character.isalnum() for character in text):
        return "empty"
    if any(character == "\ufffd" or unicodedata.category(character) in _BROKEN for character in set(text) - {*"\n\t"}):
        return "broken characters"
    if _ROLE.search(text) or text.casefold() == prompt.strip().casefold():
        return "template"
    words = text.lower().split()
    grams = list(zip(words, words[1:], words[2:], words[3:], strict=False))
    same = Counter(line.strip().lower() for line in text.splitlines() if len(line.split()) >= 3)
    if len(grams) - len(set(grams)) > MAX_REPEATED * len(grams) or max(same.values(), default=0) > MAX_SAME_LINES:
        return "repetitive"
    return None
