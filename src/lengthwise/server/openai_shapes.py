"""Requests and replies in the form of the OpenAI API, with `length`, `max_length`, `candidates` and `complete` added.

This file knows nothing of models. Fields that the server has no use for are ignored if they do not change the text
(`IGNORED`), and refused if they do (`NEUTRAL` has the values that ask for nothing).
"""

import difflib
import json
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat, model_validator

from ..length.budget import Budget
from ..shortening.forms import Form
from .errors import ApiError

IGNORED = frozenset(
    (
        "user",
        "metadata",
        "store",
        "service_tier",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "parallel_tool_calls",
    )
)
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "logit_bias": ({},),
    "top_logprobs": (0,),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "best_of": (1,),
    "echo": (False,),
    "suffix": ("",),
    "audio": (),
    "prediction": (),
    "reasoning_effort": ("none",),
    "verbosity": (),
    "web_search_options": (),
    "moderation": (),
}
_IN_MESSAGES = frozenset(("name", "refusal", "annotations"))
_TOOLS = frozenset(("tool_calls", "function_call", "tool_call_id"))  # of messages
_Several = BeforeValidator(lambda value: [value] if isinstance(value, str) else value)  # one text, or a list


class _Body(BaseModel):
    """A body with checked fields; null is the same as absent."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, body: Any) -> Any:
        if not isinstance(body, dict):
            return body
        given = {name: value for name, value in body.items() if value is not None and name not in IGNORED}
        for name in [name for name in given if name in NEUTRAL and name not in cls.model_fields]:
            if given.pop(name) not in NEUTRAL[name]:
                raise ApiError(400, f"{name} is not supported by this server; leave it out", param=name)
        for name in given:
            if name not in cls.model_fields:
                near = difflib.get_close_matches(str(name)[:40], cls.model_fields, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                message = f"Unrecognized request argument supplied: {str(name)[:40]}{hint}"
                raise ApiError(400, message, param=str(name)[:40], code="unknown_parameter")
        return given


class Length(_Body):
    """A budget as an object; see `Budget`."""

    low: int | FiniteFloat = 0
    high: int | FiniteFloat | None = None
    target: int | FiniteFloat | None = None
    unit: str = Field("chars", max_length=40)
    of_source: bool = False


class _WithLength(_Body):
    """A body with a budget in `length` or `max_length`."""

    model: str = Field("", max_length=200)
    length: Annotated[str, Field(max_length=200)] | Length | None = None
    max_length: Annotated[str, Field(max_length=200)] | None = None

    def budget(self) -> Budget | None:
        """Return the budget that the body asks for, if it asks for one."""
        if self.length is not None and self.max_length is not None:
            raise ApiError(400, "length and max_length exclude each other; give one of them", param="max_length")
        param = "length" if self.max_length is None else "max_length"
        try:
            if self.max_length is not None:
                bare = self.max_length.strip()[:1].isdigit()
                budget = Budget.parse(f"at most {self.max_length}" if bare else self.max_length)
                if budget.high is None:
                    raise ValueError(f"'{budget}' has no maximum; give it as length")
                return budget
            if isinstance(self.length, Length):
                return Budget(**self.length.model_dump())
            return None if self.length is None else Budget.parse(self.length)
        except (ValueError, OverflowError) as error:
            raise ApiError(400, f"{param}: {error}", param=param, code="invalid_length") from None


class StreamOptions(_Body):
    include_usage: bool = False
    include_obfuscation: bool = False  # ignored


class _Generation(_WithLength):
    """What chat and text completions have in common."""

    max_tokens: int | None = Field(None, ge=1)
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, ge=0, le=1)
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)
    n: int = Field(1, ge=1)
    candidates: int = Field(1, ge=1)
    stop: Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=4), _Several] = []
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()

    @property
    def token_limit(self) -> int | None:
        return self.max_tokens

    @property
    def wants_logprobs(self) -> bool:
        return False


class _Part(_Body):
    type: Literal["text"]
    text: str

    @model_validator(mode="before")
    @classmethod
    def _is_text(cls, body: Any) -> Any:
        if isinstance(body, dict) and isinstance(kind := body.get("type"), str) and kind != "text":
            message = f"messages: a part of type {kind[:40]!r} is not supported; this server reads texts only"
            raise ApiError(400, message, param="messages")
        return body


class Message(_Body):
    """A message of a chat."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Part] = ""

    @model_validator(mode="before")
    @classmethod
    def _without_notes(cls, body: Any) -> Any:
        if not isinstance(body, dict):
            return body
        if body.get("role") in ("tool", "function") or any(body.get(name) for name in _TOOLS):
            message = "messages: calls of tools and their results are not supported by this server"
            raise ApiError(400, message, param="messages")
        return {name: value for name, value in body.items() if name not in _IN_MESSAGES | _TOOLS}

    def plain(self) -> dict[str, str]:
        """Return the message as chat templates take it."""
        text = self.content if isinstance(self.content, str) else "\n".join(part.text for part in self.content)
        return {"role": "system" if self.role == "developer" else self.role, "content": text}


