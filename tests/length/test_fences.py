"""Blocks of code: which fences open them, and which close them."""

import pytest

from lengthwise.length.blocks import block_ends
from lengthwise.length.fences import in_code
from lengthwise.length.sentences import finished, finished_ends


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        ("```python\nx = 1", True),
        ("```python\nx = 1\n```\nDone", False),
        ("```python\nreturn x```", True),
        ("```python\nreturn x ```\n\nIt returns x.", True),
        ("```python\nreturn x```\n```", False),
        ("```python\nreturn x\n   ```", False),
        ("```python\nreturn x\n    ```", True),  # four spaces: a line of code
        ("- Run:\n    ```sh\n    ls\n    ```", False),  # in an item a fence stands further right
        ("1. ```sh\n   ls\n   ```\n", False),
        ("> ```\n> ls\n> ```", False),
        ("Write ```x``` here", False),
        ("```x``` is code", False),
        ("Write ```x\ny``` here", False),  # begun inside a line
        ("~~~\nx~~~", True),
        ("~~~\n```\n~~~", False),
        ("~~~\n```\nx", True),
    ],
)
def test_a_fence_closes_code_at_the_start_of_its_line(text: str, is_open: bool) -> None:
    assert in_code(text) is is_open


def test_a_text_does_not_end_behind_a_fence_inside_a_line() -> None:
    text = "So:\n```python\nreturn x```\n\nIt returns x.\n- a\n- b"
    assert finished_ends(text) == []
    assert block_ends(text) == []
    closed = text.replace("x```", "x\n```")
    assert [closed[:end].splitlines()[-1] for end in finished_ends(closed)] == ["```", "It returns x."]


@pytest.mark.parametrize(
    ("text", "is_finished"),
    [
        ("```bash\n# List all files.\n```", False),
        ("```bash\n#!/bin/bash\n\n# List all files.\n```", False),
        ("```bash\n# List all files.\nls\n```", True),
        ("```js\n// to do\n```", False),
        ("```c\n/* to\n   do */\n```", False),
        ("```c\n#include <stdio.h>\n```", True),
        ("```sql\n-- all rows\n```", False),
        ("```html\n<!-- a\nb -->\n```", False),
        ("```html\n<!-- a -->\n<p>b</p>\n```", True),
        ("```markdown\n# Title\n```", True),
        ("```\n- a\n```", True),
        ("```bash\n# List all files.\n```\nIt lists them.", True),
        ("1. Run:\n   ```\n   ls\n   ```", True),
    ],
)
def test_code_has_a_line_that_is_no_comment(text: str, is_finished: bool) -> None:
    assert finished(text) is is_finished
