"""ICU messages: their branches are translated one by one, and their syntax stays.

A branch is translated together with the text around its argument, because "You have" and "# files" are no sentences:

    You have {n, plural, one {# file} other {# files}}
    {n, plural, one {You have # file} other {You have # files}}       each branch is a sentence, within the limit

If there is no other text, the message keeps its form. Plural arguments get the branches that the target needs.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from math import prod

from ..formats.icu import Argument, Branch, Choice, Message, Text, parse, write
from ..formats.plurals import USUAL, categories, exact_forms
from ..translation.placeholders import translatable
from .drafts import Built, Context, Draft, plain, sampled, unchanged
from .plan import Answers

MAX_VARIANTS = 24  # branches of a message with several arguments; with more, its pieces are translated as they are
_CODE_WITH_ID = re.compile(r"<[\w:.-]+\s[^<>]*\bid\s*=")
_ORDINAL = re.compile(r"\{#[^{}]*\}\w{0,3}")  # "#st" is no text to translate
_AS_NUMBER = re.compile(r"\{(?P<name>[\w.-]+), number\}")  # how `write` names the number of another plural


def message_draft(text: str, context: Context, target: str | None) -> Draft:
    """Return the draft of an ICU message. `target`: the language to translate to, or None."""
    try:
        # A text that is moved into branches occurs once in each; a code with an id may occur only once in XLIFF.
        tree = parse(text) if context.markup and _CODE_WITH_ID.search(text) else _with_context(parse(text))
        if target is not None:
            tree = tuple(_with_forms(part, target) for part in tree)
    except ValueError as error:
        reason = f"not an ICU message: {error}"
        return Draft((), lambda answers: Built(text, False, (), reason))
    leaves = list(_leaves(tree, replace(context, doubled=False), ""))

    def build(answers: Answers) -> Built:
        built = [draft.build(answers) for _, draft in leaves]
        if error := next((one.error for one in built if one.error), None):
            return Built(text, False, (), error)
        if all(one.text == run for one, (run, _) in zip(built, leaves, strict=True)):
            return Built(text)
        new = write(_rebuilt(tree, iter(built), ""), doubled=context.doubled)
        if _shape(parse(new)) != _shape(tree):
            return Built(text, False, (), "the translation is not the same ICU message")
        notes = tuple(dict.fromkeys(note for one in built for note in one.notes))
        return Built(new, all(one.complete for one in built), notes)

    return Draft(tuple(request for _, draft in leaves for request in draft.requests), build)


def _with_context(message: Message, in_offset: bool = False) -> Message:
    """Return the message with the text around an argument moved into its branches, if that text has words.

    `in_offset`: the message is a branch of a plural with an offset. Its # stays there: in another plural it would be
    written as {n, number}, without the offset.
    """

    def inner(choice: Choice, message: Message) -> Message:
        return _with_context(message, _has_offset(choice) if choice.counts else in_offset)

    message = tuple(
        replace(part, branches=tuple(replace(one, message=inner(part, one.message)) for one in part.branches))
        if isinstance(part, Choice)
        else part
        for part in message
    )
    choices = [part for part in message if isinstance(part, Choice)]
    outside = "".join(part.text for part in message if isinstance(part, Text))
    with_offset = any(map(_has_offset, choices))
    too_many = prod(_variants(choice) for choice in choices) > MAX_VARIANTS
    if not choices or not translatable(outside) or (len(choices) > 1 and with_offset) or too_many:
        return message
    signs = any(isinstance(part, Argument) and part.raw == "#" for part in message)
    if in_offset and signs and any(choice.counts for choice in choices):
        return message
    at = message.index(choices[0])
    before, choice, after = message[:at], choices[0], message[at + 1 :]
    branches = (
        replace(one, message=inner(choice, _joined((*before, *one.message, *_decided(after, choice, one)))))
        for one in choice.branches
    )
    return (replace(choice, branches=tuple(branches)),)


def _decided(message: Message, choice: Choice, branch: Branch) -> Message:
    """Return the message inside a branch of `choice`: of an equal choice, only the same branch can occur there."""
    parts: list[Text | Argument | Choice] = []
    for part in message:
        same = {one.selector: one for one in part.branches} if isinstance(part, Choice) and _alike(part, choice) else {}
        parts += same[branch.selector].message if same else (part,)
    return tuple(parts)


def _alike(one: Choice, other: Choice) -> bool:
    """Return whether two choices of a message always take branches with the same selector."""
    argument = (one.name, one.kind) == (other.name, other.kind) and not _has_offset(one) and not _has_offset(other)
    return argument and {b.selector for b in one.branches} == {b.selector for b in other.branches}


def _has_offset(choice: Choice) -> bool:
    return "offset:" in choice.head


def _variants(part: Text | Argument | Choice) -> int:
    """Return how many texts a part has."""
    if not isinstance(part, Choice):
        return 1
    return sum(prod(map(_variants, branch.message)) for branch in part.branches)


def _joined(parts: Message) -> Message:
    """Return the message with neighbouring texts joined."""
    found: list[Text | Argument | Choice] = []
    for part in parts:
        if isinstance(part, Text) and found and isinstance(found[-1], Text):
            part = Text(found.pop().text + part.text)  # type: ignore[union-attr]
        found.append(part)
    return tuple(found)


def _with_forms(part: Text | Argument | Choice, target: str) -> Text | Argument | Choice:
    """Return a plural argument with a branch for each form of the target. New ones begin as copies of `other`.

    A form of a single number, such as `one` of Italian, is not added if the message has a branch =1.
    """
    if not isinstance(part, Choice):
        return part
    branches = [replace(one, message=tuple(_with_forms(p, target) for p in one.message)) for one in part.branches]
    if part.counts:
        ordinal = part.kind == "selectordinal"
        wanted = categories(target, ordinal)
        have = {branch.selector for branch in branches}
        have |= {form for form in exact_forms(target, ordinal) if f"={wanted[form]}" in have}
        other = next(n for n, branch in enumerate(branches) if branch.selector == "other")
        for form in (form for form in wanted if form not in have):
            head = branches[other].head.replace("other", form)
            branches.insert(other, Branch(head, branches[other].message))
            other += 1
        branches = [_with_example(part.name, branch, wanted) for branch in branches]
    return replace(part, branches=tuple(branches))


def _with_example(name: str, branch: Branch, forms: dict[str, int]) -> Branch:
    """Return the branch of a plural with a number that has this form beside each # and each {name}."""
    selector = branch.selector
    number = int(selector[1:]) if selector[0] == "=" else forms.get(selector, USUAL.get(selector, 5))
    message = branch.message
    for old in (Argument("#", name), Argument(f"{{{name}}}")):
        message = _replaced(message, old, Argument(old.raw, f"{name}={number}"))
    return replace(branch, message=message)


