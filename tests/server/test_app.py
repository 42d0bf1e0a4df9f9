"""The routes, with a model that says what it was asked."""

import asyncio
import json
import math
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lengthwise import measure
from lengthwise.server import writing
from lengthwise.server.app import make_app
from lengthwise.server.openai_shapes import ChatRequest, CompletionRequest
from lengthwise.shortening.records import Shortened
from lengthwise.translation import Translation

TEXT = "The dog is quick. It jumps over the fox. The day was cold."


@pytest.fixture
def client(service):
    with TestClient(make_app(service), raise_server_exceptions=False) as client:
        yield client


def chat(client, text=TEXT, **more):
    return client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": text}], **more})


def error(reply):
    """The error of a reply, which has the form of the OpenAI API."""
    assert reply.headers["content-type"] == "application/json"
    found = reply.json()["error"]
    assert found.keys() == {"message", "type", "param", "code"}
    assert "Traceback" not in found["message"]
    return found


def test_a_chat(client):
    reply = chat(client, length="at most 80 chars").json()
    [choice] = reply["choices"]
    assert choice["message"]["content"] == TEXT
    assert (choice["finish_reason"], choice["complete"], reply["complete"]) == ("stop", True, True)
    length = {"length": len(TEXT), "unit": "chars", "budget": "at most 80 chars", "fits": True}
    assert reply["usage"]["length"] == choice["length"] == length
    usage = reply["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert (reply["object"], reply["model"]) == ("chat.completion", "echo")


@pytest.mark.parametrize(
    ("asked", "budget"),
    [
        ({"length": "at most 25 chars"}, "at most 25 chars"),
        ({"length": {"high": 25, "unit": "chars"}}, "at most 25 chars"),
        ({"length": {"low": 4, "high": 8, "unit": "words"}}, "4-8 words"),
        ({"length": "at most 0.5x"}, f"at most {len(TEXT) // 2} chars"),
        ({"max_length": "25 chars"}, "at most 25 chars"),
        ({"max_length": "exactly 4 words"}, "exactly 4 words"),
        ({"max_tokens": 9}, "at most 9 tokens"),
        ({"max_completion_tokens": 9, "max_tokens": 99}, "at most 9 tokens"),
        ({}, "at most 256 tokens"),
    ],
)
def test_lengths(client, asked, budget):
    reply = chat(client, **asked).json()
    assert reply["usage"]["length"]["budget"] == budget
    assert reply["usage"]["length"]["fits"]
    text, unit = reply["choices"][0]["message"]["content"], reply["usage"]["length"]["unit"]
    if unit != "tokens":
        assert measure(text, unit) == reply["usage"]["length"]["length"]


def test_a_text_without_an_end_in_time_is_not_complete(client):
    [choice] = chat(client, "one two three four five six seven", length="exactly 11 chars").json()["choices"]
    assert (choice["finish_reason"], choice["complete"], choice["length"]["length"]) == ("length", False, 11)


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        (". It", "The dog is quick"),
        ([" fox", "jumps"], "The dog is quick. It"),
        ("dog is quick. It jumps over the fox", "The"),
        ("nowhere", TEXT),
        ("The", ""),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_stop_sequences(client, stop, expected, stream):
    reply = chat(client, stop=stop, length="at most 80 chars", stream=stream)
    if stream:
        chunks = [json.loads(line[6:]) for line in reply.text.split("\n\n")[:-2]]
        found = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
        end = chunks[-1]["choices"][0]
    else:
        [end] = reply.json()["choices"]
        found = end["message"]["content"]
    assert found == expected
    assert end["finish_reason"] == "stop"
    assert end["length"]["length"] == len(expected)


def test_a_stream_has_parts_an_end_and_a_usage(client):
    options = {"stream": True, "stream_options": {"include_usage": True}, "n": 2, "length": "at most 80 chars"}
    reply = chat(client, **options)
    assert reply.headers["content-type"].startswith("text/event-stream")
    lines = reply.text.split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]
    assert len({chunk["id"] for chunk in chunks}) == 1
    for place in range(2):
        own = [chunk["choices"][0] for chunk in chunks if chunk["choices"] and chunk["choices"][0]["index"] == place]
        assert own[0]["delta"]["role"] == "assistant"
        assert "".join(one["delta"].get("content", "") for one in own) == TEXT
        assert [one["finish_reason"] for one in own if one["finish_reason"]] == ["stop"]
    assert chunks[-1]["choices"] == []
    assert all(chunk["usage"] is None for chunk in chunks[:-1])
    assert "budget" not in chunks[-1]["usage"]["length"]  # the sum of two texts has none
    assert chunks[-1]["usage"]["length"]["length"] == 2 * len(TEXT)


