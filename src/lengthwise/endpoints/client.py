"""Client: one call of an OpenAI-compatible endpoint, from messages to replies.

Every fault becomes an `EndpointError` that says whether another call can succeed. A call is one HTTP request; the
caller counts calls and repeats them. Knows no lengths.
"""

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ..errors import how_to_install
from .forced import forced_ends

DEFAULT_URL = "https://api.openai.com/v1"
# Environment variables, the first that is set. The second is for the default URL only: it is a key of OpenAI.
KEYS = ("LENGTHWISE_API_KEY", "OPENAI_API_KEY")
MAX_BYTES = 8_000_000  # of a response: an endpoint may ignore max_tokens
BACKOFF = 1.0  # seconds before a failed call is repeated, if the endpoint names no time
MAX_SHOWN = 200  # characters of an endpoint's message in an error
_NAME = re.compile(r"openai:(?P<model>[^\s@]+|\S+(?=@http))(?:@(?P<url>https?://\S+))?")
_THINKING = re.compile(r"\s*<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
# Parameters that some endpoints refuse, and the name that they may have instead. Without them a call still works.
_OPTIONAL = {"max_tokens": "max_completion_tokens", "max_completion_tokens": None}
_OPTIONAL |= dict.fromkeys(("n", "seed", "temperature", "top_p"))


class EndpointError(RuntimeError):
    """A call that failed. `wait`: seconds after which it may succeed, or None. `fatal`: all other calls will fail.

    `changed`: the next call differs from this one, because it leaves out or renames a parameter that was refused.
    `down`: it did not fail because of its text, but would fail now with any, such as without a connection.
    """

    def __init__(
        self,
        message: str,
        *,
        wait: float | None = None,
        fatal: bool = False,
        changed: bool = False,
        down: bool = False,
    ) -> None:
        super().__init__(message)
        self.wait, self.fatal, self.changed, self.down = wait, fatal, changed, down or fatal


@dataclass(frozen=True)
class Reply:
    """A text that the model wrote. `ended`: the model ended it; it was not cut.

    `forced`: offsets, in ranges, where an end of the text would not be the model's own (`forced.py`). `space`: white
    space before the text.
    """

    text: str
    ended: bool
    forced: tuple[range, ...] = ()
    space: str = ""


@dataclass(frozen=True)
class Answer:
    """The replies of one call, and the tokens that the endpoint counted for them (0 if it counts none)."""

    replies: list[Reply]
    tokens: int


def is_endpoint(name: str) -> bool:
    """Return whether `name` has the form of a model behind an API, openai:NAME@URL."""
    return name.startswith("openai:")


class Endpoint:
    """The model `model` at `url`. It may be used by several threads. The key is in no attribute that is printed."""

    def __init__(self, model: str, url: str = DEFAULT_URL, *, key: str | None = None, timeout: float = 120.0) -> None:
        try:
            import httpx2
        except ImportError:
            raise ImportError(
                f"models behind an API need httpx2, which is not installed; {how_to_install('api')}"
            ) from None
        self.model, self.url, self.timeout = model, _base(url), timeout
        self.renamed: dict[str, str | None] = {}  # parameters that this endpoint refused
        self._key = (_key_for(self.url) if key is None else key).strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise ValueError(f"the API key has characters that no header can carry; check {' or '.join(KEYS)}")
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        self._errors = httpx2.TimeoutException, httpx2.HTTPError
        try:
            if httpx2.URL(self.url).userinfo:
                raise ValueError(f"the URL must not contain a password; put the key into {KEYS[0]}")
            # Reading the system's certificates takes a third of a second; plain http needs none.
            secure = not self.url.startswith("http://")
            self._client = httpx2.Client(headers=headers, timeout=timeout, verify=secure)
        except httpx2.InvalidURL as error:
            raise ValueError(f"cannot read {url!r} as a URL: {error}") from None

    @classmethod
    def named(cls, name: str, **options: Any) -> "Endpoint":
        """Return the endpoint called openai:NAME@URL; the default URL is $OPENAI_BASE_URL, or that of OpenAI."""
        found = _NAME.fullmatch(name)
        if found is None:
            example = "openai:llama3.2@http://localhost:11434/v1"
            raise ValueError(f"a model behind an API is given as openai:NAME@URL, such as {example}; got {name!r}")
        return cls(found["model"], found["url"] or os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL, **options)

    def close(self) -> None:
        self._client.close()

    def ask(self, messages: Sequence[Mapping[str, str]], **options: Any) -> Answer:
        """Return the replies to `messages`, from one HTTP request; `options` that are None are left out."""
        body: dict[str, Any] = {"model": self.model, "messages": list(messages)}
        for name, value in options.items():
            while name in self.renamed:
                name = self.renamed[name] or ""
            if name and value is not None:
                body[name] = value
        timed_out, failed = self._errors
        try:
            status, headers, text = self._post(body)
        except timed_out as error:
            what = f"{self.url} did not answer within {self.timeout:g} s"
            raise EndpointError(what, wait=BACKOFF, down=_not_connected(error)) from None
        except failed as error:
            what = f"cannot reach {self.url}: {self._clean(str(error))}"
            raise EndpointError(what, wait=BACKOFF, down=_not_connected(error)) from None
        if status != 200:
            raise self._refusal(status, headers, text, body)
        return self._answer(text, body)

    def _post(self, body: dict[str, Any]) -> tuple[int, Mapping[str, str], str]:
        began, data = time.monotonic(), bytearray()
        with self._client.stream("POST", f"{self.url}/chat/completions", json=body) as response:
            for part in response.iter_bytes():
                data += part
                if len(data) > MAX_BYTES:
                    raise EndpointError(f"{self.url} sent more than {MAX_BYTES:,} bytes for one call")
                if time.monotonic() - began > self.timeout:  # httpx limits the time between two parts only
                    raise EndpointError(f"{self.url} did not finish within {self.timeout:g} s", wait=BACKOFF)
            return response.status_code, response.headers, data.decode("utf-8", "replace")

    # ---- errors

    def _clean(self, message: str) -> str:
        """Return an endpoint's message in one short line, without the key, which some endpoints repeat."""
        line = " ".join((message.replace(self._key, "***") if self._key else message).split())
        return line if len(line) <= MAX_SHOWN else line[: MAX_SHOWN - 1] + "…"

    def _refusal(self, status: int, headers: Mapping[str, str], text: str, body: dict[str, Any]) -> EndpointError:
        said = self._clean(_message(text))
        what = f"{self.url} answered {status}" + (f": {said}" if said else "")
        if status in (401, 403):
            have = "the key was refused" if self._key else f"no key is set for this URL; put it into {KEYS[0]}"
            return EndpointError(f"{what} ({have})", fatal=True)
        if status == 402:  # no money
            return EndpointError(what, fatal=True)
        if status in (404, 405) or 300 <= status < 400:
            base = self.url if self.url.endswith("/v1") else f"{self.url}/v1"
            return EndpointError(f"{what} (is there a model {self.model!r}, and is the URL {base}?)", fatal=True)
        if status in (400, 422):
            refused = _refused(text, body)
            if refused is not None:  # the next call is made without it
                self.renamed[refused] = _OPTIONAL[refused]
                return EndpointError(what, wait=0.0, changed=True)
        if status in (408, 409, 425, 429) or status >= 500:
            wait = _retry_after(headers)
            asks = f"; it asks to wait {wait:g} s" if wait > BACKOFF else ""
            return EndpointError(what + asks, wait=wait, down=status == 429)
        return EndpointError(what)

    # ---- answers

    def _answer(self, text: str, body: dict[str, Any]) -> Answer:
        try:
            found = _merged(text) if text.lstrip().startswith(("data:", ":", "event:")) else json.loads(text)
            if found.get("error") and not found.get("choices"):
                raise EndpointError(f"{self.url} answered with an error: {self._clean(_message(text))}", wait=BACKOFF)
            answer = read_answer(found, body.get("max_tokens") or body.get("max_completion_tokens"))
        except (ValueError, LookupError, TypeError, AttributeError):
            seen = self._clean(text[:80])
            message = (
                f"{self.url} sent no answer of the OpenAI API, but {seen!r}" if seen else f"{self.url} sent nothing"
            )
            raise EndpointError(message, wait=BACKOFF) from None
        if not answer.replies:
            raise EndpointError(f"{self.url} sent an answer without choices", wait=BACKOFF)
        return answer


def read_answer(found: Mapping[str, Any], max_tokens: int | None = None) -> Answer:
    """Return the replies in an answer of the OpenAI API. `max_tokens`: what was asked for."""
    tokens = int((found.get("usage") or {}).get("completion_tokens") or 0)
    # Some endpoints always say "stop".
    used_up = max_tokens is not None and len(found["choices"]) == 1 and tokens >= max_tokens
    replies = []
    for choice in found["choices"]:
        content = _content(choice)
        text, space = content.strip(), content[: len(content) - len(content.lstrip())]
        forced, end_forced = forced_ends(choice, text)
        ended = choice.get("finish_reason") in ("stop", None) and not used_up and not end_forced
        replies.append(Reply(text, ended, forced, space))
    return Answer(replies, tokens)


def _base(url: str) -> str:
    return url.rstrip("/").removesuffix("/chat/completions")


def _key_for(url: str) -> str:
    """Return the key that the environment has for `url`."""
    own = url in (DEFAULT_URL, _base(os.environ.get("OPENAI_BASE_URL", "")))
    return next(filter(None, map(os.environ.get, KEYS if own else KEYS[:1])), "")


def _not_connected(error: Exception) -> bool:
    """Return whether a call failed before the endpoint had its text."""
    import httpx2

    return isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)


