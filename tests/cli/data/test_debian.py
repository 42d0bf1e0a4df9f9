"""`lengthwise data debian`: builds once, and again only with --rebuild."""

import hashlib
import json
import re

import pytest

from lengthwise.corpora import read


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
