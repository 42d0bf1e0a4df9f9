"""Folders that look like models, and what a build leaves in the cache."""

from pathlib import Path


def write_model(folder: Path) -> Path:
    """Write the files by which a folder counts as a model."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"x" * 100)
    return folder


def left_in(cache: Path) -> list[str]:
    """Return what is in the cache, without the empty lock files."""
    return sorted(path.name for path in cache.glob("*") if path.suffix != ".lock") if cache.exists() else []
