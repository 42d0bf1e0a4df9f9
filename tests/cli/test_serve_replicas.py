"""`lengthwise serve --replicas`: its arguments; two replicas, of which one is killed, where Ray Serve is installed."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

from lengthwise.constraint.token_costs import token_costs_of
from lengthwise.length.units import UNITS
from lengthwise.server import replicas


def test_the_arguments(cli, tiny, tmp_path, monkeypatch):
    calls = []

    def serve_replicas(make, count, address, started, **how):
        calls.append((make, count, address, how))
        started("http://127.0.0.1:80", ["tiny"])

    monkeypatch.setattr(replicas, "ray_serve", lambda: None)
    monkeypatch.setattr(replicas, "serve_replicas", serve_replicas)
    (tmp_path / "keys").write_text("alpha\n")
    args = ["serve", "--model", tiny, "--engine", "transformers", "--replicas", "3", "--port", "0", "--queue", "7"]
    code, _, err = cli(*args, "--api-keys", tmp_path / "keys", "--grace", "9", "--translate-to", "it")
    assert code == 0
    assert "lengthwise: starting 3 replicas\n" in err
    assert "serving tiny at http://127.0.0.1:80" in err
    [(make, count, address, how)] = calls
    assert (count, address) == (3, ("127.0.0.1", 0))
    assert how == {"device": None, "keys": ["alpha"], "grace": 9, "log": None}
    service = make("cpu")
    assert (service.writer.name, service.limits.queue, service.limits.grace) == (str(tiny), 7, 9)
    assert list(service.translators) == [("en", "it")]
    made = token_costs_of.cache_info().misses
    for unit, finish in product(UNITS, (True, False)):
        token_costs_of(service.writer.meter(unit), finish)
    assert token_costs_of.cache_info().misses == made  # no request has to make them
    service.close()
    code, out, _ = cli(*args, "--json")
    assert json.loads(out) == {"url": "http://127.0.0.1:80", "models": ["tiny"]}
    assert calls[1][3]["log"] is not None


def test_what_it_refuses(cli, tiny, monkeypatch):
    assert "--replicas must be at least 1" in cli("serve", "--replicas", "0")[2]
    monkeypatch.setattr(replicas, "ray_serve", lambda: None)
    code, _, err = cli("serve", "--replicas", "2", "--model", "no/such/model")
    assert code == 2
    assert "no/such/model" in err  # before anything is started
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "ray", None)
    code, _, err = cli("serve", "--replicas", "2", "--model", tiny)
    assert (code, err) == (
        2,
        "lengthwise: several replicas need Ray Serve, which is not installed; run pip install '.[replicas]' in a clone "
        "of Lengthwise\n",
    )


# ---- with Ray Serve


@pytest.fixture
def server(tiny):
    """Yield a process with two replicas, and its address."""
    pytest.importorskip("ray.serve", reason="Ray Serve is not installed: pip install '.[replicas]'")
    command = [sys.executable, "-m", "lengthwise", "serve", "--model", tiny, "--engine", "transformers"]
    process = subprocess.Popen(
        [*command, "--replicas", "2", "--port", "0", "--json", "--device", "cpu"], stdout=subprocess.PIPE, text=True
    )
    try:
        yield process, json.loads(process.stdout.readline())["url"]
    finally:
        process.terminate()
        process.wait(60)


def get(url, body=None):
    """Return the status and the text of a reply."""
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, data, {"Content-Type": "application/json"}), timeout=120
        ) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def texts(url, count):
    """Ask for `count` texts of different lengths at once, and return the length of each."""
    ask = [{"prompt": f"The dog {n}", "length": f"exactly {20 + n} chars"} for n in range(count)]
    with ThreadPoolExecutor(count) as pool:
        replies = list(pool.map(lambda body: get(f"{url}/v1/completions", body), ask))
    assert {status for status, _ in replies} == {200}
    return [json.loads(text)["usage"]["length"]["length"] for _, text in replies]


def texts_of_replicas(url):
    """Return how many texts each replica has written."""
    found = {}
    for line in get(f"{url}/metrics")[1].splitlines():
        if line.startswith("lengthwise_waiting{"):
            found.setdefault(line.split('replica="')[1].split('"')[0], 0)
        elif line.startswith("lengthwise_texts_total{"):
            name = line.split('replica="')[1].split('"')[0]
            found[name] = found.get(name, 0) + float(line.rpartition(" ")[2])
    return found


def replica_processes(pid):
    """Return the ids of the replicas' processes below this one."""
    rows = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    table = {int(row.split()[0]): (int(row.split()[1]), row) for row in rows.splitlines()[1:]}

    def below(one):
        return one == pid or (one in table and below(table[one][0]))

    return [one for one, (_, row) in table.items() if "ray::ServeReplica" in row and below(one)]


def test_two_replicas_of_which_one_is_killed(server):
    process, url = server
    assert texts(url, 20) == [20 + n for n in range(20)]
    before = texts_of_replicas(url)
    assert sum(before.values()) == 20
    assert len(before) == 2
    assert all(before.values())  # both have work
    os.kill(replica_processes(process.pid)[0], signal.SIGKILL)
    end = time.monotonic() + 240
    while len(now := texts_of_replicas(url)) < 2 or set(now) == set(before):
        assert time.monotonic() < end
        time.sleep(0.5)
    assert texts(url, 6) == [20 + n for n in range(6)]
    assert get(f"{url}/health")[0] == 200
    process.send_signal(signal.SIGTERM)
    lines = [json.loads(line) for line in process.stdout]
    assert sum(line["route"] == "/v1/completions" for line in lines) == 26
    assert process.wait(120) == 0
