"""Student pairs: translate many sentences with a teacher, by beam search, as training data for a smaller model.

Sequence-level knowledge distillation (Kim & Rush 2016). For a student that receives a length, some sentences are
translated with a cost per character: their translations are shorter. Of the other beams, the shortest is kept as well
if it is clearly shorter than the best and nearly as probable.

With ratios, each sentence is translated without a cost, and within these multiples of its own length with each cost: a
limit alone is mostly met by leaving out the end. A teacher that reads the length before the source is asked for it.
Sentences from which words were left out are translated as well (`abridged.py`). Teacher and reverse model choose among
all. A translation is dropped if the reverse model recovers much less of the source from it, as a whole or at its end,
than from the one without a limit.

Rows are written batch by batch: an interrupted run can be resumed. Sentences without a finished translation are
counted, not written.

    out.jsonl            {"id", "source", "target", "cost", "usual"}; the id of a shorter translation ends in ".short",
                         that of one within a ratio in ".0.9x"; both, and those with a cost, are not usual
    out.settings.json    how they were made
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import torch

from ..controls.attached import core_of
from ..corpora.document import DataError
from ..engines.marian_beams import Hypothesis, MarianBeams
from ..length.meter import Meter
from ..length.units import measure
from ..scoring.noisy_channel import FORWARD_WEIGHT
from ..scoring.reverse import ReverseModel
from .abridged import abridged
from .candidates import malformed, whole_and_tail
from .prompts import Prompt
from .row_files import Row, RowFiles, append

_FIELDS = ("id", "source", "target")
_SHORT = ".short"
Sentence = tuple[Prompt, list[int]]  # with its ids
MAX_SOURCE = 192  # tokens; a longer line is rarely one sentence


@dataclass(frozen=True)
class Settings:
    """How sentences are translated."""

    beams: int = 4
    char_costs: tuple[float, ...] = (0.0,)  # nats per character: one drawn for each sentence; with ratios, all
    margin: float = 0.1  # nats per token that a shorter beam may be less probable than the best
    ratios: tuple[float, ...] = ()  # of the source's characters: limits for further translations
    reverse_margin: float = 0.75  # nats that such a translation may lose in mean log P(source | translation)
    abridged: int = 0  # forms of each sentence without some words that are translated as well
    seed: int = 0


@dataclass
class Report:
    """The sentences that were translated in this run, the rows written, and the sentences without a translation."""

    sentences: int = 0
    written: int = 0
    unfinished: int = 0
    too_long: int = 0


def gather(
    writer: Any,
    sentences: list[Prompt],
    out: Path,
    settings: Settings,
    *,
    reverse: ReverseModel | None = None,
    batch_tokens: int,
    progress: Callable[[int], None] = lambda _: None,
) -> Report:
    """Append the translations of the sentences that `out` does not have yet. `batch_tokens`: of padded sources.

    `reverse`: the target-to-source model that chooses among translations within `settings.ratios`.
    """
    if bool(reverse) != bool(settings.ratios):
        raise ValueError("translations within ratios need a reverse model, which has no other use here")
    _check_ids(sentences, [_SHORT, *(f".{ratio}x" for ratio in settings.ratios)])
    files = RowFiles(out, "translations")
    files.begin({"model": writer.name, "reverse": reverse.name if reverse else None} | asdict(settings), {})
    done = {row["id"] for row in files.resume(out, _FIELDS)}
    tokenizer, report, on_gpu = writer.tokenizer, Report(), writer.model.device.type == "cuda"
    chars = Meter(tokenizer, "chars").cost
    search = MarianBeams(core_of(writer.model), settings.beams, torch.from_numpy(chars).float())
    greedy = MarianBeams(core_of(writer.model), 1, torch.from_numpy(chars).float())
    forward = ReverseModel(writer.engine)
    space = int(chars[tokenizer(text_target="a")["input_ids"]].sum()) - 1  # 1 if a first word begins with a space
    todo = [sentence for sentence in sentences if sentence.id not in done]
    progress(len(sentences) - len(todo))
    with out.open("ab") as stream:
        for group, width in _groups(tokenizer, todo, batch_tokens, settings.seed, report):
            drawn = (0.0,) if reverse else settings.char_costs
            costs = [random.Random(one.seed(settings.seed)).choice(drawn) for one, _ in group]
            rows = batch_tokens // width if on_gpu else 0  # batches of one shape share a graph
            sources, limit = [ids for _, ids in group], width * 3 // 2 + 16
            found = search.translate(sources, limit, costs, rows=rows)
            kept = [_chosen(beams, cost, settings.margin, tokenizer) for beams, cost in zip(found, costs, strict=True)]
            written: list[Row] = [
                {"id": sentence.id + end, "source": sentence.text, "target": text}
                | {"cost": cost, "usual": not (end or cost)}
                for (sentence, _), texts, cost in zip(group, kept, costs, strict=True)
                for end, text in zip(("", _SHORT), texts, strict=False)
            ]
            if reverse:
                shorter = _shorter(search, writer, group, limit, settings, rows, space)
                more = _abridged(greedy, group, settings, rows, tokenizer)
                written += _within(group, kept, shorter, more, (forward, reverse), settings, tokenizer)
            place = {sentence.text: number for number, (sentence, _) in enumerate(group)}
            written.sort(key=lambda row: place[row["source"]])  # an interrupted write loses rows of one sentence only
            append(stream, written)
            report.sentences += len(group)
            report.written += len(written)
            report.unfinished += sum(not texts for texts in kept)
            progress(len(group))
    return report


def _check_ids(sentences: list[Prompt], ends: list[str]) -> None:
    """Raise if a sentence has the id that a further translation of another one would have. `ends`: of such ids."""
    ids = {sentence.id for sentence in sentences}
    for end in ends:
        if taken := next((id_ for id_ in sorted(ids) if id_ + end in ids), None):
            reason = f"the second would be that of a shorter translation of {taken!r}"
            raise DataError(f"two sentences have the ids {taken!r} and {taken + end!r}, but {reason}; rename it")


def _groups(
    tokenizer: Any, todo: list[Prompt], batch_tokens: int, seed: int, report: Report
) -> Iterator[tuple[list[Sentence], int]]:
    """Yield sentences of similar length with their ids, and the width they are padded to, in random order."""
    by_width: dict[int, list[Sentence]] = {}
    for start in range(0, len(todo), 10_000):
        some = todo[start : start + 10_000]
        for sentence, ids in zip(some, tokenizer([one.text for one in some])["input_ids"], strict=True):
            if len(ids) > MAX_SOURCE:
                report.too_long += 1
            else:
                by_width.setdefault(-(-len(ids) // 16) * 16, []).append((sentence, ids))
    groups = []
    for width, alike in sorted(by_width.items()):
        alike.sort(key=lambda item: len(item[1]))
        rows = max(1, batch_tokens // width)
        groups += [(alike[at : at + rows], width) for at in range(0, len(alike), rows)]
    random.Random(seed).shuffle(groups)
    # Short sentences make the largest cache; with such a batch first, the search takes its memory once.
    if groups:
        yield groups.pop(min(range(len(groups)), key=lambda place: groups[place][1]))
    yield from groups


def _shorter(
    search: MarianBeams, writer: Any, group: list[Sentence], limit: int, settings: Settings, rows: int, space: int
) -> list[list[Hypothesis]]:
    """Return the translations of each sentence within every ratio with every cost; scores are mean log P of tokens.

    `space`: characters that the tokens of a translation have before its first word.
    """
    found: list[list[Hypothesis]] = [[] for _ in group]
    for ratio, cost in product(settings.ratios, sorted(set(settings.char_costs))):
        limits = [_most(ratio, sentence) + space for sentence, _ in group]
        sources = _asked(writer, group, ratio)
        beams = search.translate(sources, limit, [cost] * len(group), limits, rows)
        for some, more in zip(found, beams, strict=True):
            some += [Hypothesis(one.ids, search.mean_log_prob(one, cost)) for one in more]
    return found


def _asked(writer: Any, group: list[Sentence], ratio: float) -> list[list[int]]:
    """Return the ids of the sentences, as the teacher's controls edit them for this ratio."""
    controls, found = writer.engine.controls, [ids for _, ids in group]
    if not controls:
        return found
    texts = [sentence.text for sentence, _ in group]
    for control in controls:
        asked = zip(texts, group, strict=True)
        texts = [control.prefix(text, _most(ratio, one), "chars", writer.tokenizer) for text, (one, _) in asked]
    edited: list[list[int]] = writer.tokenizer(texts)["input_ids"]
    return edited


