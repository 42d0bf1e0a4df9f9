"""`lengthwise translate --document`: a Markdown file with the bundled model, within a length, killed and resumed."""

import json
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from types import SimpleNamespace

import pytest

from families import tiny
from lengthwise import attach, measure
from lengthwise.cli.translate_document import _beginning, _report
from lengthwise.controls import SentenceSeparator
from lengthwise.models.checkpoint import save
from lengthwise.translation import document

README = """# Command line

`source .venv/bin/activate` puts `lengthwise` on your path.
Every command and flag is in [docs/cli.md](docs/cli.md).

```sh
lengthwise measure "Save as ..."
```

| option | meaning |
|---|---|
| `--to` | the *target* language |

> The file could not be saved. Open the folder and try again.
"""
KEPT = (
    "`source .venv/bin/activate`",
    "`lengthwise`",
    "](docs/cli.md)",
    '\nlengthwise measure "Save as ..."\n',
    "|---|---|",
)


@pytest.fixture
def translate(cli):
    return partial(cli, "translate", "--to", "it", "--device", "cpu")


@pytest.fixture
def readme(tmp_path):
    path = tmp_path / "README.md"
    path.write_text(README)
    return path


def test_a_markdown_file(translate, readme, tmp_path):
    out = tmp_path / "README.it.md"
    code, shown, err = translate("--document", readme, "--length", "at most 1.0x", "--out", out, "--json")
    rows, text = [json.loads(line) for line in shown.splitlines()], out.read_text()
    assert code == 0, err
    assert [row["source"] for row in rows] == [
        "Command line",
        "`source .venv/bin/activate` puts `lengthwise` on your path.",
        "Every command and flag is in [docs/cli.md](docs/cli.md).",
        *("option", "meaning", "the *target* language", "The file could not be saved."),
        "Open the folder and try again.",
    ]
    assert all(row["text"] in text and row["text"] != row["source"] for row in rows if row["source"] != "option")
    assert all(kept in text for kept in KEPT)
    assert measure(text) <= measure(README)
    assert f"8 sentences, 6 paragraphs · {measure(text)} of at most {measure(README)} chars · fits" in err
    assert text.count("\n") == README.count("\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.it.md", "README.md"]


def test_a_killed_run_is_resumed(translate, readme, tmp_path, monkeypatch):
    monkeypatch.setattr(document, "WINDOW", 4)
    readme.write_text("".join(f"The file number {n} could not be saved.\n\n" for n in range(40)))
    whole, out = tmp_path / "whole.md", tmp_path / "out.md"
    code = "import lengthwise.translation.document as d; d.WINDOW = 4; from lengthwise.cli import main; main()"
    args = ["translate", "--to", "it", "--device", "cpu", "--document", str(readme), "--out"]
    with subprocess.Popen([sys.executable, "-c", code, *args, str(out)]) as process:
        journal, end = tmp_path / "out.md.sentences.jsonl", time.monotonic() + 900
        while not (journal.exists() and b'"sentence"' in journal.read_bytes()) and time.monotonic() < end:
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
    done = journal.read_text().count('"sentence"')
    assert 0 < done < 40
    assert not out.exists()
    assert translate("--document", readme, "--out", whole)[0] == 0
    assert translate("--document", readme, "--out", out, "--length", "1.0x")[0] == 2  # other settings
    code, _, err = translate("--document", readme, "--out", out)
    assert (code, f"resuming: {done} of 40 sentences were translated before" in err) == (0, True)
    assert out.read_text() == whole.read_text()
    assert not journal.exists()


def test_a_sentence_with_a_fault_is_named_by_its_line_and_its_beginning(translate, document_model, tmp_path):
    (tmp_path / "a.txt").write_text("\n1.\n\nOpen 256\nfiles.\n")
    code, _, err = translate("--document", tmp_path / "a.txt", "--model", document_model)
    assert (code, "line 4, 'Open 256 files.': not as in the source: 256" in err) == (3, True)
    assert _beginning("Open  the\nfile.") == "'Open the file.'"
    assert _beginning("The files of the user are in the folder of the user.") == (
        "'The files of the user are in the folder ...'"
    )


def test_a_file_of_another_kind_is_read_as_plain_text_and_told(translate, tmp_path):
    for name, told in (("a.rst", True), ("a.txt", False), ("a.MD", False)):
        (tmp_path / name).write_text("Open the folder.\n")
        code, _, err = translate("--document", tmp_path / name)
        assert (code, f"{name} is read as plain text" in err) == (0, told)


