"""`lengthwise write`: what is on stdout, what on stderr, and the exit code.

Where the process itself matters (signals, pipes, terminals) it is a process; else `main` is called here.
"""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from echo_engine import EchoEngine
from lengthwise import Written
from lengthwise.generation.load import ENGINES
from lengthwise.generation.options import is_sampling
from lengthwise.models.onnx_model import resolve_onnx

LINE = "Describe a lighthouse.\n"
FIELDS = ["prompt", "text", "length", "unit", "budget", "fits", "complete", "model", "tokens", "candidates"]
COMMAND = [sys.executable, "-m", "lengthwise"]
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


class Scripted:
    """A writer that has the answers already."""

    name, batch_size = "scripted", 4
    model, engine = SimpleNamespace(), SimpleNamespace(window=512)

    def __init__(self, answers):
        self.answers, self.calls, self.devices = answers, [], []

    def write(self, texts, budgets, *, seed=None, **options):
        self.calls.append((texts, str(budgets), seed, options))
        return [self.answers[text] for text in texts]


@pytest.fixture
def scripted(monkeypatch):
    """Puts a scripted writer in the place of the model."""

    def put(answers):
        writer = Scripted(answers)
        monkeypatch.setattr("lengthwise.models.registry.resolve", lambda name: name)
        monkeypatch.setattr("lengthwise.cli.loading.converted", lambda name: None)
        monkeypatch.setattr(
            "lengthwise.generation.load.load", lambda name, device, **_: writer.devices.append(device) or writer
        )
        return writer

    return put


def written(text="Ein Licht.", fits=True, complete=True, error=None):
    return Written(text, len(text), "chars", "at most 20 chars", fits, complete, "scripted", 3, error=error)


def process(*args, **options):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*COMMAND, *args], env=ENVIRONMENT, **(pipes | options))


@pytest.fixture
def quick():
    """Return the options of a model whose process starts in a second: it imports neither torch nor transformers."""
    resolve_onnx("en-it")  # a first conversion would be reported on stderr, once
    return ["--model", "en-it", "--engine", "onnx"]


def drain(terminal):
    """All that was shown on a terminal whose programs have ended."""
    shown = b""
    try:
        while more := os.read(terminal, 65536):
            shown += more
    except OSError:  # raised by Linux when the other end is closed
        pass
    os.close(terminal)
    return shown.decode()


@pytest.mark.parametrize(
    ("numbers", "drawn"),
    [
        ({}, False),
        ({"temperature": 0}, False),
        ({"temperature": 0.5}, True),
        ({"candidates": 2}, True),
        ({"candidates": 2, "temperature": 0.5}, True),
        ({"beams": 3, "candidates": 3}, False),
        ({"beams": 3, "temperature": 0}, False),
        ({"candidates": 0}, "candidates must be a whole number, at least 1; got 0"),
        ({"beams": 0}, "beams must be a whole number, at least 1; got 0"),
        ({"temperature": -1}, "temperature must be a number, 0 or above; got -1"),
        ({"temperature": float("nan")}, "temperature must be a number"),
        ({"beams": 2, "temperature": 1}, "not both"),
        ({"beams": 2, "candidates": 3}, "3 candidates need at least as many beams; got 2"),
        ({"candidates": 3, "temperature": 0}, "greedy candidates are all equal"),
    ],
)
def test_what_is_drawn_and_what_contradicts_itself(numbers, drawn):
    if isinstance(drawn, str):
        with pytest.raises(ValueError, match=drawn):
            is_sampling(**numbers)
    else:
        assert is_sampling(**numbers) is drawn


def test_an_engine_needs_one_line_in_the_registry(cli, byte_bpe, monkeypatch):
    monkeypatch.setitem(ENGINES, "fourth", lambda name, *, device, fitted: EchoEngine(byte_bpe))
    code, out, err = cli("write", "Why?", "--length", "at most 9 words", "--model", "any", "--engine", "fourth")
    assert (code, out.split(), err) == (0, ["Why?"], "")


# ---- one prompt


def test_writes_a_text_that_fits_and_the_same_again(cli, tiny):
    ask = ["write", "A light.", "--length", "at most 30 chars", "--model", tiny, "--temperature", "1.5", "--json"]
    code, out, err = cli(*ask)
    row = json.loads(out)
    assert (code, list(row), row["fits"]) == (0, FIELDS, True)
    assert len(row["text"].strip()) == row["length"] <= 30
    assert (row["unit"], row["budget"], row["model"], row["candidates"]) == (
        "chars",
        "at most 30 chars",
        tiny,
        [],
    )
    assert cli(*ask, "--seed", "0")[1] == out
    assert cli(*ask, "--seed", "7")[1] != out
    assert "Traceback" not in err


