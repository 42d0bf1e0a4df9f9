r"""Edits of gettext catalogues beside their texts: the fuzzy flag with a comment, and the header of a template."""

import re

from ..length.speech import primary
from .base import Document, Edit, Entry
from .plurals import gettext_forms, numbered_forms

COMMENT = "# lengthwise: "
_END = r"(?:\r\n|\r(?!\n)|\n)"  # of a line
_HEADER = re.compile(rf"(?P<comments>(?:^#[^\r\n]*{_END})*)^msgid \"\"[ \t]*{_END}msgstr ", re.MULTILINE)
_LANGUAGE = re.compile(r'"Language:[ \t]*([^\\"]*?)\\n"')
_FORMS = re.compile(r'"Plural-Forms:[ \t]*([^"]*?)\\n"')
_FLAGS = re.compile(r"#,.*\bfuzzy\b")


def mark(document: Document, entry: Entry, note: str | None) -> list[Edit]:
    """Return the edits that set the fuzzy flag and a comment with the note, or remove both."""
    number = document.line(entry.place.start)
    while not re.match(r"\s*msgid\b", document.line_text(number)):
        number -= 1
    if re.match(r"\s*msgctxt\b", document.line_text(_before(document, number))):
        number = _before(document, number)
    first = number  # the line of msgctxt or msgid
    comments = []
    while number > 1 and re.match(r"#(?!~)", document.line_text(number - 1)):
        number -= 1
        comments.append((number, document.line_text(number)))
    old = next((line for line, text in comments if text.startswith(COMMENT)), None)
    flags = [(line, text) for line, text in comments if text.startswith("#,")]
    fuzzy = [(line, text) for line, text in flags if _FLAGS.match(text)]
    previous = [line for line, text in comments if text.startswith("#|")]
    edits = [] if old is None else [_line(document, old, None if note is None else COMMENT + note)]
    if note is None:
        edits += [_line(document, line, _without_fuzzy(text)) for line, text in fuzzy]
        edits += [_line(document, line, None) for line in previous if fuzzy]  # of what the fuzzy text translated
        return edits
    if old is None:
        edits.append(_insert(document, number, COMMENT + note))
    if not flags:
        edits.append(_insert(document, min([first, *previous]), "#, fuzzy"))
    elif not fuzzy:
        edits.append(_line(document, flags[0][0], "#, fuzzy," + flags[0][1][2:]))
    # Two insertions at one place are one edit, so that their order is certain.
    if len(edits) == 2 and edits[0][:2] == edits[1][:2]:
        edits = [Edit(edits[0].start, edits[0].end, edits[0].text + edits[1].text)]
    return edits


def _before(document: Document, number: int) -> int:
    """Return the line before this one that begins a string; a context may have several lines."""
    number -= 1
    while number > 1 and document.line_text(number).lstrip().startswith('"'):
        number -= 1
    return max(number, 1)


def _without_fuzzy(flags: str) -> str | None:
    """'#, fuzzy, c-format' → '#, c-format'; None if no flag is left. Some parsers need the space after '#,'."""
    rest = [flag for flag in flags[2:].split(",") if flag.strip() != "fuzzy"]
    return f"#, {','.join(rest).lstrip()}" if rest else None


def _line(document: Document, number: int, text: str | None) -> Edit:
    """Return the edit that replaces a line, or deletes it."""
    start = document.line_start(number)
    end = start + len(document.line_text(number))
    return Edit(start, document.line_start(number + 1), "") if text is None else Edit(start, end, text)


def _insert(document: Document, number: int, text: str) -> Edit:
    start = document.line_start(number)
    return Edit(start, start, text + document.line_end)


def label(document: Document, source: str, target: str) -> list[Edit]:
    """Return the edits of the header: Language, unless it is another one, and what a template leaves open.

    These are Plural-Forms, if there are plurals, the charset, and the flag fuzzy of the header.
    """
    header = _HEADER.search(document.text)
    if header is None:
        return []
    end = re.compile(rf"{_END}(?!\")").search(document.text, header.end())
    limits = header.end(), end.start() if end else len(document.text)
    edits: list[Edit] = []
    language = _LANGUAGE.search(document.text, *limits)
    named = primary(language[1]) if language else primary(target)
    if language and named in ("", source):
        edits.append(Edit(*language.span(1), target))
    charset = re.compile(r"charset=(CHARSET)\b").search(document.text, *limits)
    if charset:
        edits.append(Edit(*charset.span(1), "UTF-8" if document.encoding == "utf-8" else document.encoding))
    if re.search(r"^msgid_plural\b", document.text, re.MULTILINE) and named in ("", source, primary(target)):
        edits += _plural_forms(document, source, target, limits)
    edits = edits if language else _with_language(document, target, limits, edits)
    if edits and (fuzzy := re.search(rf"^#,.*\bfuzzy\b.*{_END}", header["comments"], re.MULTILINE)):
        rest = _without_fuzzy(fuzzy[0].rstrip("\r\n"))
        at = header.start() + fuzzy.start()
        edits.append(Edit(at, at + len(fuzzy[0]), "" if rest is None else rest + document.line_end))
    return edits


def _with_language(document: Document, target: str, limits: tuple[int, int], edits: list[Edit]) -> list[Edit]:
    """Return the edits with one that adds Language at the end of a header without it, where others may add lines."""
    header = document.text[slice(*limits)]
    if re.search(r'(?:"|\\n)Language:', header) or not header.rstrip().endswith('\\n"'):
        return edits
    there = [one for one in edits if one.start == limits[1]]
    added = f'{document.line_end}"Language: {target}\\n"' + "".join(one.text for one in there)
    return [*(one for one in edits if one not in there), Edit(limits[1], limits[1], added)]


def formula(document: Document, source: str, target: str) -> str:
    """Return the value of Plural-Forms: that of the header, or the target's if it is missing or of the source."""
    found, language = _FORMS.search(document.text), _LANGUAGE.search(document.text)
    if found is None or "nplurals=INTEGER" in found[1] or (language and primary(language[1]) == source):
        return gettext_forms(target)
    return found[1]


def _plural_forms(document: Document, source: str, target: str, limits: tuple[int, int]) -> list[Edit]:
    found, forms = _FORMS.search(document.text, *limits), formula(document, source, target)
    if found is None:
        return [Edit(limits[1], limits[1], f'{document.line_end}"Plural-Forms: {forms}\\n"')]
    if forms == found[1]:
        return []
    number = len(numbered_forms(forms))
    empty = re.compile(rf'{_END}msgstr\[(\d+)\][ \t]*""[ \t]*(?=[\r\n]|\Z)(?!{_END}[ \t]*")')
    extra = [Edit(*one.span(), "") for one in empty.finditer(document.text) if int(one[1]) >= number]
    return [Edit(*found.span(1), forms), *extra]
