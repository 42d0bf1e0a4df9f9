"""`lengthwise serve`: an OpenAI-compatible server with lengths, and a playground."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..errors import how_to_install
from . import options, terminal
from .loading import load, prepare
from .options import integer, option

if TYPE_CHECKING:
    from ..server.limits import Limits
    from ..server.service import Service

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
    replicas: Annotated[
        int, integer("Processes with a model and a queue each, behind one address. More than one needs Ray Serve.")
    ] = 1,
    as_json: Annotated[bool, options.flag("--json", "Print the address and each request as JSON.")] = False,
) -> None:
    """Serve the OpenAI API with lengths, and a playground.

    \b
    lengthwise serve
    lengthwise serve --translate-to it --port 8080
    lengthwise serve --model ./my-model --engine transformers --host 0.0.0.0 --api-keys keys.txt
    lengthwise serve --replicas 4

    Routes: /v1/chat/completions, /v1/completions, /v1/models, /v1/translate, /v1/shorten, /v1/measure, /health,
    /metrics, and the playground at /. Requests may have a `length`, such as "at most 280 chars".
    SIGTERM or Ctrl-C finishes the accepted requests and refuses new ones; a second one ends at once.
    """
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        missing = f"the server needs {error.name}, which is not installed; {how_to_install('serve')}"
        raise ImportError(missing) from None
    keys = _keys(api_keys)
    from ..server.limits import Limits
    from ..server.running import free_port, make_server

    free_port(host, port)  # raises if it is taken, before models are loaded
    limits = Limits(max_batch, queue, max_tokens, grace=grace)
    translators = [_translator_name(source, one) for one in translate_to or []]
    make = partial(_service, model, engine, source, translators, limits)

    def started(url: str, models: Sequence[str]) -> None:
        if as_json:
            terminal.print_json({"url": url, "models": models})
        else:
            terminal.print_message(f"serving {', '.join(models)} at {url} (playground and API); Ctrl-C stops")

    log = terminal.print_json if as_json else None
    if replicas > 1:
        from ..server.replicas import ray_serve, serve_replicas

        ray_serve()  # raises if it is not installed, before a download
        prepare(model, device, engine=engine)  # here, where a download is seen
        for _, name in translators:
            prepare(name, device, engine=None)
        terminal.print_message(f"starting {replicas} replicas")
        address = host, port
        serve_replicas(make, replicas, address, started, device=device, keys=keys, grace=grace, log=log)
        return
    from ..server.app import make_app

    service = make(device)
    make_server(make_app(service, keys, log), service, host, port, lambda url: started(url, service.models)).run()


def _service(
    model: str,
    engine: str | None,
    source: str,
    translators: Sequence[tuple[str, str]],
    limits: "Limits",
    device: str | None,
) -> "Service":
    """Return the models, loaded; `translators`: their target languages and names."""
    from ..server.heap import return_freed_memory

    return_freed_memory()
    writer = load(model, device, engine=engine)
    loaded = {(source, target): load(name, device, fitted=True, engine=None) for target, name in translators}

    from ..constraint.token_costs import token_costs_of
    from ..generation.loops import loop_tables_of
    from ..length.units import UNITS
    from ..server.service import Service
    from ..shortening.forms import LANGUAGE_MODEL, WRITERS
    from ..translation import Translator

    with terminal.status("preparing"):
        for unit in UNITS:
            meter = writer.meter(unit)  # takes a second each, which the first request would wait for
            for finish in (True, False):
                token_costs_of(meter, finish)  # several threads that ask for it first would each make it
            loop_tables_of(meter)
    loaders = {}
    if model == LANGUAGE_MODEL:
        for name in dict.fromkeys(WRITERS.values()):
            prepare(name, device, engine=None)
            loaders[name] = partial(load, name, device, engine=None)
    rewriters = {form: loaders[name] for form, name in WRITERS.items() if name in loaders}
    return Service(writer, {pair: Translator(one, *pair) for pair, one in loaded.items()}, limits, rewriters)


def _keys(file: Path | None) -> list[str]:
    """Return the API keys of the file, or the one of the environment."""
    given = os.environ.get(KEY_VARIABLE, "") if file is None else file.read_text("utf-8")
    keys = [line.strip() for line in given.splitlines() if line.strip()]
    if file is not None and not keys:
        raise terminal.UsageError(f"--api-keys {file} has no key; write one per line")
    return keys


def _translator_name(source: str, wanted: str) -> tuple[str, str]:
    """Return the language and the model of 'it', which is en-it, or of 'it=MODEL'."""
    target, _, name = wanted.partition("=")
    return target, name or f"{source}-{target}"
