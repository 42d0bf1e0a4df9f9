"""Prose: what of a file is translated, and that everything else comes through byte for byte."""

import io
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.translation import markdown
from lengthwise.translation.markdown import link_references, read_markdown
from lengthwise.translation.prose import Prose, keeps_markup, read_paragraphs

MARKDOWN = """---
title: Not translated
---
# A *short* title #

Some text with `code`, a [link](http://a.org "t")
and **bold
words**.  \nA hard break. See [the guide] and [it][guide]. ![alt](x.png) <b>tag</b> \\*star\\*

> A quoted
> line.

- [ ] a task
  goes on
1. one

| Name | Use \\| not |
|------|-----|
| `x`  | it *is* |

```
code block
```

    indented code

<div>
html
</div>

[the guide]: http://b.org
[guide]: <c.html>
"""
FRAGMENTS = [
    *("word", "Una frase. ", "a", "  ", "    ", "\t", "\n", "\n\n", "\r\n", "\r", "- ", "* ", "1. ", "2) ", "> ", "# "),
    *(
        "***",
        "**",
        "*",
        "_",
        "`",
        "``",
        "```\n",
        "~~",
        "~~~",
        "[",
        "]",
        "](x.org)",
        "][r]",
        "[r]",
        "\n[r]: http://a.b\n",
    ),
    *("!", "<b>", "</b>", "<!-- x -->", "<div>\n", "\\", "\\\n", "  \n", "|", "\n|a|b|\n|-|-|\n|c \\| d|e|\n", "---\n"),
    *("===\n", "&amp;", "{1}", "<a1>", "$x$", "\u00a0", "é", "。", "\u2028", "\x0c", "[ ] ", "[^1]", "<https://a.b>"),
    *("\ufeff", ":", "+++\n", "$$", ":::", "\n[^1]: word\n"),
]


def pieces(text):
    def lines():
        return io.StringIO(text, newline="")

    return list(read_markdown(lines(), link_references(lines())))


def found(pieces):
    return [piece for piece in pieces if isinstance(piece, Prose)]


def with_texts(pieces, change):
    """Join the pieces, each text changed as a translator would."""
    return "".join(
        piece if isinstance(piece, str) else piece.restore(0, len(piece.text), change(piece.text)) for piece in pieces
    )


def test_what_is_prose_in_markdown():
    assert [one.text for one in found(pieces(MARKDOWN))] == [
        "A <a1>short</a1> title",
        "Some text with {1}, a <a2>link</a2> and <a3>bold words</a3>.\n"
        "A hard break. See <a4>the guide</a4> and <a5>it</a5>. {6} {7}tag{8} {9}star{10}",
        "A quoted line.",
        "a task goes on",
        "one",
        "Name",
        "Use {1} not",
        "{1}",  # in which nothing is translated
        "it <a1>is</a1>",
    ]


def test_all_but_prose_is_copied():
    read = pieces(MARKDOWN)
    assert with_texts(read, str) == MARKDOWN
    upper = with_texts(read, lambda text: text.upper().replace("A1>", "a1>"))
    for kept in ("title: Not translated", "[the guide]: http", "code block", "    indented code", "<div>\nhtml\n"):
        assert kept in upper
    assert "# A *SHORT* TITLE #\n" in upper
    assert "> A QUOTED\n> LINE.\n" in upper
    assert "- [ ] A TASK\n  GOES ON\n1. ONE\n" in upper
    assert "| NAME | USE \\| NOT |\n|------|-----|\n| `x`  | IT *IS* |" in upper


def test_a_link_that_names_its_text_keeps_its_label():
    text = "See [the guide] now.\n\n[the guide]: http://b.org\n"
    assert with_texts(pieces(text), lambda text: text.replace("the guide", "la guida")).startswith(
        "See [la guida][the guide] now."
    )


PLAIN = """RELEASE NOTES
=============

Introduction
The members met on Monday, and their discussion went on
until three at night, when
Parliament closed.

  * a list that
    goes on
  * another item

1) First, open the
   file
2) Second
"""


def test_headings_and_list_items_of_a_plain_text_are_paragraphs():
    read = list(read_paragraphs(io.StringIO(PLAIN, newline="")))
    assert [one.text for one in found(read)] == [
        "RELEASE NOTES",
        "=============",
        "Introduction",
        "The members met on Monday, and their discussion went on until three at night, when Parliament closed.",
        "a list that goes on",
        "another item",
        "First, open the file",
        "Second",
    ]
    assert with_texts(read, str) == PLAIN
    upper = with_texts(read, str.upper)
    assert "  * A LIST THAT\n    GOES ON\n  * ANOTHER ITEM\n\n1) FIRST, OPEN THE\n   FILE\n2) SECOND\n" in upper


