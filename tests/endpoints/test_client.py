"""One call of an endpoint: what is sent, what is read, and which error a fault becomes."""

import json
import threading

import pytest

from endpoint_server import KEY, Raw, chat, serving
from lengthwise.endpoints import client
from lengthwise.endpoints.client import Endpoint, EndpointError

HELLO = [{"role": "user", "content": "Hello"}]


def ask(answer, *, timeout=10.0, key=KEY, **options):
    """Return what one call gives, and the server's record."""
    with serving(answer if callable(answer) else lambda body, number: answer) as server:
        endpoint = Endpoint("toy", server.url, key=key, timeout=timeout)
        try:
            return endpoint.ask(HELLO, **options), server
        finally:
            endpoint.close()


def texts(answer, **options):
    return [(reply.text, reply.ended) for reply in ask(answer, **options)[0].replies]


def fault(answer, **options):
    with pytest.raises(EndpointError) as caught:
        ask(answer, **options)
    return caught.value


@pytest.mark.parametrize(
    ("name", "model", "url"),
    [
        ("openai:llama3.2@http://localhost:11434/v1", "llama3.2", "http://localhost:11434/v1"),
        ("openai:org/model:free@https://host/api/v1/", "org/model:free", "https://host/api/v1"),
        ("openai:model@20241022@https://host/v1", "model@20241022", "https://host/v1"),
        ("openai:m@https://host/v1/chat/completions", "m", "https://host/v1"),
        ("openai:gpt-4o-mini", "gpt-4o-mini", "https://api.openai.com/v1"),
    ],
)
def test_a_name_has_a_model_and_a_url(name, model, url, monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    found = Endpoint.named(name)
    assert (found.model, found.url) == (model, url)


@pytest.mark.parametrize("name", ["openai:", "openai:@http://host", "openai:m@localhost:8000", "openai:m@ftp://host"])
def test_a_name_that_cannot_be_read(name):
    with pytest.raises(ValueError, match="openai:NAME@URL"):
        Endpoint.named(name)


def test_a_password_in_the_url_is_refused_and_not_repeated():
    with pytest.raises(ValueError, match="must not contain a password") as caught:
        Endpoint("m", "http://me:hunter2@host/v1")
    assert "hunter2" not in str(caught.value)


def test_the_key_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    monkeypatch.setenv("LENGTHWISE_API_KEY", f"{KEY}\n")
    _, server = ask(chat("Hi."), key=None)
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    monkeypatch.delenv("LENGTHWISE_API_KEY")
    monkeypatch.delenv("OPENAI_API_KEY")
    _, server = ask(chat("Hi."), key=None)
    assert "Authorization" not in server.headers[0]


def test_a_call_sends_the_options_that_are_given():
    answer, server = ask(chat("Hi.", "Hello."), n=2, max_tokens=9, seed=None)
    assert server.requests == [{"model": "toy", "messages": HELLO, "n": 2, "max_tokens": 9}]
    assert [reply.text for reply in answer.replies] == ["Hi.", "Hello."]
    assert answer.tokens == 7


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<think>Ten words?\n\nYes.</think>\n\nIt is blue.", "It is blue."),
        ("<think>never closed", ""),
        ("A <think> in the middle.", "A <think> in the middle."),
        (None, ""),
        ([{"type": "text", "text": "In "}, {"type": "text", "text": "parts."}], "In parts."),
    ],
)
def test_the_text_is_what_the_reader_should_see(content, text):
    assert texts(chat(content)) == [(text, True)]


@pytest.mark.parametrize("content", [" and more.", "<think>Hm.</think> and more."])
def test_the_space_before_a_text_is_kept_apart(content):
    [reply] = ask(chat(content))[0].replies
    assert (reply.space, reply.text) == (" ", "and more.")


@pytest.mark.parametrize(
    ("answer", "ended"),
    [
        (chat("A b c", reason="stop"), True),
        (chat("A b c", reason="length"), False),
        (chat("A b c", reason="content_filter"), False),
        (chat("A b c", reason=None), True),
        (chat("A b c", reason="stop", tokens=9), False),  # the limit is used up, whatever the endpoint says
    ],
)
def test_a_text_that_was_cut_has_not_ended(answer, ended):
    assert texts(answer, max_tokens=9) == [("A b c", ended)]


def test_a_stream_that_was_not_asked_for_is_put_together():
    events = [
        ": keep-alive",
        'data: {"choices": [{"index": 0, "delta": {"role": "assistant"}}]}',
        'data: {"choices": [{"index": 1, "delta": {"content": "Two"}}, {"index": 0, "delta": {"content": "One "}}]}',
        'data: {"choices": [{"index": 0, "delta": {"content": "more."}, "finish_reason": "stop"}]}',
        'data: {"choices": [], "usage": {"completion_tokens": 3}}',
        "data: [DONE]",
    ]
    answer, _ = ask(Raw(200, "\n\n".join(events)))
    assert [(r.text, r.ended) for r in answer.replies] == [("One more.", True), ("Two", False)]
    assert answer.tokens == 3


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_ends_all_and_is_never_shown(status):
    error = fault(Raw(status, {"error": {"message": f"Incorrect API key provided: {KEY}."}}))
    assert error.fatal
    assert error.wait is None
    assert KEY not in str(error)
    assert "the key was refused" in str(error)


def test_without_a_key_the_error_says_where_to_put_it():
    assert "LENGTHWISE_API_KEY" in str(fault(Raw(401, b"no"), key=""))


