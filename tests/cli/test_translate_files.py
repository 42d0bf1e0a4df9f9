"""`lengthwise translate` and `shorten` on string files: files, stdout, stderr and exit codes."""

import json

import pytest

from localisation.fakes import Capitals

PO = """msgid ""
msgstr ""
"Language: it\\n"
"Content-Type: text/plain; charset=UTF-8\\n"

#. at most 4 characters
msgid "Save all"
msgstr ""

msgid "Open"
msgstr "Apri"

msgid "Close"
msgstr ""
"""


@pytest.fixture
def fake(monkeypatch):
    """Puts a fake in the place of the models."""
    found = Capitals({"Save all": "Salva tutto"})
    found.target = "it"
    monkeypatch.setattr("lengthwise.cli.translate._translator", lambda *args, **options: found)
    monkeypatch.setattr("lengthwise.cli.shorten._shortener", lambda *args: found)
    return found


@pytest.fixture
def po(tmp_path):
    path = tmp_path / "it.po"
    path.write_text(PO)
    return path


def test_a_file_with_a_text_that_does_not_fit(cli, fake, po, tmp_path):
    out = tmp_path / "out.po"
    code, stdout, err = cli("translate", po, "--to", "it", "--out", out)
    assert (code, stdout) == (3, "")
    assert out.read_text() == PO.replace(
        '#. at most 4 characters\nmsgid "Save all"\nmsgstr ""',
        '# lengthwise: 11 chars, at most 4\n#. at most 4 characters\n#, fuzzy\nmsgid "Save all"\nmsgstr "Salva tutto"',
    ).replace('"Close"\nmsgstr ""', '"Close"\nmsgstr "CLOSE"')
    assert err.splitlines() == [
        "8  Save all  11 chars, at most 4  Salva tutto",
        f"lengthwise: {out}: 1 of 2 texts are new and fit, 1 does not fit",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["it.po", "out.po"]


def test_json_rows(cli, fake, po, tmp_path):
    out = tmp_path / "x.po"
    code, stdout, _ = cli("translate", po, "--to", "it", "--out", out, "--length", "at most 1.5x", "--json")
    rows = [json.loads(line) for line in stdout.splitlines()]
    assert code == 0
    assert rows[0] == {
        "file": out.as_posix(), "id": "Save all", "line": 8, "source": "Save all", "text": "Salva tutto",
        "length": 11, "unit": "chars", "limit": "at most 12 chars", "fits": True, "complete": True, "note": None,
        "changed": True,
    }  # fmt: skip


def test_in_place_must_be_asked_for(cli, fake, po):
    code, _, err = cli("translate", po, "--to", "it", "--out", po)
    assert (code, "give --in-place instead" in err) == (2, True)
    code, _, err = cli("translate", po, "--to", "it")
    assert (code, "--out is missing" in err) == (2, True)
    assert (po.read_text(), fake.calls) == (PO, [])
    code, _, _ = cli("translate", po, "--to", "it", "--in-place", "--length", "at most 40 chars")
    assert (code, 'msgstr "CLOSE"' in po.read_text()) == (0, True)
    code, _, err = cli("translate", po, "--to", "it", "--in-place")
    assert (code, "no text is to be changed" in err) == (0, True)


def test_a_broken_file_has_an_error_with_its_line(cli, fake, tmp_path):
    path = tmp_path / "en.json"
    path.write_text('{\n"a": "Text"\n"b": 1}')
    code, stdout, err = cli("translate", path, "--to", "it", "--out", tmp_path / "it.json")
    assert (code, stdout, fake.calls) == (2, "", [])
    assert "en.json:3: expected a comma" in err
    assert not (tmp_path / "it.json").exists()


def test_a_folder_of_store_listings(cli, fake, tmp_path):
    folder = tmp_path / "metadata/android/en-US"
    (folder / "changelogs").mkdir(parents=True)
    (folder / "title.txt").write_text("My app\n")
    (folder / "changelogs/1.txt").write_text("New:\n- colours\n")
    (folder / "icon.png").write_bytes(b"\x89PNG")
    out = tmp_path / "metadata/android/it-IT"
    assert cli("translate", folder, "--to", "it", "--out", out)[0] == 0
    assert (out / "title.txt").read_text() == "MY APP\n"
    assert (out / "changelogs/1.txt").read_text() == "NEW:\n- COLOURS\n"
    assert fake.budgets == {"New:\n- colours": "at most 500 chars", "My app": "at most 30 chars"}


def test_rules_and_limits_of_the_project(cli, fake, po, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lengthwise.toml").write_text('[[limits]]\nkeys = "Cl*"\nlength = "at most 3 chars"\n')
    assert cli("translate", "it.po", "--to", "it", "--out", "out.po")[0] == 3
    assert fake.budgets == {"Save all": "at most 4 chars", "Close": "at most 3 chars"}


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["translate", "Text", "--to", "it", "--in-place"], "are for string files"),
        (["translate", "it.po", "--to", "it", "--in-place", "--out", "x.po"], "give it or --out, not both"),
        (["translate", "it.po", "--to", "it", "--in-place", "--length", "at most 9 tokens"], "not measured in tokens"),
        (["translate", "it.po", "--to", "it", "--out", "x.json"], "files are not converted"),
        (["shorten", "Text", "--length", "9", "--out", "x"], "are for string files"),
        (["shorten", "it.po", "--length", "9,12", "--out", "x.po"], "give one --length"),
        (["translate", ".", "--to", "it", "--out", "../other"], "JSON, YAML and properties files must be named"),
        (["translate", ".", "--to", "it", "--out", "./other"], "is inside the folder"),
        (["translate", "enn.json", "--to", "it", "--out", "it.json"], "there is no file 'enn.json'"),
        (["translate", "messages.pot", "--to", "it", "--out", "it.po"], "there is no file 'messages.pot'"),
        (["translate", "values/", "--to", "it", "--out", "values-it"], "there is no file 'values/'"),
        (["shorten", "values", "--out", "short"], "there is no file or folder 'values'"),
        (["shorten", "en.pot", "--out", "short.pot"], "there is no file 'en.pot'"),
        (["translate", "res/values", "--to", "it", "--out", "out"], "there is no file 'res/values'"),
        (["translate", "Save", "--to", "it", "--out", "it.json"], "it.json is a string file, but 'Save' is none"),
        (["translate", "en.json", "--to", "it", "--in-place"], "has one language"),
        (["translate", "folder", "--to", "it", "--out", "en.json"], "en.json is a file; folder is a folder"),
    ],
)  # fmt: skip
def test_bad_usage(cli, fake, po, tmp_path, monkeypatch, args, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "en.json").write_text('{"a": "Text"}')
    (tmp_path / "folder").mkdir()
    if "." in args:
        po.unlink()
    code, _, err = cli(*args)
    assert (code, says in err) == (2, True), err


def test_shorten(cli, fake, tmp_path):
    path = tmp_path / "en.json"
    path.write_text('{"a": "Save", "b": "Save all of them"}')
    code, _, err = cli("shorten", path, "--length", "at most 8 chars", "--out", tmp_path / "short.json")
    assert (code, fake.asked) == (3, ["Save all of them"])
    assert json.loads((tmp_path / "short.json").read_text()) == {"a": "Save", "b": "Save all"}
    assert "1 of 1 text is new and fits, 1 is not complete" in err


def test_lines_of_text_files_are_still_texts(cli, fake, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("One\nTwo\n")
    code, _, err = cli("translate", path, "--to", "it", "--in-place")
    assert (code, "are for string files" in err) == (2, True)


def test_translations_in_a_folder_of_android_are_not_translated(cli, fake, tmp_path):
    for folder in ("values", "values-it", "values-pt-rBR", "values-land"):
        (tmp_path / "res" / folder).mkdir(parents=True)
        (tmp_path / "res" / folder / "strings.xml").write_text('<resources><string name="a">Text</string></resources>')
    assert cli("translate", tmp_path / "res", "--to", "it", "--out", tmp_path / "out")[0] == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["values", "values-land"]
