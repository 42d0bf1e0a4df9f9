"""A part of the regression net that takes a minute: `record.py --check` compares the rest.

Only stable rows are compared, so it passes on any CPU: float noise does not change them.
"""

import shlex
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import record
from bad_usage import OURS, STDIN, command_lines

# Which prompts: an exact length takes five times as long as a limit.
PROMPTS = {
    "at most 280 chars": record.PROMPTS[:2],
    "at most 60 tokens": record.PROMPTS[2:4],
    "exactly 50 words": record.PROMPTS[5:6],
    "exactly 200 chars": record.PROMPTS[3:4],
}
LINES = {"": 4, "1.0x": 2, "at most 1.0x": 2}
COMMANDS = sorted({line.split()[0] for line in OURS})


def differences(group: str, found: record.Rows) -> dict[str, str]:
    """Return what differs from the recorded rows of a group, but for the unstable ones."""
    recorded, unstable = record.read(group)
    return {
        key: record.difference(recorded[key], row)
        for key, row in found.items()
        if key not in unstable and not record.same(recorded[key], row)
    }


@pytest.mark.real
@pytest.mark.parametrize("budget", PROMPTS)
def test_texts_are_the_recorded_ones(budget):
    assert differences("greedy", record.written("greedy", budget, PROMPTS[budget])) == {}


@pytest.mark.parametrize("length", LINES)
def test_translations_are_the_recorded_ones(length):
    rows = record.translated("lines.txt", record.LINES[: LINES[length]], *(["--length", length] if length else []))
    rows.popitem()  # the exit code and stderr of all lines
    assert differences("translate", rows) == {}


def test_losses_are_the_recorded_ones(tmp_path, monkeypatch):
    monkeypatch.chdir(record.ROOT)
    recorded, found = record.read("train")[0]["toy"], record.trained("toy", tmp_path / "run")
    for key in ("step", "loss", "dev_loss", "lr", "tokens"):  # not dev_length_error: the texts of a bad model are noise
        assert record.same([row.get(key) for row in recorded], [row.get(key) for row in found]), key


def test_scores_are_the_recorded_ones():
    for rows in record.score():
        assert differences("score", rows) == {}


@pytest.mark.parametrize("command", COMMANDS)
def test_error_messages_are_the_recorded_ones(command):
    """Those whose words are ours; messages of other libraries depend on their version. Some load a model: left out."""
    lines = [line for line in [*OURS, *STDIN] if not line.startswith("evaluate en-it")]
    ours = [line for line in command_lines(lines) if shlex.split(line)[0] == command]
    assert differences("errors", {line: record.failed(line) for line in ours}) == {}


def test_row_errors_are_the_recorded_ones():
    assert differences("errors", record.row_errors()) == {}
