"""`lengthwise write --model openai:NAME@URL` and `--explain`."""

import json

import pytest

from endpoint_server import KEY, Raw, chat, serving
from lengthwise.models.typical_lengths import add

LENGTH = ("--length", "at most 30 chars")


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    monkeypatch.setenv("LENGTHWISE_API_KEY", KEY)
    monkeypatch.setenv("LENGTHWISE_CACHE", str(tmp_path))
    monkeypatch.setattr("lengthwise.endpoints.client.BACKOFF", 0.0)


def test_one_text(cli):
    with serving(lambda body, number: chat("The sea is wide.")) as server:
        code, out, err = cli("write", "Describe the sea.", *LENGTH, "--model", server.name)
    assert (code, out) == (0, "The sea is wide.\n")
    assert KEY not in out + err


def test_lines_of_stdin_run_together_and_stay_in_order(cli):
    def answer(body, number):
        prompt = body["messages"][0]["content"]
        return Raw(400, b"no") if prompt.startswith("bad") else chat(f"{prompt.split()[0]}.")

    with serving(answer) as server:
        code, out, err = cli("write", "-", *LENGTH, "--model", server.name, stdin="one\nbad\nthree\n")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(row["prompt"], row["text"], row["fits"]) for row in rows] == [
        ("one", "one.", True),
        ("bad", "", False),
        ("three", "three.", True),
    ]
    assert "400" in rows[1]["error"]
    assert code == 3
    assert "1 could not be written" in err


def test_what_does_not_fit_is_said_so(cli):
    with serving(lambda body, number: chat("One two three four.")) as server:
        args = ("--length", "exactly 2 words", "--model", server.name, "--max-calls", 2, "--json")
        code, out, err = cli("write", "Describe the sea.", *args)
    found = json.loads(out)
    assert (code, found["fits"], found["calls"], len(server.requests)) == (3, False, 2, 2)
    assert "nothing that fits was found in 2 calls" in err


def test_a_refused_key_is_never_shown(cli):
    with serving(lambda body, number: Raw(401, {"error": {"message": f"bad key {KEY}"}})) as server:
        code, out, err = cli("write", "Describe the sea.", *LENGTH, "--model", server.name, "--json")
    assert code == 3
    assert "the key was refused" in err
    assert KEY not in out + err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--model", "openai:m@localhost"), "openai:NAME@URL"),
        (("--model", "openai:m@http://localhost:1/v1", "--beams", 2), "--beams"),
        (("--model", "openai:m@http://localhost:1/v1", "--device", "cpu"), "--device"),
        (("--max-calls", 3), "--max-calls is for a model that is behind an API"),
        (("--max-calls", 0), "at least 1"),
    ],
)
def test_bad_usage(cli, args, message):
    code, out, err = cli("write", "Describe the sea.", *LENGTH, *args)
    assert (code, out) == (2, "")
    assert message in err


def test_other_commands_need_a_model_that_runs_here(cli):
    code, _, err = cli("serve", "--model", "openai:m@http://localhost:1/v1")
    assert code == 2
    assert "only write, translate and shorten can use a model behind an API" in err


def test_explain_writes_nothing(cli):
    add("toy", "write", "free", [("prompt", "word " * n) for n in range(20, 60)])
    args = ("write", "Describe the sea.", "--length", "at most 9 words", "--model", "toy", "--explain")
    code, out, _ = cli(*args)
    assert code == 0
    assert out == (
        "at most 9 words: below the 5th percentile of what toy writes for such a source "
        "(22 to 58 words, 40 texts measured); the shortest found is 20\n"
    )
    found = json.loads(cli(*args, "--json")[1])
    assert (found["texts"], found["usual"], found["share"]) == (40, [22, 58], 0)


def test_explain_takes_one_prompt(cli):
    assert cli("write", "-", *LENGTH, "--explain")[0] == 2
