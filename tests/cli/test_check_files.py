"""`lengthwise check`: findings in every form, exit codes, and files that cannot be read."""

import json
import re
import subprocess
import sys

import pytest

PO = '#. max-length:3\nmsgid "Save"\nmsgstr "Salva"\n'
SRT = "1\n00:00:01,000 --> 00:00:02,000\nThis is far too much\n"


@pytest.fixture(autouse=True)
def _in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "it.po").write_text(PO)
    (tmp_path / "a.srt").write_text(SRT)
    (tmp_path / "good.po").write_text(PO.replace("max-length:3", "max-length:9"))


def test_a_table_and_code_1(cli):
    assert cli("check", "it.po", "good.po") == (
        1,
        "it.po:3  Save  5 chars, at most 3  max-length:3 (it.po:1)\n",
        "lengthwise: 1 of 2 texts with a limit are outside it (2 texts, 2 files)\n",
    )


def test_all_within_is_code_0(cli):
    told = "lengthwise: 0 of 1 text with a limit is outside it (1 text, 1 file)\n"
    assert cli("check", "good.po") == (0, "", told)


def test_nothing_is_counted_where_no_file_can_be_read(cli, tmp_path):
    (tmp_path / "guide.md").write_text("# Guide\n")
    code, _, err = cli("check", "guide.md")
    assert code == 2
    assert "no format has this suffix" in err
    assert "outside" not in err


def test_json(cli):
    code, out, _ = cli("check", "it.po", "--json")
    report = json.loads(out)
    assert (code, report["files"], report["texts"], report["limited"], report["errors"]) == (1, 1, 1, 1, [])
    [found] = report["findings"]
    assert found | {"limit": None} == {
        "kind": "too-long",
        "file": "it.po",
        "line": 3,
        "id": "Save",
        "text": "Salva",
        "measured": 5,
        "allowed": 3,
        "unit": "chars",
        "limit": None,
    }
    assert (found["limit"]["said"], found["limit"]["file"], found["limit"]["line"]) == ("max-length:3", "it.po", 1)
    assert cli("check", "it.po", "--format", "json")[1] == out


def test_sarif(cli):
    code, out, _ = cli("check", "it.po", "--format", "sarif")
    log = json.loads(out)
    [result] = log["runs"][0]["results"]
    assert (code, log["version"], result["ruleId"]) == (1, "2.1.0", "too-long")
    assert result["message"]["text"] == "Save: 5 chars, at most 3; max-length:3 (it.po:1)"
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("it.po", 3)
    rules = {rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]}
    assert result["ruleId"] in rules


def test_github(cli, tmp_path):
    (tmp_path / "a,b.po").write_text(PO.replace("Save", "100 %\\nSave"))
    code, out, _ = cli("check", "a,b.po", "--format", "github")
    told = "100 %25%0ASave: 5 chars, at most 3; max-length:3 (a,b.po:1)"
    assert (code, out) == (1, f"::error file=a%2Cb.po,line=3,title=too-long::{told}\n")


def test_subtitles(cli):
    code, out, _ = cli("check", "a.srt", "--cps", "17", "--line", "15")
    assert code == 1
    assert [re.split(r"  +", line)[2] for line in out.splitlines()] == [
        "20 chars, at most 17",
        "a line of 20 chars, at most 15",
    ]
    assert cli("check", "a.srt", "--preset", "ted")[0] == 0
    assert cli("check", "a.srt", "--preset", "netflix", "--cps", "21")[0] == 0
    assert cli("check", "a.srt", "--preset", "netflix")[0] == 1


def test_a_length_and_a_source_file(cli, tmp_path):
    (tmp_path / "en.json").write_text('{"a": "Save"}')
    (tmp_path / "de.json").write_text('{"a": "Speichern", "b": "Neu und sehr lang"}')
    ask = ("check", "de.json", "--length", "at most 1.5x")
    code, out, _ = cli(*ask, "--against", "en.json")
    assert (code, out) == (1, "de.json:1  a  9 chars, at most 6  --length 'at most 1.5x'\n")
    code, out, err = cli(*ask)
    assert (code, out) == (2, "")
    assert "give the source file with --against" in err


