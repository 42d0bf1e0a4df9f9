"""Addresses, paths and version numbers at the end of a text."""

import pytest

from lengthwise.length.addresses import final_address


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("More: https://example.org/a?b=c\n", "https://example.org/a?b=c"),
        ("More (https://example.org)", "https://example.org)"),
        ("Write to <help@example.org>", "help@example.org>"),
        ("It is in /usr/share/doc/", "/usr/share/doc/"),
        ("It is in ~/work", "~/work"),
        ("It is in C:\\Users\\name", "C:\\Users\\name"),
        ("Update to v2.13.4", "v2.13.4"),
        ("Needs Python 3.11", "3.11"),
        ("More: {1}", "{1}"),
        ("https://example.org", "https://example.org"),
        ("See https://example.org.", ""),
        ("See https://example.org for more", ""),
        ("Chapter 3", ""),
        ("This and/or that", ""),
        ("It ends.", ""),
        ("请看" * 200_000 + "https://example.org", "https://example.org"),  # in quadratic time it would not end
        ("", ""),
    ],
)
def test_the_last_word_of_a_text(text, found):
    assert final_address(text) == found
