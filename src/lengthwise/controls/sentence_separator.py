"""The separator of sentences, in models that were trained on documents (Zhang, Gu, Zhang & Feng 2023).

In training, a token joins the sentences of a segment. Decoding of documents needs this token and the length of the
longest segment, so both are saved with the model. Nothing in the model changes.
"""

from .base import Control


class SentenceSeparator(Control):
    """Marks a model as trained on segments of several sentences.

    separator   what joins the sentences of a segment; one token of the model
    maximum     tokens of the longest training segment, per side
    """

    name = "sentence_separator"
    needs_length = False

    def __init__(self, separator: str = "<sep>", maximum: int = 512) -> None:
        super().__init__()
        if not separator.strip() or maximum < 1:
            raise ValueError(f"separator must be a token and maximum at least 1; got {separator!r} and {maximum}")
        self.separator, self.maximum = separator, maximum
