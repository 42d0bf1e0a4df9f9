"""The length in the prompt, as an instruction: "Answer in 120 characters: …".

The baseline: it needs no training, and can be trained like the others.
"""

from typing import Any

from ..length.prompt_template import PromptTemplate
from .base import Control


class PromptControl(Control):
    """A sentence around the source that states the length.

    >>> PromptControl().prefix("Where is Rome?", 40, "chars")
    'Answer in 40 characters: Where is Rome?'
    """

    name = "prompt"

    def __init__(self, template: str = "Answer in {target} {unit}: {text}") -> None:
        super().__init__()
        self.template = PromptTemplate(template).template

    def prefix(self, text: str, target: int, unit: str, tokenizer: Any = None) -> str:
        return PromptTemplate(self.template).prefix(text, target, unit)
