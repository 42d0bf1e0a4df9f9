"""What a user sees while the Debian corpus is built: files and bytes as they come, then entries."""

import re

import pytest

from corpora.test_debian import FAKE_APT, apt
from lengthwise.corpora import debian

__all__ = ["apt"]


@pytest.fixture
def slow_apt(apt, tmp_path):
    """As `apt`, but with a rest after all files are there."""
    program = tmp_path / "bin" / "apt-get"
    assert FAKE_APT.splitlines()[1] in program.read_text()
    program.write_text(program.read_text() + "import time\ntime.sleep(1)\n")


@pytest.mark.usefixtures("slow_apt")
def test_progress(tmp_path, monkeypatch):
    monkeypatch.setattr(debian, "_TELL", 50)
    said: list[str] = []
    debian.build("en-it", tmp_path / "corpus", progress=said.append, held_out=5)
    counts = [re.match(r"fetching: (\d+) files, ([\d.]+) MB$", line) for line in said]
    assert max(int(found[1]) for found in counts if found) >= 4
    assert max(float(found[2]) for found in counts if found) > 0
    assert "building debian.en-it: 150 entries paired" in said
    assert "building debian.titles: 200 entries paired" in said
    assert said.index("building debian.en-it: 150 entries paired") < said.index("building debian.titles ...")
