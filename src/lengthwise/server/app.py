"""The routes of the server. Each checks its body, queues jobs, and waits for them while the client waits."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

from ..length.units import UNITS
from ..version import __version__
from .batching import Closed, Job
from .errors import ApiError
from .guard import Guard
from .measuring import measured
from .metrics import RequestMetrics
from .openai_shapes import (
    ChatRequest,
    CompletionRequest,
    MeasureRequest,
    ShortenRequest,
    TranslateRequest,
    validation_error,
)
from .replies import Replies, event
from .service import Service
from .writing import Row, Text

PLAYGROUND = Path(__file__).parent / "playground"
FILES = {
    "playground.css": "text/css",
    "playground.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
HEARTBEAT = 15.0  # seconds between comments in a stream that has nothing to say, so that proxies keep it open
# The playground loads nothing from other servers, and other pages cannot embed it.
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}

log = logging.getLogger("lengthwise.server")


class ClientGone(Exception):
    """The client has closed the connection."""


def make_app(
    service: Service,
    keys: Sequence[str] = (),
    log_request: Callable[[dict[str, Any]], None] | None = None,
    metrics_page: Callable[[], Awaitable[tuple[bytes, str]]] | None = None,
) -> FastAPI:
    """Return the application. `keys`: API keys, one of which each request to /v1 must have.

    `metrics_page` returns the page of metrics, if it has more than those of this service.
    """
    app = FastAPI(title="Lengthwise", version=__version__, docs_url=None, redoc_url=None)
    app.add_middleware(Guard, limits=service.limits, keys=keys, draining=lambda: service.draining)
    app.add_middleware(RequestMetrics, metrics=service.metrics, log=log_request)
    _add_errors(app)
    _add_writing(app, service)
    _add_texts(app, service)
    _add_state(app, service, metrics_page)
    _add_playground(app)
    return app


def _add_writing(app: FastAPI, service: Service) -> None:
    async def complete(asked: ChatRequest | CompletionRequest, request: Request) -> Response:
        service.check_model(asked.model)
        rows = await asyncio.to_thread(service.writing.rows, asked)  # a long prompt takes a while to tokenise
        options = service.writing.options(asked, rows)
        replies = Replies(service.writer.name, isinstance(asked, ChatRequest), asked.stream_options.include_usage)
        if asked.stream:
            return _stream(service, asked, request, replies, rows, options)
        jobs = service.write(options, rows)
        texts = await _results(service, request, jobs)
        service.metrics.count(texts, asked.n)
        return _json(replies.whole(texts, asked.n))

    @app.post("/v1/chat/completions")
    async def chat(asked: ChatRequest, request: Request) -> Response:
        return await complete(asked, request)

    @app.post("/v1/completions")
    async def completions(asked: CompletionRequest, request: Request) -> Response:
        return await complete(asked, request)


def _add_texts(app: FastAPI, service: Service) -> None:
    @app.post("/v1/translate")
    async def translate(asked: TranslateRequest, request: Request) -> Response:
        return _lines(
            "translation", await _results(service, request, await asyncio.to_thread(service.translate, asked))
        )

    @app.post("/v1/shorten")
    async def shorten(asked: ShortenRequest, request: Request) -> Response:
        return _lines("shortened", await _results(service, request, await asyncio.to_thread(service.shorten, asked)))

    @app.post("/v1/measure")
    def measure_text(asked: MeasureRequest) -> Response:  # in a thread of its own: a long text takes a while
        service.limits.check_text(asked.text, "text")
        return _json(measured(asked, service.writer.tokenizer))


def _add_state(app: FastAPI, service: Service, metrics_page: Callable[[], Awaitable[tuple[bytes, str]]] | None) -> None:
    @app.get("/v1/models")
    async def models() -> Response:
        return _json({"object": "list", "data": [_model(name) for name in service.models]})

    @app.get("/v1/models/{name:path}")
    async def model(name: str) -> Response:
        if name not in service.models:
            raise ApiError(404, f"the model {name!r} is not served here", param="model", code="model_not_found")
        return _json(_model(name))

    @app.get("/health")
    async def health() -> Response:
        status = "shutting down" if service.draining else "ok"
        state = {
            "status": status,
            "version": __version__,
            "model": service.writer.name,
            "translates": [f"{source}-{target}" for source, target in service.translators],
            "shortens": service.shortener is not None,
            "units": list(UNITS),
            "waiting": service.waiting,
        }
        return _json(state, 503 if service.draining else 200)

    @app.get("/metrics")
    async def metrics() -> Response:
        page, kind = await metrics_page() if metrics_page else service.current_metrics().page()
        return Response(page, media_type=kind)


def _add_playground(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(PLAYGROUND / "index.html", headers=_HEADERS)

    @app.get("/playground/{name}", include_in_schema=False)
    async def file(name: str) -> Response:
        if name not in FILES:
            raise ApiError(404, f"there is no file {name!r}")
        return FileResponse(PLAYGROUND / name, media_type=FILES[name], headers=_HEADERS)


# ---- waiting for jobs


async def _results(service: Service, request: Request, jobs: list[Job]) -> list[Any]:
    """Return the results of the jobs; if the client goes away first, cancel them."""
    together: asyncio.Future[Any] = asyncio.gather(*(asyncio.wrap_future(job.future) for job in jobs))
    gone: asyncio.Future[Any] = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({together, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not together.done():
            raise ClientGone
        return await together
    except (asyncio.CancelledError, Closed):
        raise _stopping() from None
    finally:
        _cancel(service, jobs)
        gone.cancel()
        together.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await together


async def _disconnected(request: Request) -> None:
    """Return when the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _cancel(service: Service, jobs: list[Job]) -> None:
    for job in jobs:
        if not job.future.done():
            job.cancel()
            service.metrics.dropped.inc()


