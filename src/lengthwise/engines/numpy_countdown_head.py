"""The countdown head for engines without torch: its weights as numpy arrays, and the state of each row.

`controls/countdown_head.py` has the formula, and trains it. An engine computes the network; this file says which of the
learnt vectors apply. It counts the units that a row has written.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..constraint.length_state import LengthState
from ..length.countdown import STATES, countdown_state
from ..length.meter import Integers, meter_of
from ..protocols import Tokenizer
from .base import AttachedControl, Ids, LengthInputs


class NumpyCountdownHead(AttachedControl):
    """A countdown head, with one more state, `identity`, in which it changes nothing."""

    needs_length = False

    def __init__(self, units: tuple[str, ...], at_most: bool, learnt: Mapping[str, NDArray[np.float32]]) -> None:
        self.units, self.at_most = units, at_most
        self.identity = len(learnt["gain"])
        self.arrays = {name: np.ascontiguousarray(learnt[name].T) for name in ("inner", "outer")}
        for name in ("gain", "shift", "choice"):
            self.arrays[name] = np.pad(learnt[name], ((0, 1), (0, 0)))

    @classmethod
    def of(cls, config: Mapping[str, Any], learnt: Mapping[str, NDArray[Any]]) -> "NumpyCountdownHead":
        """Return the head that a `config()` of a `CountdownHead` and its weights describe."""
        unit = config["unit"]
        units = (unit,) if isinstance(unit, str) else tuple(unit)
        return cls(units, config["at_most"], {name: array.astype(np.float32) for name, array in learnt.items()})

    @classmethod
    def none(cls, width: int) -> "NumpyCountdownHead":
        """Return a head without units, which changes nothing."""
        empty, wide = np.zeros((1, 1), np.float32), np.zeros((1, width), np.float32)
        learnt = {"inner": wide, "outer": wide.T, "gain": empty[:0], "shift": empty[:0], "choice": wide[:0]}
        return cls((), False, learnt)

    def states(self, lengths: LengthInputs, written: Integers) -> Integers:
        """Return the states of rows that have `written` so many units: (rows,) -> (rows,)."""
        kinds = np.asarray(lengths.unit)
        if self.at_most:
            kinds = kinds + len(self.units) * np.asarray(lengths.at_most)
        return kinds * STATES + countdown_state(np.asarray(lengths.length) - written)

    def change(self, hidden: NDArray[np.float32], states: Integers) -> NDArray[np.float32]:
        """Return what the head adds to the last hidden states, in numpy: (rows, width), (rows,) -> (rows, width)."""
        scale = np.sqrt((hidden * hidden).mean(1, keepdims=True) + np.finfo(np.float32).eps)
        inner = (hidden / scale) @ self.arrays["inner"]
        inner = inner * self.arrays["gain"][states] + self.arrays["shift"][states]
        found: NDArray[np.float32] = self.arrays["choice"][states] + (inner * _sigmoid(inner)) @ self.arrays["outer"]
        return found


def _sigmoid(x: NDArray[np.float32]) -> NDArray[np.float32]:
    return 0.5 * (1 + np.tanh(0.5 * x))  # without overflow


class UnitCounts:
    """The units that each row of a batch has written; each row has its own unit."""

    def __init__(self, tokenizer: Tokenizer, units: list[str], texts: list[Ids]) -> None:
        self._units = units
        self._states: dict[str, tuple[list[int], LengthState]] = {}
        for unit in dict.fromkeys(units):
            rows = [row for row, one in enumerate(units) if one == unit]
            self._states[unit] = rows, LengthState.of(meter_of(tokenizer, unit), [texts[row] for row in rows])

    @property
    def written(self) -> Integers:
        """The units of each row: (rows,)."""
        found = np.zeros(len(self._units), np.int64)
        for rows, state in self._states.values():
            found[rows] = state.used
        return found

    def advance(self, tokens: Integers) -> None:
        """Append one token to each row."""
        for rows, state in self._states.values():
            state.advance(tokens[rows])

    def select(self, rows: Integers) -> None:
        """Keep these rows in this order. A row that is named twice is forked, one that is not named is dropped."""
        order = rows.tolist()
        self._units = [self._units[row] for row in order]
        for unit, (own, state) in self._states.items():
            places = {row: place for place, row in enumerate(own)}
            state.select([places[row] for row in order if row in places])
            self._states[unit] = [n for n, row in enumerate(order) if row in places], state
