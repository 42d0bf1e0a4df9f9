"""The length as an instruction in the prompt: "Answer in 120 characters: …", or "[95%] …" before a source."""

import math
import re
from collections.abc import Mapping
from string import Formatter
from typing import Any

from .units import measure, unit_named

_UNIT_WORDS = {"chars": "characters", "chars-nospace": "characters without spaces", "tweet": "tweet characters"}
_UNIT_WORDS |= {"words-cjk": "words"}
_LANGUAGE = re.compile(r">>[^<>\s]+<<\s*")  # Marian's code of the target language: it is known at the start only


class PromptTemplate:
    """A sentence around the text that states the length, as {target} or as a {percent} of the text's own length.

    `needs_length`: the model was not trained without it.

    >>> PromptTemplate("Answer in {target} {unit}: {text}").prefix("Where is Rome?", 40, "chars")
    'Answer in 40 characters: Where is Rome?'
    >>> PromptTemplate("[{percent}%] {text}").prefix("Where is Rome?", 13, "chars")
    '[95%] Where is Rome?'
    """

    units: tuple[str, ...] = ()  # it does not count
    at_most = False
    reads_length_first = True

    def __init__(self, template: str, needs_length: bool = False) -> None:
        fields = {field for _, field, _, _ in Formatter().parse(template) if field is not None}
        if not fields & {"target", "percent"} or "text" not in fields or fields - {"target", "percent", "unit", "text"}:
            wanted = "{text}, and {target} or {percent}; it may have {unit}"
            raise ValueError(f"a template needs {wanted}; got {template!r}")
        self.template, self.needs_length, self._relative = template, needs_length, "percent" in fields

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "PromptTemplate":
        """Return the template that a `config()` of a `PromptControl` describes."""
        return cls(config["template"], needs_length=not config.get("plain_share"))

    def prefix(self, text: str, target: int, unit: str, tokenizer: Any = None) -> str:
        unit = unit_named(unit).name
        code = match[0] if (match := _LANGUAGE.match(text)) else ""
        text = text[len(code) :]
        percent = _percent(target, measure(text, unit, tokenizer=tokenizer)) if self._relative else 0
        return code + self.template.format(target=target, percent=percent, unit=_UNIT_WORDS.get(unit, unit), text=text)


def _percent(target: int, source: int) -> int:
    """Return the target in percent of the source, rounded up to a multiple of 5, and from 50 to 150.

    >>> _percent(96, 100), _percent(100, 100), _percent(9, 2)
    (100, 100, 150)
    """
    return min(150, max(50, 5 * math.ceil(20 * target / max(1, source) - 1e-9)))
