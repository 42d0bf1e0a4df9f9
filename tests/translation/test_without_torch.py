"""The whole translator on onnxruntime, in a process in which torch and transformers cannot be imported."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("onnxruntime", reason="the engine onnx needs onnxruntime")

BLOCKED = """
import json, sys
sys.modules["torch"] = sys.modules["transformers"] = None  # importing them fails
"""
TRANSLATOR = """
import lengthwise
from lengthwise.scoring.reverse import ReverseModel
from lengthwise.translation import Translator

writer = lengthwise.load("en-it", engine="onnx")
reverse = ReverseModel(writer.engine)  # there is no bundled one; its scores rank the options all the same
texts = ["Open the file {name} and read the first line.", "Remove the old packages before you install the new ones."]
found = {"free": Translator(writer, "en", "it").translate(texts)}
found["tight"] = Translator(writer, "en", "it", reverse=reverse).translate(texts, "at most 0.7x")
found["back"] = reverse.translate(texts)
texts = lambda some: [one if isinstance(one, str) else [one.text, one.fits, one.intact] for one in some]
print(json.dumps({name: texts(some) for name, some in found.items()}))
"""
COMMAND = """
from lengthwise.cli import main

sys.argv = ["lengthwise", "translate", "Save as ...", "--to", "it", "--length", "at most 20 chars", "--engine", "onnx"]
main()
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A function that runs code without torch and returns what it prints, or with `errors` its messages."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "LENGTHWISE_CACHE": str(tmp_path_factory.mktemp("cache"))}

    def call(code, errors=False):
        done = subprocess.run(
            [sys.executable, "-c", BLOCKED + code], env=environment, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr
        return done.stderr if errors else done.stdout

    return call


def test_searches_compression_and_reverse_scores(run):
    found = json.loads(run(TRANSLATOR))
    assert all(text and intact for text, _, intact in found["free"])
    assert all(text and fits for text, fits, _ in found["tight"])
    assert all(len(tight[0]) < len(free[0]) for tight, free in zip(found["tight"], found["free"], strict=True))
    assert all(found["back"])


def test_the_command(run):
    text = run(COMMAND).strip()
    assert text
    assert len(text) <= 20


CONTEXT = """
from pathlib import Path
from lengthwise.cli import main

Path("guide.md").write_text("# One\\n")
asked = ["--document", "guide.md", "--to", "fr", "--context", "sliding", "--engine", "onnx"]
assert main(["translate", *asked]) == 2
"""


def test_a_model_without_documents_is_refused_before_torch_is_missed(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "en-fr was not trained on documents; translate without context" in run(CONTEXT, errors=True)
