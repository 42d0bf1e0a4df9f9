"""The program as a whole: its start, its help, and its errors, each in one line on stderr with exit code 2."""

import os
import re
import subprocess
import sys

import pytest

from lengthwise import Writer, __version__

COMMAND = [sys.executable, "-m", "lengthwise"]
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


# ---- start


@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        ["--version"],
        ["write", "--help"],
        ["evaluate", "--help"],
        ["train", "--help"],
        ["data", "translations", "--help"],
        ["measure", "Où est-il ?"],
    ],
)
def test_starts_without_slow_imports(args):
    done = subprocess.run([sys.executable, "-X", "importtime", *COMMAND[1:], *args], capture_output=True, text=True)
    imported = set(re.findall(r"\| +([\w.]+)$", done.stderr, re.MULTILINE))
    assert (done.returncode, "lengthwise.cli" in imported) == (0, True)
    assert not imported & {"torch", "transformers", "tokenizers", "numpy", "peft", "rich"}


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
        (["write", "x", "--length", "at most 280"], "the unit is missing"),
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
        (["write", "x", "--length", "at most 9 words", "--temperature", "1", "--beams", "2"], "not both"),
        (["write", "x", "--length", "at most 9 words", "--candidates", "3", "--beams", "2"], "as many beams"),
        (["write", "x", "--length", "at most 9 words", "--candidates", "3", "--temperature", "0"], "above 0"),
        (["write", "x", "--length", "at most 9 words", "--model", "smolm2"], "did you mean smollm2 or smollm2-plain?"),
        (["write", "x", "--length", "at most 9 words", "--model", "./nowhere"], "no model at './nowhere'"),
        (
            ["write", "x", "--length", "at most 9 words", "--dtype", "int8"],
            "--dtype must be float32 or bfloat16 or float16",
        ),
        (["demo", "--model", "./nowhere", "--device", "cpu"], "no model at './nowhere'"),
        (["translate", "x", "--to", "en"], "--from and --to are the same language, en"),
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
    assert told.startswith("lengthwise: cannot get the model 'nobody/nothing'. The hub: ")
    assert "What to do: check the network (HF_HUB_OFFLINE is set) and the spelling" in told
    assert "copy the model's folder to this machine and give its path as the model." in told
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


def test_help_has_examples(cli):
    for args in (["data"], ["data", "debian", "--help"], ["data", "check", "--help"]):
        code, out, err = cli(*args)
        assert (code, err) == (0, "")
        assert re.search(r"^  lengthwise data (debian|check) ", out, re.MULTILINE)


# ---- ends that are no bad usage


def test_ctrl_c_is_one_line_too(cli, tiny, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Writer, "write", interrupted)
    assert cli("write", "x", "--length", "at most 9 words", "--model", tiny) == (130, "", "lengthwise: stopped\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_full_disk_is_one_line_and_code_4():
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, "measure", "x"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 4
    assert re.fullmatch("lengthwise: the disk is full: .+\n", done.stderr)
