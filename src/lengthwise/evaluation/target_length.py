"""The target length of an evaluation: one budget for all texts, or the length of each text's reference."""

from dataclasses import dataclass
from typing import Any

from ..length.budget import Budget, as_budget, exactly
from ..length.units import measure, unit_named


@dataclass(frozen=True)
class TargetLength:
    """The length that each text should have."""

    budget: Budget | None  # None: the length of the reference
    unit: str

    @classmethod
    def parse(cls, text: str) -> "TargetLength":
        """Return the target length for 'at most 75 chars', '1.0x', ..., or 'reference:words'."""
        word, _, unit = text.strip().partition(":")
        if word.lower() == "reference":
            return cls(None, unit_named(unit or "chars").name)
        budget = as_budget(text)
        return cls(budget, budget.unit)

    def of(self, source: str | None, reference: str | None, tokenizer: Any = None) -> Budget:
        """Return the budget of one text, in counts."""
        if self.budget is None:
            if reference is None:
                raise ValueError(f"'{self}' needs references; there are none")
            return exactly(max(1, measure(reference, self.unit, tokenizer=tokenizer)), self.unit)
        if self.budget.of_source and source is None:
            raise ValueError(f"'{self.budget}' is relative to the source; there are no sources")
        return self.budget.resolve(source or "", tokenizer)

    def __str__(self) -> str:
        return f"reference:{self.unit}" if self.budget is None else str(self.budget)
