"""`lengthwise measure`: the length of a text in each unit. `lengthwise.length.units` knows how a unit counts."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .loading import load_counter
from .options import argument, flag, option
from .terminal import SOME_DO_NOT_FIT, UsageError, decode, print_json, print_message, stdin, warn_if_file

if TYPE_CHECKING:
    from ..length.units import Unit


def measure(
    text: Annotated[str, argument("The text; - reads it from stdin.")],
    unit: Annotated[list[str] | None, option("Count in this unit; can be repeated. [default: all]", "UNIT")] = None,
    tokenizer: Annotated[
        str | None, option("Also count tokens, with the tokenizer of this model: a name or a folder.")
    ] = None,
    lines: Annotated[bool, flag("--lines", "Measure each line of stdin; print JSON Lines.")] = False,
    as_json: options.Json = False,
) -> None:
    """Measure a text, without white space at both ends.

    \b
    lengthwise measure "Où est-il ?"
    lengthwise measure - --unit words < chapter.txt
    lengthwise measure - --lines --tokenizer smollm2 < titles.txt

    With a single --unit, only the number is printed. The JSON names the rule that each unit counts by (its signature).
    """
    from ..length.units import measure as length_of

    if lines and text != "-":
        raise UsageError("--lines measures the lines of stdin; give - as the text")
    units = _units(unit or [], tokenizer)
    warn_if_file(text)
    counter = load_counter(tokenizer) if tokenizer else None

    def lengths(text: str) -> dict[str, int]:
        return {unit.name: length_of(text, unit.name, tokenizer=counter) for unit in units}

    rules: dict[str, Any] = {"signatures": {unit.name: unit.signature for unit in units}}
    rules |= {"tokenizer": tokenizer} if tokenizer else {}
    if lines:
        _measure_lines(lengths, rules)
        return
    given, name = (stdin().read(), "stdin") if text == "-" else (text.encode("utf-8", "surrogateescape"), "the text")
    found = lengths(decode(given, name))
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


def _measure_lines(lengths: Callable[[str], dict[str, int]], rules: dict[str, Any]) -> None:
    errors = 0
    for number, line in enumerate(stdin(), 1):
        try:
            print_json({"lengths": lengths(decode(line, f"line {number}")), **rules})
        except ValueError as error:
            errors += 1
            print_json({"error": str(error)})
    if errors:
        print_message(f"{errors} lines could not be measured")
        raise typer.Exit(SOME_DO_NOT_FIT)