def test_a_markdown_file_is_a_document_without_being_told(translate, readme, tmp_path):
    out = tmp_path / "README.it.md"
    assert translate(readme, "--out", out)[0] == 0
    assert out.read_text().count("\n") == README.count("\n")


def test_a_document_on_stdin_is_markdown(translate, readme, tmp_path):
    out, whole = tmp_path / "out.md", tmp_path / "whole.md"
    assert translate("--document", readme, "--out", whole)[0] == 0
    code, shown, err = translate("--document", "-", stdin=README)
    assert (code, shown) == (0, whole.read_text()), err
    assert translate("--document", "-", "--out", out, stdin=README.encode("utf-8-sig"))[:2] == (0, "")
    assert out.read_text() == whole.read_text()
    assert translate("--document", "-", stdin="Open the folder.")[1] == "Aprite la cartella.\n"
    code, _, err = translate("--document", "-", stdin=b"\xff\n")
    assert (code, "stdin is not UTF-8" in err) == (2, True)
    assert "the text is empty: it has only white space\n" in translate("--document", "-", stdin=b"\n")[2]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["Go.", "--document", "README.md"], "--document and a text exclude each other"),
        (["--tsv", "--document", "README.md"], "--document and --tsv exclude each other"),
        (["--document", "nowhere.md"], "there is no file 'nowhere.md'"),
        (["--document", "README.md", "--out", "README.md"], "README.md is the file to translate; name another file"),
        (["--document", "empty.md"], "empty.md is empty"),
        (["--document", "README.md", "--per-sentence"], "--per-sentence is for a --document with a --length"),
        (["Go.", "--context", "sliding"], "--context is for a --document without --per-sentence"),
        (["--document", "README.md", "--length", "1.0x", "--per-sentence", "--context", "revise"], "without --per"),
        (["--document", "README.md", "--context", "slide"], "one of sliding, segments, revise; got 'slide'"),
        (["--document", "README.md", "--context", "sliding"], "en-it was not trained on documents"),
        (["--document", "README.md", "--out", "mine"], "it is another file; rename it, or give another --out"),
        ([], "the text is empty"),
    ],
)
def test_bad_usage(translate, readme, tmp_path, monkeypatch, args, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.md").touch()
    (tmp_path / "mine.sentences.jsonl").write_text("{}")
    code, out, err = translate(*args)
    assert (code, out) == (2, "")
    assert says in err


@pytest.fixture
def document_model(sp_unigram, tmp_path):
    """The folder of an untrained model of documents. It writes no separator, so every window is repaired."""
    model = attach(tiny("marian", sp_unigram), SentenceSeparator("the", 40), sp_unigram)
    return save(model, sp_unigram, tmp_path / "model")


@pytest.mark.parametrize("context", ["sliding", "segments", "revise"])
def test_a_document_in_context(cli, document_model, tmp_path, monkeypatch, context):
    """The model is not trained: windows have wrong counts, which the rows and the last message report."""
    monkeypatch.setattr(document, "WINDOW", 3)
    source, out = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("The dog.\n\nA fox.\n\nWhere is it?\n\nSome more.\n\nA quick end.\n")
    asked = ["translate", "--document", source, "--to", "fr", "--model", document_model, "--beams", 2, "--out", out]
    code, shown, err = cli(*asked, "--context", context, "--json")
    rows = [json.loads(line) for line in shown.splitlines()]
    assert code in (0, 3), err
    assert [row["source"] for row in rows] == source.read_text().strip().split("\n\n")
    assert [row["window"] for row in rows] == [1, 1, 1, 2, 2]
    assert out.read_text().count("\n\n") == 4
    alone = sum("translated alone: in context" in row.get("note", "") for row in rows)
    assert (alone > 0) == (context != "revise")
    assert ("alone, where a window had a wrong number of sentences" in err) == (alone > 0)


def test_coverage_is_the_share_of_words_that_return(capsys):
    rows = [{"source": "Open the file.", "text": "Apri."}, {"source": "Go.", "text": "Va."}]
    done = SimpleNamespace(rows=lambda: iter(rows), sentences=2, paragraphs=1, length=8, unit="chars", budget=None)
    done.each = None
    back = SimpleNamespace(translate=lambda texts: [{"Apri.": "Open it.", "Va.": "Go."}[text] for text in texts])
    _report(done, Counter(translated=2, intact=2, complete=2), back)
    assert "50% of the words return in the back-translation" in capsys.readouterr().err
