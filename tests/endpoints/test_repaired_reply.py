"""The end of a reply is asked for again, through the caller's own client."""

from types import SimpleNamespace

import pytest

import lengthwise
from endpoint_server import chat, serving

PROMPT = "Describe the sea."
GOOD = "The sea is wide. It is blue."
HALF = "The sea is wide and it is blue. Ships cross it by day and also by"


def completion(*texts, reason="stop", logprobs=None, tokens=9):
    """Return a reply of the API as the openai library would hold it."""
    choices = [
        {"index": n, "message": {"role": "assistant", "content": text}, "finish_reason": reason, "logprobs": logprobs}
        for n, text in enumerate(texts)
    ]
    found = {"model": "toy", "choices": choices, "usage": {"completion_tokens": tokens}}
    return SimpleNamespace(model_dump=lambda: found)


def tokens(*scored):
    """Return log-probabilities: each token with its own, and 0.0 for the likeliest one."""
    return {"content": [{"token": text, "logprob": own, "top_logprobs": [{"logprob": 0.0}]} for text, own in scored]}


def client(*answers):
    """Return a client with prepared answers, and the list of its requests."""
    seen, left = [], list(answers)

    def create(**request):
        seen.append(request)
        return left.pop(0)

    return SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create))), seen


def test_a_good_reply_needs_no_call():
    one, seen = client()
    found = lengthwise.repair(one, PROMPT, completion(GOOD), "at most 40 chars")
    assert (found.text, found.length, found.fits, found.complete) == (GOOD, 28, True, True)
    assert (found.calls, found.tokens, found.model, found.budget) == (0, 0, "toy", "at most 40 chars")
    assert seen == []


def test_the_best_of_several_choices():
    one, _ = client()
    assert lengthwise.repair(one, PROMPT, completion(HALF, GOOD), "at most 40 chars").text == GOOD


def test_the_last_stretch_is_asked_for_again():
    one, seen = client(completion("Ships pass in the night.", "At night, lights shine on it."))
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": PROMPT}]
    found = lengthwise.repair(one, messages, completion(HALF, reason="length"), "60-100 chars", temperature=0.5, seed=3)
    assert found.text.startswith("The sea is wide and it is blue. ")
    assert (found.fits, found.complete, found.calls, found.tokens) == (True, True, 1, 9)
    [request] = seen
    assert (request["model"], request["temperature"], request["seed"], request["n"]) == ("toy", 0.5, 3, 4)
    roles = [message["role"] for message in request["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    assert request["messages"][2]["content"] == "The sea is wide and it is blue."
    assert "extra_body" not in request


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_limit_of_the_caller_replaces_that_of_the_plan(name):
    one, seen = client(completion("Ships pass in the night."))
    lengthwise.repair(one, PROMPT, completion(HALF, reason="length"), "50-120 chars", **{name: 300})
    assert {key: value for key, value in seen[0].items() if "tokens" in key} == {name: 300}


def test_vllm_continues_under_the_hard_budget():
    one, seen = client(completion(" blue and the ships on it are white."))
    found = lengthwise.repair(
        one, PROMPT, completion(HALF, reason="length"), "50-120 chars", vllm=True, extra_body={"top_k": 5}
    )
    assert found.text == "The sea is wide and it is blue and the ships on it are white."
    [request] = seen
    kept = "The sea is wide and it is"  # 10 words of 6 characters before the middle of the budget
    assert request["messages"] == [{"role": "user", "content": PROMPT}, {"role": "assistant", "content": kept}]
    assert request["extra_body"] == {
        "top_k": 5,
        "vllm_xargs": {"length": "50-120 chars", "length_prefix": kept},
        "add_generation_prompt": False,
        "continue_final_message": True,
    }


FORCED = [("The sea", 0.0), (" is", 0.0), (" wide", 0.0), (".", 0.0)] * 3 + [(" It", 0.0), (" is", 0.0), (".", -9.0)]


@pytest.mark.parametrize(("end", "calls"), [(-9.0, 1), (-1.0, 0)])
def test_a_forced_full_stop_is_replaced(end, calls):
    scored = [*FORCED[:-1], (".", end)]
    text = "".join(token for token, _ in scored)
    reply = completion(text, logprobs=tokens(*scored, ("<end>", 0.0)))
    one, _ = client(completion(" The ships on it are small."))
    found = lengthwise.repair(one, PROMPT, reply, "55-150 chars", vllm=True)
    assert found.calls == calls
    assert found.text == (
        text if not calls else "The sea is wide.The sea is wide.The sea is The ships on it are small."
    )
    assert found.fits
    assert found.complete


def test_a_forced_end_token_is_no_end():
    reply = completion("The sea and", logprobs=tokens(("The sea", 0.0), (" and", 0.0), ("<end>", -9.0)))
    one, seen = client(completion(GOOD))
    assert lengthwise.repair(one, PROMPT, reply, "at most 40 chars").text == GOOD
    assert len(seen) == 1


def test_the_client_of_the_openai_library():
    openai = pytest.importorskip("openai")
    with serving(lambda body, number: chat(" cold in the night.") if number else chat(HALF, reason="length")) as at:
        with openai.OpenAI(base_url=at.url, api_key="none") as one:
            reply = one.chat.completions.create(model="toy", messages=[{"role": "user", "content": PROMPT}])
            found = lengthwise.repair(one, PROMPT, reply, "40-130 chars", model="toy", vllm=True)
        assert found.text == "The sea is wide and it is cold in the night."
        assert at.requests[1]["model"] == "toy"
        assert at.requests[1]["vllm_xargs"]["length_prefix"] == "The sea is wide and it is"


def test_calls_are_limited_and_the_nearest_text_is_kept():
    one, seen = client(*[completion("No.")] * 9)
    found = lengthwise.repair(one, PROMPT, completion(HALF), "exactly 50 words", max_calls=3)
    assert len(seen) == found.calls == 3
    assert not found.fits
    assert found.note == "nothing that fits was found in 3 calls; this is the nearest"


def test_errors_of_the_client_are_raised():
    one, _ = client()  # has no answer
    with pytest.raises(IndexError):
        lengthwise.repair(one, PROMPT, completion(HALF), "exactly 50 words")


@pytest.mark.parametrize(
    ("messages", "reply", "length", "error", "message"),
    [
        ([], completion(GOOD), "at most 9 words", ValueError, "must be the user's"),
        (
            [{"role": "assistant", "content": "x"}],
            completion(GOOD),
            "at most 9 words",
            ValueError,
            "must be the user's",
        ),
        (PROMPT, GOOD, "at most 9 words", TypeError, "what client.chat.completions.create returned; got str"),
        (PROMPT, completion(GOOD), "at most 9 tokens", ValueError, "tokens cannot be counted here"),
    ],
)
def test_bad_arguments(messages, reply, length, error, message):
    with pytest.raises(error, match=message):
        lengthwise.repair(client()[0], messages, reply, length)
