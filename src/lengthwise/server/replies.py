"""Replies of chat and text completions, whole or as the events of a stream."""

import json
import time
import uuid
from collections.abc import Sequence
from typing import Any

from .writing import Text


class Replies:
    """Makes the replies to one request."""

    def __init__(self, model: str, chat: bool, include_usage: bool = False) -> None:
        self.model, self.chat = model, chat
        self._no_usage: dict[str, Any] = {"usage": None} if include_usage else {}  # of chunks before the last
        self.id = f"{'chatcmpl' if chat else 'cmpl'}-{uuid.uuid4().hex}"
        self.created = int(time.time())

    def whole(self, texts: Sequence[Text], n: int) -> dict[str, Any]:
        """Return the reply with all texts; `n` of them answer each prompt."""
        kind = "chat.completion" if self.chat else "text_completion"
        choices = [self._choice(place, text) for place, text in enumerate(texts)]
        complete = all(text.complete for text in texts)
        return {**self._head(kind), "choices": choices, "usage": usage(texts, n), "complete": complete}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    def _choice(self, place: int, text: Text) -> dict[str, Any]:
        said: dict[str, Any] = {"text": text.text}
        if self.chat:
            said = {"message": {"role": "assistant", "content": text.text, "refusal": None}}
        return {"index": place, **said, **self._end(text)}

    def _end(self, text: Text) -> dict[str, Any]:
        """Return the fields of a choice that are known when its text is finished."""
        return {
            "logprobs": None if text.logprobs is None else (_chat_logprobs if self.chat else _logprobs)(text.logprobs),
            "finish_reason": "stop" if text.complete else "length",
            "complete": text.complete,
            "length": _length([text]),
        }

    # ---- events of a stream

    def first(self, place: int) -> str:
        """Return the event that begins a text of a chat."""
        return self._event({"index": place, "delta": {"role": "assistant", "content": ""}, "finish_reason": None})

    def part(self, place: int, part: str) -> str:
        """Return the event with a part of a text."""
        said: dict[str, Any] = {"delta": {"content": part}} if self.chat else {"text": part}
        return self._event({"index": place, **said, "logprobs": None, "finish_reason": None})

    def last(self, place: int, text: Text) -> str:
        """Return the event that ends a text."""
        said: dict[str, Any] = {"delta": {}} if self.chat else {"text": ""}
        return self._event({"index": place, **said, **self._end(text)})

    def usage(self, texts: Sequence[Text], n: int) -> str:
        """Return the event with the usage of all texts."""
        return event({**self._head(self._chunk), "choices": [], "usage": usage(texts, n)})

    @property
    def _chunk(self) -> str:
        return "chat.completion.chunk" if self.chat else "text_completion"

    def _event(self, choice: dict[str, Any]) -> str:
        return event({**self._head(self._chunk), "choices": [choice], **self._no_usage})


def event(value: Any) -> str:
    """Return a value as a server-sent event."""
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


def usage(texts: Sequence[Text], n: int) -> dict[str, Any]:
    """Return tokens and length of all texts together; a prompt counts once for its `n` texts."""
    prompt, completion = sum(text.prompt_tokens for text in texts[::n]), sum(text.tokens for text in texts)
    total = prompt + completion
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}
    return {**counts, "length": _length(texts)}


def _length(texts: Sequence[Text]) -> dict[str, Any]:
    """Return the length of the texts together; the budget, which is that of one text, only if there is one."""
    first, total = texts[0], sum(text.length for text in texts)
    budget = {"budget": first.budget} if len(texts) == 1 else {}
    return {"length": total, "unit": first.unit, **budget, "fits": all(text.fits for text in texts)}


def _chat_logprobs(found: Sequence[tuple[bytes, float, int]]) -> dict[str, Any]:
    rows = [
        {"token": _spelled(piece), "logprob": value, "bytes": list(piece), "top_logprobs": []}
        for piece, value, _ in found
    ]
    return {"content": rows, "refusal": None}


def _logprobs(found: Sequence[tuple[bytes, float, int]]) -> dict[str, Any]:
    tokens, values = [_spelled(piece) for piece, _, _ in found], [value for _, value, _ in found]
    offsets = [start for _, _, start in found]
    return {"tokens": tokens, "token_logprobs": values, "top_logprobs": None, "text_offset": offsets}


def _spelled(piece: bytes) -> str:
    """Return the token as text; the OpenAI API writes part of a character as bytes:\\xf0."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in piece)
