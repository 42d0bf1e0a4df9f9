"""The length as an instruction in the prompt: "Answer in 120 characters: …"."""

from string import Formatter
from typing import Any

from .units import unit_named

_UNIT_WORDS = {"chars": "characters", "chars-nospace": "characters without spaces", "tweet": "tweet characters"}
_UNIT_WORDS |= {"words-cjk": "words"}


class PromptTemplate:
    """A sentence around the text that states the length.

    >>> PromptTemplate("Answer in {target} {unit}: {text}").prefix("Where is Rome?", 40, "chars")
    'Answer in 40 characters: Where is Rome?'
    """

    units: tuple[str, ...] = ()  # it does not count
    needs_length = False

    def __init__(self, template: str) -> None:
        fields = {field for _, field, _, _ in Formatter().parse(template) if field is not None}
        if not {"target", "text"} <= fields <= {"target", "unit", "text"}:
            raise ValueError(f"a template needs {{target}} and {{text}}, and may have {{unit}}; got {template!r}")
        self.template = template

    def prefix(self, text: str, target: int, unit: str, tokenizer: Any = None) -> str:
        unit = unit_named(unit).name
        return self.template.format(target=target, unit=_UNIT_WORDS.get(unit, unit), text=text)
