"""Examples: turn documents into token ids, with the units written after each target token.

A document is cut into examples (`dynamic_length_sampling.py`), controls may edit the source, texts become ids, and a
`Meter` counts the units after every target token, so that nothing is counted on the GPU.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from random import Random

import numpy as np
import torch

from ..controls import Control
from ..corpora import Document
from ..length.meter import Meter
from ..protocols import Tokenizer
from . import dynamic_length_sampling as lengths
from .known_ids import Ids, KnownIds
from .max_new_tokens_pp import shifts
from .recipe import LengthsSection, ShiftSection

Skipped = Counter[str]  # how many examples are left out because they are "empty", too "long", or "excluded"
SEPARATOR = "<sep>"  # between the sentences of a document, in tokenizers that are trained here
_AT_ONCE = 256  # rows counted together


@dataclass(frozen=True)
class Example:
    """One pair of source and target, as ids."""

    name: str
    source: Ids  # the encoder's input, or the prompt
    target: Ids  # without the end token
    counts: Ids  # units written after each target token
    costs: Ids  # units of each source token, for controls that count through the prompt
    unit: int = 0  # index of the unit that is counted, among the recipe's
    at_most: bool = False  # the length is an upper limit
    uniform: float = 0.0  # a draw from [0, 1), for the shift
    max_shift: int = 0  # the largest shift of its length
    truncated: bool = False  # cut at any token: only the end has a loss

    @property
    def length(self) -> int:
        return self.counts[-1]


@dataclass(frozen=True)
class _Draft:
    """An example before its texts are ids."""

    name: str
    source: str
    target: str
    unit: int
    at_most: bool
    whole: bool  # the target ends where the text did
    truncated: bool
    usual: bool  # the target has the length that it has without a control
    uniform: float


@dataclass
class ExampleMaker:
    """Turns documents into examples for one model. It is sent to worker processes, so it contains no model."""

    tokenizer: Tokenizer
    meters: Sequence[Meter]  # one per unit; each example draws its own
    controls: Sequence[Control]
    encoder_decoder: bool
    end: int  # the id that ends a text
    characters: bool = False  # each character of the target is a token
    cutting: LengthsSection = field(default_factory=LengthsSection)
    shift: ShiftSection | None = None
    max_tokens: int = 1024
    positions: int | None = None  # of the model; None: any number

    def __post_init__(self) -> None:
        placements = {control.placement for control in self.controls}
        self._through_prompt = "whole" in placements and not self.encoder_decoder
        self._letters: dict[str, int] = self.tokenizer.get_vocab() if self.characters else {}
        separator = self.cutting.separator
        added = {str(token): number for number, token in self.tokenizer.added_tokens_decoder.items()}
        mark = added.get(separator)  # such a token is found before the texts beside it are tokenised
        self._sources = KnownIds(self._source_text_ids, separator, mark)
        targets = self._target_text_ids if not self.characters else self._spelt
        self._targets = KnownIds(targets, separator, None if self.characters else mark)
        self._known = self._sources, self._targets
        self._around_source = _special_ids(self.tokenizer, "text")
        before, after = _special_ids(self.tokenizer, "text_target")
        self._around_target = before, after[:-1] if after[-1:] == [self.end] else after  # the end token is no target

    def examples(self, documents: Iterable[Document], time: float, random: Random) -> tuple[list[Example], Skipped]:
        """Return all examples of the documents. `time`: the epoch, or its fraction, for dynamic length sampling."""
        if not (drafts := [draft for document in documents for draft in self._drafts(document, time, random)]):
            return [], Skipped()
        targets = [
            ids[: 1 + int(draft.uniform * len(ids))] if draft.truncated else ids
            for draft, ids in zip(drafts, self._target_ids([draft.target for draft in drafts]), strict=True)
        ]
        counts = self._counts(targets, [draft.unit for draft in drafts])
        sources = self._source_ids(self._edited(drafts, counts))
        found, skipped = [], Skipped()
        for draft, source, target, count in zip(drafts, sources, targets, counts, strict=True):
            if not count or count[-1] < 1 or not source:
                skipped["empty"] += 1
            elif count[-1] in self.cutting.without:
                skipped["excluded"] += 1
            elif self._too_long(len(source), len(target) + 1):
                skipped["long"] += 1
            else:
                costs, max_shift = self._costs(source, draft.unit), self._max_shift(draft, count[-1])
                drawn = (draft.unit, draft.at_most, draft.uniform, max_shift, draft.truncated)
                found.append(Example(draft.name, source, target, count, costs, *drawn))
        return found, skipped

    def _edited(self, drafts: list[_Draft], counts: list[Ids]) -> list[str]:
        """Return the sources as the controls edit them, such as with the length in the prompt."""
        asked = [max(count[-1] if count else 0, 1) for count in counts]
        if self.shift is not None:  # the limits of the end of training: a prompt is not changed between
            uniform = torch.tensor([draft.uniform for draft in drafts])
            most = torch.tensor([self._max_shift(*one) for one in zip(drafts, asked, strict=True)])
            added = shifts(uniform, 1.0, self.shift.start, self.shift.end, most).tolist()
            asked = [length + shift for length, shift in zip(asked, added, strict=True)]
        edited = [draft.source for draft in drafts]
        for n, (draft, length) in enumerate(zip(drafts, asked, strict=True)):
            plain = draft.uniform * 2**20 % 1 if draft.usual else 1.0  # the last bits: the first are those of the shift
            for control in (some for some in self.controls if plain >= some.plain_share):
                edited[n] = control.prefix(edited[n], length, self.meters[draft.unit].unit.name, self.tokenizer)
        return edited

    def _too_long(self, source: int, target: int) -> bool:
        longest = max(source, target) if self.encoder_decoder else source + target
        return source + target > self.max_tokens or (self.positions is not None and longest > self.positions)

    def _counts(self, targets: list[Ids], units: list[int]) -> list[Ids]:
        counts: list[Ids] = [[] for _ in targets]
        for number, meter in enumerate(self.meters):
            places = [place for place, unit in enumerate(units) if unit == number]
            for place, count in zip(places, running_counts(meter, [targets[p] for p in places]), strict=True):
                counts[place] = count
        return counts

    def _costs(self, source: Ids, unit: int) -> Ids:
        if not self._through_prompt:
            return [0] * len(source)
        # In tokens every prompt token counts, also special ones, as in Butcher et al.
        meter = self.meters[unit]
        return [1] * len(source) if meter.unit.name == "tokens" else meter.cost[source].tolist()

    def _max_shift(self, draft: _Draft, length: int) -> int:
        """Return the largest shift: only the length of a complete text can be increased up to the maximum."""
        if not draft.at_most or draft.truncated or self.shift is None:
            return 0
        return self.shift.maximum if draft.whole else min(self.shift.maximum, int(self.shift.cut * length))

    # ---- cutting

    def _drafts(self, document: Document, time: float, random: Random) -> Iterator[_Draft]:
        """Yield the examples of a document as texts."""
        sides = [[text.strip() for text in side] for side in zip(*document.segments, strict=True)]
        for segment in self._segments(sides, time, random):
            name = document.id if len(sides[0]) == 1 else f"{document.id}[{segment.start}:{segment.stop}]"
            source, target = (self.cutting.separator.join(side[segment.start : segment.stop]) for side in sides)
            # All five are drawn for every example, so that one option does not change the draws of the others.
            unit, limit, end, uniform, truncate = (random.random() for _ in range(5))
            at_most = self.shift is not None and limit < self.shift.share
            cut = lengths.prefix(target, end) if self.cutting.kind == "prefixes" else target
            whole = document.finished and len(cut) == len(target)
            truncated = truncate < self.cutting.anywhere
            usual = document.usual and whole and not truncated
            yield _Draft(name, source, cut, int(unit * len(self.meters)), at_most, whole, truncated, usual, uniform)

    def _segments(self, sides: list[list[str]], time: float, random: Random) -> list[lengths.Segment]:
        kind, maximum = self.cutting.kind, self.cutting.maximum
        if kind in ("sentences", "prefixes") or len(sides[0]) == 1:
            return [range(n, n + 1) for n in range(len(sides[0]))]
        separator = len(self._sources([self.cutting.separator])[0]) if self.cutting.separator.strip() else 0
        sizes = [[len(ids) + separator for ids in known(side)] for known, side in zip(self._known, sides, strict=True)]
        if kind == "resolutions":
            return lengths.resolutions(sizes[0], sizes[1], maximum)
        drawn: Iterator[int] = repeat(maximum)
        if kind == "dynamic":
            drawn = lengths.drawn_lengths(maximum, lengths.temperature(time, self.cutting.gamma), random)
        return lengths.cut(sizes[0], sizes[1], drawn)

    # ---- texts to ids

    def _source_ids(self, texts: list[str]) -> list[Ids]:
        """Return the ids that `Writer` gives a model: the encoder's input, or a prompt in the chat template."""
        if not self.encoder_decoder and self.tokenizer.chat_template:
            chats = [[{"role": "user", "content": text}] for text in texts]
            asked = self.tokenizer.apply_chat_template(chats, add_generation_prompt=True, tokenize=False)
            return self._source_text_ids(asked)  # most have a length in them, which the next epoch will not have
        before, after = self._around_source
        return [[*before, *ids, *after] for ids in self._sources(texts)]

    def _target_ids(self, texts: list[str]) -> list[Ids]:
        if self.characters:
            return self._targets(texts)
        before, after = self._around_target if self.encoder_decoder else ([], [])
        return [[*before, *ids, *after] for ids in self._targets(texts)]

    def _source_text_ids(self, texts: list[str]) -> list[Ids]:
        return self.tokenizer(texts, add_special_tokens=False)["input_ids"]

    def _target_text_ids(self, texts: list[str]) -> list[Ids]:
        return self.tokenizer(text_target=texts, add_special_tokens=False)["input_ids"]

    def _spelt(self, texts: list[str]) -> list[Ids]:
        return [spell(text, self._letters) for text in texts]