def test_completions_of_several_prompts(client):
    asked = {"prompt": ["The dog is quick", "The day was cold"], "n": 2, "max_length": "40 chars", "logprobs": 0}
    reply = client.post("/v1/completions", json=asked).json()
    assert reply["object"] == "text_completion"
    assert [choice["index"] for choice in reply["choices"]] == [0, 1, 2, 3]
    for choice in reply["choices"]:
        found = choice["logprobs"]
        assert "".join(found["tokens"]).strip() == choice["text"]
        assert all(value <= 0 for value in found["token_logprobs"])
        before = ["".join(found["tokens"][:n]).lstrip() for n in range(len(found["tokens"]))]
        assert found["text_offset"] == [len(text) for text in before]


def test_offsets_count_from_the_text_not_from_the_space_before_it(client):
    asked = {"prompt": "It jumps over the", "max_length": "40 chars", "logprobs": 0}
    [choice] = client.post("/v1/completions", json=asked).json()["choices"]
    found = choice["logprobs"]
    assert choice["text"] == "the the"
    assert (found["tokens"], found["text_offset"]) == ([" the", " the"], [0, 3])


@pytest.mark.parametrize(("limit", "batches"), [({"max_tokens": 4}, 1), ({"length": "at most 4 tokens"}, 4)])
def test_a_text_is_repaired_only_if_a_length_was_asked_for(client, engine, limit, batches):
    [choice] = chat(client, "one two three four five six seven", **limit).json()["choices"]
    assert (choice["finish_reason"], choice["complete"]) == ("length", False)
    assert len(engine.batches) == batches


def test_log_probabilities_of_a_chat(client):
    [choice] = chat(client, logprobs=True, stop=" It").json()["choices"]
    rows = choice["logprobs"]["content"]
    assert bytes(byte for row in rows for byte in row["bytes"]).decode() == "The dog is quick."
    assert rows[0]["logprob"] > -0.01


def test_the_same_seed_gives_the_same_text_in_any_company(client, engine):
    asked = {"temperature": 2.0, "seed": 7, "length": "at most 60 chars"}
    engine.next_scores, scores = (lambda texts: scores(texts) / 20), engine.next_scores  # so that draws differ
    one = chat(client, **asked).json()["choices"][0]["message"]["content"]
    several = [choice["message"]["content"] for choice in chat(client, n=3, **asked).json()["choices"]]
    assert several[0] == one
    assert len(set(several)) > 1


def test_candidates(client):
    assert chat(client, candidates=3).json()["choices"][0]["message"]["content"] == TEXT
    assert error(chat(client, candidates=3, temperature=0))["param"] == "temperature"


def test_messages_in_parts_and_of_every_role(client):
    messages = [
        {"role": "system", "content": "Repeat."},
        {"role": "developer", "content": [{"type": "text", "text": "Repeat it."}]},
        {"role": "assistant", "content": "Yes.", "refusal": None, "annotations": [], "tool_calls": []},
        {"role": "user", "name": "me", "content": [{"type": "text", "text": "The dog."}]},
    ]
    reply = client.post("/v1/chat/completions", json={"messages": messages, "user": "me", "metadata": {}})
    assert reply.json()["choices"][0]["message"]["content"] == "The dog."


