"""Guard: ASGI middleware that checks a request before it is read: API key, size and speed of the body, shutdown."""

import asyncio
import hmac
import json
from collections.abc import Callable, Sequence
from typing import Any

from .errors import ApiError
from .limits import Limits


class Guard:
    """Passes on requests that may be served, with their bodies read. `draining` says that the server shuts down."""

    def __init__(self, app: Any, limits: Limits, keys: Sequence[str], draining: Callable[[], bool]) -> None:
        self.app, self.limits, self.draining = app, limits, draining
        self.keys = [key.encode() for key in keys]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            headers = dict(scope["headers"])
            if scope["path"].startswith("/v1/"):
                self._check_key(headers.get(b"authorization", b""))
                if self.draining():
                    raise ApiError(503, "the server is shutting down; try again", code="shutting_down", retry_after=5)
            body = await self._body(headers, receive)
        except ApiError as error:
            await send_error(error, send)
            return
        except _Gone:
            return
        sent = False

        async def replay() -> Any:
            nonlocal sent
            if sent:
                return await receive()  # waits until the client goes away
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, replay, send)

    def _check_key(self, header: bytes) -> None:
        if not self.keys:
            return
        given = header.removeprefix(b"Bearer ").strip()
        # Every key is compared, so the time does not depend on which one is right.
        if not sum(hmac.compare_digest(given, key) for key in self.keys):
            message = "the API key is missing or wrong; send it as 'Authorization: Bearer KEY'"
            raise ApiError(401, message, code="invalid_api_key")

    async def _body(self, headers: dict[bytes, bytes], receive: Any) -> bytes:
        most, claimed = self.limits.body, headers.get(b"content-length", b"0")
        if claimed.isdigit() and int(claimed[:20]) > most:
            raise _too_large(f"{int(claimed[:20]):,}", most)
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _Gone
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        raise _too_large(f"over {most:,}", most)
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise ApiError(408, f"the body did not arrive within {self.limits.body_seconds:g} seconds") from None


class _Gone(Exception):
    """The client has closed the connection."""


def _too_large(found: str, allowed: int) -> ApiError:
    return ApiError(413, f"the body has {found} bytes; this server allows {allowed:,}", code="request_too_large")


async def send_error(error: ApiError, send: Any) -> None:
    """Send an error as the whole response."""
    body = json.dumps(error.body).encode()
    # The rest of a refused body was not read, so the connection cannot be used again.
    headers = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
    found = [(name.lower().encode(), value.encode()) for name, value in (headers | error.headers).items()]
    await send({"type": "http.response.start", "status": error.status, "headers": found})
    await send({"type": "http.response.body", "body": body})
