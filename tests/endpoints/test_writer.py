"""Texts from an endpoint: rows, calls, retries and errors, over HTTP."""

import threading

import pytest

import lengthwise
from endpoint_server import KEY, Raw, chat, serving
from lengthwise.endpoints import calls, client

ROWS = [f"Describe number {n}." for n in range(6)]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """Retries happen at once; the seconds that were waited are recorded."""
    waited = []
    monkeypatch.setattr(client, "BACKOFF", 0.5)
    monkeypatch.setattr(calls.time, "sleep", waited.append)
    monkeypatch.setenv("LENGTHWISE_API_KEY", KEY)
    return waited


def prompt_of(body):
    return next(message["content"] for message in body["messages"] if message["role"] == "user")


def write(answer, texts="Describe the sea.", budget="at most 40 chars", load=None, **options):
    with serving(answer) as server:
        return lengthwise.load(server.name, **(load or {})).write(texts, budget, **options), server


def test_a_text_with_all_its_fields():
    [one], server = write(lambda body, number: chat("The sea is wide."))
    assert one.as_json() == {
        "text": "The sea is wide.",
        "length": 16,
        "unit": "chars",
        "budget": "at most 40 chars",
        "fits": True,
        "complete": True,
        "model": server.name,
        "tokens": 7,
        "candidates": [],
        "calls": 1,
    }
    assert isinstance(one, lengthwise.Written)


def test_system_and_options_reach_the_endpoint():
    _, server = write(lambda body, number: chat("A."), system="Be brief.", temperature=0.5, seed=7)
    [body] = server.requests
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (body["temperature"], body["seed"], body["model"]) == (0.5, 7, "toy")


def test_rows_run_together_and_stay_in_order():
    together = threading.Barrier(3, timeout=20)  # breaks unless three requests are there at once

    def answer(body, number):
        together.wait()
        return chat(f"This is {prompt_of(body).split('.')[0][-1]}.")

    found, _ = write(answer, ROWS, load={"concurrency": 3})
    assert [one.text for one in found] == [f"This is {n}." for n in range(6)]


def test_no_more_rows_than_allowed_run_together():
    inside, most, lock = [0], [0], threading.Lock()

    def answer(body, number):
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        threading.Event().wait(0.01)
        with lock:
            inside[0] -= 1
        return chat("Fine.")

    write(answer, ROWS, load={"concurrency": 2})
    assert most[0] <= 2