def _refused(text: str, body: Mapping[str, Any]) -> str | None:
    """Return which parameter of `body` an error refuses: its `param`, or the one that its message names."""
    with suppress(ValueError, LookupError, TypeError):
        if (param := json.loads(text)["error"]["param"]) is not None:
            return param if param in _OPTIONAL and param in body else None
    said = _message(text)
    for name in _OPTIONAL:
        word = rf"\b{name}\b" if len(name) > 1 else rf"[\"'`]{name}[\"'`]|: {name}\W*$"  # one letter: only as a name
        if name in body and re.search(word, said):
            return name
    return None


def _content(choice: dict[str, Any]) -> str:
    """Return the text of a choice without reasoning, which some endpoints send in front of it; with its white space."""
    content = choice["message"].get("content") or ""
    if isinstance(content, list):
        content = "".join(part.get("text") or "" for part in content)
    return _THINKING.sub("", content, count=1) if _THINKING.match(content) else str(content)


def _merged(stream: str) -> dict[str, Any]:
    """Return the answer that a stream of events makes up. Some proxies stream without being asked to."""
    texts: dict[int, str] = {}
    reasons: dict[int, Any] = {}
    whole: dict[str, Any] = {}
    for line in stream.splitlines():
        if not line.startswith("data:") or (data := line.removeprefix("data:").strip()) == "[DONE]":
            continue
        event = json.loads(data)
        whole |= {name: event[name] for name in ("usage", "error") if event.get(name)}
        for choice in event.get("choices") or []:
            place = choice.get("index", 0)
            texts[place] = texts.get(place, "") + ((choice.get("delta") or {}).get("content") or "")
            reasons[place] = choice.get("finish_reason") or reasons.get(place)
    # A stream without a reason has been interrupted.
    choices = [
        {"message": {"content": text}, "finish_reason": reasons[place] or "length"} for place, text in texts.items()
    ]
    return {**whole, "choices": choices}


def _message(text: str) -> str:
    """Return the message of an error's body: that of the OpenAI API, or the body itself."""
    try:
        found = json.loads(text)
        error = found.get("error", found) if isinstance(found, dict) else found
        return str(error.get("message") or error) if isinstance(error, dict) else str(error)
    except ValueError:
        return re.sub(r"<[^>]*>", " ", text)


def _retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds of the header Retry-After, a number or a date; `BACKOFF` at least, and without one."""
    given = headers.get("retry-after", "")
    from email.utils import parsedate_to_datetime

    try:
        return max(BACKOFF, float(given))
    except ValueError:
        pass
    try:
        return max(BACKOFF, (parsedate_to_datetime(given) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):  # a date without a time zone cannot be subtracted
        return BACKOFF