@pytest.mark.parametrize("how", [["--temperature", "1"], ["--beams", "3"], []])
def test_candidates(cli, tiny, how):
    ask = [
        "write",
        "A light.",
        "--length",
        "at most 20 chars",
        "--model",
        tiny,
        "--candidates",
        "3",
        "--json",
        *how,
    ]
    code, out, _ = cli(*ask)
    assert code == 0
    assert [other["fits"] for other in json.loads(out)["candidates"]] == [True, True]


@pytest.mark.parametrize(
    ("answer", "code", "says"),
    [
        (written(), 0, ""),
        (written(complete=False), 0, "lengthwise: 10 of at most 20 chars · fits · not complete\n"),
        (written(fits=False), 3, "lengthwise: 10 of at most 20 chars · does not fit · complete\n"),
    ],
)
def test_in_a_pipe_stdout_is_the_text_and_stderr_the_trouble(cli, scripted, answer, code, says):
    scripted({"x": answer})
    assert cli("write", "x", "--length", "at most 20 chars") == (code, "Ein Licht.\n", says)


@pytest.mark.parametrize("name", ["prompts.txt", "prompts.tab", "docs/prompts.rst"])
def test_the_name_of_a_file_that_does_not_exist_is_no_prompt(cli, scripted, name):
    code, out, err = cli("write", name, "--length", "at most 20 chars")
    assert (code, out) == (2, "")
    assert f"there is no file '{name}'; if it is a prompt, give - and the prompt on stdin" in err


@pytest.mark.parametrize("prompt", ["请用HTML/CSS3.0写一个网页", "Windows/Linux.Wählen", "1/2.5"])
def test_a_slash_and_a_full_stop_are_no_name_of_a_file(cli, scripted, prompt):
    scripted({prompt: written("Ein Licht.")})
    assert cli("write", prompt, "--length", "at most 20 chars")[:2] == (0, "Ein Licht.\n")


def test_a_prompt_that_cannot_be_written_about(cli, scripted):
    scripted({"x": written("", fits=False, complete=False, error="the text is too long")})
    assert cli("write", "x", "--length", "at most 9 chars") == (3, "", "lengthwise: the text is too long\n")
    code, out, err = cli("write", "x", "--length", "at most 9 chars", "--json")
    assert (code, json.loads(out)["error"], err) == (3, "the text is too long", "lengthwise: the text is too long\n")


def test_options_reach_the_writer(cli, scripted):
    writer = scripted({"x": written()})
    cli(
        "write", "x", "--length", "at most 20 char", "--candidates", "2", "--temperature", "0.5", "--system", "Be kind."
    )
    cli("write", "x", "--length", "1.0x", "--beams", "3", "--seed", "5")
    assert writer.calls == [
        (["x"], "at most 20 chars", 0, {"system": "Be kind.", "candidates": 2, "temperature": 0.5}),
        (["x"], "1.0x chars", 5, {"system": None, "candidates": 1, "num_beams": 3}),
    ]


@pytest.mark.parametrize(
    ("length", "told"),
    [
        ("at most 99999999 words", True),
        ("at most 513 tokens", True),
        ("at most 512 words", False),
        ("at most 4,000 chars", False),
        ("at most 9,000 chars", True),
        ("at least 9 words", False),
        ("exactly 9,000 words", False),  # an error without a warning
        ("at most 9,000x", False),
    ],
)
def test_a_limit_beyond_the_models_window_is_reported(cli, scripted, length, told):
    scripted({"x": written()})
    code, out, err = cli("write", "x", "--length", length)
    assert (code, out) == (0, "Ein Licht.\n")
    says = "is more than the model can write: its context window has 512 tokens\n"
    assert (err.endswith(says), err == "") == (told, not told)


def test_a_text_without_end_stops_at_the_models_window(cli, tiny):
    """Its budget is nothing to be counted through: the work is the window's, 256 tokens here."""
    for how in ([], ["--candidates", "2"]):
        ask = ["write", "A light.", "--length", "at most 99999999999 words", "--model", tiny, "--json", *how]
        code, out, _ = cli(*ask)
        assert code == 0
        assert 0 < json.loads(out)["tokens"] < 256


