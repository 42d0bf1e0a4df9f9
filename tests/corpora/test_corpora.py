"""Reading corpora: every format, everything that can be wrong with a file, and that the account adds up."""

import gzip
import json
import sys
import types
from dataclasses import asdict
from itertools import islice
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.corpora import DataError, Document, Limits, Report, mix, read, write_jsonl
from lengthwise.corpora import lines as lines_module
from lengthwise.corpora.filters import Seen, clean, fingerprint, well_formed
from lengthwise.corpora.lines import Malformed
from lengthwise.corpora.mixing import shuffled

ONE = (("Hello", "Ciao"),)
TWO = (("Hello", "Ciao"), ("Bye", "Addio"))

FILES = {  # name: (bytes, options, segments of each document)
    "segs.jsonl": (b'{"id":"a","segs":[["Hello","Ciao"],["Bye","Addio"]]}\n', {}, [TWO]),
    "source.jsonl": (b'{"source":"Hello","target":"Ciao"}\n', {}, [ONE]),
    "prompt.jsonl": (b'{"prompt":"Hello","response":"Ciao","lang":"it"}\n', {}, [ONE]),
    "title.ndjson": (b'{"text":"Hello","title":"Ciao"}\n', {}, [ONE]),
    "no-end.jsonl": (b'{"source":"Hello","target":"Ciao"}', {}, [ONE]),
    "blank.jsonl": (b'\n  \n{"source":"Hello","target":"Ciao"}\n\n', {}, [ONE]),
    "bom.jsonl": (b'\xef\xbb\xbf{"source":"Hello","target":"Ciao"}\r\n', {}, [ONE]),
    "fields.jsonl": (b'{"a":"Hello","b":"Ciao","source":"x","target":"y"}\n', {"fields": ("a", "b")}, [ONE]),
    "turned.jsonl": (b'{"segs":[["Ciao","Hello"]]}\n', {"fields": ("target", "source")}, [ONE]),
    "nested.jsonl": (b'{"t":{"en":"Hello","it":"Ciao"}}\n', {"fields": ("t.en", "t.it")}, [ONE]),
    "dotted.jsonl": (b'{"t.en":"Hello","t.it":"Ciao"}\n', {"fields": ("t.en", "t.it")}, [ONE]),
    "separator.jsonl": ('{"source":"a\u2028b","target":"c\x85d"}\n'.encode(), {}, [(("a\u2028b", "c\x85d"),)]),
    "plain.tsv": (b"Hello\tCiao\n", {}, [ONE]),
    "crlf.tsv": (b"Hello\tCiao\r\nBye\tAddio\r\n", {}, [ONE, TWO[1:]]),
    "header.tsv": (b"target\tsource\nCiao\tHello\n", {}, [ONE]),
    "id.tsv": (b"id\tText\tTitle\n7\tHello\tCiao\n", {}, [ONE]),
    "named.tsv": (b"it\tnote\ten\nCiao\t-\tHello\n", {"fields": ("en", "it")}, [ONE]),
    "bom.tsv": (b"\xef\xbb\xbfsource\ttarget\nHello\tCiao\n", {}, [ONE]),
    "quotes.tsv": (b'"Hello\t"Ciao""\n\'a"\tb\n', {}, [(('"Hello', '"Ciao""'),), (("'a\"", "b"),)]),
    "feed.tsv": (b"a\x0cb\x1cc\td\n", {}, [(("a\x0cb\x1cc", "d"),)]),
    "data.txt": (b"Hello\tCiao\n", {"format": "tsv"}, [ONE]),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("name", FILES)
def test_read(tmp_path, name, packed):
    content, options, segments = FILES[name]
    path = tmp_path / (name + ".gz" * packed)
    path.write_bytes(gzip.compress(content) if packed else content)
    assert [document.segments for document in read(path, **options)] == segments


def test_ids(tmp_path):
    rows = [
        {"id": "x", "source": "a", "target": "b"},
        {"id": 7, "source": "c", "target": "d"},
        {"source": "e", "target": "f"},
    ]
    write_jsonl(tmp_path / "a.jsonl", rows)
    assert [document.id for document in read(tmp_path / "a.jsonl")] == ["x", "7", "a.jsonl:3"]


MALFORMED = {  # one bad line: (file, line, what the reason says)
    "not-json": ("jsonl", b'{"source":"a",', "not JSON"),
    "deep": ("jsonl", b"[" * 100_000, "not JSON"),
    "not-object": ("jsonl", b'["a","b"]', "expected an object with named fields; got a list"),
    "number": ("jsonl", b"3", "got a number"),
    "missing": (
        "jsonl",
        b'{"source":"a","translation":"b"}',
        "found the fields source, translation; expected source + target",
    ),
    "nothing": ("jsonl", b"{}", "found the fields (none)"),
    "type": ("jsonl", b'{"source":"a","target":5}', "target must be a string; got a number"),
    "null": ("jsonl", b'{"source":null,"target":"b"}', "source must be a string; got null"),
    "bad-id": ("jsonl", b'{"id":["x"],"source":"a","target":"b"}', "id must be a string or a number; got a list"),
    "segs": ("jsonl", b'{"segs":"ab"}', "segs must be a list of [source, target] pairs; got a string"),
    "no-segs": ("jsonl", b'{"segs":[]}', "got an empty list"),
    "triple": ("jsonl", b'{"segs":[["a","b"],["c","d","e"]]}', "segment 2 must be [source, target]; got a list of 3"),
    "segs-type": ("jsonl", b'{"segs":[["a",{}]]}', "segment 1 must be a string; got an empty object"),
    "surrogate": ("jsonl", b'{"source":"\\ud83d","target":"b"}', "source holds half a character"),
    "utf-8": ("jsonl", b'{"source":"caff\xe8","target":"b"}', "not UTF-8: bytes e8 22 2c 22 after 15 others"),
    "one-column": ("tsv", b"Hello", "expected 2 columns; got 1"),
    "three-columns": ("tsv", b"a\tb\tc", "expected 2 columns; got 3"),
    "tsv-utf-8": ("tsv", b"caff\xe8\tcoffee", "not UTF-8"),
}
GOOD = {"jsonl": b'{"source":"good %d","target":"buono %d"}\n', "tsv": b"good %d\tbuono %d\n"}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_rows_are_counted_and_shown(tmp_path, case):
    kind, line, reason = MALFORMED[case]
    good = b"".join(GOOD[kind] % (n, n) for n in range(150))
    path = tmp_path / f"corpus.{kind}"
    path.write_bytes(good + line + b"\n" + good.replace(b"good", b"fine"))
    report = Report()
    assert len(list(read(path, report=report))) == 300
    assert (report.read, report.kept, report.malformed) == (301, 300, 1)
    (sample,) = report.samples
    assert (sample.file, sample.line) == (str(path), 151)
    assert reason in sample.reason
    assert f"{path}:151: " in str(report)


@pytest.mark.parametrize("case", MALFORMED)
def test_nothing_but_malformed_rows_is_an_error(tmp_path, case):
    kind, line, reason = MALFORMED[case]
    path = tmp_path / f"corpus.{kind}"
    path.write_bytes(line + b"\n")
    with pytest.raises(DataError, match="1 of 1 rows") as error:
        list(read(path))
    assert reason in str(error.value)


def test_too_many_malformed_rows_stop_the_run_early_but_not_before_100():
    rows = [Malformed("f", 1, "bad"), Malformed("f", 2, "bad")]
    rows += [Document(str(n), ((str(n), "x"),)) for n in range(1000)]
    read_rows = []
    with pytest.raises(DataError, match=r"2 of 100 rows read from f are malformed; the limit is 1.0%"):
        read_rows.extend(well_formed(rows, "f", Limits(), Report()))
    assert len(list(well_formed(rows, "f", Limits(max_malformed=0.02), Report()))) == 1000


def test_the_share_is_judged_per_file_and_the_error_shows_that_file(tmp_path):
    good = b"".join(GOOD["tsv"] % (n, n) for n in range(2000))
    (tmp_path / "a.tsv").write_bytes(good + b"bad\n" * 6)
    (tmp_path / "b.tsv").write_bytes(b"worse\tis\tthis\n" + GOOD["tsv"] % (0, 0))
    with pytest.raises(DataError, match=r"1 of 2 rows read from .*b\.tsv(.|\n)*b\.tsv:1: expected 2 columns; got 3"):
        list(read([str(tmp_path / "a.tsv"), tmp_path / "b.tsv"], limits=Limits(max_malformed=0.01)))


def test_a_line_without_end_is_malformed(tmp_path, monkeypatch):
    monkeypatch.setattr(lines_module, "LONGEST", 1 << 10)
    (tmp_path / "a.tsv").write_bytes(b"x" * 5000 + b"\n" + b"a\tb\n" + b"y" * 1024)
    report = Report()
    assert [d.segments for d in read(tmp_path / "a.tsv", limits=Limits(max_malformed=1), report=report)] == [
        (("a", "b"),)
    ]
    assert [sample.line for sample in report.samples] == [1, 3]


REFUSED = {  # what was asked for: what the error says
    "missing.jsonl": "no file",
    "*.nothing": "no file",
    "owner/name": "a hub dataset is written 'hf:owner/name'",
    ".": "is a folder; name the files in it",
    "text.md": "does not tell its format; name it (jsonl, tsv)",
    "empty.jsonl": "nothing to keep in empty.jsonl",
    "empty-sides.tsv": "empty",
    "broken.jsonl.gz": "is not a whole gzip file",
    "cut.jsonl.gz": "is not a whole gzip file (after line",
    "text.md,missing.it": "no file 'missing.it'",
    "text.md,empty.jsonl": "text.md has 2 lines and empty.jsonl has 0",
    "text.md,text.md,text.md": "should name two files",
    "hf:owner/name": "pip install datasets",
}


@pytest.mark.parametrize("source", REFUSED)
def test_refused(tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "datasets", None)
    (tmp_path / "text.md").write_text("one\ntwo")
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "empty-sides.tsv").write_text("a\t \n\tb\n")
    (tmp_path / "broken.jsonl.gz").write_text("plain")
    whole = gzip.compress(b"".join(GOOD["jsonl"] % (n, n * n) for n in range(500)))
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError) as error:
        list(read(source))
    assert REFUSED[source] in str(error.value)


