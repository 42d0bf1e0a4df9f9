"""The states of a countdown: few states for the units that remain, exact near the end. For numpy and torch."""

from typing import Any

STATES = 40  # for the counts 0 to 127; the last one begins at 120
_LARGEST = 127  # larger counts have the state of this one


def countdown_state(remaining: Any) -> Any:
    """Return the state of each count: 0 … 15 → 0 … 15, 16 and 17 → 16, 31 → 23, 32 … 35 → 24, …, 120 and more → 39."""
    remaining = remaining.clip(0, _LARGEST)
    octave = 1 * (remaining >= 16) + 1 * (remaining >= 32) + 1 * (remaining >= 64)
    return 8 * octave + (remaining >> octave)