@pytest.mark.parametrize(
    ("source", "translation", "written"),
    [
        ("One two\nthree four", "Uno due tre quattro", "Uno due\ntre quattro"),
        ("> One two\n> three", "Unodue tre", "> Unodue\n> tre"),
        ("One two\nthree", "Uno", "Uno"),  # no space for the break
        ("One two\nthree four", "Uno due   tre quattro", "Uno due\ntre quattro"),  # no hard break
        ("A plus\nb c", "A più - b", "A più -\nb"),  # no line begins with "- "
        ("One two", "1. due", "1\\. due"),
        ("One two", "# due", "\\# due"),
        ("One two\n===", "- due", "\\- due\n==="),
        ("One two\n---", "1. due", "1\\. due\n---"),
        ("| a | b |\n|---|---|\n| one | two |", None, "| a | b |\n|---|---|\n| one\\|x | two\\|x |"),
        ("A **b** c", "A <a1> x </a1>, c", "A **x**, c"),
        ("A **b** c", "A<a1> x </a1>c", "A **x** c"),
    ],
)
def test_line_breaks_and_markup_of_a_translation(source, translation, written):
    def change(text):
        return translation or (f"{text}|x" if len(text) > 1 else text)

    assert with_texts(pieces(source), change) == written


@pytest.mark.parametrize("definition", ["https://example.com", "word", "A text of several words."])
def test_a_footnote_is_copied(definition):
    text = f"A note[^1], [a [^1] link](x.org) and [^1][^2].\n\n[^1]: {definition}\n"
    upper = with_texts(pieces(text), str.upper)
    assert upper.startswith("A NOTE[^1], ")
    assert " AND [^1][^2].\n\n[^1]: " in upper


@pytest.mark.parametrize(
    ("source", "upper"),
    [
        ("$$\nx_1 + \\{y\\}\n$$\n", "$$\nx_1 + \\{y\\}\n$$\n"),
        ("Here $$x * y * z$$ is.\n", "HERE $$x * y * z$$ IS.\n"),
        ("It is $$ 5 now\n", "IT IS $$ 5 NOW\n"),
    ],
)
def test_formulas_are_copied(source, upper):
    assert with_texts(pieces(source), str.upper) == upper


def test_the_paragraphs_of_a_plain_text():
    text = "One,\r\n  two.\r\n\r\n \r\n# Three\n*four*"
    read = list(read_paragraphs(io.StringIO(text, newline="")))
    assert [one.text for one in found(read)] == ["One, two.", "# Three *four*"]
    assert with_texts(read, str) == text


@pytest.mark.parametrize(
    ("text", "paragraphs"),
    [
        ("The course begins on March\n12. It then continues.\n", ["The course begins on March 12. It then continues."]),
        ("All of them were there\n- or so it seemed - and\nleft.\n", None),
        ("As is said in case\n(b) above,\nit is so.\n", None),
        ("It is late.\n12. Go home\n", ["It is late.", "Go home"]),
        ("What we need:\n- milk\n", ["What we need:", "milk"]),
        ("What we need\n1. milk\n2. bread\n", ["What we need", "milk", "bread"]),
        ("What we need\n- milk\n- bread\n", ["What we need", "milk", "bread"]),
        ("What we need\n(b) milk\n(c) bread\n", ["What we need", "milk", "bread"]),
        ("What we need\n- milk from\n  cows\n", ["What we need", "milk from cows"]),
    ],
)
def test_a_wrapped_line_of_a_plain_text_begins_no_item(text, paragraphs):
    read = list(read_paragraphs(io.StringIO(text, newline="")))
    assert [one.text for one in found(read)] == (paragraphs or [" ".join(text.split())])
    assert with_texts(read, str) == text


@settings(max_examples=150)
@given(text=st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join), chunk=st.sampled_from([1, 2, 3]))
def test_every_file_is_its_pieces_whatever_the_chunk(text, chunk):
    assert with_texts(read_paragraphs(io.StringIO(text, newline="")), str) == text
    whole = pieces(text)
    assert with_texts(whole, str) == text
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(markdown, "CHUNK", chunk)
        assert [one.text for one in found(pieces(text))] == [one.text for one in found(whole)]


@pytest.mark.parametrize(
    ("translation", "kept"),
    [
        ("<a1> due </a1> {2} uno", True),
        ("{2} <a1>due</a1>", True),
        ("due {2}", False),
        ("</a1> due <a1> {2}", False),
        ("<a1> </a1> due {2}", False),
        ("<a1>,</a1> due {2}", False),
        ("<a1> due {2}", False),
        ("<a1> due </a1> {2} {2}", False),
    ],
)
def test_what_keeps_its_markup(translation, kept):
    assert keeps_markup("One <a1> two </a1> {2}", translation) is kept


def test_prose_is_read_without_torch():
    code = "import sys, lengthwise.translation.prose; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
