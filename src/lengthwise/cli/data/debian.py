"""`lengthwise data debian`: build corpora from Debian's package descriptions."""

from pathlib import Path
from typing import Annotated

from .. import options
from ..options import argument, flag, option
from ..terminal import print_json, print_message, status


def debian(
    out: Annotated[Path, argument("The folder to write to.")],
    pair: Annotated[str, option("English and another language: en-it, en-pt_BR, ...")],
    indices: Annotated[Path | None, option("Use the Translation files in this folder instead of apt's.", "DIR")] = None,
    rebuild: Annotated[bool, flag("--rebuild", "Build the corpora again, even if they are complete.")] = False,
    as_json: options.Json = False,
) -> None:
    """Build corpora of package descriptions.

    \b
    lengthwise data debian --pair en-it corpus

    One corpus has descriptions and their translations, the other has descriptions and their titles. Both are made from
    files that apt fetches, without privileges and without a change to the system. The same command resumes an
    interrupted build.
    """
    from ...corpora.debian.build import build

    def show(message: str) -> None:
        if message.startswith(("E:", "W:")):  # errors and warnings of apt
            print_message(message)
        else:
            change(message)

    with status("reading") as change:
        report = build(pair, out, progress=show, rebuild=rebuild, indices=indices)
    if as_json:
        print_json(report)
        return
    for name, made in report.items():
        sizes = ", ".join(f"{part} {made[part]['documents']:,}" for part in ("train", "dev", "test"))
        print(f"{out}/debian.{name}: {sizes} documents; target/source {made['target_to_source_characters']} characters")