def test_an_unknown_model_or_path_ends_all():
    error = fault(Raw(404, {"error": {"message": "The model `toy` does not exist"}}))
    assert error.fatal
    assert "does not exist" in str(error)
    with serving(lambda body, number: chat("Hi.")) as server:
        with pytest.raises(EndpointError, match="/v1") as caught:
            Endpoint("toy", server.url.removesuffix("/v1")).ask(HELLO)
        assert "Not Found" in str(caught.value)
        assert "<h1>" not in str(caught.value)


def test_a_redirect_is_not_followed_with_the_key():
    error = fault(Raw(307, b"", Location="http://elsewhere.invalid/v1"))
    assert error.fatal


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ({"Retry_After": "3"}, 3),
        ({"Retry_After": "7200"}, 7200),
        ({"Retry_After": "0"}, client.BACKOFF),
        ({}, client.BACKOFF),
        ({"Retry_After": "soon"}, client.BACKOFF),
    ],
)
def test_a_busy_endpoint_says_when_to_come_back(header, wait):
    error = fault(Raw(429, {"error": {"message": "slow down"}}, **header))
    assert error.wait == wait
    assert (error.fatal, error.down) == (False, True)  # no other text would get through now


@pytest.mark.parametrize(("status", "fatal", "down"), [(402, True, True), (400, False, False), (500, False, False)])
def test_which_faults_are_not_of_the_text(status, fatal, down):
    error = fault(Raw(status, b"no"))
    assert (error.fatal, error.down) == (fatal, down)


def test_retry_after_may_be_a_date():
    assert fault(Raw(503, b"", Retry_After="Wed, 21 Oct 2015 07:28:00 GMT")).wait == client.BACKOFF
    assert fault(Raw(503, b"", Retry_After="Wed, 21 Oct 2065 07:28:00 GMT")).wait > 3600


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'{"choices": []}',
        b'{"choices": null}',
        b'{"choices": [{}]}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": {"content": [1]}}]}',
        b'{"choices": [{"message": {"content": "a"}}], "usage": 3}',
        b"<html>Log in to the network</html>",
        b"data: {broken",
        b"data: [DONE]\n\n",
        b'{"error": {"message": "overloaded"}}',
        b"\xff\xfe\x00",
    ],
)
def test_a_broken_answer_may_be_tried_again(body):
    error = fault(Raw(200, body))
    assert error.wait is not None
    assert not error.fatal


def test_a_server_error_shows_a_short_message():
    error = fault(Raw(502, "<html>" + "bad gateway " * 1000 + "</html>"))
    assert error.wait is not None
    assert "bad gateway" in str(error)
    assert len(str(error)) < 300


def test_a_slow_endpoint_times_out():
    release = threading.Event()
    error = fault(lambda body, number: (release.wait(5) and chat("late")) or chat("late"), timeout=0.1)
    release.set()
    assert "0.1 s" in str(error)
    assert error.wait is not None


def test_a_huge_answer_is_not_read(monkeypatch):
    monkeypatch.setattr(client, "MAX_BYTES", 1000)
    assert "more than" in str(fault(chat("word " * 1000)))


def test_nothing_listens():
    with serving(lambda body, number: chat("Hi.")) as server:
        url = server.url
    with pytest.raises(EndpointError, match="cannot reach"):
        Endpoint("toy", url).ask(HELLO)


def test_a_refused_parameter_is_renamed_or_left_out():
    def answer(body, number):
        for name in ("max_tokens", "n", "temperature"):
            if name in body:
                return Raw(400, {"error": {"message": f"Unsupported parameter: '{name}'.", "param": name}})
        return chat(json.dumps(sorted(body)))

    with serving(answer) as server:
        endpoint, options = Endpoint("toy", server.url), {"max_tokens": 5, "n": 2, "temperature": 0.5}
        for _ in range(3):
            with pytest.raises(EndpointError) as caught:
                endpoint.ask(HELLO, **options)
            assert caught.value.changed
        [reply] = endpoint.ask(HELLO, **options).replies
    assert json.loads(reply.text) == ["max_completion_tokens", "messages", "model"]


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "Too long.\n\nn is no problem, and\nn is fine."}},
        {"error": {"message": "The messages are too long; 'n' is fine.", "param": "messages"}},
    ],
)
def test_an_error_that_refuses_no_parameter_changes_none(body):
    error = fault(Raw(400, body), n=4)
    assert (error.wait, error.changed) == (None, False)


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "Only one choice.", "param": "n"}},
        {"error": {"message": "Unsupported parameter: `n`"}},
        {"detail": [{"loc": ["body", "n"], "msg": "Extra inputs are not permitted"}]},
    ],
)
def test_an_error_that_refuses_n(body):
    assert fault(Raw(422, body), n=4).changed


def test_a_key_of_openai_goes_to_no_other_url(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    monkeypatch.delenv("LENGTHWISE_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with serving(lambda body, number: chat("Hi.")) as server:
        Endpoint.named(server.name).ask(HELLO)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/")
        Endpoint.named("openai:toy").ask(HELLO)
        assert [head.get("Authorization") for head in server.headers] == [None, "Bearer sk-other"]


def test_a_bad_request_is_final():
    error = fault(Raw(400, {"error": {"message": "context length exceeded"}}), max_tokens=5)
    assert (error.wait, error.fatal) == (None, False)