def _abridged(
    greedy: MarianBeams, group: list[Sentence], settings: Settings, rows: int, tokenizer: Any
) -> list[list[str]]:
    """Return the greedy translations of shorter forms of each sentence."""
    forms = [abridged(one.text, settings.abridged, one.seed(settings.seed)) for one, _ in group]
    flat = [form for some in forms for form in some]
    if not flat:
        return [[] for _ in group]
    ids: list[list[int]] = tokenizer(flat)["input_ids"]
    width = max(map(len, ids))
    size = settings.beams * max(rows, len(group))  # as many rows as the search has beams
    places = range(0, len(flat), size)
    limit = width * 3 // 2 + 16
    best = [beams for at in places for beams in greedy.translate(ids[at : at + size], limit, rows=size if rows else 0)]
    texts = iter(_decoded([found[0] if found else Hypothesis([], 0.0) for found in best], tokenizer))
    return [[next(texts) for _ in some] for some in forms]


def _most(ratio: float, sentence: Prompt) -> int:
    """Return the characters that a translation of the sentence within this ratio may have."""
    return int(ratio * measure(sentence.text, "chars") + 1e-9)


def _within(
    group: list[Sentence],
    usual: list[list[str]],
    shorter: list[list[Hypothesis]],
    more: list[list[str]],
    models: tuple[ReverseModel, ReverseModel],
    settings: Settings,
    tokenizer: Any,
) -> list[dict[str, Any]]:
    """Return a row for the best translation within each ratio, if the usual one exceeds it and another is good enough.

    The best has the highest sum of log P(translation | source), weighted as in a search, log P(source | translation)
    and the same for the last quarter of the source, all means over tokens. `more`: translations without a score yet.
    """
    forward, reverse = models
    pairs: dict[tuple[int, str], float] = {}  # number of a sentence, translation: log P; usual translations first
    pairs |= {(number, texts[0]): 0.0 for number, texts in enumerate(usual) if texts}
    for number, ((sentence, _), texts, found) in enumerate(zip(group, usual, shorter, strict=True)):
        for text, one in zip(_decoded(found, tokenizer), found, strict=True):
            if texts and (number, text) not in pairs and not malformed(sentence.text, text):
                pairs[number, text] = one.score
    largest = max(settings.ratios)
    new = [
        (number, text)
        for number, ((sentence, _), some) in enumerate(zip(group, more, strict=True))
        for text in dict.fromkeys(some)
        if usual[number] and (number, text) not in pairs and measure(text, "chars") <= _most(largest, sentence)
        if not malformed(sentence.text, text)
    ]
    if new:
        likely = forward.mean_log_prob([text for _, text in new], [group[number][0].text for number, _ in new])
        pairs |= dict(zip(new, likely.tolist(), strict=True))
    keys = [*pairs]
    scored = reverse.log_probs([group[number][0].text for number, _ in keys], [text for _, text in keys])
    back = {keys[row]: whole_and_tail(tokens[:-1]) for row, tokens in scored if len(tokens) > 1}
    good: list[list[tuple[float, str]]] = [[] for _ in group]
    for (number, text), understood in back.items():
        reference = back.get((number, usual[number][0]))
        if reference and all(a >= b - settings.reverse_margin for a, b in zip(understood, reference, strict=True)):
            good[number].append((FORWARD_WEIGHT * pairs[number, text] + sum(understood), text))
    rows = []
    for (sentence, _), texts, some in zip(group, usual, good, strict=True):
        taken = set(texts)
        for ratio in sorted(settings.ratios):
            most = _most(ratio, sentence)
            _, best = max((one for one in some if measure(one[1], "chars") <= most), default=(0.0, ""))
            if best and best not in taken and measure(texts[0], "chars") > most:
                taken.add(best)
                row = {"id": f"{sentence.id}.{ratio}x", "source": sentence.text, "target": best}
                rows.append(row | {"cost": 0.0, "usual": False})
    return rows


def _decoded(found: list[Hypothesis], tokenizer: Any) -> list[str]:
    ids = [one.ids for one in found]
    texts = tokenizer.batch_decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False) if ids else []
    return [text.strip() for text in texts]


def _chosen(found: list[Hypothesis], cost: float, margin: float, tokenizer: Any) -> list[str]:
    """Return the best translation and, without a cost, a shorter one that is nearly as probable."""
    near = [found[0], *(one for one in found[1:] if not cost and one.score >= found[0].score - margin)] if found else []
    texts = _decoded(near, tokenizer)
    if not texts or not texts[0]:
        return []
    shortest = min(texts, key=len)
    return [texts[0], shortest] if shortest and len(shortest) <= 0.95 * len(texts[0]) else texts[:1]
