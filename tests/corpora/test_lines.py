"""Lines of text files: which are malformed, and which are skipped."""

import pytest

from lengthwise.corpora import DataError, Limits, Report, read
from lengthwise.corpora import lines as lines_module
from lengthwise.corpora.lines import count, well_formed_lines


def test_a_line_without_end_is_malformed(tmp_path, monkeypatch):
    monkeypatch.setattr(lines_module, "MAX_LINE", 1 << 10)
    (tmp_path / "a.tsv").write_bytes(b"x" * 5000 + b"\n" + b"a\tb\n" + b"y" * 1024)
    report = Report()
    assert [d.segments for d in read(tmp_path / "a.tsv", limits=Limits(max_malformed=1), report=report)] == [
        (("a", "b"),)
    ]
    assert [sample.line for sample in report.samples] == [1, 3]


def test_well_formed_lines_are_numbered_without_blank_ones(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\n \ntwo")
    assert list(well_formed_lines(path)) == [(1, "one"), (3, "two")]
    assert count(path) == 3
    path.write_bytes(b"one\nt\xff\n")
    with pytest.raises(DataError, match=r"a\.txt:2: not UTF-8: bytes ff 0a after 1 others"):
        list(well_formed_lines(path))
