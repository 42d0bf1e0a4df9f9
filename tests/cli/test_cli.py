"""The command line as a user meets it: what is on stdout, what on stderr, and the exit code.

Where the process itself matters (signals, pipes, terminals, start-up) it is a process; else `main` is called here.
"""

import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
import tempfile
from types import SimpleNamespace

import pytest
import torch
import transformers

from lengthwise import UNITS, __version__
from lengthwise.cli import main
from lengthwise.generation.generator import Writer, Written
from lengthwise.models import checkpoint
from lengthwise.models.registry import resolve

LINE = "Describe a lighthouse.\n"
FIELDS = ["prompt", "text", "length", "unit", "budget", "fits", "complete", "model", "tokens", "candidates"]
COMMAND = [sys.executable, "-m", "lengthwise"]
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def tiny(byte_bpe, tmp_path_factory):
    """The folder of a random Llama, which writes nonsense that fits."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    config = transformers.LlamaConfig(
        vocab_size=len(byte_bpe),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=256,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.LlamaForCausalLM(config).save_pretrained(folder)
    byte_bpe.save_pretrained(folder)
    return str(folder)


@pytest.fixture
def cli(capfd):
    """Runs a command line with this on stdin; returns its exit code, stdout and stderr."""

    def run(*args, stdin=""):
        with tempfile.TemporaryFile() as file:
            file.write(stdin if isinstance(stdin, bytes) else stdin.encode())
            file.seek(0)
            before = os.dup(0)
            os.dup2(file.fileno(), 0)
            try:
                code = main(args)
            finally:
                os.dup2(before, 0)
                os.close(before)
        return code, *capfd.readouterr()

    return run


class Scripted:
    """A writer that has the answers already."""

    name, batch_size = "scripted", 4
    model, window = SimpleNamespace(), 512

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
        monkeypatch.setattr(checkpoint, "load", lambda name, device, fitted: writer.devices.append(device) or writer)
        return writer

    return put


def written(text="Ein Licht.", fits=True, complete=True, error=None):
    return Written(text, len(text), "chars", "at most 20 chars", fits, complete, "scripted", 3, error=error)


def process(*args, **options):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*COMMAND, *args], env=ENVIRONMENT, **(pipes | options))


def drain(terminal):
    """All that was shown on a terminal whose programs have ended."""
    shown = b""
    try:
        while more := os.read(terminal, 65536):
            shown += more
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(terminal)
    return shown.decode()


# ---- start


@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        ["--version"],
        ["write", "--help"],
        ["evaluate", "--help"],
        ["train", "--help"],
        ["measure", "Où est-il ?"],
    ],
)
def test_starts_at_once_and_without_torch(args):
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        done = subprocess.run([*COMMAND[:1], "-X", "importtime", *COMMAND[1:], *args], capture_output=True, text=True)
        seconds.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
        assert done.returncode == 0
        if seconds[-1] < 0.5:
            break
    imported = set(re.findall(r"\| +([\w.]+)$", done.stderr, re.MULTILINE))
    assert "lengthwise.cli" in imported
    assert not imported & {"torch", "transformers", "tokenizers", "numpy", "peft"}
    assert min(seconds) < 0.5


def test_version(cli):
    assert cli("--version") == (0, f"lengthwise {__version__}\n", "")


@pytest.mark.parametrize("args", [[], ["--help"], ["write", "--help"], ["measure", "--help"], ["models", "--help"]])
def test_help_has_an_example_and_no_clutter(cli, args):
    code, out, err = cli(*args)
    assert (code, err) == (0, "")
    assert re.search(r'^  lengthwise (write "|measure "|models)', out, re.MULTILINE)
    assert "completion" not in out


# ---- bad usage


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["write", "x"], "--length 'at most 280 chars'"),
        (["write", "x", "--length", "at most 280"], "names no unit"),
        (["write", "x", "--length", "short"], "cannot read 'short' as a budget"),
        (["write", " ", "--length", "at most 9 words"], "the prompt is empty"),
        (["write", os.fsdecode(b"caf\xe9"), "--length", "at most 9 words"], "not UTF-8: byte 0xe9 at 3"),
        (["write", "--length", "at most 9 words"], "prompt"),
        (["write", "x", "--length", "at most 9 words", "--candidates", "0"], "--candidates must be at least 1;"),
        (["write", "x", "--length", "60-40 words"], "did you mean '40-60 words'?"),
        (["write", "x", "--length", "1.2-0.8x chars"], "did you mean '0.8-1.2x chars'?"),
        (
            ["write", "x", "--length", "at most 9 words", "--model", "nosuch"],
            "no model called 'nosuch'. What to do: use",
        ),
        (["write", "x", "--length", "at most 9 words", "--temperature", "-1"], "--temperature must be at least 0;"),
        (["write", "x", "--length", "at most 9 words", "--temperature", "inf"], "temperature must be"),
        (["write", "x", "--length", "at most 9 words", "--temperature", "1", "--beams", "2"], "give one of them"),
        (["write", "x", "--length", "at most 9 words", "--candidates", "3", "--beams", "2"], "as many beams"),
        (["write", "x", "--length", "at most 9 words", "--candidates", "3", "--temperature", "0"], "above 0"),
        (["write", "x", "--length", "at most 9 words", "--model", "smolm2"], "did you mean smollm2 or smollm2-plain?"),
        (["write", "x", "--length", "at most 9 words", "--model", "./nowhere"], "no model at './nowhere'"),
        (["write", "x", "--length", "at most 9 words", "--dtype", "int8"], "--dtype is float32 or bfloat16 or float16"),
        (["demo", "--model", "./nowhere", "--device", "cpu"], "no model at './nowhere'"),
        (["measure", "x", "--unit", "ells"], "unknown unit 'ells'"),
        (["measure", "x", "--unit", "tokens"], "--tokenizer smollm2"),
        (["measure", "x", "--tokenizer", "./nowhere"], "no model at './nowhere'"),
        (["measure", "x", "--lines"], "give - as the text"),
        (["wirte", "x"], "wirte"),
        (["models", "--colour"], "--colour"),
    ],
)
def test_bad_usage_is_one_line_and_code_2(cli, args, says):
    code, out, err = cli(*args)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"lengthwise: .+\n", err)
    assert says in err


def test_a_folder_with_a_broken_model_is_one_line_too(cli, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    code, out, err = cli("write", "x", "--length", "at most 9 words", "--model", str(tmp_path))
    assert (code, out) == (2, "")
    assert re.fullmatch(r"lengthwise: .+\n", err)


def test_a_hub_model_out_of_reach_is_a_line_that_says_what_to_do():
    ask = ["write", "x", "--length", "at most 9 words", "--model", "nobody/nothing"]
    done = subprocess.run([*COMMAND, *ask], env=ENVIRONMENT | {"HF_HUB_OFFLINE": "1"}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    _, told = done.stderr.splitlines()  # that it is fetching, and the error
    assert told.startswith("lengthwise: no model called 'nobody/nothing'. The hub: ")
    assert "What to do: check the spelling and the network (HF_HUB_OFFLINE is set)" in told
    assert "copy the model's folder here and give its path." in told
    assert "Tried" not in told
    assert len(told) < 450


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_numbers_to_compute_with(cli, tiny, monkeypatch, dtype):
    seen = []
    write = Writer.write
    monkeypatch.setattr(Writer, "write", lambda self, *a, **k: seen.append(self.model.dtype) or write(self, *a, **k))
    assert (
        cli("write", "x", "--length", "at most 9 words", "--model", tiny, "--device", "cpu", "--dtype", dtype)[0] == 0
    )
    assert [str(one) for one in seen] == [f"torch.{dtype}"]


@pytest.mark.parametrize("device", ["gpu", "cuda:99", "hpu", ""])
def test_a_device_that_is_not_there_is_one_line_too(cli, tiny, device):
    code, out, err = cli("write", "x", "--length", "at most 9 words", "--model", tiny, "--device", device)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"lengthwise: cannot run on device .+; the device 'cpu' always works\n", err)


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
        ({"candidates": 0}, "candidates must be at least 1; got 0"),
        ({"beams": 0}, "beams must be at least 1; got 0"),
        ({"temperature": -1}, "temperature must be a number, 0 or above; got -1"),
        ({"temperature": float("nan")}, "temperature must be a number"),
        ({"beams": 2, "temperature": 1}, "give one of them"),
        ({"beams": 2, "candidates": 3}, "3 candidates need as many beams; got 2"),
        ({"candidates": 3, "temperature": 0}, "differ only if drawn"),
    ],
)
def test_what_is_drawn_and_what_contradicts_itself(numbers, drawn):
    if isinstance(drawn, str):
        with pytest.raises(ValueError, match=drawn):
            is_sampling(**numbers)
    else:
        assert is_sampling(**numbers) is drawn


# ---- write: one prompt


def test_writes_a_text_that_fits_and_the_same_again(cli, tiny):
    ask = ["write", "A light.", "--length", "at most 30 chars", "--model", tiny, "--temperature", "1.5", "--json"]
    code, out, err = cli(*ask)
    row = json.loads(out)
    assert (code, list(row), row["fits"]) == (0, FIELDS, True)
    assert len(row["text"].strip()) == row["length"] <= 30
    assert (row["unit"], row["budget"], row["model"], row["candidates"]) == ("chars", "at most 30 chars", tiny, [])
    assert cli(*ask, "--seed", "0")[1] == out
    assert cli(*ask, "--seed", "7")[1] != out
    assert "Traceback" not in err


@pytest.mark.parametrize("how", [["--temperature", "1"], ["--beams", "3"], []])
def test_candidates(cli, tiny, how):
    ask = ["write", "A light.", "--length", "at most 20 chars", "--model", tiny, "--candidates", "3", "--json", *how]
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
        ("exactly 9,000 words", False),  # which is an error, and told as such
        ("at most 9,000x", False),
    ],
)
def test_a_limit_beyond_the_models_window_is_told(cli, scripted, length, told):
    scripted({"x": written()})
    code, out, err = cli("write", "x", "--length", length)
    assert (code, out) == (0, "Ein Licht.\n")
    says = "is more than the model can write; it stops at its window of 512 tokens\n"
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


# ---- write: prompts from stdin


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
    assert err == "lengthwise: of 3 texts, 1 do not fit, 0 fit but are not complete, and 0 could not be written\n"


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


def test_lines_are_answered_as_they_come_and_ctrl_c_ends_it_cleanly(tiny):
    with process("write", "-", "--length", "at most 40 chars", "--model", tiny) as running:
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


def test_ctrl_c_counts_the_lines_of_a_file(tiny, tmp_path):
    (tmp_path / "prompts.txt").write_text(LINE * 300)
    with (
        open(tmp_path / "prompts.txt") as prompts,
        process("write", "-", "--length", "at most 40 chars", "--model", tiny, stdin=prompts) as running,
    ):
        first = running.stdout.readline()
        running.send_signal(signal.SIGINT)
        out, err = first + running.stdout.read(), running.stderr.read().decode()
    assert running.returncode == 130
    told = re.fullmatch(r"lengthwise: stopped: (\d+) of 300 lines were written\n", err)
    assert int(told[1]) - len(out.splitlines()) in (0, 1)


def test_a_closed_pipe_ends_it_quietly(tiny):
    with process("write", "-", "--length", "at most 40 chars", "--model", tiny) as running:
        running.stdin.write(LINE.encode() * 500)
        running.stdin.flush()
        assert json.loads(running.stdout.readline())["fits"]
        running.stdout.close()
        err = running.stderr.read()
    assert (running.returncode, err) == (141, b"")


def test_a_bar_on_the_terminal_when_stdout_goes_elsewhere(tiny, tmp_path):
    terminal, end = pty.openpty()
    with open(tmp_path / "texts.jsonl", "w+") as texts:
        with process("write", "-", "--length", "at most 9 chars", "--model", tiny, stdout=texts, stderr=end) as running:
            os.close(end)
            running.stdin.write(LINE.encode() * 20)
            running.stdin.close()
            shown = drain(terminal)
        texts.seek(0)
        assert [json.loads(line)["fits"] for line in texts] == [True] * 20
    assert running.returncode == 0
    assert "writing" in shown
    assert "100%" in shown


# ---- measure


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
    assert err.startswith("lengthwise: 'notes.txt' is taken as the text itself; for what is in that file give - and <")
    assert cli("measure", "no notes", "--unit", "chars") == (0, "8\n", "")
    assert cli("measure", "x" * 5000, "--unit", "chars") == (0, "5000\n", "")  # too long for a name


def test_measures_each_line(cli):
    code, out, err = cli("measure", "-", "--lines", "--unit", "chars", stdin=b"caf\xc3\xa9\n\n\xff\nlast")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 3
    assert [row.get("lengths") for row in rows] == [{"chars": 4}, {"chars": 0}, None, {"chars": 4}]
    assert rows[2] == {"error": "line 3 is not UTF-8: byte 0xff at 0; convert it"}
    assert err == "lengthwise: 1 lines could not be measured\n"


def test_a_text_that_is_not_utf8(cli):
    assert cli("measure", "-", stdin=b"caf\xe9") == (
        2,
        "",
        "lengthwise: stdin is not UTF-8: byte 0xe9 at 3; convert it\n",
    )
    argument = b"caf\xe9".decode("utf-8", "surrogateescape")  # as Python gives it
    told = "lengthwise: the text is not UTF-8: byte 0xe9 at 3; convert it\n"
    assert cli("measure", argument, "--tokenizer", "en-it") == (2, "", told)


# ---- models


def test_models(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("LENGTHWISE_CACHE", str(tmp_path))
    code, out, err = cli("models")
    assert (code, err) == (0, "")
    assert re.search(r"^smollm2-plain .+\n +93 MB, to fetch; licence Apache-2.0$", out, re.MULTILINE)
    assert re.search(r"^en-it .+\n +\d+ MB, bundled; licence of its data: Debian", out, re.MULTILINE)
    assert max(map(len, out.splitlines())) <= 80
    assert "folder" in out
    assert "owner/name" in out
    row = next(row for row in json.loads(cli("models", "--json")[1]) if row["name"] == "smollm2-plain")
    assert (row["licence"], row["where"], row["size"], row["path"]) == ("Apache-2.0", "to fetch", 92_871_040, None)


# ---- SmolLM2


@pytest.mark.real
def test_smollm2_writes_a_finished_text_that_fits():
    ask = ["write", "Name one planet.", "--length", "at most 60 chars"]
    done = subprocess.run([*COMMAND, *ask], env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.endswith("\n")
    assert 0 < len(done.stdout.strip()) <= 60
    assert done.stderr in ("", f"lengthwise: {len(done.stdout.strip())} of at most 60 chars · fits · not complete\n")
