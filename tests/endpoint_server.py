"""A small OpenAI-compatible server in this process, for tests: a function answers each request."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-secret-0123456789"


class Raw:
    """A response as it goes over the wire: a status, a body, headers."""

    def __init__(self, status: int, body: bytes | str | dict[str, Any] = b"", **headers: str) -> None:
        data = json.dumps(body) if isinstance(body, dict) else body
        self.status, self.headers = status, headers
        self.body = data.encode() if isinstance(data, str) else data


def chat(*texts: str, reason: str | None = "stop", tokens: int = 7) -> Raw:
    """Return a well-formed answer with these texts."""
    choices = [
        {"index": n, "message": {"role": "assistant", "content": text}, "finish_reason": reason}
        for n, text in enumerate(texts)
    ]
    return Raw(200, {"object": "chat.completion", "choices": choices, "usage": {"completion_tokens": tokens}})


class Server:
    """`requests` has the bodies, in the order of arrival; `url` is the base URL of the API."""

    def __init__(self, url: str) -> None:
        self.url, self.requests, self.headers = url, [], []

    @property
    def name(self) -> str:
        return f"openai:toy@{self.url}"


@contextmanager
def serving(answer: Callable[[dict[str, Any], int], Raw]) -> Iterator[Server]:
    """Serve on a free port of this machine; `answer` receives the body of a request and its number."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                number = len(server.requests)
                server.requests.append(body)
                server.headers.append(dict(self.headers))
            if self.path != "/v1/chat/completions":
                made = Raw(404, b"<html><h1>Not Found</h1></html>")
            else:
                made = answer(body, number)
            self.send_response(made.status)
            for name, value in made.headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(made.body)))
            self.end_headers()
            self.wfile.write(made.body)

        def log_message(self, *_: Any) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:  # a client that has given up
            pass

    http = Quiet(("127.0.0.1", 0), Handler)
    server = Server(f"http://127.0.0.1:{http.server_port}/v1")
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