def _replaced(message: Message, old: Argument, new: Argument) -> Message:
    """Return the message with another argument in the place of one."""
    return tuple(
        replace(part, branches=tuple(replace(b, message=_replaced(b.message, old, new)) for b in part.branches))
        if isinstance(part, Choice)
        else (new if part == old else part)
        for part in message
    )


def _runs(message: Message) -> Iterator[Choice | Message]:
    """Yield the arguments with branches, and the runs of other parts between them."""
    run: list[Text | Argument] = []
    for part in message:
        if isinstance(part, Choice):
            if run:
                yield tuple(run)
            yield part
            run = []
        else:
            run.append(part)
    if run:
        yield tuple(run)


def _leaves(message: Message, context: Context, beside: str) -> Iterator[tuple[str, Draft]]:
    """Yield the texts of a message that have no branches, each with its draft."""
    runs = list(_runs(message))
    for run in runs:
        around = beside + "".join(
            _string(other)[0] for other in runs if not isinstance(other, Choice) and other is not run
        )
        if isinstance(run, Choice):
            for branch in run.branches:
                yield from _leaves(branch.message, context, around)
        else:
            text, numbers = _string(run)
            own = replace(context, beside=around)
            if _ORDINAL.fullmatch(text.strip()):
                yield text, unchanged(text)
            elif len(numbers) == 1:
                [(sign, number)] = numbers.items()
                yield text, sampled(text, number, own, sign)
            else:
                yield text, plain(text, own)


def _string(run: Message) -> tuple[str, dict[str, int]]:
    """Return a run as a text with placeholders, {#n} for the number sign of n, and examples for the numbers in it."""
    numbers: dict[str, int] = {}
    parts: list[str] = []
    for part in run:
        if isinstance(part, Argument) and part.owner:
            if example := part.owner.partition("=")[2]:
                numbers[_sign(part)] = int(example)
            parts.append(_sign(part))
        elif not isinstance(part, Choice):
            parts.append(part.text if isinstance(part, Text) else part.raw)
    return "".join(parts), numbers


def _sign(part: Argument) -> str:
    return f"{{#{part.owner.partition('=')[0]}}}" if part.raw == "#" else part.raw


def _rebuilt(message: Message, built: Iterator[Built], owner: str) -> Message:
    """Return the message with the new texts, in the order of `_leaves`."""
    parts: list[Text | Argument | Choice] = []
    for run in _runs(message):
        if isinstance(run, Choice):
            inside = run.name if run.counts else owner
            branches = (replace(one, message=_rebuilt(one.message, built, inside)) for one in run.branches)
            parts.append(replace(run, branches=tuple(branches)))
        else:
            parts += _as_message(next(built).text, run)
    return tuple(parts)


def _as_message(text: str, run: Message) -> Iterator[Text | Argument]:
    """Yield the parts of a new text: the arguments of the run that it replaces, and the text between them."""
    arguments = {_sign(part) if part.owner else part.raw: part for part in run if isinstance(part, Argument)}
    form = "|".join(map(re.escape, sorted(arguments, key=len, reverse=True)))
    for n, piece in enumerate(re.split(f"({form})", text) if form else [text]):
        if n % 2:
            argument = arguments[piece]
            yield replace(argument, owner=argument.owner.partition("=")[0])
        elif piece:
            yield Text(piece)


def _shape(message: Message, offsets: frozenset[str] = frozenset()) -> list[object]:
    """Return what of a message must stay: its arguments, selectors and branches, without the texts.

    `offsets`: the names of the plurals with an offset around it. Their # is not the same as {n, number}.
    """
    found: list[object] = []
    for part in message:
        if isinstance(part, Choice):
            inside = offsets | {part.name} if _has_offset(part) else offsets
            branches = [(branch.selector, _shape(branch.message, inside)) for branch in part.branches]
            found.append((part.name, part.kind, branches))
        elif isinstance(part, Argument):
            number = _AS_NUMBER.fullmatch(part.raw)
            owner = number["name"] if number else part.owner.partition("=")[0]
            same = (part.raw == "#" or number) and owner not in offsets
            found.append("#" if same else f"# of {owner}" if part.raw == "#" else part.raw)
    return sorted(found, key=repr)
