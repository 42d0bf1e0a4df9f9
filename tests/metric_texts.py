"""Texts of two systems with their references, golden values, and a shortcut to one score, for the tests of metrics."""

import json
from pathlib import Path

from lengthwise.metrics import score

GOLDEN = json.loads((Path(__file__).parent / "golden/metrics.json").read_text(encoding="utf-8"))

REFS = [
    "The cat sat on the mat and looked at the bird.",
    "It was a bright cold day in April.",
    "The clocks were striking thirteen when he came home.",
    "Text that fits is text that people read.",
    "A title, a caption, a button, a line on a small screen.",
    "Nobody knows where the old road ends.",
] * 8
CLOSE = [
    "The cat sat on a mat and looked at the birds.",
    "It was a bright and cold day in april.",
    "The clocks struck thirteen when he came home.",
    "Text that fits is text people read.",
    "A title, a caption, a button or a line on a small screen.",
    "Nobody knows where the old road ends.",
] * 8
FAR = [
    "A cat on mat, bird.",
    "Bright was the day, April is cold",
    "He came home and thirteen clocks",
    "People read",
    "Caption and title and small button",
    "the road ends nobody",
] * 8
DOCS = [row // 6 for row in range(48)]


def value(name, *args, **kwargs):
    """Return the value of one metric."""
    (found,) = score(*args, metrics=[name], bootstrap=0, **kwargs)
    return found.value
