"""`lengthwise measure`: how long a text is, in each unit. How a unit counts is `lengthwise.units`' to know."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .loading import load_counter
from .terminal import SOME_DO_NOT_FIT, Json, UsageError, complain, decoded, print_json, stdin, tell_of_file

if TYPE_CHECKING:
    from ..length.units import Unit


def measure(
    text: Annotated[str, typer.Argument(help="The text; - reads it from stdin.")],
    unit: Annotated[
        list[str] | None, typer.Option(metavar="UNIT", help="Count in this unit; may be given again. [default: all]")
    ] = None,
    tokenizer: Annotated[str | None, typer.Option(help="Count tokens too, as this model does: name or folder.")] = None,
    lines: Annotated[bool, typer.Option("--lines", help="Measure each line of stdin; a line of JSON each.")] = False,
    as_json: Json = False,
) -> None:
    """Say how long a text is, white space at both ends aside.

    \b
    lengthwise measure "Où est-il ?"
    lengthwise measure - --unit words < chapter.txt
    lengthwise measure - --lines --tokenizer smollm2 < titles.txt

    With a single --unit it prints only the number. JSON names the rule that each unit counts by (its signature).
    """
    if lines and text != "-":
        raise UsageError("--lines measures the lines of stdin; give - as the text")
    units = _units(unit or [], tokenizer)
    tell_of_file(text)
    counter = load_counter(tokenizer) if tokenizer else None
    lengths = partial(_lengths, units=units, tokenizer=counter)
    rules = {"signatures": {unit.name: unit.signature for unit in units}}
    rules |= {"tokenizer": tokenizer} if tokenizer else {}  # type: ignore[dict-item]
    if lines:
        _measure_lines(lengths, rules)
        return
    given, name = (stdin().read(), "stdin") if text == "-" else (text.encode("utf-8", "surrogateescape"), "the text")
    found = lengths(decoded(given, name))
    if as_json:
        print_json({"lengths": found, **rules})
    elif unit and len(units) == 1:
        print(found[units[0].name])
    else:
        for name, length in found.items():
            print(f"{name:<13} {length:>7}")


def _units(names: list[str], tokenizer: str | None) -> "list[Unit]":
    from ..length.units import UNITS, unit_named

    units = [unit_named(name) for name in names] or [unit for unit in UNITS.values() if unit.name != "tokens"]
    if tokenizer:
        units.append(UNITS["tokens"])
    elif UNITS["tokens"] in units:
        raise UsageError("each model has its own tokens: say whose, for example --tokenizer smollm2")
    return list(dict.fromkeys(units))


def _lengths(text: str, units: "list[Unit]", tokenizer: Any) -> dict[str, int]:
    from ..length.units import measure

    return {unit.name: measure(text, unit.name, tokenizer=tokenizer) for unit in units}


def _measure_lines(lengths: Callable[[str], dict[str, int]], rules: dict[str, Any]) -> None:
    errors = 0
    for number, line in enumerate(stdin(), 1):
        try:
            print_json({"lengths": lengths(decoded(line, f"line {number}")), **rules})
        except ValueError as error:
            errors += 1
            print_json({"error": str(error)})
    if errors:
        complain(f"{errors} lines could not be measured")
        raise typer.Exit(SOME_DO_NOT_FIT)
