"""Prompts: combine topics with templates, or read prompts from a file.

    topics.txt:    [animal]                     templates.txt:    [any]
                   the red fox                                    Tell me about {topic}.
                                                                  [animal]
                                                                  What does {topic} eat?

A template under [any] is combined with every topic, another one with the topics under the same heading.
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from .. import atomic
from ..corpora.document import DataError
from ..corpora.lines import well_formed_lines
from ..corpora.readers import format_of
from ..corpora.writing import write_jsonl

ANY, PLACE = "any", "{topic}"


@dataclass(frozen=True)
class Prompt:
    """A text for a model to answer or to translate."""

    id: str
    text: str

    def seed(self, seed: int) -> int:
        """Return this prompt's own seed in a run with `seed`: its samples do not depend on the other prompts."""
        return int.from_bytes(blake2b(f"{seed}/{self.id}".encode(), digest_size=8).digest()) >> 1


def combine(topics: Path, templates: Path, count: int, seed: int = 0) -> list[str]:
    """Return `count` different prompts, in an order that depends on `seed`."""
    subjects, forms = sections(topics), sections(templates)
    if strange := sorted(set(subjects) - set(forms)) if ANY not in forms else []:
        raise DataError(f"no template in {templates} goes with the topics under [{strange[0]}] of {topics}")
    if lacking := [form for group in forms.values() for form in group if PLACE not in form]:
        raise DataError(f"a template must contain {PLACE}; {templates} has {lacking[0]!r}")
    if unused := sorted(set(forms) - set(subjects) - {ANY}):
        raise DataError(f"no topic in {topics} goes with the templates under [{unused[0]}] of {templates}")
    made = dict.fromkeys(  # an ordered set: the same seed must select the same prompts
        form.replace(PLACE, topic)
        for kind, group in subjects.items()
        for topic in group
        for form in [*forms.get(ANY, []), *(forms.get(kind, []) if kind != ANY else [])]
    )
    if count > len(made):
        raise DataError(f"{count:,} prompts were asked for; {topics} and {templates} make {len(made):,}")
    return random.Random(seed).sample(list(made), count)


def sections(path: Path) -> dict[str, list[str]]:
    """Return the lines under each [heading]; lines before the first are under [any]. Comments (#) are left out."""
    found: dict[str, list[str]] = {}
    heading = ANY
    for _, line in well_formed_lines(path):
        line = line.strip()
        if line.startswith("[") and line.endswith("]"):
            heading = line[1:-1]
        elif not line.startswith("#"):
            found.setdefault(heading, []).append(line)
    if not found:
        raise DataError(f"{path} has no lines except comments")
    return found


def write_prompts(path: Path, prompts: list[str]) -> None:
    """Write JSON Lines with "id" and "prompt" if the name ends in .jsonl(.gz), else one prompt per line."""
    if path.name.removesuffix(".gz").endswith(".jsonl"):
        write_jsonl(path, ({"id": str(number), "prompt": prompt} for number, prompt in enumerate(prompts, 1)))
    else:
        atomic.write_text(path, "".join(f"{prompt}\n" for prompt in prompts))


def questions(path: Path, each: int = 1) -> list[Prompt]:
    """Return the prompts of a JSON Lines file ("prompt", and optionally "id") or of a text file, one per line.

    The id of a prompt without one is its line number. With `each` above 1, each is repeated with the ids 7.1, 7.2 …
    """

    def texts(row: dict[str, Any]) -> list[str]:
        text = row.get("prompt")
        return [text] * each if isinstance(text, str) and text.strip() else []

    return _read(path, "prompt", 'an object with a text "prompt"', texts)


def sentences(path: Path) -> list[Prompt]:
    """Return the sentences of a JSON Lines file ("source", "prompt", or the sources of "segs") or of a text file.

    The id of a sentence without one is its line number. A repeated sentence is left out.
    """

    def texts(row: dict[str, Any]) -> list[str]:
        found: list[Any] = [row.get("source", row.get("prompt"))]
        segments = row.get("segs")
        if isinstance(segments, list) and all(isinstance(pair, list) and pair for pair in segments):
            found = [pair[0] for pair in segments]
        return [" ".join(text.split()) for text in found] if all(isinstance(text, str) for text in found) else []

    return _read(path, "sentence", 'an object with "source", "prompt" or "segs"', texts, distinct=True)


def _read(
    path: Path, kind: str, expected: str, texts: Callable[[dict[str, Any]], list[str]], distinct: bool = False
) -> list[Prompt]:
    """Return the `texts` of each line's JSON object; `distinct`: without empty and repeated ones."""
    found: dict[str, Prompt] = {}
    seen = {""}
    is_json = format_of(path) == "jsonl"
    for number, line in well_formed_lines(path):
        try:
            row = json.loads(line) if is_json else {"prompt": line.strip()}
        except ValueError as error:
            raise DataError(f"{path}:{number}: not JSON: {error}") from None
        row = {"id": number} | (row if isinstance(row, dict) else {})
        if not (several := texts(row)):
            raise DataError(f"{path}:{number}: expected {expected}; got {line[:60]!r}")
        for n, text in enumerate(several, 1):
            if distinct and text in seen:
                continue
            seen.add(text)
            id_ = f"{row['id']}.{n}" if len(several) > 1 else str(row["id"])
            if id_ in found:
                raise DataError(f"{path}:{number}: the id {id_!r} occurs twice; each {kind} needs its own")
            found[id_] = Prompt(id_, text)
    if not found:
        raise DataError(f"{path} holds no {kind}s")
    return list(found.values())