class ChatRequest(_Generation):
    """The body of /v1/chat/completions."""

    messages: Annotated[list[Message], Field(min_length=1)]
    max_completion_tokens: int | None = Field(None, ge=1)
    logprobs: bool = False

    @property
    def token_limit(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens

    @property
    def wants_logprobs(self) -> bool:
        return self.logprobs


class CompletionRequest(_Generation):
    """The body of /v1/completions."""

    prompt: Annotated[list[str], Field(min_length=1), _Several]
    logprobs: Annotated[int, Field(ge=0, le=0)] | None = None

    @property
    def wants_logprobs(self) -> bool:
        return self.logprobs is not None


class _Texts(_WithLength):
    text: Annotated[list[str], Field(min_length=1), _Several]


class TranslateRequest(_Texts):
    """The body of /v1/translate. `from` is a keyword of Python, so the field is `from_`."""

    to: str = Field(max_length=40)
    from_: str = Field("en", max_length=40)

    @model_validator(mode="before")
    @classmethod
    def _from(cls, body: Any) -> Any:
        return {"from_" if name == "from" else name: v for name, v in body.items()} if isinstance(body, dict) else body


class ShortenRequest(_Texts):
    """The body of /v1/shorten."""

    form: Form = "text"
    faithful: bool = False
    candidates: int = Field(4, ge=1)

    @model_validator(mode="after")
    def _has_length(self) -> Self:
        if self.length is None and self.max_length is None:
            raise ApiError(400, "length is missing; give for example 'at most 80 chars'", param="length")
        return self


class MeasureRequest(_WithLength):
    """The body of /v1/measure."""

    text: str
    units: list[Annotated[str, Field(max_length=40)]] = Field([], max_length=20)


def validation_error(errors: list[Any]) -> ApiError:
    """Return the first of pydantic's errors as an error of the API."""
    first = errors[0]
    place = [str(part) for part in first["loc"] if part != "body"]
    if first["type"] == "json_invalid":
        return ApiError(400, f"the body is not valid JSON: {first.get('ctx', {}).get('error', 'cannot be read')}")
    if not place:
        return ApiError(400, "the body must be a JSON object; send Content-Type: application/json")
    param = place[0].rstrip("_")
    if first["type"] == "missing":
        return ApiError(400, f"{'.'.join(place)} is missing", param=param, code="missing_required_parameter")
    if param in ("length", "max_length"):
        example = {"low": 40, "high": 60, "unit": "words"}
        forms = f"a text such as 'at most 280 chars', or an object such as {json.dumps(example)}"
        forms = forms if param == "length" else "a text such as '280 chars'"
        return ApiError(400, f"{param} is {forms}", param=param, code="invalid_length")
    if param == "logprobs":
        message = "logprobs: true in a chat, 0 in a completion; alternatives of a token are not available"
        return ApiError(400, message, param=param)
    return ApiError(400, f"{'.'.join(place)}: {first['msg']}", param=param, code="invalid_value")
