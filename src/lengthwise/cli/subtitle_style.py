"""The options for subtitles that `check`, `translate` and `shorten` share, and the style that they give."""

from typing import TYPE_CHECKING, Annotated

from .options import integer, option
from .terminal import UsageError, print_message

if TYPE_CHECKING:
    from ..formats.subtitles import Style
    from .localise import Pair

_GUIDES = "netflix, netflix-children, ted, bbc, dubbing; with a language: netflix-ja, dubbing-it"
Cps = Annotated[float | None, option("Subtitles: characters per second.", "N", min=0.1)]
Line = Annotated[int | None, integer("Subtitles: characters in a line.")]
Lines = Annotated[int | None, integer("Subtitles: lines in a cue.")]
Preset = Annotated[str, option(f"Subtitles: the limits of a style guide: {_GUIDES}.", "NAME")]


def subtitle_style(
    cps: float | None, line: int | None, lines: int | None, preset: str, language: str = ""
) -> "Style | None":
    """Return the limits of a preset, with single values replaced; None if nothing is given."""
    from ..formats.subtitles import Style, style_named

    try:
        base = style_named(preset, language) if preset else Style()
    except ValueError as error:
        raise UsageError(f"--preset: {error}") from None
    if (cps, line, lines) == (None, None, None):
        return base if preset else None
    return Style(
        base.cps if cps is None else cps, base.line if line is None else line, base.lines if lines is None else lines
    )


def need_subtitles(found: "list[Pair]", options: str) -> None:
    """Raise if none of the files is a subtitle file, to which these options would apply."""
    if not any(map(is_subtitle, found)):
        raise UsageError(f"{options} are for subtitle files: .srt, .vtt, .ass")


def without_finished(found: "list[Pair]", folder: bool) -> "list[Pair]":
    """Return the files without subtitles whose output exists: it may have corrections, which a cue cannot record.

    In a folder they are skipped, so that the same command resumes an interrupted run; a single file is an error.
    """
    finished = [pair for pair in found if is_subtitle(pair) and pair.out != pair.file and pair.out.exists()]
    for pair in finished:
        if not folder:
            raise UsageError(f"--out {pair.out} exists; give --again to replace it, or name another file")
        print_message(f"{pair.out} exists and is kept; --again replaces it")
    return [pair for pair in found if pair not in finished]


def is_subtitle(pair: "Pair") -> bool:
    from ..formats import formats_of

    return any(one.is_subtitles for one in formats_of(pair.file))
