"""The Debian corpus: splits that share nothing, and whole builds with an apt-get of the tests' own."""

import gzip
import json
import os
import re
import stat
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.corpora import DataError, Document, read
from lengthwise.corpora.debian import build as debian
from lengthwise.corpora.debian.apt import find


def stanza(package, md5, short, body, language):
    return f"Package: {package}\nDescription-md5: {md5}\nDescription-{language}: {short}\n{body}\n"


# ---- splits

words = st.sampled_from("abcdefghijklmnopqrstuvwxyzABC")
corpora = st.lists(st.lists(st.tuples(words, words), min_size=1, max_size=3).map(tuple), max_size=60).map(
    lambda many: [Document(str(number), segments) for number, segments in enumerate(many)]
)


@given(corpora, st.integers(0, 9), st.integers(0, 5))
@settings(max_examples=200, deadline=None)
def test_split_shares_no_segment(corpus, seed, held_out):
    unique = [Document(f"u{n}", ((f"unique {n}", f"unico {n}"),)) for n in range(50)]
    corpus = corpus + unique
    parts = debian.split(corpus, seed, held_out)
    assert sorted(d.id for part in parts.values() for d in part) == sorted(d.id for d in corpus)
    assert len(parts["dev"]) == len(parts["test"]) == min(held_out, len(corpus) // 20)
    for side in (0, 1):
        seen = {name: {pair[side].casefold() for d in part for pair in d.segments} for name, part in parts.items()}
        assert not seen["test"] & (seen["train"] | seen["dev"])
        assert not seen["dev"] & seen["train"]
    assert debian.split(corpus[::-1], seed, held_out) == parts


def test_split_is_stable():
    corpus = [Document(f"d{n}", ((f"text {n}", f"testo {n}"),)) for n in range(2000)]
    small, large = debian.split(corpus[:1800], 0, 50), debian.split(corpus, 0, 50)
    assert len({d.id for d in small["test"]} & {d.id for d in large["test"]}) > 35
    assert not {d.id for d in small["test"]} & {d.id for d in large["dev"]}
    assert debian.split(corpus, 1, 50)["test"] != large["test"]


# ---- the whole build


def index(language, numbers, component="main", release="host.example_debian_dists_stable"):
    name = f"{release}_{component}_i18n_Translation-{language.replace('_', '%5f')}"
    return name, "\n".join(
        stanza(f"pkg{n}", f"{n:032x}", f"{language} title of package {n}", body(language, n), language) for n in numbers
    )


def body(language, n):
    return (
        f" {language} text {n} "
        + "in many words " * 12
        + f"\n .\n This is shared in {language}.\n  * {language} item {n}"
    )


INDICES = dict(
    [
        index("en", range(200)),
        index("it", range(20, 203)),  # 200 to 202 have no original
        index("pt_BR", range(60)),
        index("en", range(1000, 1010), "non-free"),
        index("it", range(1000, 1010), "non-free"),
        index("en", range(2000, 2010), release="third.example_dists_party"),
        (
            "host.example_debian_dists_stable_InRelease",
            " 0 9 main/i18n/Translation-it.xz\n 0 9 main/i18n/Translation-pt_BR\n",
        ),
    ]
)

FAKE_APT = """\
#!{python}
import json, os, pathlib, sys
options = dict(arg[2:].split("=", 1) for arg in sys.argv if arg.startswith("-o"))
config = pathlib.Path(sys.argv[sys.argv.index("-c") + 1]).read_text()
with open({log!r}, "a") as log:
    log.write(json.dumps([sys.argv, options, config]) + chr(10))
if os.environ.get("APT_FAILS"):
    sys.exit("E: Could not resolve the archive" if os.environ["APT_FAILS"] == "all" else 100)
for name, text in json.load(open({indices!r})).items():
    language = name.rpartition("-")[2].replace("%5f", "_")
    if "Translation" not in name or f'"{{language}}"' in config:
        pathlib.Path(options["Dir::State::lists"], name).write_text(text)
print("W: somebody's third source is old", file=sys.stderr)
"""


@pytest.fixture
def apt(tmp_path, monkeypatch):
    """An apt-get on PATH; returns what it was called with so far."""
    tools, log, indices = tmp_path / "bin", tmp_path / "apt.log", tmp_path / "indices.json"
    tools.mkdir()
    indices.write_text(json.dumps(INDICES))
    program = tools / "apt-get"
    program.write_text(FAKE_APT.format(python=sys.executable, log=str(log), indices=str(indices)))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    return lambda: [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def contents(out):
    return {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}


def test_build(tmp_path, apt):
    said = []
    out = tmp_path / "a corpus"
    report = debian.build("en-it", out, progress=said.append, held_out=5)
    files = [f"debian.{name}.{part}.jsonl.gz" for name in ("en-it", "titles") for part in ("train", "dev", "test")]
    assert sorted(path.name for path in out.iterdir()) == sorted([*files, "LICENCE.md", "report.json"])
    assert report == json.loads((out / "report.json").read_text())

    pair = report["en-it"]
    assert pair["counts"] == {"translations": 183, "kept": 180, "no_original": 3}
    assert pair["indices"] == ["debian_dists_stable_main"]
    # Every document shares a paragraph with the others, so none may be held out.
    assert [pair[part]["documents"] for part in ("train", "dev", "test")] == [180, 0, 0]
    first = {d.id: d for d in read(out / "debian.en-it.train.jsonl.gz")}["pkg20-000000"]
    assert first.segments[0] == ("en title of package 20", "it title of package 20")
    assert first.segments[2:] == (("This is shared in en.", "This is shared in it."), ("* en item 20", "* it item 20"))
    assert report["titles"]["counts"] == {"descriptions": 200, "kept": 200}
    with gzip.open(out / "debian.titles.train.jsonl.gz", "rt") as stream:
        row = json.loads(stream.readline())
    assert row.keys() == {"id", "text", "title"}
    assert row["text"].split("\n")[1] == "This is shared in en."
    assert "W: somebody's third source is old" in said


def test_the_systems_apt_is_left_alone(tmp_path, apt):
    debian.build("en-it", tmp_path / "out")
    ((argv, options, config),) = apt()
    assert argv[-1] == "update"
    own = str(tmp_path / "out" / ".indices")
    assert {"Dir::State", "Dir::State::lists", "Dir::Cache", "Dir::Log"} == options.keys()
    assert all(place.startswith(own) for place in options.values())
    assert "#clear APT::Update;" in config  # the system's hooks
    assert 'Acquire::Languages { "en"; "it"; };' in config


def test_build_again(tmp_path, apt):
    out = tmp_path / "out"
    debian.build("en-it", out)
    before = contents(out)
    stamps = {path.name: path.stat().st_mtime_ns for path in out.iterdir()}
    debian.build("en-it", out)
    assert len(apt()) == 1
    assert {path.name: path.stat().st_mtime_ns for path in out.iterdir()} == stamps
    debian.build("en-it", out, rebuild=True)
    assert len(apt()) == 2
    assert contents(out) == before  # the same to the byte
    debian.build("en-pt_BR", out)
    assert {"en-it", "en-pt_BR", "titles"} == debian.build("en-pt-br", out).keys()
    assert len(apt()) == 3
    assert contents(out)["debian.titles.train.jsonl.gz"] == before["debian.titles.train.jsonl.gz"]
    debian.build("en-it", out, seed=1)  # another split was asked for
    assert len(apt()) == 4


def test_build_goes_on_after_an_interruption(tmp_path, apt, monkeypatch):
    out = tmp_path / "out"
    whole_write, calls = debian.write_jsonl, []

    def interrupted(path, rows):
        calls.append(path.name)
        if len(calls) == 5:  # in the middle of the titles
            raise KeyboardInterrupt
        return whole_write(path, rows)

    monkeypatch.setattr(debian, "write_jsonl", interrupted)
    with pytest.raises(KeyboardInterrupt):
        debian.build("en-it", out)
    assert debian._report(out).keys() == {"en-it"}
    assert (out / ".indices" / "en-it" / "fetched").exists()
    del calls[:]
    monkeypatch.setattr(debian, "write_jsonl", lambda path, rows: calls.append(path.name) or whole_write(path, rows))
    report = debian.build("en-it", out)
    assert len(apt()) == 1
    assert calls == [f"debian.titles.{part}.jsonl.gz" for part in ("train", "dev", "test")]
    assert report.keys() == {"en-it", "titles"}
    assert not (out / ".indices").exists()


def test_an_interrupted_rebuild_is_unfinished(tmp_path, apt, monkeypatch):
    out = tmp_path / "out"
    debian.build("en-it", out)
    monkeypatch.setattr(debian, "write_jsonl", lambda path, rows: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        debian.build("en-it", out, rebuild=True)
    assert debian._report(out).keys() == {"titles"}


@pytest.mark.parametrize("pair", ["it-en", "en-en", "en", "fr-it", "en-it,de", "../x", "en-italian", ""])
def test_only_pairs_with_english(tmp_path, pair):
    with pytest.raises(DataError, match="as in en-it") as error:
        debian.build(pair, tmp_path)
    assert repr(pair) in str(error.value)


def test_unknown_language(tmp_path, apt):
    with pytest.raises(DataError, match=r"no package descriptions in 'tlh'; the languages found are it, pt_BR\."):
        debian.build("en-tlh", tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_no_network(tmp_path, apt, monkeypatch):
    monkeypatch.setenv("APT_FAILS", "all")
    with pytest.raises(DataError, match=r"could not fetch(.|\n)*E: Could not resolve"):
        debian.build("en-it", tmp_path / "out")
    monkeypatch.delenv("APT_FAILS")
    assert debian.build("en-it", tmp_path / "out").keys() == {"en-it", "titles"}


def test_no_apt(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataError, match=r"this machine has no apt-get(.|\n)*run this on Debian or Ubuntu"):
        debian.build("en-it", tmp_path / "out")
    with pytest.raises(DataError, match="indices must be a folder of Translation files"):
        debian.build("en-it", tmp_path / "out", indices=tmp_path / "none")


@pytest.mark.parametrize("packed", [False, True])
def test_given_indices_need_no_apt(tmp_path, monkeypatch, packed):
    monkeypatch.setenv("PATH", str(tmp_path))
    for language in ("en", "it"):
        text = index(language, range(50))[1].replace("This is shared in", "Own")
        path = tmp_path / f"Translation-{language}{'.gz' * packed}"
        path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    report = debian.build("en-it", tmp_path / "out", indices=tmp_path)
    assert report["en-it"]["counts"] == {"translations": 50, "kept": 50}
    assert len(list(tmp_path.glob("Translation-*"))) == 2


def test_held_out_documents_are_read_back(tmp_path):
    for language in ("en", "it"):
        stanzas = [
            stanza(
                f"pkg{n}", f"{n:032x}", f"{language} title of {n}", f" {language} {n} " + "many words " * 20, language
            )
            for n in range(100)
        ]
        (tmp_path / f"Translation-{language}").write_text("\n".join(stanzas))
    report = debian.build("en-it", tmp_path / "out", indices=tmp_path, held_out=4)
    for name in ("en-it", "titles"):
        parts = {part: {d.id for d in read(tmp_path / f"out/debian.{name}.{part}.jsonl.gz")} for part in debian.SPLITS}
        assert {part: len(ids) for part, ids in parts.items()} == {"train": 92, "dev": 4, "test": 4}
        assert len(set.union(*parts.values())) == 100
        assert report[name]["dev"]["documents"] == 4
    assert find("it", tmp_path)[0].english == tmp_path / "Translation-en"


# ---- progress


@pytest.fixture
def slow_apt(apt, tmp_path):
    """As `apt`, but with a rest after all files are there."""
    program = tmp_path / "bin" / "apt-get"
    assert FAKE_APT.splitlines()[1] in program.read_text()
    program.write_text(program.read_text() + "import time\ntime.sleep(1)\n")


@pytest.mark.usefixtures("slow_apt")
def test_progress(tmp_path, monkeypatch):
    monkeypatch.setattr(debian, "_PROGRESS_EVERY", 50)
    said: list[str] = []
    debian.build("en-it", tmp_path / "corpus", progress=said.append, held_out=5)
    counts = [re.match(r"fetching: (\d+) files, ([\d.]+) MB$", line) for line in said]
    assert max(int(found[1]) for found in counts if found) >= 4
    assert max(float(found[2]) for found in counts if found) > 0
    assert "building debian.en-it: 150 entries paired" in said
    assert "building debian.titles: 200 entries paired" in said
    assert said.index("building debian.en-it: 150 entries paired") < said.index("building debian.titles ...")
