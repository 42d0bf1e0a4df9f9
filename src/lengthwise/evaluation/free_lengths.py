"""Free lengths: texts of a model without a budget, and as short as it can make them, for `--explain`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..generation.unconstrained import UnconstrainedWriter
from ..shortening.records import Shortened

if TYPE_CHECKING:
    from ..generation.generator import Writer
    from ..shortening.shortener import Shortener
    from ..translation.translator import Translator

Pairs = list[tuple[str, str]]  # (source, text)
SHORTEST = "at most 0.5x"  # a length that few translations reach, so that the shortest is searched for
SHORT = "at most 0.6x"  # a length at which most shortened texts keep half of the information
MIN_COVERAGE = 0.5  # of the source's information; a single word of it would be shorter, and of no use
SHORT_ANSWERS = (10, 20, 40, 80)  # characters, one after the other: the first that gives a complete answer counts
MAX_TOKENS = 512


def answers(writer: "Writer", prompts: Sequence[str]) -> tuple[Pairs, Pairs]:
    """Return the model's own answers to the prompts, and the shortest complete ones that are found.

    Of an answer that does not end within 512 tokens, as much is returned: without the long ones, usual lengths would
    seem to be shorter than they are.
    """
    free = UnconstrainedWriter(writer, receives_length=False, token_limit=lambda request: MAX_TOKENS)
    own = free.write(prompts, f"at most {MAX_TOKENS} tokens")
    left, shortest = list(prompts), []
    for limit in SHORT_ANSWERS:
        found = writer.write(left, f"at most {limit} chars") if left else []
        shortest += [(prompt, one.text) for prompt, one in zip(left, found, strict=True) if one.complete]
        left = [prompt for prompt, one in zip(left, found, strict=True) if not one.complete]
    return [(prompt, one.text) for prompt, one in zip(prompts, own, strict=True) if not one.error], shortest


def translations(translator: "Translator", sources: Sequence[str]) -> tuple[Pairs, Pairs]:
    """Return translations without a budget, and the shortest complete ones that are found."""
    free = [(one.source, one.text) for one in translator.translate(sources) if not one.error]
    tight = translator.translate(sources, SHORTEST)
    return free, [(one.source, one.text) for one in tight if not one.error and one.complete and one.intact]


def shortened(shortener: "Shortener", sources: Sequence[str]) -> Pairs:
    """Return the shortest complete texts that keep half of the information, and all placeholders, of their sources."""
    pairs = []
    for one in shortener.shorten(sources, SHORT):
        found = [one, *(other for other in one.candidates if isinstance(other, Shortened))]
        covering = [other for other in found if (other.coverage or 0) >= MIN_COVERAGE]
        whole = [other.text for other in covering if not other.error and other.complete and other.intact]
        pairs += [(one.source, min(whole, key=len))] if whole else []
    return pairs
