"""Writing: requests of chat and text completions become rows, which are decoded in batches.

A row listens to its own text while it is decoded: it ends the text at a stop sequence, hands finished sentences to a
stream, and ends if its client has gone.
"""

import math
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..generation.decoding import spelled
from ..generation.generator import Writer, Written
from ..generation.options import TEXT_SEED_STEP, DecodingOptions, decoding_options
from ..generation.requests import BATCH_TOKENS, Request
from ..generation.streaming import SentenceStreamer
from ..length.budget import Budget, at_most
from ..length.meter import Meter
from .errors import ApiError
from .limits import Limits
from .openai_shapes import ChatRequest, CompletionRequest

# Tokens per unit, and the sizes of texts that share a batch: a short text does not wait for a long one.
_TOKENS = {"tokens": 1.0, "words": 1.4, "words-cjk": 1.4}  # others: 0.25
_SIZES = (32, 128, 512, math.inf)
_GREEDY = 1e-3  # a lower temperature is greedy: logits divided by it overflow


@dataclass(frozen=True)
class WriteOptions:
    """What rows of one batch have in common."""

    candidates: int
    temperature: float | None  # None: greedy
    top_p: float
    size: float

    @property
    def decoding(self) -> DecodingOptions:
        sampling: dict[str, Any] = {"do_sample": self.temperature is not None}
        if self.temperature is not None:
            sampling |= {"temperature": self.temperature, "top_p": self.top_p}
        return decoding_options(self.candidates, 0, sampling)


@dataclass(frozen=True)
class Text:
    """A written text, as far as replies need it. `logprobs`: bytes of a token, its log-probability, where it begins."""

    text: str
    length: int
    unit: str
    budget: str
    fits: bool
    complete: bool
    tokens: int
    prompt_tokens: int
    logprobs: list[tuple[bytes, float, int]] | None = None


class Row:
    """One text of a request. It is the listener of its own decoding; see `generation.requests.Listener`.

    `release` receives the parts of a streamed text. Parts never change, and never contain a stop sequence.
    """

    def __init__(self, request: Request, meter: Meter, stops: Sequence[str], logprobs: bool) -> None:
        self.request, self.meter, self.stops, self.logprobs = request, meter, stops, logprobs
        self.release: Callable[[str], None] | None = None
        self._gone = False  # the text is no longer wanted
        self.streamer: SentenceStreamer | None = None
        self._stopped: tuple[str, list[int]] | None = None  # the text and the tokens before a stop sequence
        self._made = ""  # what the streamer has let go
        self._sent = 0  # how much of it was released

    @property
    def shown(self) -> int:
        return 0 if self.streamer is None else self.streamer.shown

    @property
    def closed(self) -> bool:
        return self._gone or self._stopped is not None

    def close(self) -> None:
        """End the text at the next step: its client has gone, or the server stops."""
        self._gone, self.release = True, None

    def restart(self) -> bool:
        """Forget what was written, to write it again; return False if the client has a part of it."""
        self._stopped, self._made = None, ""
        return self._sent == 0

    def put(self, ids: list[int], agreement: list[float]) -> None:
        if self.stops:
            text = spelled(self.meter, ids)[0]
            if (end := first_stop(text, self.stops)) is not None:
                self._stopped = text[:end], list(ids)
                return
        if self.streamer is not None:
            self.streamer.put(ids, agreement)

    def stream(self, part: str) -> None:
        """Release the part, except for an end that may be the beginning of a stop sequence, and space before it."""
        self._made += part
        safe = len(self._made[: len(self._made) - held_back(self._made, self.stops)].rstrip())
        if safe > self._sent and self.release is not None:
            self.release(self._made[self._sent : safe])
            self._sent = safe

    def finished(self, written: Written) -> tuple[Text, list[int]]:
        """Return the text up to its first stop sequence, and its tokens; release the rest of it."""
        text, ids, budget, complete = written.text, list(written.ids), self.request.budget, written.complete
        if self._stopped is not None:
            text, ids = self._stopped
        end = first_stop(text, self.stops)
        if self._stopped is not None or end is not None:
            text, complete = text[:end].rstrip(), True
            reach = [0, *spelled(self.meter, ids)[1]]
            ids = [token for token, start in zip(ids, reach, strict=False) if start < len(text)]
        length = len(ids) if budget.unit == "tokens" else self.meter.unit.measure(text)
        if self.release is not None and text[self._sent :]:
            self.release(text[self._sent :])
        fits = bool(text) and budget.fits(length)
        size = len(self.request.prompt)
        return Text(text, length, budget.unit, str(budget), fits, complete, len(ids), size), ids


