"""Length statistics, counted by hand."""

from lengthwise.corpora.document import Document
from lengthwise.corpora.length_statistics import length_statistics


def test_every_segment_counts_without_outer_white_space():
    documents = [Document("a", (("abcd", " abcdefgh "), ("ab", "abc"))), Document("b", (("abcd", "ab"),))]
    calls = []
    found = length_statistics(documents, lambda: calls.append(1))
    assert len(calls) == len(documents)
    assert found["source"] == {"min": 2, "5 %": 2.2, "median": 4, "95 %": 4, "max": 4, "mean": 3.33}
    assert found["target"]["max"] == 8
    assert found["target/source"] == {"min": 0.5, "5 %": 0.6, "median": 1.5, "95 %": 1.95, "max": 2, "mean": 1.33}
