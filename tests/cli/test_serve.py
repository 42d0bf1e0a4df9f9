"""`lengthwise serve` as a process: its address, a request, and a signal."""

import json
import os
import signal
import subprocess
import sys
import urllib.request

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")


def test_it_serves_until_a_signal():
    command = [sys.executable, "-m", "lengthwise", "serve", "--model", "en-it", "--engine", "onnx"]
    env = os.environ | {"LENGTHWISE_API_KEY": "alpha"}
    server = subprocess.Popen([*command, "--port", "0", "--json"], stdout=subprocess.PIPE, text=True, env=env)
    try:
        url = json.loads(server.stdout.readline())["url"]
        assert url.startswith("http://127.0.0.1:")
        body = json.dumps({"prompt": "The dog", "length": "exactly 20 chars"}).encode()
        headers = {"Content-Type": "application/json", "Authorization": "Bearer alpha"}
        with urllib.request.urlopen(
            urllib.request.Request(f"{url}/v1/completions", body, headers), timeout=120
        ) as reply:
            assert json.load(reply)["usage"]["length"]["fits"]
        server.send_signal(signal.SIGTERM)
        lines = server.stdout.read().splitlines()
        assert json.loads(lines[0]).items() >= {"route": "/v1/completions", "status": 200}.items()
        assert server.wait(60) == 0
    finally:
        server.kill()
        server.wait()


def test_what_cannot_be_served(cli, tmp_path):
    (tmp_path / "keys").write_text("\n")
    code, _, err = cli("serve", "--api-keys", tmp_path / "keys")
    assert code == 2
    assert "has no key" in err
    code, _, err = cli("serve", "--engine", "steam")
    assert code == 2
    assert "--engine must be" in err


def test_without_its_packages_it_says_what_to_install(cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    code, _, err = cli("serve")
    assert code == 2
    assert "pip install '.[serve]'" in err