@pytest.mark.parametrize(
    ("asked", "param", "words"),
    [
        ({"length": "about a page"}, "length", "cannot read"),
        ({"length": "at most 10"}, "length", "unit is missing"),
        ({"length": 280}, "length", "at most 280 chars"),
        ({"length": {"high": 5, "unit": "pages"}}, "length", "unknown unit"),
        ({"length": {"low": 9, "high": 5}}, "length", "low must not exceed high"),
        ({"length": {"high": -3}}, "length", "at least 1"),
        ({"length": {"high": 5, "units": "words"}}, "units", "did you mean 'unit'"),
        ({"length": "at most 9 chars", "max_length": "9 chars"}, "max_length", "exclude each other"),
        ({"max_length": 280}, "max_length", "280 chars"),
        ({"max_length": "at least 5 words"}, "max_length", "has no maximum"),
        ({"length": "at most 1000000000 chars"}, "length", "8,192 chars"),
        ({"length": "exactly 0 words"}, "length", "at least 1; got 0"),
        ({"length": f"exactly {'9' * 150} words"}, "length", "too long"),
        ({"length": "at most 99999999 chars"}, "length", "8,192 chars"),
        ({"length": "99999999999x"}, "length", "too long"),
        ({"length": "exactly 900 tokens"}, "length", "window"),
        ({"lenght": "at most 9 chars"}, "lenght", "did you mean 'length'"),
        ({"length": "exactly 200 chars", "max_tokens": 9}, "max_tokens", "allows 9"),
        ({"temperature": 9}, "temperature", "less than or equal to 2"),
        ({"temperature": "hot"}, "temperature", "number"),
        ({"n": 0}, "n", "greater than"),
        ({"n": 17}, "n", "allows 16"),
        ({"n": True}, "n", "integer"),
        ({"candidates": 99}, "candidates", "allows 8"),
        ({"stop": ["a"] * 5}, "stop", "at most 4"),
        ({"stop": ""}, "stop", "at least 1"),
        ({"tools": [{"type": "function"}]}, "tools", "not supported"),
        ({"response_format": {"type": "json_object"}}, "response_format", "not supported"),
        ({"top_logprobs": 3, "logprobs": True}, "top_logprobs", "not supported"),
        ({"frequency_penalty": 0.5}, "frequency_penalty", "not supported"),
        ({"messages": []}, "messages", "at least 1"),
        ({"messages": [{"role": "tool", "tool_call_id": "a", "content": "x"}]}, "messages", "tools"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "a"}]}]}, "messages", "tools"),
        ({"messages": [{"role": "bot", "content": "x"}]}, "messages", "role"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "messages",
            "image_url",
        ),
        ({"messages": [{"role": "user", "content": "  "}]}, "messages", "empty"),
        ({"messages": [{"role": "user", "content": "dog " * 600}]}, "messages", "window"),
    ],
)
def test_what_cannot_be_done_is_said(client, asked, param, words):
    reply = chat(client, **asked)
    found = error(reply)
    assert (reply.status_code, found["param"], found["type"]) == (400, param, "invalid_request_error")
    assert words in found["message"]


def test_a_temperature_of_almost_nothing_is_greedy(client):
    assert chat(client, temperature=1e-310).json()["choices"][0]["message"]["content"] == TEXT


def test_half_a_surrogate_pair_is_no_text(client):
    for path in ("measure", "shorten"):
        body = rb'{"text": "a \ud800 b", "length": "at most 9 chars"}'
        reply = client.post(f"/v1/{path}", content=body, headers={"content-type": "application/json"})
        assert (reply.status_code, error(reply)["code"]) == (400, "invalid_text")
    for body in (rb'{"messages": [{"role": "user", "content": "\ud800"}]}', rb'{"prompt": "\ud800"}'):
        path = "chat/completions" if b"messages" in body else "completions"
        reply = client.post(f"/v1/{path}", content=body, headers={"content-type": "application/json"})
        assert (reply.status_code, error(reply)["code"]) == (400, "invalid_text")


def test_a_request_that_no_queue_has_room_for(make_service):
    with TestClient(make_app(make_service(queue=2))) as client:
        reply = chat(client, n=3)
        assert (reply.status_code, "--queue" in error(reply)["message"]) == (400, True)
        assert chat(client, n=2).status_code == 200


def test_a_long_text_shares_no_batch_with_short_ones(service):
    prompts = {"prompt": ["The dog. " * 40, "The dog."], "length": "at most 9x"}
    asked = CompletionRequest(**prompts)
    sizes = {service.writing.options(asked, rows).size for rows in (service.writing.rows(asked),)}
    assert sizes == {math.inf}


def test_a_stream_repeats_no_text_if_its_batch_fails(service, engine):
    """The first sentence is sent; then a batch of two fails."""
    step, text = engine.step, "The dog is quick. It jumps over the fox. A bird sings. We read. They came back late. "
    sent = []

    def fails():
        step()
        if engine.batches[-1] == 2 and sent:
            raise RuntimeError("broken")

    engine.step = fails
    asked = ChatRequest(messages=[{"role": "user", "content": text}], length="at most 300 chars", n=2)
    rows = service.writing.rows(asked)
    rows[0].release = sent.append
    first, second = service.write(service.writing.options(asked, rows), rows)
    with pytest.raises(RuntimeError, match="broken"):
        first.future.result(30)
    assert second.future.result(30).text == text.strip()
    assert text.startswith("".join(sent))


def test_prompts_are_tokenised_outside_the_event_loop(client, service, monkeypatch):
    kind, outside = type(service.writer.tokenizer), []
    tokenize = kind.__call__

    def watched(*texts, **options):
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        outside.append(texts)
        return tokenize(*texts, **options)

    monkeypatch.setattr(kind, "__call__", watched)
    assert client.post("/v1/completions", json={"prompt": "The dog."}).status_code == 200
    assert outside


