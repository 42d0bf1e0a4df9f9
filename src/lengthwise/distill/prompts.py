"""Prompts: made, every topic in every template that suits it; and read, from a file.

    topics.txt:    [animal]                     templates.txt:    [any]
                   the red fox                                    Tell me about {topic}.
                                                                  [animal]
                                                                  What does {topic} eat?

A template under [any] goes with every topic, one under another heading with the topics under the same. Knows text files
and nothing of models; whether a prompt makes sense is for whoever wrote the two files to see.
"""

import json
import random
from dataclasses import dataclass
from pathlib import Path

from ..corpora.document import DataError
from ..corpora.lines import Malformed, lines
from ..corpora.writing import whole, write_jsonl

ANY, PLACE = "any", "{topic}"


def combine(topics: Path, templates: Path, count: int, seed: int = 0) -> list[str]:
    """`count` prompts, none twice, in an order that `seed` decides."""
    subjects, forms = sections(topics), sections(templates)
    if strange := sorted(set(subjects) - set(forms)) if ANY not in forms else []:
        raise DataError(f"no template in {templates} goes with the topics under [{strange[0]}] of {topics}")
    if lacking := [form for group in forms.values() for form in group if PLACE not in form]:
        raise DataError(f"a template has a {PLACE} in it; {templates} has {lacking[0]!r}")
    if unused := sorted(set(forms) - set(subjects) - {ANY}):
        raise DataError(f"no topic in {topics} goes with the templates under [{unused[0]}] of {templates}")
    made = dict.fromkeys(  # a set in order: the same seed, the same prompts
        form.replace(PLACE, topic)
        for kind, group in subjects.items()
        for topic in group
        for form in [*forms.get(ANY, []), *(forms.get(kind, []) if kind != ANY else [])]
    )
    if count > len(made):
        raise DataError(f"{count:,} prompts were asked for; {topics} and {templates} make {len(made):,}")
    return random.Random(seed).sample(list(made), count)


def write_prompts(path: Path, prompts: list[str]) -> None:
    """JSON Lines with "id" and "prompt", or, as the name says, a text with one prompt a line."""
    if path.name.removesuffix(".gz").endswith(".jsonl"):
        write_jsonl(path, ({"id": str(number), "prompt": prompt} for number, prompt in enumerate(prompts, 1)))
    else:
        with whole(path) as stream:
            stream.write("".join(f"{prompt}\n" for prompt in prompts).encode())


def sections(path: Path) -> dict[str, list[str]]:
    """The lines under each [heading], those before the first under [any]; blank lines and comments (#) aside."""
    found: dict[str, list[str]] = {}
    heading = ANY
    for _, line in lines(path):
        if isinstance(line, Malformed):
            raise DataError(str(line))
        line = line.strip()
        if line.startswith("[") and line.endswith("]"):
            heading = line[1:-1]
        elif line and not line.startswith("#"):
            found.setdefault(heading, []).append(line)
    if not found:
        raise DataError(f"{path} holds no lines but comments")
    return found


# Prompts that are there already


@dataclass(frozen=True)
class Question:
    id: str
    prompt: str


def questions(path: Path, each: int = 1) -> list[Question]:
    """The prompts of a JSON Lines file (field "prompt", and "id" if it is there) or of a text file, one a line.

    A prompt without an id is known by the number of its line. With `each` above 1, each is asked so often: 7.1, 7.2 …
    """
    rows = path.name.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson", ".json"))
    asked: dict[str, Question] = {}
    for number, line in lines(path):
        if isinstance(line, Malformed):
            raise DataError(str(line))
        if not line.strip():
            continue
        id_, prompt = _row(line, path, number) if rows else (str(number), line.strip())
        for name in [id_] if each == 1 else [f"{id_}.{n}" for n in range(1, each + 1)]:
            if name in asked:
                raise DataError(f"{path}:{number}: the id {id_!r} was there before; each prompt needs its own")
            asked[name] = Question(name, prompt)
    if not asked:
        raise DataError(f"{path} holds no prompts")
    return list(asked.values())


def _row(line: str, path: Path, number: int) -> tuple[str, str]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise DataError(f"{path}:{number}: not JSON: {error}") from None
    prompt = row.get("prompt") if isinstance(row, dict) else None
    if not isinstance(prompt, str) or not prompt.strip():
        raise DataError(f'{path}:{number}: expected an object with a text "prompt"; got {line[:60]!r}')
    return str(row.get("id", number)), prompt