def test_refused_options(tmp_path):
    with pytest.raises(DataError, match="unknown format 'csv'; the formats are jsonl, tsv"):
        read("a.csv", format="csv")
    with pytest.raises(DataError, match="two names"):
        read("a.tsv", fields=("a", "b", "c"))
    (tmp_path / "a.tsv").write_text("en\tit\nHello\tCiao\n")
    with pytest.raises(DataError, match=r"no columns en and fr; its first line is en \| it"):
        list(read(tmp_path / "a.tsv", fields=("en", "fr")))


@pytest.mark.parametrize(
    "options", [{"max_chars": 0}, {"max_ratio": 0.5}, {"max_malformed": 2}, {"max_ratio": float("nan")}]
)
def test_limits_refuse(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Limits(**options)


def test_a_wrong_name_fails_at_once():
    with pytest.raises(DataError, match="no file"):
        read("missing.jsonl")  # without reading from it


def test_globs_and_lists_read_in_order(tmp_path):
    for name in ("b.jsonl", "a.jsonl.gz", "c.tsv"):
        rows = [{"source": name, "target": "x"}]
        if name.endswith("tsv"):
            (tmp_path / name).write_text(f"{name}\tx\n")
        else:
            write_jsonl(tmp_path / name, rows)
    (tmp_path / "odd[1],.tsv").write_text("odd\tx\n")
    found = read([str(tmp_path / "*.jsonl*"), tmp_path / "c.tsv", str(tmp_path / "odd[1],.tsv")])
    assert [d.segments[0][0] for d in found] == ["a.jsonl.gz", "b.jsonl", "c.tsv", "odd"]


def test_paired_files(tmp_path):
    (tmp_path / "a.en").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n\r\nthree")
    (tmp_path / "a.it").write_bytes("uno\ndue\u2028\n\ntre\n".encode())
    place, report = f"{tmp_path}/a.en,{tmp_path}/a.it", Report()
    assert [d.segments[0] for d in read(place, report=report)] == [
        ("one", "uno"),
        ("two", "due\u2028"),
        ("three", "tre"),
    ]
    assert (report.read, report.kept, report.empty) == (4, 3, 1)
    documents = list(read(place, blank_lines=True))
    assert documents == [
        Document("a.en:1", (("one", "uno"), ("two", "due\u2028"))),
        Document("a.en:4", (("three", "tre"),)),
    ]


def test_paired_files_of_unequal_length_are_refused_before_the_first_pair(tmp_path):
    (tmp_path / "a.en").write_text("x\n" * 1200)
    (tmp_path / "a.it.gz").write_bytes(gzip.compress(b"x\n" * 1199))
    with pytest.raises(DataError, match=r"a\.en has 1,200 lines and .*a\.it\.gz has 1,199"):
        next(read(f"{tmp_path}/a.en,{tmp_path}/a.it.gz"))


def test_a_malformed_line_spoils_its_document_only(tmp_path):
    (tmp_path / "a.en").write_bytes(b"one\ntw\xff\n\nthree\n")
    (tmp_path / "a.it").write_bytes(b"uno\ndue\n\ntre\n")
    report = Report()
    found = read(f"{tmp_path}/a.en,{tmp_path}/a.it", blank_lines=True, limits=Limits(max_malformed=0.5), report=report)
    assert [d.segments for d in found] == [(("three", "tre"),)]
    assert [(sample.file, sample.line) for sample in report.samples] == [(f"{tmp_path}/a.en", 2)]


def hub(rows, asked):
    def load_dataset(path, name=None, *, split, streaming):
        asked.append((path, name, split, streaming))
        return rows()

    return types.SimpleNamespace(load_dataset=load_dataset)


def test_hub(monkeypatch):
    asked = []
    rows = [{"translation": {"en": "Hello", "it": "Ciao"}}]
    monkeypatch.setitem(sys.modules, "datasets", hub(lambda: iter(rows), asked))
    fields = ("translation.en", "translation.it")
    assert list(read("hf:owner/name", fields=fields)) == [Document("owner/name:1", ONE)]
    assert list(read("hf:owner/name/en-it:test", fields=fields)) == [Document("owner/name/en-it:test:1", ONE)]
    assert asked == [("owner/name", None, "train", True), ("owner/name", "en-it", "test", True)]


def test_hub_out_of_reach(monkeypatch):
    def broken():
        yield {"source": "Hello", "target": "Ciao"}
        raise ConnectionError("the line went dead\nand more")

    monkeypatch.setitem(sys.modules, "datasets", hub(broken, []))
    with pytest.raises(DataError, match=r"'owner/name' \(after 1 rows\): the line went dead\nWhat to do: check"):
        list(read("hf:owner/name"))


# Filters


def test_filters_by_pair_and_duplicates_by_document():
    documents = [
        Document("1", (("a", "b"), ("", " "), ("c", "d"))),
        Document("2", (("a", "b"),)),  # shares a pair with 1, and is kept
        Document("3", (("a ", "b"), ("c", "d"))),  # what is left of 1
        Document("4", (("x" * 11, "y"), ("xxx", "y" * 10), ("ok", "ok"))),
        Document("5", ((" ", "b"),)),
    ]
    report = Report()
    kept = list(clean(documents, Limits(max_chars=10, max_ratio=3), report))
    assert [(d.id, d.segments) for d in kept] == [
        ("1", (("a", "b"), ("c", "d"))),
        ("2", (("a", "b"),)),
        ("4", (("ok", "ok"),)),
    ]
    expected = Report(read=10, kept=4, empty=2, too_long=1, bad_ratio=1, duplicate=2, documents=3)
    assert report == expected
    assert len(list(clean(documents, Limits(duplicates=True), Report()))) == 4


def test_report_prints_as_table_and_json():
    report = Report(read=1200, kept=1199, malformed=1, documents=1199, samples=[Malformed("a.tsv", 3, "why")])
    assert str(report).splitlines() == [
        "read       1,200",
        "kept       1,199",
        "malformed      1",
        "documents  1,199",
        "  a.tsv:3: why",
    ]
    assert json.loads(report.json()) == asdict(report)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
documents = st.lists(st.builds(Document, texts, st.lists(st.tuples(texts, texts), min_size=1, max_size=4).map(tuple)))


@given(documents, st.none() | st.integers(1, 5), st.none() | st.floats(1, 4), st.booleans())
def test_report_adds_up(corpus, max_chars, max_ratio, duplicates):
    rows = [row for document in corpus for row in (document, Malformed("f", 1, "x"))]
    report, limits = Report(), Limits(max_chars, max_ratio, duplicates, max_malformed=1)
    kept = list(clean(well_formed(rows, "f", limits, report), limits, report))
    assert report.read == sum(len(d.segments) for d in corpus) + len(corpus)
    lost = report.malformed + report.empty + report.too_long + report.bad_ratio + report.duplicate
    assert report.read == report.kept + lost
    assert report.kept == sum(len(d.segments) for d in kept)
    assert report.documents == len(kept)
    assert duplicates or len({fingerprint(d.segments) for d in kept}) == len(kept)
    assert len(report.samples) == min(5, len(corpus))


@given(documents)
@settings(max_examples=30)
def test_round_trip(tmp_path_factory, corpus):
    path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl.gz"
    corpus = [*corpus, Document("last", ONE)]
    assert write_jsonl(path, corpus) == len(corpus)
    first = path.read_bytes()
    assert list(read(path)) == list(clean(corpus, Limits(), Report()))
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


@given(st.lists(st.integers(1, 2**64 - 1) | st.integers(1, 50), max_size=3000))
@settings(max_examples=20)
def test_seen_is_a_set(keys):
    seen, truth = Seen(), set()
    for key in keys:
        assert seen.add(key) == (key not in truth)
        truth.add(key)


def test_seen_grows():
    seen = Seen()
    assert all(seen.add(key << 40 | 1) for key in range(1, 3000))  # all begin at the same slot
    assert not any(seen.add(key << 40 | 1) for key in range(1, 3000))


# Mixtures


def sources(sizes, weights):
    return [
        (lambda size=size, name=name: ((name, n) for n in range(size)), weight)
        for name, (size, weight) in enumerate(zip(sizes, weights, strict=True))
    ]


corpora = st.lists(st.tuples(st.integers(1, 30), st.floats(0.1, 10)), min_size=1, max_size=4)


@given(corpora, st.integers(0, 2**32), st.integers(1, 20), st.integers(0, 150), st.booleans())
def test_mix_is_deterministic_and_resumable(corpora, seed, buffer, consumed, endless):
    made = sources(*zip(*corpora, strict=True))
    whole = list(islice(mix(made, seed, endless=endless, buffer=buffer), 200))
    assert list(islice(mix(made, seed, endless=endless, buffer=buffer), 200)) == whole
    rest = mix(made, seed, endless=endless, buffer=buffer, consumed=consumed)
    assert list(islice(rest, max(0, 200 - consumed))) == whole[consumed:]


@given(corpora, st.integers(0, 2**32), st.integers(1, 20))
def test_one_epoch_has_everything_once(corpora, seed, buffer):
    sizes, weights = zip(*corpora, strict=True)
    found = list(mix(sources(sizes, weights), seed, buffer=buffer))
    assert sorted(found) == [(name, n) for name, size in enumerate(sizes) for n in range(size)]


def test_mix_keeps_proportions_and_shuffles_each_epoch_anew():
    found = list(islice(mix(sources([50, 50], [3, 1]), 1, endless=True, buffer=100), 4000))
    assert 2900 < sum(name == 0 for name, _ in found) < 3100
    first = [n for name, n in found if name == 0]
    epochs = [first[at : at + 50] for at in range(0, 2900, 50)]
    assert all(sorted(epoch) == list(range(50)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == len(epochs)
    assert list(islice(mix(sources([50, 50], [3, 1]), 2, endless=True), 4000)) != found


def test_mix_is_the_same_on_every_machine():
    found = [f"{name}{n}" for name, n in mix(sources([4, 3], [1, 2]), 7, buffer=2)]
    assert " ".join(found) == "01 10 12 11 00 03 02"


def test_unshuffled():
    assert list(shuffled(range(9), 1, Random(0))) == list(range(9))


@pytest.mark.parametrize(
    ("made", "options", "says"),
    [
        ([], {}, "nothing to mix"),
        (sources([1], [0]), {}, "above 0; got 0 for source 1"),
        (sources([1], [float("nan")]), {}, "above 0"),
        (sources([1], [1]), {"buffer": 0}, "buffer must be at least 1"),
        (sources([1], [1]), {"consumed": -1}, "consumed"),
    ],
)
def test_mix_refuses(made, options, says):
    with pytest.raises(ValueError, match=says):
        mix(made, **options)


def test_an_endless_mix_of_nothing_is_an_error():
    with pytest.raises(ValueError, match="source 2 gave nothing"):
        list(islice(mix(sources([5, 0], [1, 1]), endless=True), 100))
