"""`lengthwise demo`: answer one prompt at three lengths, translate a sentence within its own length, print tables."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from . import options
from .loading import load
from .options import argument, option
from .terminal import print_json, status

if TYPE_CHECKING:
    from ..generation.generator import Writer, Written

DEMO_BUDGETS = ("at most 100 chars", "exactly 30 words", "60-90 words")
PROMPT = "Describe a sunset over the sea."
SENTENCE = "Your password must contain at least eight characters."
_ASKED = "exactly 30 words"


def demo(
    prompt: Annotated[str, argument("What to write; the default also translates a sentence.")] = PROMPT,
    model: options.Model = "smollm2",
    svg: Annotated[str | None, option("Also save the tables as an SVG picture.", "FILE")] = None,
    engine: options.Engine = None,
    device: options.Device = None,
    as_json: options.Json = False,
) -> None:
    """Answer one prompt at three lengths, and translate a sentence into French within its own length.

    The first row of each table is what the model gives without Lengthwise: asked for a length in the prompt, or free.

    \b
    lengthwise demo
    lengthwise demo "How do bees make honey?"
    """
    writer = load(model, device, engine=engine)
    with status("writing"):
        asked = _without_budget(writer, f"{prompt} Use {_ASKED}.", _ASKED)
        answers = [asked, *writer.write([prompt] * len(DEMO_BUDGETS), DEMO_BUDGETS)]
    found: list[tuple[str, str, Sequence[Written]]] = [(prompt, f"prompt: {_ASKED}", answers)]
    if prompt == PROMPT:
        found.append((SENTENCE, "free", _translations(device)))
    if as_json:
        for source, _, rows in found:
            for number, one in enumerate(rows):
                print_json({"prompt": source, "with_budget": number > 0} | one.as_json())
        return
    _print(found, svg, f"lengthwise demo --model {model}")


def _without_budget(writer: "Writer", prompt: str, budget: str) -> "Written":
    """Return what the model writes by itself, judged by the budget. At most 120 tokens are written."""
    from ..generation.unconstrained import UnconstrainedWriter

    plain = UnconstrainedWriter(writer, receives_length=False, token_limit=lambda _: 120)
    return plain.write(prompt, budget)[0]


def _translations(device: str | None) -> "Sequence[Written]":
    """Return the free translation of the sentence, and the one within the sentence's own length."""
    from ..translation import Translator

    translator = Translator(load("en-fr", device, engine=None), "en", "fr")
    with status("translating"):
        free, within = translator.translate([SENTENCE] * 2, [None, "at most 1.0x"])
    return [replace(free, fits=free.length <= len(SENTENCE)), within]


def _print(found: "list[tuple[str, str, Sequence[Written]]]", svg: str | None, title: str) -> None:
    """Print a table for each source; the first row, which had no budget, has a name of its own."""
    from rich.box import HORIZONTALS
    from rich.console import Console
    from rich.table import Table

    # Horizontal lines only: in the picture, vertical ones shift with the reader's font.
    look: dict[str, Any] = {"box": HORIZONTALS, "show_lines": True, "title_style": "bold", "title_justify": "left"}
    shown = Console(record=bool(svg), width=100 if svg else None, markup=False, highlight=False)
    for source, first, rows in found:
        table = Table("target", "text", "length", "fits", "complete", title=source, **look)
        for number, one in enumerate(rows):
            marks = ("yes" if one.fits else "no", "yes" if one.complete else "no")
            table.add_row(one.budget if number else first, one.text, f"{one.length} {one.unit}", *marks)
        shown.print(table)
    if svg:
        from rich._export_format import CONSOLE_SVG_FORMAT

        # Remove the fonts, which a viewer would fetch from the network.
        template = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
        shown.save_svg(svg, title=title, code_format=template)
