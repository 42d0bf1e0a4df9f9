"""Load a model by name: `openai:NAME@URL` is behind an API, any other name runs here."""

from typing import TYPE_CHECKING, Any

from .client import Endpoint, is_endpoint

if TYPE_CHECKING:
    from ..generation.generator import Writer
    from .writer import EndpointWriter


def load(name: str, **options: Any) -> "Writer | EndpointWriter":
    """Return a writer for the model called `name`.

    `openai:NAME@URL`: the model NAME of an OpenAI-compatible endpoint, with the options `max_calls` and `concurrency`
    of `EndpointWriter`, and `timeout` in seconds. The key is read from $LENGTHWISE_API_KEY or, without
    @URL, $OPENAI_API_KEY. Any other name: see `lengthwise.generation.load.load`.
    """
    if not isinstance(name, str):
        raise TypeError(f"a model is given by its name or its folder as a str, such as 'smollm2'; got {name!r}")
    if not is_endpoint(name):
        from ..generation.load import load as load_local

        return load_local(name, **options)
    from .writer import EndpointWriter

    timeout = {"timeout": options.pop("timeout")} if "timeout" in options else {}
    return EndpointWriter(Endpoint.named(name, **timeout), **options)
