"""Fixtures of the training tests."""

from pathlib import Path
from typing import Any

import pytest

from families import tiny


@pytest.fixture(scope="module")
def toy_base(tmp_path_factory: pytest.TempPathFactory, byte_bpe: Any) -> Path:
    """A tiny random decoder-only model with a chat template, in the place of SmolLM2."""
    folder = tmp_path_factory.mktemp("base")
    tiny("llama", byte_bpe).save_pretrained(folder)
    template = "{% for m in messages %}<s>{{ m['content'] }}</s>{% endfor %}"
    byte_bpe.save_pretrained(folder)
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    return folder