def test_the_device_reaches_the_loader(cli, scripted, tmp_path, monkeypatch):
    def stop(*args, **options):
        raise ValueError("far enough")

    monkeypatch.setattr("lengthwise.evaluation.run.evaluate", stop)
    monkeypatch.setattr("lengthwise.cli.demo._without_budget", lambda *_: written())
    writer, data = scripted({"x": written()}), tmp_path / "x.tsv"
    data.write_text("a\tb\n")
    for device in (["--device", "cuda:1"], []):
        cli("write", "x", "--length", "at most 20 chars", *device)
        cli("demo", "x", *device)
        assert cli("evaluate", str(tmp_path), str(data), "--length", "1.0x", *device)[2] == "lengthwise: far enough\n"
    assert writer.devices == ["cuda:1"] * 3 + [None] * 3


def test_on_a_terminal_a_dim_line_says_how_long_it_is(tiny):
    terminal, end = pty.openpty()
    ask = ["write", "A light.", "--length", "at most 20 chars", "--model", tiny]
    with process(*ask, stdout=end, stderr=end) as running:
        os.close(end)
        shown = drain(terminal)
    assert running.returncode == 0
    assert re.search(r"\x1b\[2m\d+ of at most 20 chars · fits · (not )?complete\x1b\[0m\r\n$", shown)
    assert "Loading weights" not in shown


# ---- prompts from stdin


def test_each_line_gives_a_line_in_order(cli, tiny):
    lines = ["A light.", "", "The sea, and what lies under it.", b"\xff", "\ufeffA dog.\r"]
    stdin = b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines)
    code, out, err = cli("write", "-", "--length", "2.0x", "--model", tiny, stdin=stdin)
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 3
    assert [row["budget"] for row in rows] == ["~16 chars", "2.0x chars", "~64 chars", "2.0x chars", "~12 chars"]
    assert [row.get("error", "")[:10] for row in rows] == ["", "the text i", "", "line 4 is ", ""]
    assert [row["prompt"] for row in rows] == [*lines[:3], "\ufffd", "A dog."]
    assert list(rows[0]) == FIELDS
    assert err == "lengthwise: of 5 texts, 0 do not fit, 0 fit but are not complete, and 2 could not be written\n"


def test_a_text_that_does_not_fit_is_printed_and_told(cli, scripted):
    scripted({"a": written(), "b": written(fits=False)})
    code, out, err = cli("write", "-", "--length", "at most 20 chars", stdin="a\nb\na\n")
    assert code == 3
    assert [json.loads(line)["fits"] for line in out.splitlines()] == [True, False, True]
    assert err == "lengthwise: of 3 texts, 1 does not fit, 0 fit but are not complete, and 0 could not be written\n"


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ([], [4, 4, 2]),
        (["--temperature", "0"], [4, 4, 2]),
        (["--candidates", "2", "--beams", "2"], [2] * 5),
        (["--beams", "9"], [1] * 10),
        (["--candidates", "2"], [1] * 10),  # drawn: one by one
        (["--temperature", "0.5"], [1] * 10),
    ],
)
def test_lines_that_are_there_are_written_together(cli, scripted, options, sizes):
    writer = scripted({LINE.strip(): written()})
    code, out, err = cli("write", "-", "--length", "at most 20 chars", "--seed", "7", *options, stdin=LINE * 10)
    assert (code, out.count("\n"), err) == (0, 10, "")
    assert [len(call[0]) for call in writer.calls] == sizes
    assert [call[2] for call in writer.calls] == [7 + sum(sizes[:n]) for n in range(len(sizes))]


@pytest.mark.parametrize("how", [["--temperature", "1.5"], ["--candidates", "2"]])
def test_what_is_drawn_for_a_line_depends_on_no_other(cli, tiny, how):
    ask = ["--length", "at most 30 chars", "--model", tiny, "--json", *how]

    def texts(stdin):
        return cli("write", "-", *ask, "--seed", "5", stdin=stdin)[1].splitlines()

    first, second, third = texts("A light.\nThe sea.\nA dog.\n")
    assert texts("A light.\n") == [first]
    assert texts("\nThe sea.\n")[1] == second
    assert texts("What lies under the sea, and why?\nA light.\nA dog.\n")[2] == third
    assert cli("write", "A dog.", *ask, "--seed", "7")[1].splitlines() == [third]


def test_no_lines_no_texts(cli, scripted):
    scripted({})
    assert cli("write", "-", "--length", "at most 20 chars") == (0, "", "")


