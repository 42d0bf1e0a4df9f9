"""`lengthwise demo`: answer one question at three budgets, and print a table."""

import re
from typing import Annotated

from . import options
from .loading import load
from .options import argument, option
from .terminal import console, print_json

DEMO_BUDGETS = ("at most 100 chars", "exactly 30 words", "60-90 words")


def demo(
    question: Annotated[str, argument("The question.")] = "Why do leaves change colour in autumn?",
    model: options.Model = "smollm2",
    svg: Annotated[str | None, option("Also save the table as an SVG picture.", "FILE")] = None,
    engine: options.Engine = None,
    device: options.Device = None,
    as_json: options.Json = False,
) -> None:
    """Answer one question at three lengths.

    \b
    lengthwise demo
    lengthwise demo "How do bees make honey?"
    """
    writer = load(model, device, engine=engine)
    with console().status("writing"):
        answers = writer.write([question] * len(DEMO_BUDGETS), DEMO_BUDGETS)
    if as_json:
        for answer in answers:
            print_json(answer.as_json())
        return
    from rich.box import HORIZONTALS
    from rich.console import Console
    from rich.table import Table

    # Horizontal lines only: in the picture, vertical ones shift with the reader's font.
    look = {"box": HORIZONTALS, "show_lines": True, "title_style": "bold", "title_justify": "left"}
    table = Table("target", "answer", "length", "fits", "complete", title=question, **look)  # type: ignore[arg-type]
    for answer in answers:
        marks = ("yes" if answer.fits else "no", "yes" if answer.complete else "no")
        table.add_row(answer.budget, answer.text, f"{answer.length} {answer.unit}", *marks)
    shown = Console(record=bool(svg), width=100 if svg else None, markup=False, highlight=False)
    shown.print(table)
    if svg:
        from rich._export_format import CONSOLE_SVG_FORMAT

        # Remove the fonts, which a viewer would fetch from the network.
        template = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
        shown.save_svg(svg, title=f"lengthwise demo --model {model}", code_format=template)
