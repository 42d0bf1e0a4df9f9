"""A model for lm-evaluation-harness: benchmarks with and without length inputs (Butcher et al. 2024).

  python -m lengthwise.evaluation.lm_eval run --model lengthwise --model_args pretrained=FOLDER,countdown=true --tasks …

With `countdown=false` this is the harness's own Hugging Face model. With `countdown=true` the attached control receives
the length of each answer that is scored, in the control's unit. Generated answers (`generate_until`) have no known
length, so they are generated without length inputs.
"""

from collections.abc import Sequence
from typing import Any

from lm_eval.api.registry import register_model
from lm_eval.models.huggingface import HFLM

from ..engines.base import LengthInputs
from ..engines.transformers import TransformersEngine
from ..length.units import measure
from ..models.checkpoint import load_model
from ..models.registry import resolve
from ..scoring.log_likelihood import log_probs

Request = tuple[tuple[str, str] | None, list[int], list[int]]  # (context, answer), and the tokens of each


@register_model("lengthwise")  # the harness looks models up by name
class LengthwiseLM(HFLM):  # type: ignore[misc]  # the harness is untyped
    """`pretrained` is a name or folder that Lengthwise loads, or a model with its `tokenizer`."""

    def __init__(
        self, pretrained: Any, tokenizer: Any = None, countdown: bool = False, device: Any = None, **options: Any
    ) -> None:
        if isinstance(pretrained, str):
            pretrained, tokenizer = load_model(resolve(pretrained), device=device)
        super().__init__(pretrained=pretrained, tokenizer=tokenizer, **options)
        self.countdown = countdown
        if countdown:
            self.engine = TransformersEngine(self.model, self.tokenizer)
            if not self.engine.units:
                raise ValueError("countdown=true needs a control that receives the length; this model has none")

    def _loglikelihood_tokens(
        self, requests: Sequence[Request], disable_tqdm: bool = False, override_bs: int | None = None
    ) -> list[tuple[float, bool]]:
        """Return the log-probability of each answer, and whether greedy search would generate it."""
        if not self.countdown:
            return super()._loglikelihood_tokens(requests, disable_tqdm=disable_tqdm, override_bs=override_bs)
        order = sorted(range(len(requests)), key=lambda place: -sum(map(len, requests[place][1:])))
        size = override_bs or (self.batch_size if isinstance(self.batch_size, int) else 1)
        found = [(0.0, True)] * len(requests)
        for start in range(0, len(order), size):
            places = order[start : start + size]
            answers, n = [requests[place][2] for place in places], len(places)
            contexts = [self._fitting(*requests[place][1:]) for place in places]
            lengths = LengthInputs(list(map(self._length, answers)), [0] * n, [False] * n, [0] * n)
            for row, tokens in log_probs(self.engine, contexts, answers, lengths):
                found[places[row]] = float(tokens.token.sum()), bool((tokens.token == tokens.best).all())
            for place in places:
                if requests[place][0] is not None:
                    self.cache_hook.add_partial("loglikelihood", requests[place][0], found[place])
        return found

    def _fitting(self, context: list[int], answer: list[int]) -> list[int]:
        """Return the end of the context that fits into the window before the answer."""
        if self.backend == "seq2seq":
            return context[-self.max_length :]
        if len(answer) > self.max_length:
            raise ValueError(f"an answer has {len(answer)} tokens, and the model's window only {self.max_length}")
        return context[-(self.max_length + 1 - len(answer)) :]  # the answer's last token is not an input

    def _length(self, answer: list[int]) -> int:
        unit = self.engine.units[0]
        text = self.tokenizer.decode(answer, skip_special_tokens=True)
        return max(1, len(answer) if unit == "tokens" else measure(text, unit))


if __name__ == "__main__":
    from lm_eval.__main__ import cli_evaluate

    cli_evaluate()
