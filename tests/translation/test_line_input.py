"""Lines of input: texts with their budgets, in place."""

import pytest

from lengthwise.length.budget import at_most
from lengthwise.translation.line_input import InputLine, LineParser


def test_lines_without_columns_share_the_budget():
    parser = LineParser("9", "words", in_columns=False)
    lines = parser.parse([("Go.\tnow", None), ("", "it is not UTF-8")])
    assert lines == [InputLine("Go.\tnow", at_most(9, "words")), InputLine("", error="it is not UTF-8")]


@pytest.mark.parametrize("unit", ["", "chars"])
def test_columns(unit):
    parser = LineParser("1.0x", unit, in_columns=True)
    rows = parser.parse([("Go.\t12", None), ("Go.\t at most 5 words ", None), ("Go.", None), ("\t", None)])
    assert [row.text for row in rows] == ["Go.", "Go.", "Go.", ""]
    assert [row.budget for row in rows[1:]] == ["at most 5 words", parser.budget, parser.budget]
    assert rows[0].budget == ("at most 12 chars" if unit else "12")
    assert (rows[0].error is None) == bool(unit)


@pytest.mark.parametrize("name", ["Length", "limit"])
def test_a_header_names_the_column_and_stays(name):
    parser = LineParser("", "chars", in_columns=True)
    header, row = parser.parse([(f"Text\tNote\t{name}", None), ("Go.\ta verb\t3", None)])
    assert (header.text, header.is_header) == ("Text", True)
    assert (row.text, row.budget, row.is_header) == ("Go.", "at most 3 chars", False)
    assert not parser.parse([("Text\tlength", None)])[0].is_header  # only the first line can be one