def test_a_long_prompt_has_fewer_candidates(client, engine, monkeypatch):
    monkeypatch.setattr(writing, "BATCH_TOKENS", 60)
    assert error(chat(client, candidates=8))["param"] == "candidates"
    assert chat(client, "The dog.", candidates=2).status_code == 200


def test_neutral_and_ignored_parameters(client):
    ignored = {"frequency_penalty": 0, "tools": [], "response_format": {"type": "text"}, "store": True, "seed": None}
    ignored |= {"prompt_cache_retention": "24h", "max_completion_tokens": None, "stream_options": None}
    assert chat(client, **ignored).status_code == 200


def test_unknown_models_and_routes(client):
    assert (chat(client, model="gpt-9").status_code, error(chat(client, model="gpt-9"))["code"]) == (
        404,
        "model_not_found",
    )
    assert error(client.get("/v1/nothing"))["message"].endswith("GET /v1/nothing")
    assert client.get("/v1/chat/completions").status_code == 405
    assert client.get("/playground/../app.py").status_code == 404
    [model] = client.get("/v1/models").json()["data"]
    assert (model["id"], model["object"]) == ("echo", "model")
    assert client.get("/v1/models/echo").json() == model
    assert error(client.get("/v1/models/org/gpt-9"))["code"] == "model_not_found"


def test_bodies_that_are_no_requests(client):
    head = {"content-type": "application/json"}
    for body in (b"", b"{", b"[]", b"3", b"null", b'"a"', b"\xff\xfe", b"[" * 5000, b'{"n": 1' + b"0" * 5000 + b"}"):
        reply = client.post("/v1/chat/completions", content=body, headers=head)
        assert reply.status_code == 400, body[:20]
        assert error(reply)["message"]
    assert "Content-Type" in error(client.post("/v1/measure", content=b'{"text": "a"}'))["message"]


def test_a_body_that_is_too_large(make_service):
    with TestClient(make_app(make_service(body=1000))) as client:
        assert chat(client, "a" * 900).status_code != 413
        found = chat(client, "a" * 2000)
        assert (found.status_code, error(found)["code"]) == (413, "request_too_large")
        pieces = client.post("/v1/measure", content=(b"a" * 400 for _ in range(9)))  # without a content-length
        assert pieces.status_code == 413


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ("messages", "length", "max_length", "n", "stop", "temperature", "top_p", "seed", "max_tokens", "stream")
BODIES = st.fixed_dictionaries(
    {"messages": st.just([{"role": "user", "content": "Hi."}]) | JSON},
    optional={name: JSON for name in FIELDS if name != "messages"},
)


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(BODIES | JSON)
def test_any_json_gets_an_answer_or_an_error(client, body):
    reply = client.post("/v1/chat/completions", content=json.dumps(body), headers={"content-type": "application/json"})
    assert reply.status_code in (200, 400), reply.text
    if reply.status_code == 400:
        assert error(reply)["message"]


def test_measure(client):
    text = "Où est-il ? Là-bas."
    found = client.post("/v1/measure", json={"text": text, "length": "at most 11 chars"}).json()
    assert found["lengths"]["words"] == 4
    assert (found["length"], found["fits"], found["limit_at"]) == (19, False, 12)  # the space is not counted
    assert client.post("/v1/measure", json={"text": text, "length": "at most 4 words"}).json()["limit_at"] is None
    only = client.post("/v1/measure", json={"text": text, "units": ["bytes", "word"]}).json()["lengths"]
    assert only == {"bytes": len(text.encode()), "words": 4}
    assert error(client.post("/v1/measure", json={"text": text, "units": ["pages"]}))["param"] == "units"
    assert error(client.post("/v1/measure", json={"text": text, "length": "1.0x"}))["param"] == "length"


def test_long_texts_are_not_counted(client):
    """Some texts take minutes to count in some units."""
    text = "a.b.c." * 30_000
    for reply in (
        client.post("/v1/measure", json={"text": text, "length": "at most 9 tweet"}),
        client.post("/v1/shorten", json={"text": text, "length": "at most 0.5x tweet"}),
        chat(client, text, length="at most 0.5x tweet"),
    ):
        assert (reply.status_code, error(reply)["code"]) == (400, "text_too_long")


