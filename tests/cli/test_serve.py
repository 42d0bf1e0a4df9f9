"""`lengthwise serve` as a process: its address, a request, and a signal."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
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


def test_a_second_signal_ends_it_without_a_traceback():
    command = [sys.executable, "-m", "lengthwise", "serve", "--model", "en-it", "--engine", "onnx"]
    out = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*command, "--port", "0", "--json"], **out) as server:
        try:
            assert server.stdout.readline()
            for _ in range(2):
                server.send_signal(signal.SIGTERM)
                time.sleep(0.02)  # the shutdown takes 0.1 s
            _, err = server.communicate(timeout=60)
            assert not err
        finally:
            server.kill()


def test_a_port_that_is_taken(cli, monkeypatch):
    monkeypatch.setattr("lengthwise.cli.serve.load", lambda *_, **__: pytest.fail("too late"))
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, _, err = cli("serve", "--port", port)
    assert code == 2
    assert err.strip() == f"lengthwise: port {port} of 127.0.0.1 is taken by another program; give --port"


def test_what_cannot_be_served(cli, tmp_path):
    (tmp_path / "keys").write_text("\n")
    code, _, err = cli("serve", "--api-keys", tmp_path / "keys")
    assert code == 2
    assert "has no key" in err
    code, _, err = cli("serve", "--engine", "steam", "--port", "0")
    assert code == 2
    assert "--engine must be" in err


def test_without_its_packages_it_says_what_to_install(cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    code, _, err = cli("serve")
    assert code == 2
    assert "pip install '.[serve]'" in err
