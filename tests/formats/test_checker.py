"""Checks: what is measured, and which limit counts."""

from pathlib import Path

import pytest

from lengthwise.formats import Entry, Limit, Place, read
from lengthwise.formats.check import Checker, check_text
from lengthwise.formats.rules import Rule, read_rules
from lengthwise.formats.subtitles import Style
from lengthwise.length.budget import Budget


def entry(text, seconds=None):
    return Entry("key", text, Place(0, len(text), 1), text, seconds=seconds)


@pytest.mark.parametrize(
    ("text", "limit", "message"),
    [
        ("123456", Limit(5), "6 chars, at most 5"),
        ("12345", Limit(5), None),
        ("  12345 ", Limit(5), None),
        ("è", Limit(1, "bytes"), "2 bytes, at most 1"),
        ("漢字", Limit(3, "cells"), "4 cells, at most 3"),
        ("abc", Limit(None, low=5), "3 chars, at least 5"),
        ("ab\nabcd", Limit(3, each_line=True), "a line of 4 chars, at most 3"),
        ("a\nb\nc", Limit(3, each_line=True, lines=2), "3 lines, at most 2"),
        ("one two three", Limit(7, "cells", each_line=True, lines=2, wraps=True), None),
        ("one two three", Limit(7, "cells", each_line=True, lines=1, wraps=True), "2 lines, at most 1"),
        ("unbreakable", Limit(7, "cells", each_line=True, lines=2, wraps=True), "a line of 11 cells, at most 7"),
        ("{n, plural, one {# file} other {# files}}", Limit(7), None),
    ],
)
def test_one_limit(text, limit, message):
    assert [one.message for one in check_text("a", entry(text), limit)] == ([message] if message else [])


def test_a_line_break_takes_no_time_to_read():
    assert not list(check_text("a", entry("ab\ncd", seconds=1.0), Limit(4)))
    assert list(check_text("a", entry("ab\ncd"), Limit(4)))


PO = '#. max-length:3\nmsgid "Save"\nmsgstr "Salva"\n\n#, fuzzy, max-length:3\nmsgid "Open"\nmsgstr "Apri"\n'


def found(checker, name="it.po", text=PO):
    return [(one.id, one.message, one.limit.origin) for one in checker.check(read(name, data=text.encode()))]


def test_limits_of_the_file():
    checker = Checker()
    assert found(checker) == [("Save", "5 chars, at most 3", "max-length:3 (it.po:1)")]
    assert (checker.texts, checker.limited) == (1, 1)  # the fuzzy one is not counted


UNIT = """<xliff version="2.0" srcLang="en" trgLang="it"><file id="f"><unit id="u" slr:sizeRestriction="{}">
<segment id="a"><source>One. </source><target>Uno.</target></segment>
<ignorable><source> </source></ignorable>
<segment id="b"><source>Two.</source><target>{}</target></segment>
</unit></file></xliff>""".replace("<xliff", '<xliff xmlns:slr="urn:oasis:names:tc:xliff:sizerestriction:2.0"')


def test_the_segments_of_a_unit_share_its_restriction():
    checker = Checker()
    origin = 'sizeRestriction="8" (a.xlf:1)'
    assert found(checker, "a.xlf", UNIT.format(8, "Due.")) == [("u/a", "9 chars, at most 8", origin)]
    assert (checker.texts, checker.limited) == (2, 2)
    assert found(Checker(), "a.xlf", UNIT.format(9, "Due.")) == []
    assert found(Checker(), "a.xlf", UNIT.format(8, "")) == []
    short = found(Checker(), "a.xlf", UNIT.format("20,40", "Due."))
    assert short == [("u/a", "9 chars, at least 20", 'sizeRestriction="20,40" (a.xlf:1)')]


def test_a_length_wins_over_rules_and_files():
    rules = [
        Rule(Budget.parse("at most 4 chars"), "rule", keys="Sa*"),
        Rule(Budget.parse("at most 1 chars"), "no", keys="x"),
    ]
    assert found(Checker(rules=rules)) == [("Save", "5 chars, at most 4", "rule")]
    length = Rule(Budget.parse("at most 1.0x"), "--length")
    assert found(Checker(length, rules)) == [("Save", "5 chars, at most 4", "--length")]
    assert found(Checker(Rule(Budget.parse("2-9 words"), "--length"), rules)) == [
        ("Save", "1 words, at least 2", "--length")
    ]


def test_the_source_file_gives_limits_and_lengths():
    source = {"a": Entry("a", "Hello", Place(0, 0, 1), "Hello", limits=(Limit(3, said="three"),))}
    assert found(Checker(source=source), "it.json", '{"a": "Ciao", "b": "Altro"}') == [
        ("a", "4 chars, at most 3", "three")
    ]
    length = Rule(Budget.parse("at most 0.5x"), "half")
    assert found(Checker(length, source=source), "it.json", '{"a": "Ciao", "b": "x"}') == [
        ("a", "4 chars, at most 2", "half")
    ]
    with pytest.raises(ValueError, match="half is relative to a source; give the source file with --against"):
        found(Checker(length), "it.json", '{"a": "Ciao"}')


def test_pixels_are_told_and_not_counted():
    checker = Checker()
    text = '<xliff version="1.2"><file><body><trans-unit id="1" maxwidth="9">'
    text += "<source>a</source><target>Long enough</target></trans-unit></body></file></xliff>"
    assert found(checker, "a.xlf", text) == []
    [(_, one, limit)] = checker.uncounted
    assert (one.id, limit.unit) == ("1", "pixels")


def test_subtitles():
    text = "1\n00:00:01,000 --> 00:00:02,000\nThis is too much text\nfor one\nsecond.\n"
    checker = Checker(style=Style(17, 20, 2))
    assert [message for _, message, _ in found(checker, "a.srt", text)] == [
        "35 chars, at most 17",
        "3 lines, at most 2",
        "a line of 21 chars, at most 20",
    ]


def test_rules_of_a_project(tmp_path):
    path = tmp_path / "lengthwise.toml"
    path.write_text(
        '# ours\n[[limits]]\nlength = "at most 9 chars"\n\n'
        '[[limits]]\nfiles = "res/*.xml"\nkeys = "menu_*"\nlength = "at most 4 chars"\nlines = 1\n'
    )
    every, menu = read_rules(path)
    assert (every.line, menu.line, menu.lines) == (2, 5, 1)
    assert menu.matches("app/res/strings.xml", "menu_save")
    assert not menu.matches("app/res/strings.xml", "save")
    assert not menu.matches("app/strings.xml", "menu_save")
    assert menu.limit(None).origin == f'length = "at most 4 chars" ({path.as_posix()}:5)'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[limits]]\n", r":1: a table of limits has length"),
        ('[[limits]]\nlength = "x"\n', r":1: cannot read 'x' as a budget"),
        (
            '[[limits]]\nlength = "at most 3 chars"\nkey = "x"\n',
            r":1: a table of limits has length, and may have files",
        ),
        ('[[limits]]\nlength = "at most 3 chars"\nlines = 0\n', r"lines must be a whole number"),
        ('[[limits]]\nlength = "at most 3 chars"\nkeys = 3\n', r"files and keys are patterns"),
        ("[limits]\n", r"limits must be tables"),
        ("[[limits\n", r"lengthwise\.toml: "),
    ],
)
def test_wrong_rules(tmp_path, text, says):
    path = tmp_path / "lengthwise.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=says):
        read_rules(Path(path))
