"""The client of `openai:NAME@URL` against a running server of Lengthwise."""

import pytest

from lengthwise.endpoints.client import Endpoint, EndpointError
from lengthwise.endpoints.writer import EndpointWriter
from lengthwise.shortening.endpoint import EndpointShortener
from lengthwise.translation.endpoint import EndpointTranslator

HELLO = [{"role": "user", "content": "The dog is quick."}]


@pytest.fixture
def endpoint(service, serve):
    """Returns an endpoint of a server that says what it was asked."""
    made = []

    def make(model="echo", key="alpha"):
        made.append(Endpoint(model, f"{make.running.url}/v1", key=key, timeout=30.0))
        return made[-1]

    make.running = serve(service, ["alpha"])
    yield make
    for one in made:
        one.close()


def test_replies(endpoint):
    asked = endpoint().ask(HELLO, n=2, seed=1, temperature=0.8)
    assert [(reply.text, reply.ended) for reply in asked.replies] == [("The dog is quick.", True)] * 2
    [cut] = endpoint().ask(HELLO, max_tokens=2).replies
    assert (cut.text[:3], cut.ended) == ("The", False)


@pytest.mark.parametrize(("wrong", "says"), [({"key": "beta"}, "key"), ({"model": "other"}, "other")])
def test_what_the_server_refuses_is_an_error(endpoint, wrong, says):
    with pytest.raises(EndpointError, match=says):
        endpoint(**wrong).ask(HELLO)


def test_a_text_within_a_length(endpoint):
    [one] = EndpointWriter(endpoint()).write(["The dog is quick."], "at most 2,000 chars")
    assert one.error is None
    assert "The dog is quick." in one.text  # the model says all that it was asked, the plan included
    assert (one.fits, one.calls) == (True, 1)


def test_a_model_that_repeats_its_request_has_no_translation(endpoint):
    [one] = EndpointTranslator(EndpointWriter(endpoint(), max_calls=2), "en", "it").translate("The dog is {name}.")
    assert (one.calls, one.text) == (2, "")
    assert "sent no text in 2 calls" in one.error


def test_nor_a_shorter_text(endpoint):
    [one] = EndpointShortener(EndpointWriter(endpoint(), max_calls=3)).shorten("The dog is quick.", "at most 5 chars")
    assert (one.calls, one.text) == (3, "")
    assert "sent no text in 3 calls" in one.error
