"""Where the rows of a batch stand: how much each has written, and what it is in the middle of.

Read off all ids at once (a beam search reorders rows, so nothing can be kept), or carried on by one token (rows that
stay in place): a dozen operations on a few integers instead of a count over everything written. It decides nothing.
"""

import torch
from torch import Tensor

from ..meter import Meter


class Standing:
    """Each (rows,):"""

    used: Tensor  # units, as if more followed
    settled: Tensor  # units if it ended here
    begun: Tensor  # something is there but white space
    open: Tensor  # inside a word, where words are counted
    character: Tensor  # the UTF-8 state, 0 between characters

    def __init__(self, meter: Meter, ids: Tensor) -> None:
        self.meter = meter
        self.width = ids.shape[1]
        none = ids.new_zeros(len(ids))
        self.used, self.settled, self.character = none, none.clone(), none.clone()
        self.begun = self.open = self.delicate = none.bool()
        if not self.width:
            return
        running = meter.costs(ids).cumsum(1)  # (rows, time)
        written = ~meter.blank[ids]
        last = self.width - 1 - written.flip(1).int().argmax(1, keepdim=True)  # the last token that is not blank
        self.used = running[:, -1].clone()
        self.settled = (running.gather(1, last) - meter.trail[ids.gather(1, last)]).squeeze(1).clamp(min=0)
        self.begun = (~meter.white[ids]).any(1)
        self.open = none.bool() if meter.opens is None else meter.opens[ids[:, -1]]
        self.character = meter.character(ids)
        self.delicate = meter.delicate[ids].any(1)
        self._recount(ids)

    def advance(self, ids: Tensor) -> None:
        """Carries on by the last token of `ids`, the same rows with one column more."""
        meter, last = self.meter, ids[:, -1]
        self.width += 1
        blank = meter.blank[last]
        cost = meter.prices[last]
        if meter.unit.name != "tokens":
            cost = cost * (self.begun | ~blank) - meter.lead[last] * ~(self.begun | blank)
        if meter.joins is not None and meter.opens is not None:
            cost = cost - (meter.joins[last] & self.open & ~blank).long()
            self.open = meter.opens[last] & ~blank
        self.used = self.used + cost
        self.settled = torch.where(blank, self.settled, self.used - meter.trail[last])
        self.begun = self.begun | ~meter.white[last]
        if meter.splits_characters:
            self.character = meter.utf8[self.character, last].clamp(min=0)
        self.delicate = self.delicate | meter.delicate[last]
        self._recount(ids)

    def _recount(self, ids: Tensor) -> None:
        """Rows in which tokens flow into each other are measured as text."""
        for row in self.delicate.nonzero().flatten().tolist():
            written = self.meter.spell(ids[row].tolist())
            self.used[row] = self.meter.measure(written)
            self.settled[row] = self.meter.measure(written, settled=True)
