"""`lengthwise measure`: the length of a text, of stdin, and of each line of it."""

import json
import re
import subprocess
import sys

import pytest

from lengthwise import UNITS
from lengthwise.models import checkpoint
from lengthwise.models.registry import resolve

COMMAND = [sys.executable, "-m", "lengthwise"]


def test_measures_in_every_unit_but_tokens(cli):
    code, out, err = cli("measure", "Où est-il ?")
    assert (code, err) == (0, "")
    found = dict(line.split() for line in out.splitlines())
    assert list(found) == [name for name in UNITS if name != "tokens"]
    assert (found["chars"], found["words"], found["bytes"], found["chars-nospace"]) == ("11", "3", "12", "9")


def test_one_unit_gives_the_bare_number(cli):
    assert cli("measure", "Où est-il ?", "--unit", "byte") == (0, "12\n", "")
    assert cli("measure", "-", "--unit", "words", stdin="two words\nand two more\n") == (0, "5\n", "")


def test_json_names_the_rules(cli):
    code, out, _ = cli("measure", "Où est-il ?", "--unit", "words", "--unit", "chars", "--json")
    assert code == 0
    assert json.loads(out) == {
        "lengths": {"words": 3, "chars": 11},
        "signatures": {"words": "unit:words|split:ws|v1", "chars": "unit:chars|norm:nfc|ws:keep|v1"},
    }


def test_a_tokenizer_counts_tokens_too(cli, tiny, byte_bpe):
    tokens = len(byte_bpe("Où est-il ?")["input_ids"])
    for ask in (["--unit", "words"], ["--unit", "words", "--unit", "tokens"]):
        code, out, err = cli("measure", "Où est-il ?", *ask, "--tokenizer", tiny, "--json")
        assert (code, err) == (0, "")
        assert json.loads(out)["lengths"] == {"words": 3, "tokens": tokens}
        assert json.loads(out)["tokenizer"] == tiny
    assert cli("measure", "Où est-il ?", "--unit", "tokens", "--tokenizer", tiny) == (0, f"{tokens}\n", "")


@pytest.mark.parametrize("name", [pytest.param("smollm2", marks=pytest.mark.real), "en-it"])
def test_tokens_of_models_with_a_short_name_are_counted_without_transformers_but_as_it_counts(cli, name):
    lines = ["Où est-il ? L'été 2024.", "吾輩は猫である。", "مَرْحَبًا", "👩‍👩‍👧", "", "  a  b ", "1,234\t56\u00a07"]
    lines += ["<|im_start|>user", "<s><sep></s> <pad><unk>"]
    transformers_own = checkpoint.load_tokenizer(resolve(name))
    cli("measure", "x", "--tokenizer", name)  # the first use may convert the model, or wait for a process that does
    code, out, err = cli("measure", "-", "--lines", "--tokenizer", name, stdin="\n".join(lines))
    assert (code, err) == (0, "")
    counts = [json.loads(row)["lengths"]["tokens"] for row in out.splitlines()]
    assert counts == [len(transformers_own(line.strip(), add_special_tokens=False)["input_ids"]) for line in lines]
    done = subprocess.run(
        [*COMMAND[:1], "-X", "importtime", *COMMAND[1:], "measure", "x", "--tokenizer", name],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert not set(re.findall(r"\| +(torch|transformers)$", done.stderr, re.MULTILINE))


def test_the_name_of_a_file_is_a_text_and_said_to_be_one(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("Much longer than its name.")
    code, out, err = cli("measure", "notes.txt", "--unit", "chars")
    assert (code, out) == (0, "9\n")
    assert err.startswith(
        "lengthwise: 'notes.txt' is used as the text itself; to read the file, give - and < notes.txt"
    )
    assert cli("measure", "no notes", "--unit", "chars") == (0, "8\n", "")
    assert cli("measure", "x" * 5000, "--unit", "chars") == (0, "5000\n", "")  # too long for a name


def test_measures_each_line(cli):
    code, out, err = cli("measure", "-", "--lines", "--unit", "chars", stdin=b"caf\xc3\xa9\n\n\xff\nlast")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 3
    assert [row.get("lengths") for row in rows] == [{"chars": 4}, {"chars": 0}, None, {"chars": 4}]
    assert rows[2] == {"error": "line 3 is not UTF-8: byte 0xff at 0; convert it"}
    assert err == "lengthwise: 1 line could not be measured\n"


def test_a_text_that_is_not_utf8(cli):
    assert cli("measure", "-", stdin=b"caf\xe9") == (
        2,
        "",
        "lengthwise: stdin is not UTF-8: byte 0xe9 at 3; convert it\n",
    )
    argument = b"caf\xe9".decode("utf-8", "surrogateescape")  # as Python gives it
    told = "lengthwise: the text is not UTF-8: byte 0xe9 at 3; convert it\n"
    assert cli("measure", argument, "--tokenizer", "en-it") == (2, "", told)


def test_seconds_of_speech(cli):
    code, out, _ = cli("measure", "x" * 34, "--unit", "chars", "--language", "it")
    assert (code, out.split()) == (0, ["chars", "34", "seconds", "2.0"])
    assert cli("measure", "x", "--language", "xx")[0] == 2
