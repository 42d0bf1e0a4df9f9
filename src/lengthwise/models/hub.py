"""Models of the Hugging Face hub: from an id to a snapshot folder with complete weights."""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import ModelNotFound
from .cache import Say

# Top-level files only: what from_pretrained(folder) reads. Copies for other frameworks can be ten times as large.
_SMALL = ["*.json", "*.txt", "*.model", "*.spm", "*.jinja", "*.tiktoken"]
_WEIGHTS = (
    "model.safetensors",
    "packed.safetensors",
    "adapter_model.safetensors",
    "pytorch_model.bin",
    "adapter_model.bin",
)


def from_hub(name: str, tried: list[tuple[str, str]], say: Say) -> Path:
    """Return the snapshot of the hub model `name`: from the hub's cache, else downloaded. `tried` goes into errors."""
    try:
        return _snapshot(name, local=True)
    except Exception as error:  # the errors of the hub have no common base class; each is reported
        tried.append(("the hub's cache on this machine", _first_line(error)))
    try:
        say(f"fetching {name} from the hub ...")
        return _snapshot(name, local=False)
    except Exception as error:
        tried.append(("the hub", _first_line(error)))
        offline = " (HF_HUB_OFFLINE is set)" if os.environ.get("HF_HUB_OFFLINE") else ""
        advice = (
            f"check the network{offline} and the spelling; a private or gated model needs `hf auth login`; "
            "without a network, copy the model's folder to this machine and give its path as the model."
        )
        raise ModelNotFound(name, f"cannot get the model {name!r}.", advice, tried) from error


def hub_config(name: str, say: Say) -> dict[str, Any] | None:
    """Return the config.json of the hub model `name`, from the hub's cache or fetched alone; None if neither works."""
    from huggingface_hub import hf_hub_download

    for local in (True, False):
        if not local:
            say(f"fetching the config.json of {name} from the hub ...")
        with suppress(Exception):  # as in `from_hub`, which reports them
            return dict(
                json.loads(Path(hf_hub_download(name, "config.json", local_files_only=local)).read_text("utf-8"))
            )
    return None


def _snapshot(name: str, *, local: bool) -> Path:
    from huggingface_hub import snapshot_download

    # Older repositories have no safetensors; asking for both at once would download most models twice.
    for weights in (["*.safetensors"], ["pytorch_model*.bin", "adapter_model.bin"]):
        files = [*_SMALL, *weights]
        found = snapshot_download(name, allow_patterns=files, ignore_patterns=["*/*"], local_files_only=local)
        if _has_weights(Path(found)):
            return Path(found)
    raise FileNotFoundError(f"{found} holds no complete weights (safetensors or pytorch_model.bin)")


def _has_weights(folder: Path) -> bool:
    """Return whether one set of weights is complete: to read a config, transformers makes a snapshot without any."""
    for index in folder.glob("*.index.json"):
        shards = json.loads(index.read_text(encoding="utf-8")).get("weight_map", {}).values()
        if shards and all((folder / shard).is_file() for shard in set(shards)):
            return True
    return any((folder / weights).is_file() for weights in _WEIGHTS)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "").removeprefix("Got: ") or type(error).__name__
