"""Translations: several of each sentence, a model's own, at different lengths and with the meaning still in them.

What a model learns length from decides what it leaves out when room is short. Here it draws many translations of each
sentence. A model that translates the other way says how likely each word of the sentence is, given the translation;
the translator itself, how likely the translation is. Those that do as well as its own best one, or nearly, are
examples, short ones above all. A model trained on them draws shorter ones, and so on in rounds. Rows are written as
they come, so that a run that broke off goes on where it was. Knows files and rounds; not how a translation is drawn
(`translate/samples.py`), nor when it is a good example (`candidates.py`).

    out.jsonl            {"id", "source", "target", "ratio", "score", "tail"}: the id is the sentence's and a number, 0
                         for the model's own best; score and tail are those of `whole_and_tail`
    out.dropped.jsonl    {"id", "source", "best", "kept", "reasons"}: for each sentence, how long its best translation
                         is, how many are kept, and why others are not
    out.settings.json    how they were drawn
"""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..corpora.document import DataError
from ..corpora.lines import Malformed, lines
from ..length.units import measure
from ..scoring.reverse import ReverseModel
from ..settings_file import claim
from .candidates import Candidate, Margins, choose, judged, sound
from .sampler import Sampler

# Not cuDNN's, which is slow on every shape it has not seen: in drawing, each step has a new one.
_ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


@dataclass(frozen=True)
class Sentence:
    """What is to be translated."""

    id: str
    text: str


@dataclass(frozen=True)
class Settings(Margins):
    """How translations are drawn, and which are kept."""

    each: int = 12  # drawn of each sentence
    ratios: tuple[float, ...] = (0.8, 0.9, 1.0, 1.1)  # of the source's characters, asked of a model that can be told
    thrift: tuple[float, ...] = (0.0, 0.15, 0.3)  # nats that a character costs, for one that cannot
    beams: int = 5
    temperature: float = 0.7
    top_p: float = 0.95
    keep: int = 4  # translations of a sentence
    seed: int = 0


def sentences(path: Path) -> list[Sentence]:
    """The sentences of a JSON Lines file ("source", "prompt", or the sources of "segs") or of a text, one a line.

    One without an id is known by the number of its line; one that comes again is left out.
    """
    rows = path.name.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson", ".json"))
    found: dict[str, str] = {}
    seen: set[str] = set()
    for number, line in lines(path):
        if isinstance(line, Malformed):
            raise DataError(str(line))
        for id_, text in _of_row(line, path, number) if rows and line.strip() else [(str(number), line)]:
            text = " ".join(text.split())
            if not text or text in seen:
                continue
            if id_ in found:
                raise DataError(f"{path}:{number}: the id {id_!r} was there before; each sentence needs its own")
            found[id_] = text
            seen.add(text)
    if not found:
        raise DataError(f"{path} holds no sentences")
    return [Sentence(id_, text) for id_, text in found.items()]


def _of_row(line: str, path: Path, number: int) -> list[tuple[str, str]]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise DataError(f"{path}:{number}: not JSON: {error}") from None
    row = row if isinstance(row, dict) else {}
    id_ = str(row.get("id", number))
    segments = row.get("segs")
    if isinstance(segments, list) and all(isinstance(pair, list) and pair for pair in segments):
        texts = [pair[0] for pair in segments]
    else:
        texts = [row.get("source", row.get("prompt"))]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise DataError(f'{path}:{number}: expected an object with "source", "prompt" or "segs"; got {line[:60]!r}')
    names = [id_] if len(texts) == 1 else [f"{id_}.{n}" for n in range(1, len(texts) + 1)]
    return list(zip(names, texts, strict=True))


