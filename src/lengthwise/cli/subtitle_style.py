"""The options that limit subtitles, which `check`, `translate` and `shorten` share, and the style that they give."""

from typing import TYPE_CHECKING, Annotated

from .options import integer, option
from .terminal import UsageError

if TYPE_CHECKING:
    from ..formats.subtitles import Style

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