class Lines:
    """In place of a translator and a shortener: gives back what it gets."""

    name = "lines"

    def translate(self, texts, budgets):
        made = [Translation(text[::-1], len(text), "chars", "", True, True, "lines", 3, source=text) for text in texts]
        return [replace(one, error="no text") if not one.text else one for one in made]

    def shorten(self, texts, budgets, **options):
        return [
            Shortened(text[: b.high], b.high, "chars", str(b), True, True, "lines", 3)
            for text, b in zip(texts, budgets, strict=True)
        ]


def test_a_trained_model_is_loaded_once_when_a_text_of_its_form_is_asked_for(service, monkeypatch):
    loaded, shared = [], []

    def load(name):
        loaded.append(name)
        return service.writer

    headlines, texts = (partial(load, name) for name in ("headlines", "shorten"))
    monkeypatch.setattr(service.writer.engine, "share", lambda: shared.append(True))
    service.shortener, service._rewriters = Lines(), {"headline": headlines, "sentence": texts, "text": texts}
    monkeypatch.setattr("lengthwise.server.service.Shortener", lambda model, writer: Lines())
    with TestClient(make_app(service)) as client:
        for options, so_far in (
            ({"form": "headline", "faithful": True}, []),
            ({"form": "headline"}, ["headlines"]),
            ({"form": "headline"}, ["headlines"]),
            ({}, ["headlines", "shorten"]),
            ({"form": "sentence", "faithful": True}, ["headlines", "shorten"]),
        ):
            reply = client.post("/v1/shorten", json={"text": "abcdef", "max_length": "4 chars", **options})
            assert (reply.json()["data"][0]["text"], loaded, len(shared)) == ("abcd", so_far, len(so_far))


def test_translate_and_shorten(service):
    service.translators[("en", "it")] = service.shortener = Lines()
    service._workers[("en", "it")] = service.worker
    with TestClient(make_app(service)) as client:
        asked = {"text": ["abc", "def"], "from": "en", "to": "it", "length": "at most 2.0x"}
        reply = client.post("/v1/translate", json=asked).json()
        assert [one["text"] for one in reply["data"]] == ["cba", "fed"]
        assert reply["complete"]
        assert error(client.post("/v1/translate", json={"text": "", "to": "it"}))["message"] == "no text"
        unknown = client.post("/v1/translate", json={"text": "abc", "to": "xx"})
        assert (unknown.status_code, error(unknown)["param"]) == (404, "to")
        assert "en to it" in error(unknown)["message"]
        [short] = client.post("/v1/shorten", json={"text": "abcdef", "max_length": "4 chars"}).json()["data"]
        assert short["text"] == "abcd"
        assert error(client.post("/v1/shorten", json={"text": "abcdef"}))["param"] == "length"
        assert client.post("/v1/shorten", json={"text": ["a"] * 17, "max_length": "4 chars"}).status_code == 400


def test_an_error_of_the_server_shows_no_traceback(service):
    def fails(options, rows):
        raise RuntimeError("secret")
        yield

    service.writing.write = fails
    with TestClient(make_app(service), raise_server_exceptions=False) as client:
        reply = chat(client)
        assert (reply.status_code, error(reply)["type"]) == (500, "server_error")
        assert "secret" not in reply.text
        assert "secret" not in chat(client, stream=True).text
        assert "internal_error" in chat(client, stream=True).text


def test_keys(service):
    with TestClient(make_app(service, ["alpha", "beta"])) as client:
        for header in ({}, {"Authorization": "Bearer gamma"}, {"Authorization": "Bearer "}):
            reply = client.get("/v1/models", headers=header)
            assert (reply.status_code, error(reply)["code"]) == (401, "invalid_api_key")
        assert client.get("/v1/models", headers={"Authorization": "Bearer beta"}).status_code == 200
        assert client.get("/health").status_code == 200


def test_the_server_does_not_import_torch():
    code = "import sys, lengthwise.server.app, lengthwise.server.running; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_health_metrics_and_playground(client):
    chat(client, length="at most 80 chars")
    assert client.get("/health").json()["status"] == "ok"
    page = client.get("/metrics").text
    assert 'lengthwise_requests_total{route="/v1/chat/completions",status="200"} 1.0' in page
    assert 'lengthwise_texts_total{complete="true",fits="true"} 1.0' in page
    assert "lengthwise_batch_rows_count 1.0" in page
    client.get("/invented/by/a/client")
    assert "invented" not in client.get("/metrics").text
    html = client.get("/")
    assert "default-src 'self'" in html.headers["content-security-policy"]
    for name in ("playground.css", "playground.js", "icon.svg"):
        assert f"/playground/{name}" in html.text
        assert "http" not in client.get(f"/playground/{name}").text.replace("http://www.w3.org/2000/svg", "")
