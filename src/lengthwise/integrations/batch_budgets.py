"""The hard budgets of a continuous batch: texts of several units come, go and change their rows, step by step.

A server masks its scores with `apply` and says which text is in which row. Texts of the same unit and the same end
tokens share one `LengthConstraint`. The state of a text does not depend on its row, so moving a text costs nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..arrays import Array, converter
from ..constraint.mask import LengthConstraint
from ..length.budget import Budget
from ..length.meter import Meter, meter_of
from ..protocols import Tokenizer

_GROUPS = 16  # with more groups, those without texts are dropped; the tables of a group have a size of megabytes


@dataclass(eq=False)
class BudgetedText:
    """A text that a server writes within a budget.

    `output`: its tokens so far; the server appends to this list. `limit`: the maximum number of tokens in it. `eos`:
    the ids that end it. `prefix`: tokens at the end of the prompt that are part of the text.
    """

    budget: Budget
    limit: int
    eos: tuple[int, ...]
    output: list[int]
    prefix: list[int] = field(default_factory=list)


class BatchBudgets:
    """Masks the scores of a batch in which some rows have a budget."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._groups: dict[tuple[str, tuple[int, ...]], _Group] = {}
        self._batch: set[BudgetedText] = set()

    def meter(self, unit: str) -> Meter:
        """Return the meter that counts `unit` with the server's tokenizer."""
        return meter_of(self.tokenizer, unit)

    def apply(self, scores: Array, texts: Mapping[int, BudgetedText]) -> Array:
        """Return `scores` with the rows masked that have a text: in place, or a new array if all rows have one.

        `texts`: row -> text. A text that was in the last step and is not in this one is forgotten; if it comes back,
        its state is computed from its tokens.
        """
        row_of = {text: row for row, text in texts.items()}
        if row_of.keys() != self._batch:
            self._regroup(row_of)
        for group in self._groups.values():
            if not group.texts:
                continue
            group.count_new_tokens()
            rows = [row_of[text] for text in group.texts]
            if rows == list(range(len(scores))):
                return group.constraint.apply(scores)
            index = converter(scores)(np.array(rows))
            scores[index] = group.constraint.apply(scores[index])
        return scores

    def _regroup(self, texts: Iterable[BudgetedText]) -> None:
        """Make these the texts of the batch."""
        members: dict[tuple[str, tuple[int, ...]], list[BudgetedText]] = {}
        for text in texts:
            members.setdefault((text.budget.unit, text.eos), []).append(text)
        if len(self._groups) > _GROUPS:  # requests may have end tokens of their own
            self._groups = {key: group for key, group in self._groups.items() if group.texts}
        for key in members.keys() - self._groups.keys():
            self._groups[key] = _Group(self.meter(key[0]), key[1])
        for key, group in self._groups.items():
            group.keep(members.get(key, []))
        self._batch = {text for group in members.values() for text in group}


class _Group:
    """Texts of one unit and one set of end tokens: one row of the constraint each."""

    def __init__(self, meter: Meter, eos: tuple[int, ...]) -> None:
        self.constraint = LengthConstraint(meter, [], [], eos=eos)
        self.texts: list[BudgetedText] = []

    def keep(self, texts: Iterable[BudgetedText]) -> None:
        """Drop the rows of other texts, and add rows for new ones."""
        wanted = dict.fromkeys(texts)  # in order
        kept = [row for row, text in enumerate(self.texts) if text in wanted]
        if len(kept) < len(self.texts):
            self.constraint.select(kept)
            self.texts = [self.texts[row] for row in kept]
        for text in self.texts:
            del wanted[text]
        if wanted:
            self.texts += wanted
            self.constraint.add(
                [int(text.budget.low) for text in wanted],
                [None if text.budget.high is None else int(text.budget.high) for text in wanted],
                [len(text.prefix) + text.limit for text in wanted],
                [[*text.prefix, *text.output] for text in wanted],
            )

    def count_new_tokens(self) -> None:
        """Append the tokens that the server has written since the last step to the state of each text."""
        changed = {text for row, text in enumerate(self.texts) if self._rewritten(row)}
        if changed:  # the server has discarded tokens
            texts = self.texts
            self.keep([text for text in texts if text not in changed])
            self.keep(texts)
        state = self.constraint.state
        while behind := [
            (row, written)
            for row, text in enumerate(self.texts)
            if (written := len(state.ids[row]) - len(text.prefix)) < len(text.output)
        ]:
            tokens = np.array([self.texts[row].output[written] for row, written in behind])
            self.constraint.update(tokens, [row for row, _ in behind])

    def _rewritten(self, row: int) -> bool:
        """Return whether the output of this row does not start with the tokens that were counted."""
        text, ids = self.texts[row], self.constraint.state.ids[row]
        counted = len(ids) - len(text.prefix)
        return counted > len(text.output) or (counted > 0 and text.output[counted - 1] != ids[-1])
