"""`lengthwise demo`: one question at three budgets, as a table."""

import re
from typing import Annotated

import typer

from .loading import Device, load
from .terminal import Json, console, print_json

DEMO_BUDGETS = ("at most 100 chars", "exactly 30 words", "60-90 words")


def demo(
    question: Annotated[str, typer.Argument(help="What to ask.")] = "Why do leaves change colour in autumn?",
    model: Annotated[str, typer.Option(help="A name that `lengthwise models` lists, a folder or hub id.")] = "smollm2",
    svg: Annotated[str | None, typer.Option(metavar="FILE", help="Save the table as a picture, too.")] = None,
    device: Device = None,
    as_json: Json = False,
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

    # Rules across only: in a picture, upright lines go astray with the reader's font.
    look = {"box": HORIZONTALS, "show_lines": True, "title_style": "bold", "title_justify": "left"}
    table = Table("target", "answer", "length", "fits", "complete", title=question, **look)  # type: ignore[arg-type]
    for answer in answers:
        marks = ("yes" if answer.fits else "no", "yes" if answer.complete else "no")
        table.add_row(answer.budget, answer.text, f"{answer.length} {answer.unit}", *marks)
    paper = Console(record=bool(svg), width=100 if svg else None, markup=False, highlight=False)
    paper.print(table)
    if svg:
        paper.save_svg(svg, title=f"lengthwise demo --model {model}", code_format=_plain_svg())


def _plain_svg() -> str:
    """rich's picture without the fonts that it would fetch from elsewhere."""
    from rich._export_format import CONSOLE_SVG_FORMAT

    return re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
