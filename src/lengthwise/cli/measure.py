"""`lengthwise measure`: print the length of a text in each unit."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from . import options
from .loading import load_counter
from .options import argument, flag, option
from .terminal import SOME_DO_NOT_FIT, UsageError, counted, decode, print_json, print_message, stdin, warn_if_file


def measure(
    text: Annotated[str, argument("The text; - reads it from stdin.")],
    unit: Annotated[list[str] | None, option("Count in this unit; can be repeated. [default: all]", "UNIT")] = None,
    tokenizer: Annotated[str | None, option("Also count tokens, with the tokenizer of this model.", "MODEL")] = None,
    language: Annotated[
        str, option("Also give the seconds that it takes to say a text in this language.", "LANG")
    ] = "",
    lines: Annotated[bool, flag("--lines", "Measure each line of stdin; print JSON Lines.")] = False,
    as_json: options.Json = False,
) -> None:
    """Measure a text, without the white space around it.

    \b
    lengthwise measure "Où est-il ?"
    lengthwise measure - --unit words < chapter.txt
    lengthwise measure - --lines --tokenizer smollm2 < titles.txt
    lengthwise measure "Dov'è?" --language it

    With one --unit, only the number is printed. The JSON has the signature of each unit, which names its counting rule.
    """
    from ..length.speech import chars_per_second
    from ..length.units import UNITS, unit_named
    from ..length.units import measure as length_of

    if lines and text != "-":
        raise UsageError("--lines reads stdin; give - as the text")
    units = [unit_named(name) for name in unit or []] or [one for one in UNITS.values() if one.name != "tokens"]
    if tokenizer:
        units.append(UNITS["tokens"])
    elif UNITS["tokens"] in units:
        raise UsageError("lengths in tokens need a tokenizer; give for example --tokenizer smollm2")
    units = list(dict.fromkeys(units))
    warn_if_file(text)
    counter = load_counter(tokenizer) if tokenizer else None

    rate = chars_per_second(language) if language else None

    def lengths(text: str) -> dict[str, float]:
        found: dict[str, float] = {unit.name: length_of(text, unit.name, tokenizer=counter) for unit in units}
        return found | ({} if rate is None else {"seconds": round(length_of(text, "chars") / rate, 2)})

    rules: dict[str, Any] = {"signatures": {unit.name: unit.signature for unit in units}}
    if rate is not None:
        rules["signatures"]["seconds"] = f"unit:seconds|lang:{language}|rate:{rate:g} chars/s|v1"
    rules |= {"tokenizer": tokenizer} if tokenizer else {}
    if lines:
        return _measure_lines(lengths, rules)
    given, name = (stdin().read(), "stdin") if text == "-" else (text.encode("utf-8", "surrogateescape"), "the text")
    found = lengths(decode(given, name))
    if as_json:
        print_json({"lengths": found, **rules})
    elif unit and len(found) == 1:
        print(found[units[0].name])
    else:
        for name, length in found.items():
            print(f"{name:<13} {length:>7}")


def _measure_lines(lengths: Callable[[str], dict[str, float]], rules: dict[str, Any]) -> None:
    errors = 0
    for number, line in enumerate(stdin(), 1):
        try:
            print_json({"lengths": lengths(decode(line, f"line {number}")), **rules})
        except ValueError as error:
            errors += 1
            print_json({"error": str(error)})
    if errors:
        print_message(f"{counted(errors, 'line')} could not be measured")
        raise typer.Exit(SOME_DO_NOT_FIT)
