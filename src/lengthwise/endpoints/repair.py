"""`repair`: ask a server again for the last stretch of a reply that does not fit or is not complete.

The requests go through the caller's own client, that of the openai library: its keys, retries and errors stay as they
are. The search begins with the reply; it is that of `continuing.py` for vLLM, and of `fitting.py` for other servers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ..generation.options import TEXT_SEED_STEP
from ..length.budget import Budget
from .calls import Messages
from .client import Reply, read_answer
from .continuing import Continuing
from .fitting import Fitting
from .writer import EndpointText, check_row, text_record

MAX_CALLS = 4


def repair(
    client: Any,
    messages: str | Sequence[Mapping[str, str]],
    reply: Any,
    length: str | Budget,
    *,
    model: str | None = None,
    vllm: bool = False,
    max_calls: int = MAX_CALLS,
    **options: Any,
) -> EndpointText:
    """Return a text that fits and is complete, from a reply that may be neither. The best text found is returned.

    `client`: an `openai.OpenAI`, whose errors are raised. `messages`: those of the request, or the prompt alone.
    `reply`: what `client.chat.completions.create` returned; of several choices the best is taken. If it fits and is
    complete, no call is made. `model`: its name, if the reply does not have it. `vllm`: the server is vLLM with
    Lengthwise, so new endings have the hard budget as well. If the request had `logprobs=True, top_logprobs=2`, forced
    endings are found and replaced. `max_calls`: for the last stretch.
    `options` go to every call (`temperature`, `seed`, ...).
    """
    asked: Messages = (
        [{"role": "user", "content": messages}] if isinstance(messages, str) else list(map(dict, messages))
    )
    if not asked or asked[-1].get("role") != "user":
        raise ValueError("the last of `messages` must be the user's, the one that the reply answers")
    budget = check_row(asked[-1]["content"], length)
    received = _plain(reply)
    if not (model := model or received.get("model")):
        raise ValueError("the reply does not name its model; give `model`")
    calls = _Calls(client, model, asked[:-1], budget if vllm else None, options)
    fitting = (Continuing if vllm else Fitting)(asked[-1]["content"], budget, None, calls.ask)
    for one in read_answer(received).replies:
        fitting.add(one)
    fitting.run(lambda: calls.made < max_calls)
    return text_record(fitting, model, calls.made, calls.tokens)


def _plain(reply: Any) -> dict[str, Any]:
    """Return a reply of the openai library as plain values."""
    if not isinstance(reply, Mapping) and not hasattr(reply, "model_dump"):
        raise TypeError(f"`reply` is what client.chat.completions.create returned; got {type(reply).__name__}")
    return dict(reply) if isinstance(reply, Mapping) else reply.model_dump()


class _Calls:
    """The calls for one text. `budget`: that of a vLLM server, which counts the kept beginning as part of the text."""

    def __init__(
        self, client: Any, model: str, before: Messages, budget: Budget | None, options: dict[str, Any]
    ) -> None:
        self.client, self.model, self.before, self.budget, self.options = client, model, before, budget, options
        self.made = self.tokens = 0

    def ask(self, messages: Messages, n: int, max_tokens: int | None) -> list[Reply]:
        """Return the replies to `messages`, which continue the conversation."""
        options: dict[str, Any] = {"n": 1 if self.options.get("temperature") == 0 else n} | self.options
        if not {"max_tokens", "max_completion_tokens"} & options.keys() and max_tokens is not None:
            options["max_tokens"] = max_tokens
        if options.get("seed") is not None:
            options["seed"] += TEXT_SEED_STEP * self.made  # the same seed would give the same reply again
        if self.budget is not None:
            extra: dict[str, Any] = {"vllm_xargs": {"length": str(self.budget)}}
            if messages[-1]["role"] == "assistant":
                extra["vllm_xargs"]["length_prefix"] = messages[-1]["content"]
                extra |= {"add_generation_prompt": False, "continue_final_message": True}
            options |= {"logprobs": True, "top_logprobs": 2, "extra_body": (options.get("extra_body") or {}) | extra}
        self.made += 1
        reply = self.client.chat.completions.create(model=self.model, messages=[*self.before, *messages], **options)
        answer = read_answer(_plain(reply), options.get("max_tokens") or options.get("max_completion_tokens"))
        self.tokens += answer.tokens
        return answer.replies