def test_an_error_in_a_thread_reaches_the_caller(monkeypatch):
    monkeypatch.setattr(client.Endpoint, "ask", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write(lambda body, number: chat("Fine."), ROWS)


def test_progress_counts_rows():
    seen = []
    write(lambda body, number: chat("Fine."), ROWS, progress=seen.append)
    assert sum(seen) == len(ROWS)


def test_a_bad_row_does_not_harm_the_others():
    def answer(body, number):
        if "number 2" in prompt_of(body):
            return Raw(400, {"error": {"message": "content policy"}})
        return chat("Fine.")

    found, _ = write(answer, [*ROWS, "", "x"], ["at most 9 chars"] * 6 + ["at most 9 chars", "at most 5 tokens"])
    assert [one.text for one in found] == ["Fine.", "Fine.", "", "Fine.", "Fine.", "Fine.", "", ""]
    assert "content policy" in found[2].error
    assert "empty" in found[6].error
    assert "words or chars" in found[7].error


def test_a_refused_key_stops_the_batch():
    found, server = write(
        lambda body, number: Raw(401, {"error": {"message": f"bad key {KEY}"}}), ROWS * 20, load={"concurrency": 2}
    )
    assert len(server.requests) <= 4
    assert all("the key was refused" in one.error and KEY not in one.error for one in found)


@pytest.mark.parametrize(
    "first", [Raw(429, b"", Retry_After="3"), Raw(500, b"oops"), Raw(200, b"{"), Raw(200, b'{"choices": []}')]
)
def test_a_failed_call_is_repeated(first, no_waiting):
    [one], _server = write(lambda body, number: first if number == 0 else chat("The sea."))
    assert (one.text, one.calls, one.error) == ("The sea.", 2, None)
    assert no_waiting == [3.0 if first.status == 429 else 0.5]


def test_an_endpoint_that_asks_for_too_much_patience(no_waiting):
    [one], server = write(lambda body, number: Raw(429, b"", Retry_After="86400"))
    assert "86400 s" in one.error
    assert (len(server.requests), no_waiting) == (1, [])


@pytest.mark.parametrize("header", [{}, {"Retry_After": "0"}, {"Retry_After": "Wed, 21 Oct 2015 07:28:00 GMT"}])
def test_retries_are_bounded_and_counted(header, no_waiting):
    [one], server = write(lambda body, number: Raw(503, b"down", **header))
    assert no_waiting == [0.5, 1.0]
    assert "503" in one.error
    assert one.calls == len(server.requests) == calls.RETRIES


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_never_more_requests_than_max_calls(limit):
    replies = [Raw(500, b""), chat("A b c d e f."), Raw(429, b"", Retry_After="1"), chat("")]
    found, server = write(
        lambda body, number: replies[number % 4], ROWS, "exactly 3 words", load={"max_calls": limit}, candidates=2
    )
    assert len(server.requests) == sum(one.calls for one in found)
    assert all(one.calls <= limit for one in found)
    assert not any(one.fits for one in found)


def test_what_was_found_survives_a_later_failure():
    [one], _ = write(
        lambda body, number: chat("One two three four five.") if number == 0 else Raw(500, b"gone"),
        budget="exactly 9 words",
    )
    assert (one.text, one.fits, one.error) == ("One two three four five.", False, None)
    assert "gone" in one.note


def test_the_nearest_text_has_a_note():
    [one], _ = write(lambda body, number: chat("One two three."), budget="exactly 9 words", load={"max_calls": 2})
    assert not one.fits
    assert "nothing that fits was found in 2 calls" in one.note


def test_an_endpoint_that_ignores_n_and_max_tokens():
    [one], server = write(lambda body, number: chat("The sea is wide. " * 500), candidates=4)
    assert server.requests[0]["n"] == 4
    assert (one.text, one.fits, one.complete) == ("The sea is wide. The sea is wide.", True, True)
    assert one.candidates == []


def test_a_reasoning_model_gets_more_tokens():
    def answer(body, number):
        if "max_tokens" in body:
            return chat("<think>I should write", reason="length")
        return chat("<think>Short.</think>The sea is wide.")

    [one], _server = write(answer)
    assert (one.text, one.calls) == ("The sea is wide.", 2)


def test_an_endpoint_without_n_and_seed():
    def answer(body, number):
        for name in ("seed", "n", "max_tokens"):
            if name in body:
                return Raw(400, {"error": {"message": f"Unrecognized request argument: {name}"}})
        return chat("The sea.")

    [one], _ = write(answer, candidates=2, seed=1)
    assert (one.text, one.calls) == ("The sea.", 4)


def test_greedy_replies_are_asked_for_once():
    _, server = write(lambda body, number: chat("The sea."), candidates=3, temperature=0)
    assert "n" not in server.requests[0]


def test_a_seed_gives_each_row_and_each_call_its_own():
    _, server = write(lambda body, number: chat("A b."), ROWS[:2], "exactly 9 words", load={"max_calls": 2}, seed=5)
    assert len({body["seed"] for body in server.requests}) == 4


@pytest.mark.parametrize("option", [{"num_beams": 2}, {"max_tokens": 9}, {"stream": True}, {"candidates": 0}])
def test_options_that_do_not_exist_here(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        write(lambda body, number: chat("A."), **option)


@pytest.mark.parametrize("option", [{"max_calls": 0}, {"concurrency": 0}])
def test_limits_must_be_positive(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        lengthwise.load("openai:m@http://localhost:1/v1", **option)
