"""Forms: what the model receives in place of a sentence with placeholders, and the way back from its output.

    aligned     Click here.                  tags around words are taken out, and put around the same words afterwards
    spaced      Click <a1> here </a1>.       tags with names of their own, and spaces inside
    as it is    Click <b>here</b>.
    stand-ins   Click {1}here{2}.            one for each placeholder

A sentence is tried in the next form if no output of the one before has all placeholders in place.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import regex

from .alignment import align, phrases
from .placeholders import STAND_INS, count_placeholders, mask, unmask
from .styled import Styled
from .tags import read_tags

Known = Mapping[str, Sequence[str]]  # translations of phrases

# Spaces inside a pair of tags, which models need to translate the words beside them, are moved outside or removed.
_SPACED_TAGS = (
    (regex.compile(r"(?<=[\w.,;:!?])(<a\d+>)\s+"), r" \1"),
    (regex.compile(r"(<a\d+>)\s+"), r"\1"),
    (regex.compile(r"\s+(</a\d+>)(?=\w)"), r"\1 "),
    (regex.compile(r"\s+(</a\d+>)"), r"\1"),
)


class Form(NamedTuple):
    """What the model receives. `restore` returns its output with the placeholders, given translations of `phrases`."""

    text: str
    restore: Callable[[str, Known], str]
    phrases: Sequence[str] = ()


def forms_of(text: str) -> list[Callable[[], Form]]:
    """Return the forms of a sentence, in the order in which they are tried."""
    if not count_placeholders(text):
        return [partial(_as_it_is, text)]
    stand_ins = [partial(_stand_in, text, form) for form in STAND_INS]
    styled = read_tags(text)
    if not styled.spans:
        return [partial(_as_it_is, text), *stand_ins]
    forms = ("", *STAND_INS) if count_placeholders(styled.text) else ("",)
    aligned = [partial(_aligned, styled, form) for form in forms]
    return [*aligned, partial(_spaced, text), partial(_as_it_is, text), *stand_ins]


def _as_it_is(text: str) -> Form:
    return Form(text, lambda output, known: output)


def _stand_in(text: str, form: str) -> Form:
    masked, stand_ins = mask(text, form)
    return Form(masked, lambda output, known: unmask(output, stand_ins))


def _aligned(styled: Styled, form: str) -> Form:
    masked, stand_ins = mask(styled.text, form)

    def restore(output: str, known: Known) -> str:
        text = unmask(output, stand_ins)
        found = align(styled, text, lambda phrase: known.get(phrase, ()))
        spans = (replace(span, start=place[0], end=place[1]) for span, place in found if place)
        return Styled(text, tuple(spans)).written()

    return Form(masked, restore, phrases(styled))


def spaced(text: str) -> str:
    """Return the text with spaces inside its pairs of tags: models translate a word better if no tag adjoins it."""
    styled = read_tags(text)
    spans = (replace(span, before=f"{span.before} ", after=f" {span.after}") for span in styled.spans)
    return Styled(styled.text, tuple(spans)).written()


def _spaced(text: str) -> Form:
    styled = read_tags(text)
    names = {f"<a{n}>": span.before for n, span in enumerate(styled.spans, 1)}
    names |= {f"</a{n}>": span.after for n, span in enumerate(styled.spans, 1)}
    spans = (replace(span, before=f"<a{n}>", after=f"</a{n}>") for n, span in enumerate(styled.spans, 1))

    def restore(output: str, known: Known) -> str:
        for pattern, closed in _SPACED_TAGS:
            output = pattern.sub(closed, output)
        return unmask(output, names)

    return Form(spaced(Styled(styled.text, tuple(spans)).written()), restore)
