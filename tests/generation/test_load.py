"""A writer by name: which engine runs it, and on which device."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import lengthwise
from families import tiny
from lengthwise.generation.load import default_engine, load
from lengthwise.models.checkpoint import save


@pytest.mark.parametrize(("there", "asked", "used"), [(True, None, "cuda"), (False, None, "cpu"), (True, "cpu", "cpu")])
def test_a_writer_runs_on_cuda_when_it_is_there(
    there: bool, asked: str | None, used: str, byte_bpe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[torch.device] = []

    def fake(folder: Path, *, device: torch.device, fitted: Path | None) -> tuple[Any, Any]:
        seen.append(device)
        return model, byte_bpe

    model = tiny("llama", byte_bpe)
    folder = save(model, byte_bpe, tmp_path / "model")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    monkeypatch.setattr("lengthwise.models.checkpoint.load_model", fake)
    load(str(folder), device=asked)
    assert [device.type for device in seen] == [used]


def test_a_device_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lengthwise.models.checkpoint.load_model", lambda *args, **options: pytest.fail("too late"))
    with pytest.raises(ValueError, match="cannot run on device 'gpu' here: unknown device type"):
        load("smollm2", device="gpu")


def test_onnx_is_the_default_for_what_it_can_run(
    byte_bpe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lengthwise.models.registry.resolve", lambda *_, **__: pytest.fail("nothing is fetched"))
    save(tiny("llama", byte_bpe), byte_bpe, tmp_path / "plain")
    (tmp_path / "exported").mkdir()
    (tmp_path / "exported" / "onnx.json").write_text("{}")
    monkeypatch.setattr("lengthwise.generation.load._has_gpu", lambda: False)
    for name in ("smollm2", "SmolLM2", "smollm2-plain", "en-it", "en-fr", str(tmp_path / "exported")):
        assert (
            default_engine(name) == default_engine(name, "cpu") == default_engine(name, torch.device("cpu")) == "onnx"
        )
        assert default_engine(name, "cuda") == default_engine(name, dtype="float32") == "transformers"
    for name in ("opus-en-fr", "Helsinki-NLP/opus-mt-en-fr", str(tmp_path / "plain"), "nothing"):
        assert default_engine(name) == "transformers"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain").rename(tmp_path / "smollm2")
    assert default_engine("smollm2") == "transformers"  # a folder of the user's comes before a known name
    monkeypatch.chdir("/")
    monkeypatch.setattr("lengthwise.generation.load._has_gpu", lambda: True)
    assert default_engine("smollm2") == "transformers"
    assert default_engine("smollm2", "cpu") == "onnx"


WITHOUT_TORCH = """
import sys
for name in ("torch", "transformers", "peft", "accelerate"):
    sys.modules[name] = None  # `import` raises ModuleNotFoundError
"""


def test_an_installation_without_torch_says_how_to_install_it() -> None:
    code = WITHOUT_TORCH + "import lengthwise\nlengthwise.attach"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.strip().endswith(
        "torch, which is not installed; run pip install '.[torch]' in a clone of Lengthwise"
    )
    code = WITHOUT_TORCH + "from lengthwise.cli import main\nsys.exit(main(['train', 'recipes/toy.yaml']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert "run pip install '.[torch]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_name_is_reported_before_torch_is_missed() -> None:
    code = WITHOUT_TORCH + "import lengthwise\nlengthwise.load('nosuch')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ModelNotFound: no model called 'nosuch'" in done.stderr


@pytest.mark.parametrize("name", [None, 5, Path("model")])
def test_a_name_is_a_string(name: Any) -> None:
    with pytest.raises(TypeError, match=r"a model is given by its name or its folder as a str, .* got "):
        lengthwise.load(name)
