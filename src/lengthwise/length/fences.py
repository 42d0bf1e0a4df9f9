"""Fences: find the blocks of code in a text that is written in Markdown.

A fence that begins a line opens a block, which only a fence that begins a line closes. Behind words ("`return x```")
a fence closes nothing but code that has begun inside a line.
"""

import regex

_INDENTED = r"(?m:^)[ \t>]*(?:(?:[-*+•–]|\d{1,3}[.)])[ \t]+)*"  # in an item or a quotation
# A block, or code inside a line. The group `open` is what follows a fence that nothing closes.
CODE = (
    r"```[^`\n]*```"
    r"|```(?<=(?m:^) {0,3}```)(?:[\s\S]*?\n {0,3}```|(?P<open>[\s\S]*))"
    rf"|```(?<={_INDENTED}```)(?:[\s\S]*?\n[ \t>]*```|(?P<open>[\s\S]*))"
    r"|```(?:[\s\S]*?```|(?P<open>[\s\S]*))"
    rf"|~{{3,}}+(?<={_INDENTED}~+)(?:[\s\S]*?\n[ \t>]*~{{3,}}+|(?P<open>[\s\S]*))"
)
_CODE = regex.compile(CODE)
_AT_LINE_START = regex.compile(rf"(?<={_INDENTED})(?:```|~~~)")
_IN_LINE = regex.compile(r"[^\n]")
_LINE_ENDS = regex.compile(r"[^\S\n]*(?:\n|\Z)")
# Lines of code that do nothing. "#include" and "#main {" are code, and in Markdown "# Title" is.
_COMMENT = regex.compile(
    r"/\*[\s\S]*?(?:\*/|\Z)|<!--[\s\S]*?(?:-->|\Z)|(?m:^)[ \t>]*(?:#(?![a-z])|//|--(?=\s)|;|%(?=[\s%]))[^\n]*"
)
_HEADED = ("markdown", "md", "text", "txt", "plaintext")


def in_code(text: str) -> bool:
    """Return whether `text` ends inside a fenced block of code.

    >>> in_code("```\\nx = 1"), in_code("```\\nx = 1```"), in_code("```\\nx = 1\\n```")
    (True, True, False)
    """
    return any(found["open"] is not None for found in _CODE.finditer(text))


def in_block(text: str) -> bool:
    """Return whether `text` ends inside a block of code that only a fence at the start of a line closes.

    >>> in_block("```\\nx = 1"), in_block("Use ```ls")
    (True, False)
    """
    return any(
        found["open"] is not None and _AT_LINE_START.match(text, found.start()) for found in _CODE.finditer(text)
    )


def without_code(text: str) -> str:
    """Return `text` with a backtick for each character of code; lines stay lines."""
    return _CODE.sub(lambda found: _IN_LINE.sub("`", found[0]), text)


def is_closed_block(text: str, start: int, end: int) -> bool:
    """Return whether the code `text[start:end]` has a line that is no comment, and fences alone in their lines.

    The name of a language may follow the first one.
    """
    block = text[start:end]
    language, _, code = block.strip(block[0]).partition("\n")
    if not block.endswith(block[0] * 3) or not code.rstrip(" \t>").endswith("\n"):
        return False
    if language.strip().lower() not in _HEADED:
        code = _COMMENT.sub("", code)
    return bool(code.strip(" \t\n>")) and _LINE_ENDS.match(text, end) is not None