def test_rules_of_the_project(cli, tmp_path):
    (tmp_path / "lengthwise.toml").write_text('[[limits]]\nfiles = "*.po"\nlength = "at most 4 chars"\n')
    code, out, _ = cli("check", "it.po")
    told = 'it.po:3  Save  5 chars, at most 4  length = "at most 4 chars" (lengthwise.toml:1)\n'
    assert (code, out) == (1, told)
    assert cli("check", "it.po", "--length", "at most 5 chars")[0] == 0


def test_a_broken_file_does_not_stop_the_others(cli, tmp_path):
    (tmp_path / "broken.po").write_text('msgid "a"\nmsgstr "b\n')
    code, out, err = cli("check", "broken.po", "it.po")
    assert (code, out.count("\n")) == (2, 1)
    assert "lengthwise: broken.po:2: a quoted string is not closed in its line\n" in err
    code, out, _ = cli("check", "broken.po", "it.po", "--format", "github")
    assert "::error file=broken.po,line=2,title=unreadable::a quoted string" in out


def test_a_folder(cli, tmp_path):
    listing = tmp_path / "fastlane/metadata/android/it-IT"
    listing.mkdir(parents=True)
    (listing / "title.txt").write_text("Un titolo che è proprio troppo lungo\n")
    (listing / "readme.txt").write_text("no listing")
    (tmp_path / "fastlane/package.json").write_text("{broken")
    code, out, err = cli("check", "fastlane")
    assert (code, "36 chars, at most 30  Google Play: title: at most 30 characters" in out) == (1, True)
    assert "(1 text, 1 file)" in err


def test_limits_in_pixels_are_told(cli, tmp_path):
    (tmp_path / "a.xlf").write_text(
        '<xliff version="1.2"><file><body><trans-unit id="1" maxwidth="9"><source>a</source>'
        "<target>b</target></trans-unit></body></file></xliff>"
    )
    code, out, err = cli("check", "a.xlf")
    assert (code, out) == (0, "")
    assert "1 limits cannot be counted, because they are in pixels; --json lists them" in err


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["nowhere.po"], "there is no file 'nowhere.po'"),
        (["it.po", "--format", "xml"], "--format must be table, json, sarif or github; got 'xml'"),
        (["it.po", "--preset", "x"], "netflix-zh, ted, bbc or dubbing-LANGUAGE; got 'x'"),
        (["it.po", "--length", "x"], "cannot read 'x' as a budget"),
        (["it.po", "--length", "at most 3 tokens"], "check counts without a model"),
        (["it.po", "--cps", "0"], "--cps must be at least 0.1"),
        (["a.srt", "--against", "nowhere.srt"], "nowhere.srt"),
        ([], "Missing argument 'files'"),
    ],
)
def test_bad_usage(cli, args, says):
    code, out, err = cli("check", *args)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"lengthwise: .+\n", err)
    assert says in err


def test_a_file_in_another_encoding(cli, tmp_path):
    (tmp_path / "b.srt").write_bytes(SRT.replace("far", "fär").encode("latin-1"))
    code, out, err = cli("check", "b.srt", "--cps", "5")
    assert (code, out) == (2, "")
    assert "b.srt:3: not utf-8: byte 0xe4; give the encoding with --encoding" in err
    assert cli("check", "b.srt", "--cps", "5", "--encoding", "latin-1")[0] == 1


def test_starts_without_slow_imports():
    run = [sys.executable, "-X", "importtime", "-m", "lengthwise", "check", "good.po"]
    done = subprocess.run(run, capture_output=True, text=True)
    imported = set(re.findall(r"\| +([\w.]+)$", done.stderr, re.MULTILINE))
    assert (done.returncode, "lengthwise.formats.check" in imported) == (0, True)
    assert not imported & {
        "torch",
        "transformers",
        "numpy",
        "rich",
        "yaml",
        "xml",
        "regex",
        "wcwidth",
        "lengthwise.cli.write",
        "lengthwise.formats.xliff",
    }
