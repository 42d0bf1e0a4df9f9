"""`--engine ray`: the same texts as in one process, in order, and resumed from a journal."""

import json

import pytest

from lengthwise.integrations import ray
from lengthwise.models.onnx_model import resolve_onnx

PROMPTS = "".join(f"Tell me about the number {n}.\n" for n in range(7)).encode() + b"\xff\n"


@pytest.fixture
def cluster(monkeypatch):
    """Return the batches that a cluster in this process was given; it does the last one first."""
    calls = []

    def spread(make, batches, *, address=None, workers=None, device=None):
        calls.append(batches)
        work = make(device)
        for number in reversed(batches):
            calls[-1] = {number: batches[number]} | calls[-1]
            yield number, work(batches[number])

    monkeypatch.setattr(ray, "spread", spread)
    return calls


def rows(out):
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("more", [["--temperature", "0.9", "--seed", "5"], ["--beams", "8"]])
def test_write_gives_the_same_texts(cli, tiny, cluster, more):
    args = ["write", "-", "--model", tiny, "--length", "at most 4 words", *more]
    code, here, said = cli(*args, stdin=PROMPTS)
    assert code == 3  # line 8 is not UTF-8
    assert cli(*args, "--engine", "ray", stdin=PROMPTS) == (code, here, said)
    assert len(rows(here)) == 8
    assert len(cluster[0]) == (8 if "--seed" in more else 4)


def test_translate_and_shorten_give_the_same_texts(cli, tiny, tmp_path, cluster):
    resolve_onnx("en-it")  # a first conversion would be reported on stderr, once
    file = tmp_path / "lines.tsv"
    lines = ["text\tlength", "Save the file.\tat most 20 chars", "", "Open it.\tmany", "Close %s now.\tat most 9 chars"]
    file.write_text("\n".join(lines) + "\n")
    for command in (["translate", file, "--to", "it"], ["shorten", file, "--faithful", "--model", tiny, "--json"]):
        here = cli(*command)
        assert cli(*command, "--engine", "ray") == here
        assert here[1]


def test_the_same_command_resumes(cli, tiny, cluster, tmp_path, monkeypatch):
    journal = tmp_path / "journal"
    args = ["write", "-", "--model", tiny, "--length", "at most 4 words", "--beams", "8"]
    whole = cli(*args, stdin=PROMPTS)
    args += ["--engine", "ray", "--journal", journal]
    complete = ray.spread

    def killed(*args, **options):
        results = complete(*args, **options)
        yield next(results)
        yield next(results)
        raise OSError("killed")

    monkeypatch.setattr(ray, "spread", killed)
    code, out, said = cli(*args, stdin=PROMPTS)
    assert (code, out, said) == (2, "", "lengthwise: killed\n")  # the last batches were finished first
    with journal.open("a") as stream:
        stream.write('[{"batch": 1, "te')  # killed while it was written
    monkeypatch.setattr(ray, "spread", complete)
    code, _, said = cli(*args, "--seed", "1", stdin=PROMPTS)
    assert code == 2
    assert "(seed: '0', now '1')" in said
    assert "name another --journal" in said
    assert cli(*args, stdin=PROMPTS) == whole
    assert sorted(cluster[-1]) == [0, 1]
    assert not journal.exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["write", "A fox.", "--length", "at most 9 words", "--engine", "ray"], "is for lines of text"),
        (
            ["write", "-", "--length", "at most 9 words", "--engine", "ray:cloud"],
            "or ray:gguf; got 'ray:cloud'",
        ),
        (["write", "-", "--length", "at most 9 words", "--workers", "2"], "--workers is for --engine ray"),
        (["translate", "A fox.", "--to", "it", "--journal", "x"], "--journal is for --engine ray"),
        (["translate", "README.md", "--to", "it", "--engine", "ray"], "is for lines of text"),
        (["shorten", "A fox.", "--length", "3", "--ray-address", "a:1"], "--ray-address is for --engine ray"),
        (["serve", "--engine", "ray"], "--engine must be transformers or onnx or gguf; got 'ray'"),
    ],
)
def test_bad_usage(cli, args, message):
    code, out, said = cli(*args)
    assert (code, out) == (2, "")
    assert message in said
