"""`lengthwise data` as a user runs it."""

import gzip
import hashlib
import json
import re

import pytest

from lengthwise.cli import main
from lengthwise.corpora import read


@pytest.fixture
def cli(capfd):
    def run(*args):
        return main([str(arg) for arg in args]), *capfd.readouterr()

    return run


# ---- check


def test_check_counts_and_measures(cli, tmp_path):
    rows = [("abcd", "abcdefgh"), ("ab", "abc"), ("abcd", "abcdefgh"), ("x", "")]
    path = tmp_path / "corpus.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in rows))
    code, out, err = cli("data", "check", path, "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert (found["read"], found["kept"], found["duplicate"], found["empty"]) == (4, 2, 1, 1)
    assert found["characters"]["target"] == {"min": 3, "5 %": 3.25, "median": 5.5, "95 %": 7.75, "max": 8, "mean": 5.5}
    assert found["characters"]["target/source"]["mean"] == 1.75
    code, out, _ = cli("data", "check", path)
    assert re.search(r"^kept +2$", out, re.MULTILINE)
    assert re.search(r"^target +3 +3.25 +5.5 +7.75 +8 +5.5$", out, re.MULTILINE)


def test_check_reads_to_the_end_and_shows_what_is_malformed(cli, tmp_path):
    path = tmp_path / "corpus.jsonl.gz"
    with gzip.open(path, "wt") as stream:
        stream.writelines(json.dumps({"source": f"text {n}", "target": f"testo {n}"}) + "\n" for n in range(150))
        stream.write("not JSON\n" * 5)
    code, out, err = cli("data", "check", path)
    assert code == 3
    assert re.search(r"^malformed +5$", out, re.MULTILINE)
    assert "corpus.jsonl.gz:151: not JSON" in out
    assert err == "lengthwise: 5 of 155 rows are malformed; training accepts 1%\n"


def test_check_takes_pairs_of_files_and_names_of_fields(cli, tmp_path):
    (tmp_path / "a.en").write_text("one\ntwo\n")
    (tmp_path / "a.it").write_text("uno\ndue\n")
    (tmp_path / "b.jsonl").write_text('{"q": "who?", "a": "he"}\n')
    assert json.loads(cli("data", "check", f"{tmp_path}/a.en,{tmp_path}/a.it", "--json")[1])["kept"] == 2
    assert json.loads(cli("data", "check", tmp_path / "b.jsonl", "--fields", "q,a", "--json")[1])["kept"] == 1
    code, out, err = cli("data", "check", tmp_path / "b.jsonl")
    assert (code, out) == (2, "")
    assert re.fullmatch(r"lengthwise: nothing to keep .+\n", err)


def test_no_such_file(cli):
    code, out, err = cli("data", "check", "nowhere.tsv")
    assert (code, out) == (2, "")
    assert "no file 'nowhere.tsv'" in err


# ---- debian


@pytest.fixture
def indices(tmp_path):
    """English and Italian descriptions of 60 packages."""
    folder = tmp_path / "indices"
    folder.mkdir()
    texts = {
        "en": ("a tool of kind", "Number {} is a tool that can do what the others cannot, and it does it well. "),
        "it": ("uno strumento di tipo", "Il numero {} fa ciò che gli altri non possono fare, e lo fa bene. "),
    }
    for language, (short, long) in texts.items():
        stanzas = []
        for n in range(60):
            md5, text = hashlib.md5(str(n).encode()).hexdigest(), (long * 2).format(n, n)
            stanzas.append(f"Package: p{n}\nDescription-md5: {md5}\nDescription-{language}: {short} {n}\n {text}\n")
        (folder / f"Translation-{language}").write_text("\n".join(stanzas))
    return folder


def test_debian_builds_and_does_not_build_again(cli, indices, tmp_path):
    out = tmp_path / "corpus"
    code, shown, err = cli("data", "debian", "--pair", "en-it", out, "--indices", indices)
    assert (code, err) == (0, "")
    assert re.search(rf"^{out}/debian.en-it: train \d+, dev \d+, test \d+ documents", shown, re.MULTILINE)
    train = out / "debian.en-it.train.jsonl.gz"
    before = train.stat().st_mtime_ns
    report = json.loads(cli("data", "debian", "--pair", "en-it", out, "--indices", indices, "--json")[1])
    assert report["en-it"]["train"]["documents"] == len(list(read(str(train))))
    assert train.stat().st_mtime_ns == before
    assert cli("data", "debian", "--pair", "en-it", out, "--indices", indices, "--rebuild")[0] == 0
    assert train.stat().st_mtime_ns != before


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--pair", "it-en"], "got 'it-en'"),
        (["--pair", "en-it", "--indices", "./nowhere"], "folder of Translation files"),
        ([], "--pair"),
    ],
)
def test_bad_usage_is_one_line(cli, tmp_path, args, says):
    code, out, err = cli("data", "debian", tmp_path / "corpus", *args)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"lengthwise: .+\n", err)
    assert says in err


def test_help_has_examples(cli):
    for args in (["data"], ["data", "debian", "--help"], ["data", "check", "--help"]):
        code, out, err = cli(*args)
        assert (code, err) == (0, "")
        assert re.search(r"^  lengthwise data (debian|check) ", out, re.MULTILINE)
