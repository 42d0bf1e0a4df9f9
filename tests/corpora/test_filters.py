"""Filters: what is dropped, that the report adds up, and the set of hashes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.corpora import DataError, Document, Limits, Report
from lengthwise.corpora.filters import HashSet, drop_malformed, filter_documents, fingerprint
from lengthwise.corpora.lines import Malformed


def test_too_many_malformed_rows_stop_the_run_early_but_not_before_100():
    rows = [Malformed("f", 1, "bad"), Malformed("f", 2, "bad")]
    rows += [Document(str(n), ((str(n), "x"),)) for n in range(1000)]
    read_rows = []
    with pytest.raises(DataError, match=r"2 of 100 rows read from f are malformed; the limit is 1.0%"):
        read_rows.extend(drop_malformed(rows, "f", Limits(), Report()))
    assert len(list(drop_malformed(rows, "f", Limits(max_malformed=0.02), Report()))) == 1000


@pytest.mark.parametrize(
    "options", [{"max_chars": 0}, {"max_ratio": 0.5}, {"max_malformed": 2}, {"max_ratio": float("nan")}]
)
def test_limits_refuse(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Limits(**options)


def test_filters_by_pair_and_duplicates_by_document():
    documents = [
        Document("1", (("a", "b"), ("", " "), ("c", "d"))),
        Document("2", (("a", "b"),)),  # shares a pair with 1, and is kept
        Document("3", (("a ", "b"), ("c", "d"))),  # what is left of 1
        Document("4", (("x" * 11, "y"), ("xxx", "y" * 10), ("ok", "ok"))),
        Document("5", ((" ", "b"),)),
    ]
    report = Report()
    kept = list(filter_documents(documents, Limits(max_chars=10, max_ratio=3), report, HashSet()))
    assert [(d.id, d.segments) for d in kept] == [
        ("1", (("a", "b"), ("c", "d"))),
        ("2", (("a", "b"),)),
        ("4", (("ok", "ok"),)),
    ]
    expected = Report(read=10, kept=4, empty=2, too_long=1, bad_ratio=1, duplicate=2, documents=3)
    assert report == expected
    assert len(list(filter_documents(documents, Limits(duplicates=True), Report(), HashSet()))) == 4


def test_report_prints_as_table():
    report = Report(read=1200, kept=1199, malformed=1, documents=1199, samples=[Malformed("a.tsv", 3, "why")])
    assert str(report).splitlines() == [
        "read       1,200",
        "kept       1,199",
        "malformed      1",
        "documents  1,199",
        "  a.tsv:3: why",
    ]


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
documents = st.lists(st.builds(Document, texts, st.lists(st.tuples(texts, texts), min_size=1, max_size=4).map(tuple)))


@given(documents, st.none() | st.integers(1, 5), st.none() | st.floats(1, 4), st.booleans())
@settings(deadline=None)
def test_report_adds_up(corpus, max_chars, max_ratio, duplicates):
    rows = [row for document in corpus for row in (document, Malformed("f", 1, "x"))]
    report, limits = Report(), Limits(max_chars, max_ratio, duplicates, max_malformed=1)
    kept = list(filter_documents(drop_malformed(rows, "f", limits, report), limits, report, HashSet()))
    assert report.read == sum(len(d.segments) for d in corpus) + len(corpus)
    lost = report.malformed + report.empty + report.too_long + report.bad_ratio + report.duplicate
    assert report.read == report.kept + lost
    assert report.kept == sum(len(d.segments) for d in kept)
    assert report.documents == len(kept)
    assert duplicates or len({fingerprint(d.segments) for d in kept}) == len(kept)
    assert len(report.samples) == min(5, len(corpus))


@given(st.lists(st.integers(1, 2**64 - 1) | st.integers(1, 50), max_size=3000))
@settings(max_examples=20, deadline=None)
def test_seen_is_a_set(keys):
    seen, truth = HashSet(), set()
    for key in keys:
        assert seen.add(key) == (key not in truth)
        truth.add(key)


def test_seen_grows():
    seen = HashSet()
    assert all(seen.add(key << 40 | 1) for key in range(1, 3000))  # all begin at the same slot
    assert not any(seen.add(key << 40 | 1) for key in range(1, 3000))
