"""`lengthwise serve`: an OpenAI-compatible server with lengths, and a playground."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from . import options, terminal
from .loading import load
from .options import integer, option

if TYPE_CHECKING:
    from ..translation import Translator

KEY_VARIABLE = "LENGTHWISE_API_KEY"


def serve(
    model: Annotated[str, option(options.WRITER_HELP)] = "smollm2",
    engine: options.Engine = None,
    translate_to: Annotated[
        list[str] | None,
        option("Also translate to this language; can be repeated. LANG=MODEL names its model.", "LANG"),
    ] = None,
    source: Annotated[str, option("Source language of translations.", "LANG", "--from")] = "en",
    host: Annotated[str, option("Address to listen on; 0.0.0.0 for all networks.")] = "127.0.0.1",
    port: Annotated[int, option("Port; 0 takes a free one.", "N", min=0, max=65535)] = 8000,
    max_batch: Annotated[int, integer("Texts that are written together.")] = 16,
    queue: Annotated[int, integer("Texts that may wait; beyond that, clients receive 429.")] = 128,
    max_tokens: Annotated[int, integer("Tokens of one text at most.")] = 1024,
    api_keys: Annotated[
        Path | None,
        option(f"File with API keys, one per line. [default: the variable {KEY_VARIABLE}, else none]", "FILE"),
    ] = None,
    grace: Annotated[int, integer("Seconds to finish accepted texts after SIGTERM or Ctrl-C.", 0)] = 30,
    device: options.Device = None,
    as_json: Annotated[bool, options.flag("--json", "Print the address and each request as JSON.")] = False,
) -> None:
    """Serve the OpenAI API with lengths, and a playground.

    \b
    lengthwise serve
    lengthwise serve --translate-to it --port 8080
    lengthwise serve --model ./my-model --engine transformers --host 0.0.0.0 --api-keys keys.txt

    Routes: /v1/chat/completions, /v1/completions, /v1/models, /v1/translate, /v1/shorten, /v1/measure, /health,
    /metrics, and the playground at /. Requests may have a `length`, such as "at most 280 chars".
    SIGTERM or Ctrl-C finishes the accepted requests and refuses new ones; a second one ends at once.
    """
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        missing = f"the server needs {error.name}; install it: pip install 'lengthwise[serve]'"
        raise ImportError(missing) from None
    keys = _keys(api_keys)
    writer = load(model, device, engine=engine)
    translators = dict(_translator(source, one, device) for one in translate_to or [])

    from ..length.units import UNITS
    from ..server.app import make_app
    from ..server.limits import Limits
    from ..server.running import make_server
    from ..server.service import Service

    with terminal.console().status("preparing"):
        for unit in UNITS:
            writer.meter(unit)  # takes a second each, which the first request would wait for
    service = Service(writer, translators, Limits(max_batch, queue, max_tokens, grace=grace))

    def log(line: dict[str, Any]) -> None:
        terminal.print_json(line)

    def started(url: str) -> None:
        if as_json:
            terminal.print_json({"url": url, "models": service.models})
        else:
            terminal.print_message(f"serving {', '.join(service.models)} at {url} (playground and API); Ctrl-C stops")

    make_server(make_app(service, keys, log if as_json else None), service, host, port, started).run()


def _keys(file: Path | None) -> list[str]:
    """Return the API keys of the file, or the one of the environment."""
    given = os.environ.get(KEY_VARIABLE, "") if file is None else file.read_text("utf-8")
    keys = [line.strip() for line in given.splitlines() if line.strip()]
    if file is not None and not keys:
        raise terminal.UsageError(f"--api-keys {file} has no key; write one per line")
    return keys


def _translator(source: str, wanted: str, device: str | None) -> "tuple[tuple[str, str], Translator]":
    """Return the translator for 'it', with the model en-it, or for 'it=MODEL'."""
    target, _, name = wanted.partition("=")
    writer = load(name or f"{source}-{target}", device, fitted=True, engine=None)
    from ..translation import Translator

    return (source, target), Translator(writer, source, target)
