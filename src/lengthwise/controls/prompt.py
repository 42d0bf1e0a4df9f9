"""The length in the prompt, as an instruction: "Answer in 120 characters: …".

The baseline: it needs no training, and can be trained like the others.
"""

from string import Formatter
from typing import Any

from ..length.units import unit_named
from .base import Control

_UNIT_WORDS = {"chars": "characters", "chars-nospace": "characters without spaces", "tweet": "tweet characters"}
_UNIT_WORDS |= {"words-cjk": "words"}


class PromptControl(Control):
    """A sentence around the source that states the length.

    >>> PromptControl().prefix("Where is Rome?", 40, "chars")
    'Answer in 40 characters: Where is Rome?'
    """

    name = "prompt"

    def __init__(self, template: str = "Answer in {target} {unit}: {text}") -> None:
        super().__init__()
        fields = {field for _, field, _, _ in Formatter().parse(template) if field is not None}
        if not {"target", "text"} <= fields <= {"target", "unit", "text"}:
            raise ValueError(f"a template needs {{target}} and {{text}}, and may have {{unit}}; got {template!r}")
        self.template = template

    def prefix(self, text: str, target: int, unit: str, tokenizer: Any = None) -> str:
        unit = unit_named(unit).name
        return self.template.format(target=target, unit=_UNIT_WORDS.get(unit, unit), text=text)
