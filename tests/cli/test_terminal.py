"""Messages: one line each, whatever they are made of."""

import pytest

from lengthwise.cli.terminal import print_message, verdict
from lengthwise.errors import ModelNotFound
from lengthwise.shortening.records import Shortened

PLACES = [("a local folder", "./x does not exist"), ("the hub", "Not found. Check the name.")]


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("one line", "one line"),
        ("no model.\nWhat to do: look.", "no model. What to do: look."),
        ("no model\n  What to do: look.", "no model. What to do: look."),
        ("two faults:\n  one\n\n  another\n", "two faults: one; another"),
        (ModelNotFound("x", "no model called 'x'.", "look.").short, "no model called 'x'. What to do: look."),
        (
            ModelNotFound("x", "no model called 'x'.", "look.", PLACES).short,
            "no model called 'x'. The hub: Not found. What to do: look.",
        ),
    ],
)
def test_lines_are_joined(capsys, message, line):
    print_message(message)
    assert capsys.readouterr().err == f"lengthwise: {line}\n"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["write", "x", "--beams", "0"], "--beams must be at least 1; see lengthwise write --help"),
        (["evaluate", "m", "x", "--rerank", "1"], "--rerank must be at least 2; see lengthwise evaluate --help"),
        (
            ["data", "answers", "a", "b", "--top-p", "2"],
            "--top-p must be at most 1; see lengthwise data answers --help",
        ),
        (
            ["data", "answers", "a", "b", "--temperature", "0"],
            "--temperature must be at least 0.01; see lengthwise data answers --help",
        ),
        (["write", "x", "--beams", "two"], "'--beams'"),
        (["write"], "Missing argument 'prompt'; see lengthwise write --help"),
    ],
)
def test_numbers_out_of_range(cli, args, says):
    code, out, err = cli(*args)
    assert (code, out, says in err) == (2, "", True)


def test_a_verdict_names_eight_words_and_the_json_all():
    note = "left out: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10; check: and old"
    one = Shortened("Short.", 6, "chars", "at most 6 chars", True, True, "model", 2, note=note)
    assert verdict(one).endswith(" · left out: 1, 2, 3, 4, 5, 6, 7, 8, …; check: and old")
    assert one.as_json()["note"] == note
