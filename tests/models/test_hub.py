"""Models of the hub: from its cache without a network, or an error that says what was tried.

In a process of its own, since huggingface_hub reads its settings on import.
"""

import json
import os
import subprocess
import sys

import pytest


def resolve_offline(name, home):
    settings = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(home), "LENGTHWISE_CACHE": str(home / "ours")}
    code = "import sys; from lengthwise.models.registry import resolve; print(resolve(sys.argv[1]))"
    return subprocess.run(
        [sys.executable, "-c", code, name], env={**os.environ, **settings}, cwd=home, capture_output=True, text=True
    )


def write_snapshot(home, name, files):
    repository = home / "hub" / f"models--{name.replace('/', '--')}"
    commit = "0" * 40
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    folder = repository / "snapshots" / commit
    folder.mkdir(parents=True)
    for file, text in files.items():
        (folder / file).write_text(text)
    return folder


def test_a_hub_model_out_of_reach_says_all_that_was_tried(tmp_path):
    done = resolve_offline("nobody/nothing", tmp_path)
    steps = [
        "cannot get the model 'nobody/nothing'. Tried, in order:",
        "1. a local folder",
        "2. the bundled models",
        "3. the known models: smollm2-plain",
        "4. the hub's cache on this machine: ",
        "5. the hub: ",
        "What to do: check the network (HF_HUB_OFFLINE is set) and the spelling",
    ]
    places = [done.stderr.find(step) for step in steps]
    assert done.returncode == 1
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.parametrize(
    "files",
    [
        {"config.json": "{}", "model.safetensors": ""},
        {"config.json": "{}", "pytorch_model.bin": ""},
        {"config.json": "{}", "packed.safetensors": ""},
        {
            "config.json": "{}",
            "model.safetensors.index.json": '{"weight_map": {"w": "m-1.safetensors"}}',
            "m-1.safetensors": "",
        },
    ],
    ids=["safetensors", "bin", "packed", "shards"],
)
def test_a_warm_hub_cache_needs_no_network(tmp_path, files):
    folder = write_snapshot(tmp_path, "somebody/something", files)
    assert resolve_offline("somebody/something", tmp_path).stdout.strip() == str(folder)


def test_a_hub_cache_without_all_weights_is_not_a_model(tmp_path):
    index = json.dumps({"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}})
    files = {"config.json": "{}", "model.safetensors.index.json": index, "m-1.safetensors": ""}
    write_snapshot(tmp_path, "somebody/half", files)
    assert "holds no complete weights" in resolve_offline("somebody/half", tmp_path).stderr
