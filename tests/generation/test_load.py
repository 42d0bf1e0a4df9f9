"""A writer by name: on which device it runs."""

from pathlib import Path
from typing import Any

import pytest
import torch

from families import tiny
from lengthwise.generation.load import load
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
