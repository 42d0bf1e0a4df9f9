"""The length in the prompt, as an instruction: "Answer in 120 characters: …", or as a mark: "[95%] …".

The first is the baseline: it needs no training, and can be trained like the others. The second is the length token of
Lakew et al. 2019 in finer steps, without new tokens.
"""

from typing import Any

from ..length.prompt_template import PromptTemplate
from .base import Control


class PromptControl(Control):
    """A sentence around the source that states the length.

    `plain_share`: this share of the training examples of usual length receive the source alone, so that the model also
    works without a length.

    >>> PromptControl().prefix("Where is Rome?", 40, "chars")
    'Answer in 40 characters: Where is Rome?'
    """

    name = "prompt"
    reads_length_first = True
    can_shift = True

    def __init__(self, template: str = "Answer in {target} {unit}: {text}", plain_share: float = 0.0) -> None:
        super().__init__()
        if not 0 <= plain_share < 1:
            raise ValueError(f"plain_share must be at least 0 and below 1; got {plain_share}")
        self.template, self.plain_share = PromptTemplate(template).template, plain_share
        self.needs_length = not plain_share

    def prefix(self, text: str, target: int, unit: str, tokenizer: Any = None) -> str:
        return PromptTemplate(self.template).prefix(text, target, unit, tokenizer)