def _stream(
    service: Service,
    asked: ChatRequest | CompletionRequest,
    request: Request,
    replies: Replies,
    rows: list[Row],
    options: Any,
) -> Response:
    """Queue the rows and return a response that sends their parts as they are released."""
    loop = asyncio.get_running_loop()
    parts: asyncio.Queue[tuple[int, Any]] = asyncio.Queue()

    def put(place: int, value: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed: the stream has ended
            loop.call_soon_threadsafe(parts.put_nowait, (place, value))

    for place, row in enumerate(rows):
        row.release = partial(put, place)
    jobs = service.write(options, rows)  # raises before the response begins
    for place, job in enumerate(jobs):
        job.future.add_done_callback(partial(put, place))
    events = _events(service, asked, request, replies, jobs, parts)
    return StreamingResponse(events, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})


async def _events(
    service: Service,
    asked: ChatRequest | CompletionRequest,
    request: Request,
    replies: Replies,
    jobs: list[Job],
    parts: "asyncio.Queue[tuple[int, Any]]",
) -> AsyncIterator[str]:
    texts: dict[int, Text] = {}
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        if replies.chat:
            for place in range(len(jobs)):
                yield replies.first(place)
        while len(texts) < len(jobs):
            waiting = asyncio.ensure_future(parts.get())
            await asyncio.wait({waiting, gone}, timeout=HEARTBEAT, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                waiting.cancel()
                return
            if not waiting.done():
                waiting.cancel()
                yield ": waiting\n\n"
                continue
            place, value = waiting.result()
            if isinstance(value, str):
                yield replies.part(place, value)
            elif value.cancelled():
                raise _stopping()
            else:
                texts[place] = value.result()
                yield replies.last(place, texts[place])
        found = [texts[place] for place in range(len(jobs))]
        service.metrics.count(found, asked.n)
        if asked.stream_options.include_usage:
            yield replies.usage(found, asked.n)
        yield "data: [DONE]\n\n"
    except Closed:
        yield event(_stopping().body)
    except ApiError as error:
        yield event(error.body)
    except Exception:
        log.exception("a stream failed")
        yield event(_INTERNAL.body)
    finally:
        gone.cancel()
        _cancel(service, jobs)


# ---- replies and errors

_INTERNAL = ApiError(500, "the server had an error; its log has the details", code="internal_error")


def _stopping() -> ApiError:
    return ApiError(503, "the server is shutting down; try again", code="shutting_down", retry_after=5)


def _json(value: Any, status: int = 200) -> Response:
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    return Response(body, status, media_type="application/json")


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "lengthwise"}


def _lines(kind: str, results: list[Any]) -> Response:
    """Return the results of lines; an error of the first line is the error of the request if there is one line."""
    if len(results) == 1 and results[0].error is not None:
        raise ApiError(400, results[0].error, param="text")
    rows = [one.as_json() for one in results]
    complete = all(one.complete and one.error is None for one in results)
    return _json({"object": kind, "data": rows, "complete": complete})


def _add_errors(app: FastAPI) -> None:
    def reply(error: ApiError) -> Response:
        return Response(json.dumps(error.body), error.status, error.headers, "application/json")

    @app.exception_handler(ApiError)
    async def known(request: Request, error: ApiError) -> Response:
        return reply(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return reply(validation_error(list(error.errors())))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        found = ApiError(error.status_code, f"{error.detail}: {request.method} {request.url.path}")
        if error.status_code == 400:
            found = ApiError(400, "the body is not valid JSON")
        return reply(found)

    @app.exception_handler(ClientGone)
    async def gone(request: Request, error: ClientGone) -> Response:
        return Response(status_code=499)  # only the log and the metrics receive it

    @app.exception_handler(Exception)
    async def unknown(request: Request, error: Exception) -> Response:
        return reply(_INTERNAL)
