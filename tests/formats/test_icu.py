"""ICU messages: the longest text that a reader can see."""

import pytest

from lengthwise.formats.icu import longest


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("{n, plural, one {# file} other {# files}} left", "# files left"),
        ("{n, plural, offset:1 =0 {nobody at all} other {#}}", "nobody at all"),
        ("{g, select, male {his {n, plural, one {cat} other {cats}}} other {their cat}}", "their cat"),
        ("{g, select, a {{name} likes it} other {x}}", "{name} likes it"),
        ("It''s {n, plural, one {one '{'} other {#}}", "It's one {"),
        ("Hello {name}", "Hello {name}"),
        ("{n, plural, one {broken", "{n, plural, one {broken"),
        ("a } b", "a } b"),
    ],
)
def test_longest(message, shown):
    assert longest(message) == shown
