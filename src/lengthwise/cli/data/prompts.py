"""`lengthwise data prompts`: make prompts from topics and templates."""

from pathlib import Path
from typing import Annotated

from ..options import argument, integer, option


def prompts(
    out: Annotated[Path, argument("The file to write: .jsonl, .jsonl.gz, or text with one prompt per line.")],
    topics: Annotated[Path, option("Topics, one per line, under [headings].", "FILE")],
    templates: Annotated[Path, option("Prompts with a {topic}, one per line, under [headings].", "FILE")],
    count: Annotated[int, integer("Number of prompts.")] = 20000,
    seed: Annotated[int, integer("Seed for the selection and the order.", 0)] = 0,
) -> None:
    """Make prompts from topics and templates.

    \b
    lengthwise data prompts prompts.jsonl --topics recipes/prompts/topics.txt \\
      --templates recipes/prompts/templates.txt

    A template is combined with the topics under the same [heading]; one under [any], with all topics. No prompt
    occurs twice.
    """
    from ...distill.prompts import combine, write_prompts

    write_prompts(out, combine(topics, templates, count, seed))
    print(f"{out}: {count:,} prompts")
