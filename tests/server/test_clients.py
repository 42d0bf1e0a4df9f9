"""Clients of a running server: the openai package, two hundred at once, slow ones, and those that go away."""

import asyncio
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lengthwise import measure
from lengthwise.server.app import make_app
from lengthwise.server.running import make_server

openai = pytest.importorskip("openai")
HTTP = "POST {} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}"


def client(running, **more):
    return openai.OpenAI(base_url=f"{running.url}/v1", api_key="alpha", max_retries=0, timeout=60, **more)


def asked(text, **more):
    return {"model": "echo", "messages": [{"role": "user", "content": text}], **more}


def wait_for(condition, seconds=30):
    """Wait until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def post(running, body, path="/v1/chat/completions"):
    """Send a request on a socket of its own and return the socket."""
    connection = socket.create_connection(running.address, timeout=30)
    text = json.dumps(body)
    connection.sendall(HTTP.format(path, len(text), text).encode())
    return connection


def test_the_openai_client(service, serve):
    made = client(serve(service, ["alpha"]))
    assert [model.id for model in made.models.list()] == ["echo"]
    reply = made.chat.completions.create(**asked("The dog is quick."), extra_body={"length": "at most 40 chars"})
    assert reply.choices[0].message.content == "The dog is quick."
    assert (reply.usage.length["length"], reply.complete) == (17, True)
    parts = made.chat.completions.create(
        **asked("The dog. The fox jumps over it."), stream=True, extra_body={"max_length": "80 chars"}
    )
    assert "".join(part.choices[0].delta.content or "" for part in parts) == "The dog. The fox jumps over it."
    text = made.completions.create(model="echo", prompt="The dog", max_tokens=9, n=2, logprobs=0)
    assert len(text.choices) == 2


def test_errors_of_the_openai_client(make_service, serve, engine):
    running = serve(make_service(queue=2), ["alpha"])
    made = client(running)
    with pytest.raises(openai.BadRequestError, match="cannot read") as bad:
        made.chat.completions.create(**asked("The dog."), extra_body={"length": "short"})
    assert (bad.value.param, bad.value.code) == ("length", "invalid_length")
    with pytest.raises(openai.NotFoundError):
        made.chat.completions.create(model="gpt-9", messages=[{"role": "user", "content": "Hi."}])
    with pytest.raises(openai.AuthenticationError):
        openai.OpenAI(base_url=f"{running.url}/v1", api_key="wrong", max_retries=0).models.list()
    engine.gate.clear()
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(made.chat.completions.create, **asked("The first text."))
        wait_for(lambda: running.service.worker.running)
        waiting = [pool.submit(made.chat.completions.create, **asked(f"Text {n}.")) for n in range(2)]
        wait_for(lambda: running.service.waiting == 2)
        with pytest.raises(openai.RateLimitError, match="queue is full") as full:
            made.chat.completions.create(**asked("One too many."))
        assert int(full.value.response.headers["retry-after"]) >= 1
        engine.gate.set()
        assert first.result(30).choices[0].message.content == "The first text."
        assert [one.result(30).choices[0].message.content for one in waiting] == ["Text 0.", "Text 1."]


def test_two_hundred_at_once(make_service, serve, engine):
    """Every client receives its own text, in its own unit, from batches that are shared."""
    running = serve(make_service(queue=200))
    units = ("chars", "words", "bytes", "tokens")

    async def ask(made, n):
        text, unit = f"Number {n} is {n * n}.", units[n % 4]
        body = {"length": f"at most {60 + n} {unit}"}
        if n % 3:
            reply = await made.chat.completions.create(**asked(text), extra_body=body)
            found, length = reply.choices[0].message.content, reply.usage.length
        else:
            found, length = "", None
            stream = await made.chat.completions.create(**asked(text), stream=True, extra_body=body)
            async for part in stream:
                found += part.choices[0].delta.content or ""
                length = getattr(part.choices[0], "length", None) or length
        assert found == text
        assert (length["unit"], length["budget"]) == (unit, body["length"])
        assert unit == "tokens" or length["length"] == measure(text, unit)

    async def ask_all():
        made = openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key="x", max_retries=0, timeout=120)
        async with made:
            await asyncio.gather(*(ask(made, n) for n in range(200)))

    asyncio.run(ask_all())
    assert sum(engine.batches) == 200
    assert len(engine.batches) < 100
    page = running.service.current_metrics().page()[0].decode()
    assert 'lengthwise_requests_total{route="/v1/chat/completions",status="200"} 200.0' in page


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_away_frees_its_row_and_its_place(make_service, serve, engine, stream):
    running = serve(make_service())
    engine.gate.clear()
    engine.window = 4096
    text = " ".join(f"Number {n}." for n in range(60))
    body = asked(text, stream=stream, length="at most 900 chars")
    first = post(running, body)
    wait_for(lambda: running.service.worker.running)
    second = post(running, body)
    wait_for(lambda: running.service.waiting == 1)
    second.close()
    wait_for(lambda: running.service.waiting == 0)  # it had not begun
    first.close()
    [job] = running.service.worker._current
    wait_for(lambda: job.payload.closed)
    engine.gate.set()
    wait_for(lambda: not running.service.busy)
    assert engine.steps_taken < 5  # of some 200
    assert b"lengthwise_dropped_total 2.0" in running.service.current_metrics().page()[0]


def test_slow_clients_do_not_stop_others(make_service, serve):
    running = serve(make_service(body_seconds=0.3))
    made = client(running)
    slow = [socket.create_connection(running.address, timeout=30) for _ in range(20)]
    for connection in slow:
        connection.sendall(HTTP.format("/v1/chat/completions", 500, '{"messages":').encode())
    deaf = [post(running, asked("The dog is quick. The fox is not.", stream=True)) for _ in range(5)]  # never read
    assert made.chat.completions.create(**asked("The dog.")).choices[0].message.content == "The dog."
    for connection in slow:
        assert b" 408 " in connection.recv(1000)
    wait_for(lambda: not running.service.busy)
    for connection in [*slow, *deaf]:
        connection.close()


def test_a_shutdown_finishes_what_was_accepted_and_refuses_the_rest(make_service, serve, engine):
    running = serve(make_service())
    made = client(running)
    engine.gate.clear()
    with ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(made.chat.completions.create, **asked(f"Text {n}.")) for n in range(3)]
        wait_for(lambda: running.service.worker.running + running.service.waiting == 3)
        running.server.stop()
        with pytest.raises(openai.InternalServerError) as refused:
            made.chat.completions.create(**asked("Too late."))
        assert (refused.value.status_code, refused.value.code) == (503, "shutting_down")
        engine.gate.set()
        assert sorted(job.result(30).choices[0].message.content for job in jobs) == ["Text 0.", "Text 1.", "Text 2."]
    running.thread.join(30)
    assert not running.thread.is_alive()
    with pytest.raises(openai.APIConnectionError):
        made.models.list()


def test_a_shutdown_does_not_wait_for_ever(make_service, serve, engine):
    running = serve(make_service(grace=0.1))
    engine.gate.clear()
    with ThreadPoolExecutor(2) as pool:
        made = client(running)
        first = pool.submit(made.chat.completions.create, **asked("The first text."))
        wait_for(lambda: running.service.worker.running)
        second = pool.submit(made.chat.completions.create, **asked("The second text."))
        wait_for(lambda: running.service.waiting == 1)
        running.server.stop()
        for one in (first, second):  # the gate is still shut
            with pytest.raises(openai.InternalServerError, match="shutting down"):
                one.result(30)
    running.thread.join(30)
    assert not running.thread.is_alive()


def test_a_stream_that_a_shutdown_cuts_ends_with_an_error(make_service, serve, engine):
    running = serve(make_service(grace=0.1))
    engine.gate.clear()
    connection = post(running, asked("The first text.", stream=True))
    wait_for(lambda: running.service.worker.running)
    running.server.stop()
    found = b""
    while part := connection.recv(4096):
        found += part
    assert b"shutting_down" in found
    assert b'finish_reason": "' not in found
    assert b"[DONE]" not in found


def test_a_second_signal_cuts_streams_off_without_a_traceback(serve, engine, service, capsys):
    running = serve(service)
    engine.gate.clear()
    connection = post(running, asked("The first text.", stream=True))
    wait_for(lambda: running.service.worker.running)
    running.server.stop()
    running.server.stop()
    running.thread.join(30)
    assert not running.thread.is_alive()
    assert not capsys.readouterr().err
    connection.close()


def test_a_signal_before_the_server_listens(service):
    server = make_server(make_app(service), service, "127.0.0.1", 0, lambda url: None)
    server.stop()
    server.run()  # returns
    assert service.draining