def test_lines_are_answered_as_they_come_and_ctrl_c_ends_it_cleanly(quick):
    with process("write", "-", "--length", "at most 40 chars", *quick) as running:
        for _ in range(2):  # a line more is not sent before this one is answered
            running.stdin.write(LINE.encode())
            running.stdin.flush()
            assert json.loads(running.stdout.readline())["fits"]
        running.stdin.write(LINE.encode() * 500)
        running.stdin.flush()
        assert json.loads(running.stdout.readline())["fits"]
        running.send_signal(signal.SIGINT)
        out = running.stdout.read()
        err = running.stderr.read()  # while stdin is open: the thread that reads it is still waiting
    assert running.returncode == 130
    told = re.fullmatch(r"lengthwise: stopped: (\d+) of the (\d+) lines read so far were written\n", err.decode())
    assert int(told[1]) - 3 - len(out.splitlines()) in (0, 1)  # one may have been about to be printed
    assert int(told[1]) <= int(told[2]) <= 502
    assert all(json.loads(line)["fits"] for line in out.splitlines())


def test_ctrl_c_counts_the_lines_of_a_file(quick, tmp_path):
    (tmp_path / "prompts.txt").write_text(LINE * 300)
    with (
        open(tmp_path / "prompts.txt") as prompts,
        process("write", "-", "--length", "at most 40 chars", *quick, stdin=prompts) as running,
    ):
        first = running.stdout.readline()
        running.send_signal(signal.SIGINT)
        out, err = first + running.stdout.read(), running.stderr.read().decode()
    assert running.returncode == 130
    told = re.fullmatch(r"lengthwise: stopped: (\d+) of 300 lines were written\n", err)
    assert int(told[1]) - len(out.splitlines()) in (0, 1)


def test_a_closed_pipe_ends_it_quietly(quick):
    with process("write", "-", "--length", "at most 40 chars", *quick) as running:
        running.stdin.write(LINE.encode() * 500)
        running.stdin.flush()
        assert json.loads(running.stdout.readline())["fits"]
        running.stdout.close()
        err = running.stderr.read()
    assert (running.returncode, err) == (141, b"")


def test_a_bar_on_the_terminal_when_stdout_goes_elsewhere(quick, tmp_path):
    terminal, end = pty.openpty()
    with open(tmp_path / "texts.jsonl", "w+") as texts:
        with process("write", "-", "--length", "at most 9 chars", *quick, stdout=texts, stderr=end) as running:
            os.close(end)
            running.stdin.write(LINE.encode() * 20)
            running.stdin.close()
            shown = drain(terminal)
        texts.seek(0)
        assert [json.loads(line)["fits"] for line in texts] == [True] * 20
    assert running.returncode == 0
    assert "writing" in shown
    assert "100%" in shown


# ---- SmolLM2


@pytest.mark.real
def test_smollm2_writes_a_finished_text_that_fits(cli):
    code, out, err = cli("write", "Name one planet.", "--length", "at most 60 chars")
    assert code == 0
    assert out.endswith("\n")
    assert 0 < len(out.strip()) <= 60
    assert err in ("", f"lengthwise: {len(out.strip())} of at most 60 chars · fits · not complete\n")


# Runs one command for each further list of arguments; they share the model.
WITHOUT_TORCH = """
import functools, json, sys
class Blocked:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("torch", "transformers", "peft", "accelerate"):
            raise ImportError(f"{name} was imported")
sys.meta_path.insert(0, Blocked())
from lengthwise.cli import main
from lengthwise.generation import load
load.load = functools.cache(load.load)
sys.exit(max(main(json.loads(arguments)) for arguments in sys.argv[1:]))
"""


@pytest.mark.real
def test_the_onnx_engine_writes_without_torch():
    ask = ["write", "Name one planet.", "--length", "at most 60 chars", "--engine", "onnx", "--json"]
    asks = [json.dumps(ask + how) for how in ([], ["--candidates", "2"], ["--beams", "2"])]
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH, *asks], env=ENVIRONMENT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(line)["fits"] for line in done.stdout.splitlines()] == [True] * 3


def test_an_unknown_engine(cli):
    code, _, err = cli("write", "Hi", "--length", "at most 9 chars", "--engine", "vlm")
    assert (code, err) == (
        2,
        "lengthwise: --engine must be transformers or onnx or gguf; got 'vlm'; see lengthwise write --help\n",
    )
