"""JSON Lines files: the same rows are the same bytes, and a failed write changes nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.corpora import Document, Limits, Report, read, write_jsonl
from lengthwise.corpora.filters import HashSet, filter_documents

ONE = (("Hello", "Ciao"),)
TWO = (("Hello", "Ciao"), ("Bye", "Addio"))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
documents = st.lists(st.builds(Document, texts, st.lists(st.tuples(texts, texts), min_size=1, max_size=4).map(tuple)))


@given(documents)
@settings(max_examples=30, deadline=None)
def test_round_trip(tmp_path_factory, corpus):
    path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl.gz"
    corpus = [*corpus, Document("last", ONE)]
    assert write_jsonl(path, corpus) == len(corpus)
    first = path.read_bytes()
    assert list(read(path)) == list(filter_documents(corpus, Limits(), Report(), HashSet()))
    write_jsonl(path, corpus)
    assert path.read_bytes() == first  # no clock in it


def test_a_failed_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    write_jsonl(path, [Document("1", ONE)])
    before = path.read_bytes()

    def rows():
        yield Document("2", TWO)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_jsonl(path, rows())
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["a.jsonl.gz"]
