"""Reading corpora: every format, and everything that can be wrong with a file."""

import gzip
import sys
import types

import pytest

from lengthwise.corpora import DataError, Document, Limits, Report, read, write_jsonl

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
    "surrogate": ("jsonl", b'{"source":"\\ud83d","target":"b"}', "source contains half a character"),
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


def test_the_share_is_judged_per_file_and_the_error_shows_that_file(tmp_path):
    good = b"".join(GOOD["tsv"] % (n, n) for n in range(2000))
    (tmp_path / "a.tsv").write_bytes(good + b"bad\n" * 6)
    (tmp_path / "b.tsv").write_bytes(b"worse\tis\tthis\n" + GOOD["tsv"] % (0, 0))
    with pytest.raises(DataError, match=r"1 of 2 rows read from .*b\.tsv(.|\n)*b\.tsv:1: expected 2 columns; got 3"):
        list(read([str(tmp_path / "a.tsv"), tmp_path / "b.tsv"], limits=Limits(max_malformed=0.01)))


REFUSED = {  # what was asked for: what the error says
    "missing.jsonl": "no file",
    "*.nothing": "no file",
    "owner/name": "a hub dataset is written 'hf:owner/name'",
    ".": "is a folder; give its files, for example './*.jsonl.gz'",
    "text.md": "does not show its format; give the format (jsonl, tsv)",
    "empty.jsonl": "no usable document in empty.jsonl",
    "empty-sides.tsv": "empty",
    "broken.jsonl.gz": "is damaged after line 0",
    "cut.jsonl.gz": "is damaged after line ",
    "text.md,missing.it": "no file 'missing.it'",
    "text.md,empty.jsonl": "text.md has 2 lines and empty.jsonl has 0",
    "text.md,text.md,text.md": "must name two files",
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
