"""The context of a limit in a comment: whether a phrase such as "up to 20 characters" is about the text itself.

A comment may tell when a text is shown ("if the name has less than 3 characters"), what is put into it ("%s is a name
of up to 20 characters") or what a user may enter ("You can enter up to 300 characters"). These do not limit the text.
"""

import re
from itertools import pairwise

_CLAUSE = r"(?:(?!\s[-–]\s)[^,.;:!?()\[\]—\n¶])*\Z"  # from here to the phrase, without a mark, a dash or a line end
_NOT_THE_TEXT = re.compile(
    r"(?:\b(?:when(?:ever)?|whose|unless|if(?!\s+(?:possible|needed|necessary)\b))(?=[ \t])"
    r"|(?:%(?:\d+\$)?[a-z@]|%\(\w+\)[sd]|\{\w*\}|\$[a-z_]\w*)[\"'”’]?[ \t]+(?:is|are|has|have|of)\b"
    r"|\b(?:pass ?(?:word|phrase|code)|PIN|user ?name|nick ?name|login|e-?mail|URL|query|tweet|token|key|code"
    r"|file(?: ?name)?|folder(?: ?name)?)s?[ \t]+(?:must|should|can(?:not|['’]t)?|may|needs?|is|are|has|have"
    r"|having|with|of|that|to|longer|exceeds?|contains?|up|at)\b"
    r"|\b(?:enter|typ(?:e|ing)|select|accept|support|stor(?:e|ing)|search|return|read|print|generat(?:e|ing))"
    r"(?:s|ed|ing)?(?=[ \t])|\b(?:daily|rate|upload|memory|monthly)(?=[ \t]))" + _CLAUSE,
    re.IGNORECASE,
)
# What follows a phrase that does not limit the text: "up to 255 characters are shown in the log", "within 5 words of".
_PASSIVE = re.compile(
    r"\s+(?:(?:are|is|were|will\s+be|can\s+be|may\s+be|get)\s+"
    r"(?!(?:allowed|permitted|available|possible|supported|recommended|enough|visible|the|ok)\b)"
    r"|of\s+(?:the|each|its|a|an|your|their)\b|(?:before|after|from|left|remaining|away)\b)",
    re.IGNORECASE,
)
_LOOSE = re.compile(r"up\s+to|at\s+most|within|less|fewer|under|below", re.IGNORECASE)
_EACH_LINE_AFTER = re.compile(r"\s*(?:/|(?:in |on )?(?:per|each|every|a)\b)\s*(?:line|row)\b", re.IGNORECASE)
_EACH_LINE_BEFORE = re.compile(rf"\b(?:each|every|both|all|no|any)\s+(?:lines?|rows?)\b{_CLAUSE}", re.IGNORECASE)
_MARKS = re.compile(r"[ \t]*(?:\*+|//+)[ \t]+")  # of comments in source code, from which xgettext takes them
WRAPPED = 40  # characters: a shorter line ends where its author wanted it to end


def unwrapped(comment: str) -> str:
    """Return a comment of the same length in which lines that only go on in the next one have no end.

    A paragraph ends with ¶, which no pattern matches. Marks of comments at the start of lines become spaces.
    """
    lines = [_MARKS.sub(lambda marks: " " * len(marks[0]), line, count=1) for line in comment.split("\n")]
    text = lines[0]
    for line, after in pairwise(lines):
        words = after.strip()
        goes_on = len(line.strip()) >= WRAPPED and not words[:1].isupper()
        text += ("¶" if not words else " " if goes_on else "\n") + after
    return text


def is_about_the_text(text: str, match: re.Match[str]) -> bool:
    """Return whether a phrase limits the text itself. `text`: the comment, unwrapped."""
    before = max(0, match.start() - 200)
    if _NOT_THE_TEXT.search(text, before, match.start()):
        return False
    if _LOOSE.match(match[0]) and _PASSIVE.match(text, match.end()):
        return False
    quoted = text.count('"', 0, match.start()) % 2 == 1 and '"' in text[match.end() :]  # an example, or a definition
    return not quoted


def is_for_each_line(text: str, match: re.Match[str]) -> bool:
    """Return whether a phrase limits each line of the text."""
    before = max(0, match.start() - 200)
    return bool(_EACH_LINE_AFTER.match(text, match.end()) or _EACH_LINE_BEFORE.search(text, before, match.start()))