class Writing:
    """Makes rows for a writer, and decodes them."""

    def __init__(self, writer: Writer, limits: Limits) -> None:
        self.writer, self.limits = writer, limits
        writer.batch_size = limits.batch

    def rows(self, asked: ChatRequest | CompletionRequest) -> list[Row]:
        """Return the rows of a request, `n` for each prompt; an `ApiError` says why they cannot be written."""
        prompts = 1 if isinstance(asked, ChatRequest) else len(asked.prompt)
        self.limits.check_count("n" if prompts == 1 else "prompt", prompts * asked.n, self.limits.texts)
        self.limits.check_count("candidates", asked.candidates, self.limits.candidates)
        requests = self._requests(asked)
        longest = max(len(request.prompt) for request in requests)
        if asked.candidates > 1 and asked.candidates * longest > BATCH_TOKENS:
            most = max(1, BATCH_TOKENS // longest)
            raise ApiError(400, f"candidates: a prompt of {longest:,} tokens allows {most}", param="candidates")
        seed = secrets.randbits(62) if asked.seed is None else asked.seed
        rows = []
        for place, request in enumerate(one for one in requests for _ in range(asked.n)):
            seeded = replace(request, seed=(seed + TEXT_SEED_STEP * place) % 2**62)
            rows.append(Row(seeded, self.writer.meter(request.budget.unit), asked.stop, asked.wants_logprobs))
        return rows

    def _requests(self, asked: ChatRequest | CompletionRequest) -> list[Request]:
        make, tokens = self.writer.requests, asked.token_limit
        most = min(tokens or self.limits.max_tokens, self.limits.max_tokens)
        budget = asked.budget()
        repairs = budget is not None  # a client that gives only max_tokens expects a text that ends there
        if budget is None:
            budget = at_most(min(tokens or self.limits.default_tokens, self.limits.max_tokens), "tokens")
        param, found = "messages" if isinstance(asked, ChatRequest) else "prompt", []
        chat = [message.plain() for message in asked.messages] if isinstance(asked, ChatRequest) else []
        texts = [message["content"] for message in chat] if isinstance(asked, ChatRequest) else asked.prompt
        for text in texts:
            self.limits.check_encoding(text, param)
        try:
            for text in texts[-1:] if chat else texts:
                if budget.of_source:
                    self.limits.check_text(text, param)
                known = budget.resolve(text, self.writer.tokenizer)
                self.limits.check_budget(known)
                if (least := make.fewest_tokens(known)) > most:
                    why = f"'{known}' takes {least} tokens or more, and max_tokens allows {most}"
                    raise ApiError(400, why, param="max_tokens" if tokens else "length", code="length_too_long")
                if chat:
                    found.append(make.chat(0, chat, known))
                else:
                    found.append(make.continuation(0, text, known))
        except (ValueError, TypeError) as error:
            message = str(error)
            code = "context_length_exceeded" if "window" in message else None
            param = "length" if "is impossible here" in message else param
            raise ApiError(400, message, param=param, code=code) from None
        return [replace(request, limit=min(request.limit, most), repairs=repairs) for request in found]

    def options(self, asked: ChatRequest | CompletionRequest, rows: list[Row]) -> WriteOptions:
        """Return what the rows share with others of their batch."""
        several = asked.n > 1 or asked.candidates > 1
        temperature = asked.temperature
        if temperature is None and (several or asked.top_p is not None):
            temperature = 0.8
        if not temperature or temperature < _GREEDY or asked.top_p == 0:
            if asked.candidates > 1:
                raise ApiError(400, "greedy candidates are all equal: give a temperature above 0", param="temperature")
            temperature = None
        top_p = 0.95 if asked.top_p is None else asked.top_p
        return WriteOptions(asked.candidates, temperature, top_p, max(_size(row.request.budget) for row in rows))

    def write(self, options: WriteOptions, rows: list[Row]) -> Iterator[tuple[int, Text]]:
        """Yield the place of each row and its text."""
        decoding, writer = options.decoding, self.writer
        requests = []
        for place, row in enumerate(rows):
            request = replace(row.request, place=place, listener=row)
            if row.release is not None and options.candidates == 1:
                row.streamer = writer.streamer(request, decoding, row.stream)
            requests.append(request)
        for batch in writer.requests.batches(requests, options.candidates, writer.batch_size):
            for place, written in writer.write_batch(batch, options.candidates, decoding).items():
                yield place, self._text(rows[place], written)

    def _text(self, row: Row, written: Written) -> Text:
        text, ids = row.finished(written)
        if not row.logprobs:
            return text
        make = self.writer.requests
        lengths = None if make.without_length(row.request) else make.length_inputs([row.request])
        found: Any = self.writer.engine.score([row.request.prompt], [ids], lengths).token[0] if ids else []
        starts = [0, *spelled(row.meter, ids)[1]]
        told = zip(ids, found, starts[: len(ids)], strict=True)
        return replace(text, logprobs=[(row.meter.pieces[token], float(p), start) for token, p, start in told])


def _size(budget: Budget) -> float:
    tokens = _TOKENS.get(budget.unit, 0.25) * budget.target
    return next(size for size in _SIZES if tokens <= size)


def first_stop(text: str, stops: Sequence[str]) -> int | None:
    """Return where the first stop sequence begins, if there is one."""
    return min((place for stop in stops if (place := text.find(stop)) >= 0), default=None)


def held_back(text: str, stops: Sequence[str]) -> int:
    """Return how many characters at the end of `text` may be the beginning of a stop sequence."""
    return max(
        (n for stop in stops for n in range(1, min(len(stop), len(text) + 1)) if text.endswith(stop[:n])), default=0
    )