def _special_ids(tokenizer: Tokenizer, side: str) -> tuple[Ids, Ids]:
    """Return the special ids that a tokenizer puts before and after each text of this side, text or text_target."""
    plain, whole = (tokenizer(**{side: "a"}, add_special_tokens=special)["input_ids"] for special in (False, True))
    before = next(n for n in range(len(whole)) if whole[n : n + len(plain)] == plain)
    return whole[:before], whole[before + len(plain) :]


def spell(text: str, known: dict[str, int]) -> Ids:
    """Return one token for each character and separator; characters that are not in the vocabulary become bytes."""
    ids: Ids = []
    for n, part in enumerate(text.split(SEPARATOR)):
        if n:
            ids += [known[SEPARATOR], known["▁"]]  # as in the tokenizer, a word starts after it
        for character in part.replace(" ", "▁"):
            found = known.get(character)
            ids.extend([found] if found is not None else [known[f"<0x{byte:02X}>"] for byte in character.encode()])
    return ids


def running_counts(meter: Meter, rows: Sequence[Ids]) -> list[Ids]:
    """Return the units written after each token of each row. Rows of similar length are counted together."""
    counts: list[Ids] = [[] for _ in rows]
    order = sorted((n for n, row in enumerate(rows) if row), key=lambda n: len(rows[n]))
    for first in range(0, len(order), _AT_ONCE):
        chosen = order[first : first + _AT_ONCE]
        widest = len(rows[chosen[-1]])
        # Padded with each row's last token: another token might be one that is slow to count.
        ids = np.array([rows[n] + rows[n][-1:] * (widest - len(rows[n])) for n in chosen])
        for n, row in zip(chosen, meter.running(ids).tolist(), strict=True):
            counts[n] = row[: len(rows[n])]
    return counts
