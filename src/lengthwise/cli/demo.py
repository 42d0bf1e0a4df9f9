"""`lengthwise demo`: one question answered at three budgets, as a table."""

import re
from typing import Annotated

import typer

from . import options
from .loading import load
from .terminal import console, print_json

DEMO_BUDGETS = ("at most 100 chars", "exactly 30 words", "60-90 words")


def demo(
    question: Annotated[str, typer.Argument(help="The question.")] = "Why do leaves change colour in autumn?",
    model: options.Model = "smollm2",
    svg: Annotated[str | None, typer.Option(metavar="FILE", help="Also save the table as an SVG picture.")] = None,
    device: options.Device = None,
    as_json: options.Json = False,
) -> None:
    """Answer one question at three budgets.

    \b
    lengthwise demo
    lengthwise demo "How do bees make honey?"
    """
    writer = load(model, device)
    with console().status("writing"):
        answers = writer.write([question] * len(DEMO_BUDGETS), DEMO_BUDGETS)
    if as_json:
        for answer in answers:
            print_json(answer.as_json())
        return
    from rich.box import HORIZONTALS
    from rich.console import Console
    from rich.table import Table

    # Horizontal rules only: in the picture, vertical ones shift with the reader's font.
    look = {"box": HORIZONTALS, "show_lines": True, "title_style": "bold", "title_justify": "left"}
    table = Table("target", "answer", "length", "fits", "complete", title=question, **look)  # type: ignore[arg-type]
    for answer in answers:
        marks = ("yes" if answer.fits else "no", "yes" if answer.complete else "no")
        table.add_row(answer.budget, answer.text, f"{answer.length} {answer.unit}", *marks)
    shown = Console(record=bool(svg), width=100 if svg else None, markup=False, highlight=False)
    shown.print(table)
    if svg:
        shown.save_svg(svg, title=f"lengthwise demo --model {model}", code_format=_svg_format())


def _svg_format() -> str:
    """Return rich's SVG template without the fonts that it would fetch from the network."""
    from rich._export_format import CONSOLE_SVG_FORMAT

    return re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
