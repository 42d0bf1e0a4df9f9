"""Drafts: the requests for one text of a file, and how its new text is built from their answers.

A text is made ready for a translator: white space around it and a mnemonic are taken out, and codes that must not be
translated become one placeholder each. What was taken out is put back afterwards.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..formats import Entry, Limit, Place, xml
from ..formats.check import check_text
from ..formats.limits import countable
from ..formats.xliff import CODE
from ..length.budget import Budget
from ..length.units import UNITS
from ..translation.placeholders import changed_placeholders, count_placeholders, split_placeholders, translatable
from . import mnemonics
from .plan import Answers, Request

_ATOM = re.compile(rf"{CODE.pattern}|<(?P<tag>xliff:g)\b[^<>]*>.*?</(?P=tag)>", re.DOTALL)
# What stands for the number in a text with plural forms.
NUMBER = re.compile(
    r"%(?:\d+\$)?(?:ll?|h|z)?[dui](?![a-z])|%L?n\b|%L?1\b|%\{count\}|\{\{\s*count\s*\}\}|\{#[\w.-]*\}|%\(\w+\)d|\{count\}|\{n\}"
)

_CHOICE = re.compile(r"(?<=\S)\|(?=\S)")
_SIGN = re.compile(r"\{#[\w.-]*\}")  # how the number sign of an ICU message is sent, with the name of its argument


@dataclass(frozen=True)
class Built:
    """A new text. With an `error` there is none, and the old one stays."""

    text: str
    complete: bool = True
    notes: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class Draft:
    """The requests for a text, and the function that builds it from the answers."""

    requests: tuple[Request, ...]
    build: Callable[[Answers], Built]


@dataclass(frozen=True)
class Context:
    """What is known about the text: its limits, given the source as a reader sees it, and how its file writes texts.

    `marks`: the marks of mnemonics. `shortens`: only texts that do not fit are asked for. `doubled`: apostrophes are
    written twice, as in Java's MessageFormat. `beside`: other text that is shown with it, and counts.
    """

    limits: Callable[[str], Sequence[Limit]]
    markup: bool = False
    marks: str = ""
    shortens: bool = False
    doubled: bool = False
    beside: str = ""


def unchanged(text: str) -> Draft:
    """Return the draft of a text that is not asked for."""
    return Draft((), lambda answers: Built(text))


def shown(text: str, markup: bool) -> str:
    """Return the text as a reader sees it, without tags and codes."""
    return xml.shown(CODE.sub("", text), True) if markup else text


def plain(text: str, context: Context, seen: str | None = None) -> Draft:
    """Return the draft of a text that is asked for as a whole. `seen`: what its length is compared with, if not it."""
    body = text.strip()
    if not translatable(_ATOM.sub(" ", body) if context.markup else body):
        return unchanged(text)
    if (parts := _alternatives(text)) and not context.limits(body):
        return _choices(parts, context)
    head, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    body = body.replace("''", "'") if context.doubled else body
    bare, mnemonic = (body, "") if context.markup else mnemonics.take_out(body, context.marks)
    masked, codes = _mask(bare) if context.markup else (bare, {})
    visible = shown(_SIGN.sub("#", text) if seen is None else seen, context.markup).strip()
    limits = context.limits(visible)
    if context.shortens:
        limits = [limit for limit in limits if _is_outside(visible + context.beside, limit)]
        if not limits:
            return unchanged(text)
    budget = room(limits, masked, visible, context.beside)
    if context.shortens and budget is None:
        return unchanged(text)
    request = Request(masked, budget)

    def build(answers: Answers) -> Built:
        answer = answers[request]
        if answer.error or not answer.text.strip():
            return Built(text, False, (), answer.error or "the model returned an empty text")
        new = _without_stray_braces(answer.text.strip(), masked)
        if lost := changed_placeholders(masked, new):
            named = ", ".join(codes.get(mark, mark) for mark in lost)
            return Built(text, False, (), f"placeholders were lost, doubled or misplaced: {named}")
        for stand_in, code in codes.items():
            new = new.replace(stand_in, code)
        new = new if context.shortens else _capitalised(new, bare)
        new = mnemonics.put_back(new, mnemonic)
        new = new.replace("'", "''") if context.doubled else new
        return Built(head + new + tail, answer.complete, (answer.note,) if answer.note else ())

    return Draft((request,), build)


def _is_outside(text: str, limit: Limit) -> bool:
    if not countable(limit):
        return False
    return any(check_text("", Entry("", text, Place(0, 0, 0), text), limit))


def _alternatives(text: str) -> list[str]:
    """Return the parts of a text with alternatives, or nothing if it has none; {{ name|filter }} is a placeholder."""
    parts = _CHOICE.split(text)
    if len(parts) == 1:
        return []
    return parts if sum(map(count_placeholders, parts), Counter()) == count_placeholders(text) else []


def _choices(parts: list[str], context: Context) -> Draft:
    """Return the draft of a text with alternatives, as Symfony and Laravel write plurals: 'one file|%count% files'."""
    drafts = [plain(part, context) for part in parts]

    def build(answers: Answers) -> Built:
        built = [draft.build(answers) for draft in drafts]
        error = next((one.error for one in built if one.error), None)
        notes = tuple(note for one in built for note in one.notes)
        return Built("|".join(one.text for one in built), all(one.complete for one in built), notes, error)

    return Draft(tuple(request for draft in drafts for request in draft.requests), build)


def _without_stray_braces(text: str, source: str) -> str:
    """Return the text without braces outside placeholders, if the source has none there: models write '{{{ name }}'."""
    if any("{" in piece or "}" in piece for piece, is_placeholder in split_placeholders(source) if not is_placeholder):
        return text
    pieces = split_placeholders(text)
    return "".join(piece if is_placeholder else re.sub(r"[{}]", "", piece) for piece, is_placeholder in pieces)


def _capitalised(text: str, source: str) -> str:
    """Return the text with a capital first letter if the source has one, unless a word of the source comes first."""
    first = text.split(maxsplit=1)[0]
    return text[0].upper() + text[1:] if source[0].isupper() and first not in source.split() else text


def _mask(text: str) -> tuple[str, dict[str, str]]:
    """Return the text with a placeholder for each code, and the codes."""
    codes: dict[str, str] = {}

    def replace(found: re.Match[str]) -> str:
        codes[f"{{@{len(codes) + 1}}}"] = found[0]
        return list(codes)[-1]

    return _ATOM.sub(replace, text), codes


def sampled(text: str, number: int, context: Context, place: str | None = None) -> Draft:
    """Return the draft of a plural form for this number: the text is translated with the number in it.

    So "%d files" becomes "5 files", "5 plików" and "%d plików". A number tells the form and the grammar; a placeholder
    tells neither. If the number is not in the translation, the text is translated with its placeholder. `place`: the
    placeholder of the number, if it is known.
    """
    places = NUMBER.findall(text) if place is None else [place] * text.count(place)
    places = [one for one in places if one in ("%n", "%Ln")] or places  # Qt has other numbers beside it
    usual = plain(text, context, seen=_SIGN.sub("#", text))
    if len(places) != 1 or not usual.requests:
        return usual
    form, example = re.compile(rf"(?<![\d.,]){number}(?![\d.,]*\d)"), text.replace(places[0], str(number))
    if len(form.findall(example)) != 1:
        return usual
    with_number = plain(example, context, seen=_SIGN.sub("#", text))

    def build(answers: Answers) -> Built:
        built = with_number.build(answers)
        if built.error or len(form.findall(built.text)) != 1:
            return usual.build(answers)
        return Built(form.sub(lambda _: places[0], built.text), built.complete, built.notes)

    return Draft((*with_number.requests, *usual.requests), build)


def _rows(limit: Limit, visible: str) -> int:
    return (limit.lines or visible.count("\n") + 1) if limit.each_line else 1


def room(limits: Sequence[Limit], request: str, visible: str, beside: str = "") -> Budget | None:
    """Return the budget of a request: the smallest limit that can be counted, for the text as the translator sees it.

    Tags and placeholders that stand for codes are no part of the limited length, so their length is added.
    """
    counted = [limit for limit in limits if countable(limit) and (limit.high or limit.low)]
    if not counted:
        return None
    limit = min(counted, key=lambda one: (one.high or float("inf")) * _rows(one, visible))
    measure, unit = UNITS[limit.unit].measure, limit.unit
    extra = measure(request) - measure(visible) - (measure(beside) if beside.strip() else 0)
    high = None if limit.high is None else max(1, limit.high * _rows(limit, visible) + extra)
    low = max(0, limit.low + extra) if limit.low else 0
    return None if high is None and not low else Budget(low if high is None else min(low, high), high, unit=unit)