def gather(
    sampler: Sampler,
    reverse: ReverseModel,
    asked: list[Sentence],
    out: Path,
    settings: Settings,
    *,
    standard: Sampler | None = None,
    rows: int = 64,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Append to `out` the translations of sentences that are not there yet; the account of all that are there then.

    `standard`: what makes the best translation that others are compared with; else `sampler` itself, without a length.
    `rows`: translations drawn at a time. What is drawn for a sentence depends on `settings.seed` and its id, but for
    the rounding of sums, which differs with what stands beside it.
    """
    stem = out.name.removesuffix(".jsonl")
    journal = out.with_name(f"{stem}.dropped.jsonl")
    out.parent.mkdir(parents=True, exist_ok=True)
    standard = standard or sampler
    judges = reverse, ReverseModel(standard.writer)
    names = {"model": sampler.writer.name, "standard": standard.writer.name, "reverse": reverse.name}
    claim(out.with_name(f"{stem}.settings.json"), names | json.loads(json.dumps(asdict(settings))), out.exists())
    known = _known(out, journal, asked)
    todo = [sentence for sentence in asked if sentence.id not in known]
    if progress:
        progress(len(asked) - len(todo))
    with out.open("ab") as kept, journal.open("ab") as told, sdpa_kernel(_ATTENTION):
        for group in _groups(todo, max(1, rows // max(settings.each, settings.beams)), settings.seed):
            # First the translations, then the journal: a sentence is done when the journal has it.
            examples, accounts = _translated(sampler, standard, judges, group, settings)
            for stream, found in ((kept, examples), (told, accounts)):
                stream.write(b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in found))
                stream.flush()
            if progress:
                progress(len(group))
    return account(out, journal)


def _groups(todo: list[Sentence], size: int, seed: int) -> Iterator[list[Sentence]]:
    """Sentences of like length together, so that little is padded; the groups in any order, so that a part of them is
    like the whole."""
    ordered = sorted(todo, key=lambda sentence: (len(sentence.text), sentence.id))
    groups = [ordered[at : at + size] for at in range(0, len(ordered), size)]
    random.Random(seed).shuffle(groups)
    yield from groups


# A group of sentences


def _translated(
    sampler: Sampler,
    standard: Sampler,
    judges: tuple[ReverseModel, ReverseModel],
    group: list[Sentence],
    settings: Settings,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of `out` and of the journal."""
    best = standard.best([sentence.text for sentence in group], settings.beams)
    drawn = _drawn(sampler, group, settings)
    reasons: list[Counter[str]] = [Counter() for _ in group]
    options: list[list[Candidate]] = []
    for place, sentence in enumerate(group):
        own = best[place]
        texts = [own, *(drawn[place * settings.each : (place + 1) * settings.each] if own else [])]
        options.append(sound(sentence.text, texts, reasons[place]))
    options = judged(*judges, [sentence.text for sentence in group], options)
    examples, accounts = [], []
    for sentence, candidates, why in zip(group, options, reasons, strict=True):
        chosen = choose(candidates, settings, settings.keep, why)
        size = measure(sentence.text, "chars")
        examples += [_row(sentence, size, n, one) for n, one in enumerate(chosen, 1 - any(one.own for one in chosen))]
        first = next((round(one.length / size, 3) for one in candidates if one.own), None)
        accounts.append({**_named(sentence), "best": first, "kept": len(chosen), "reasons": dict(why)})
    return examples, accounts


def _drawn(sampler: Sampler, group: list[Sentence], settings: Settings) -> list[str | None]:
    """`each` translations of each sentence, its lengths or its thrift taken in turn."""
    texts = [sentence.text for sentence in group for _ in range(settings.each)]
    turns = [turn for _ in group for turn in range(settings.each)]
    ratios = [settings.ratios[turn % len(settings.ratios)] if sampler.told else 1.0 for turn in turns]
    lengths = [max(1, round(ratio * measure(text, "chars"))) for ratio, text in zip(ratios, texts, strict=True)]
    thrift = [0.0 if sampler.told else settings.thrift[turn % len(settings.thrift)] for turn in turns]
    firsts = [_seed(settings.seed, sentence.id) for sentence in group]
    seeds = [(first + turn) % 2**64 for first in firsts for turn in range(settings.each)]
    return sampler.draw(texts, lengths, thrift, seeds)


def _seed(seed: int, id_: str) -> int:
    return int.from_bytes(blake2b(f"{seed}/{id_}".encode(), digest_size=8).digest())


def _named(sentence: Sentence) -> dict[str, Any]:
    return {"id": sentence.id, "source": sentence.text}


def _row(sentence: Sentence, size: int, number: int, one: Candidate) -> dict[str, Any]:
    return {
        "id": f"{sentence.id}.{number}",
        "source": sentence.text,
        "target": one.text,
        "ratio": round(one.length / size, 3),
        "score": round(one.score, 3),
        "tail": round(one.tail, 3),
    }


# Rows that are there already


def _known(out: Path, journal: Path, asked: list[Sentence]) -> set[str]:
    """The ids of the sentences that are done. What was written of one that is not is cut off."""
    if out.exists() and not journal.exists():
        raise DataError(f"{out} is there and {journal.name} is not, which tells what is done; name another file")
    done = {row["id"]: row["source"] for row, _ in _rows(journal, ("id", "source", "kept", "reasons"), cut=True)}
    for sentence in asked:
        if done.get(sentence.id, sentence.text) != sentence.text:
            raise DataError(
                f"{journal} has another sentence as id {sentence.id!r}: asked for is {sentence.text!r}, "
                f"found {done[sentence.id]!r}; give these sentences a file of their own"
            )
    end = 0
    for row, end_of_row in _rows(out, ("id", "source", "target", "ratio"), cut=True):
        if row["id"].rpartition(".")[0] not in done:
            break
        end = end_of_row
    if out.exists():
        with out.open("r+b") as stream:
            stream.truncate(end)
    return set(done)


def _rows(path: Path, fields: tuple[str, ...], cut: bool = False) -> Iterator[tuple[dict[str, Any], int]]:
    """The rows of a file of ours, and where each ends. `cut`: a last one that breaks off is cut off."""
    if not path.exists():
        return
    end = 0
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            whole = line.endswith(b"\n")
            try:
                row = json.loads(line) if whole else None
            except ValueError:
                row = None
            if cut and not whole and b'{"id": '.startswith(line[:7]):
                break
            if not isinstance(row, dict) or not set(fields) <= set(row):
                raise DataError(f"{path}:{number} is no row of translations: {line[:60]!r}; name another file")
            end += len(line)
            yield row, end
    if cut and end < path.stat().st_size:
        with path.open("r+b") as stream:
            stream.truncate(end)


def account(out: Path, journal: Path) -> dict[str, Any]:
    """How many there are, and how long."""
    ratios = np.array([row["ratio"] for row, _ in _rows(out, ("ratio",))])
    told = [row for row, _ in _rows(journal, ("best", "kept", "reasons"))]
    best = [row["best"] for row in told if row["best"] is not None]
    reasons: Counter[str] = sum((Counter(row["reasons"]) for row in told), Counter())
    shares = {f"below_{limit}x": float((ratios < limit).mean().round(3)) for limit in (1.0, 0.9) if len(ratios)}
    return {
        "sentences": len(told),
        "without": sum(not row["kept"] for row in told),
        "kept": len(ratios),
        "ratio": round(float(ratios.mean()), 3) if len(ratios) else None,
        "best_ratio": round(float(np.mean(best)), 3) if best else None,
        **shares,
        "dropped": sum(reasons.values()),
        "reasons": dict(reasons.most_common()),
    }
