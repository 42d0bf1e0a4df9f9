"""`lengthwise export`: a converted model writes with the onnx engine."""

import json

import pytest

from families import tiny as tiny_model


@pytest.fixture(params=["llama", "gpt2"])
def folder(request, byte_bpe, tmp_path):
    sizes = {"head_dim": 16} if request.param == "llama" else {}
    tiny_model(request.param, byte_bpe, **sizes).save_pretrained(tmp_path / "model")
    byte_bpe.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_a_model_is_exported_and_writes(cli, folder, tmp_path):
    code, out, _ = cli("export", folder, tmp_path / "exported", "--engine", "onnx", "--json")
    assert code == 0
    assert json.loads(out)["bytes"] > 10_000
    ask = ("write", "The dog.", "--length", "at most 20 chars", "--model", tmp_path / "exported", "--engine", "onnx")
    code, out, _ = cli(*ask)
    assert code == 0
    assert 0 < len(out.strip()) <= 20


def test_what_it_refuses(cli, folder, tmp_path):
    assert cli("export", folder, tmp_path)[0] == 2
    code, _, err = cli("export", folder, tmp_path / "x", "--bits", "5")
    assert (code, err) == (2, "lengthwise: --bits must be 4, 8 or 32; got 5; see lengthwise export --help\n")
    code, _, err = cli("export", folder, tmp_path / "x", "--engine", "gguf")
    assert (code, (tmp_path / "x").exists()) == (2, False)
    assert "--engine must be onnx, the only one that models are converted for; got gguf" in err
    code, _, err = cli("write", "Hi", "--length", "at most 9 chars", "--engine", "onnx", "--model", folder)
    assert code == 2
    assert "has not been converted for the onnx engine" in err
    assert f"lengthwise export {folder} FOLDER" in err
