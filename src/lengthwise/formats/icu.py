"""ICU messages: parse plural and select arguments, so that their branches can be measured and translated one by one.

    message   := (text | '{name}' | '{name, type, style}' | choice | '#')*
    choice    := '{name, plural|select|selectordinal, [offset:n] (selector '{' message '}')+ '}'

An apostrophe quotes only before a brace or a number sign, as in ICU's default mode; two are one apostrophe.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

_ARGUMENT = re.compile(
    r"\{\s*(?P<name>[\w.-]+)\s*,\s*(?P<kind>plural|select|selectordinal)\s*,(?P<offset>\s*offset:\s*\d+)?"
)
_BRANCH = re.compile(r"\s*(?P<selector>=\d+|[\w-]+)\s*\{")
_CLOSE = re.compile(r"\s*\}")
_OUTSIDE, _IN_PLURAL = (
    re.compile(rf"''|'(?P<quoted>[{special}][^']*(?:''[^']*)*)(?:'|\Z)|[^{{}}]") for special in ("{}", "{}#")
)


@dataclass(frozen=True)
class Text:
    """Literal text, without its quotes."""

    text: str


@dataclass(frozen=True)
class Argument:
    """A placeholder as it is written: {name}, or # in a plural, with the `owner` whose number it stands for."""

    raw: str
    owner: str = ""


@dataclass(frozen=True)
class Branch:
    """A selector, such as one or =0, as it is written with the space around it, and its message."""

    head: str
    message: "Message"

    @property
    def selector(self) -> str:
        return self.head.strip()


@dataclass(frozen=True)
class Choice:
    """A plural, select or selectordinal argument. `head` and `tail`: what is written before and after its branches."""

    name: str
    kind: str
    head: str
    branches: tuple[Branch, ...]
    tail: str = "}"

    @property
    def counts(self) -> bool:
        return self.kind != "select"


Message = tuple[Text | Argument | Choice, ...]


def has_choices(text: str) -> bool:
    """Return whether the text has a plural or select argument, and so is an ICU message."""
    return _ARGUMENT.search(text) is not None


def parse(text: str) -> Message:
    """Return the message; raise ValueError if its braces do not match, or if a choice has no branch `other`."""
    message, at = _parse(text, 0, "")
    if at < len(text):
        raise ValueError(f"unexpected }} in the message, after {text[max(0, at - 20) : at]!r}")
    return message


def _parse(text: str, at: int, owner: str) -> tuple[Message, int]:
    """Return the message from `at` to the brace that closes it, and where that is. `owner`: the plural around it."""
    parts: list[Text | Argument | Choice] = []
    literal = _IN_PLURAL if owner else _OUTSIDE
    while at < len(text) and text[at] != "}":
        if argument := _ARGUMENT.match(text, at):
            choice, at = _choice(text, argument, owner)
            parts.append(choice)
        elif text[at] == "{":  # {name}, {date, date, short}
            end = _closing(text, at)
            parts.append(Argument(text[at:end]))
            at = end
        elif text[at] == "#" and owner:
            parts.append(Argument("#", owner))
            at += 1
        else:
            found = literal.match(text, at)
            assert found is not None
            quoted = found["quoted"]
            new = quoted.replace("''", "'") if quoted else "'" if found[0] == "''" else found[0]
            if parts and isinstance(parts[-1], Text):
                new = parts.pop().text + new  # type: ignore[union-attr]
            parts.append(Text(new))
            at = found.end()
    return tuple(parts), at


def _closing(text: str, at: int) -> int:
    depth, start = 0, at
    while at < len(text):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
        if not depth:
            return at
    raise ValueError(f"a brace is not closed: {text[start : start + 20]!r}")


def _choice(text: str, argument: re.Match[str], owner: str) -> tuple[Choice, int]:
    branches, at = [], argument.end()
    inside = owner if argument["kind"] == "select" else argument["name"]
    while branch := _BRANCH.match(text, at):
        message, at = _parse(text, branch.end(), inside)
        if at >= len(text):
            raise ValueError(f"the branch {branch['selector']!r} of {argument['name']!r} is not closed")
        branches.append(Branch(branch[0][:-1], message))
        at += 1
    close = _CLOSE.match(text, at)
    if close is None:
        raise ValueError(f"expected a selector and a brace in {argument['name']!r}; got {text[at : at + 20]!r}")
    if not any(branch.selector == "other" for branch in branches):
        raise ValueError(f"the argument {argument['name']!r} has no branch 'other'")
    return Choice(argument["name"], argument["kind"], argument[0], tuple(branches), close[0]), close.end()


def write(message: Message, *, doubled: bool = False, owner: str = "") -> str:
    """Return the message as text. `doubled`: every apostrophe is written twice, as Java's MessageFormat needs it.

    A number sign that belongs to another plural than the one around it is written as {n, number}.
    """
    parts = []
    for part in message:
        if isinstance(part, Text):
            parts.append(quote(part.text, bool(owner), doubled))
        elif isinstance(part, Argument):
            parts.append(f"{{{part.owner}, number}}" if part.raw == "#" and part.owner != owner else part.raw)
        else:
            inside = part.name if part.counts else owner
            forms = (f"{one.head}{{{write(one.message, doubled=doubled, owner=inside)}}}" for one in part.branches)
            parts.append(part.head + "".join(forms) + part.tail)
    return "".join(parts)


def quote(text: str, in_plural: bool = False, doubled: bool = False) -> str:
    """Return literal text as messages write it. An apostrophe is doubled where it would quote, or if asked for."""

    def replace(run: re.Match[str]) -> str:
        rest = run[0].lstrip("'")
        before = "''" * (len(run[0]) - len(rest))
        if rest:
            return before + "'" + rest.replace("'", "''") + "'"
        return "'" if before == "''" and not doubled and run.end() < len(text) else before

    special = "'{}#" if in_plural else "'{}"
    return re.sub(rf"(?:\{{+[^'{{}}]*\}}+|[{special}])+", replace, text)  # braces with what is between them


def longest(text: str, length: Callable[[str], int] = len) -> str:
    """Return the message with the longest branch of each plural or select argument, and other texts as they are.

    >>> longest("{n, plural, one {# file} other {# files}} in {folder}")
    '# files in {folder}'
    """
    if not has_choices(text):
        return text
    try:
        return _longest(parse(text), length)
    except ValueError:
        return text


def _longest(message: Message, length: Callable[[str], int]) -> str:
    def shown(part: Text | Argument | Choice) -> str:
        if isinstance(part, Choice):
            return max((_longest(branch.message, length) for branch in part.branches), key=length)
        return part.text if isinstance(part, Text) else part.raw

    return "".join(map(shown, message))
