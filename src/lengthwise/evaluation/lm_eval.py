"""A model for lm-evaluation-harness: benchmarks with and without the countdown (Butcher et al. 2024).

    python -m lengthwise.lm_eval run --model lengthwise --model_args pretrained=FOLDER,countdown=true --tasks ...

Without the countdown it is the harness's own Hugging Face model on the plain model inside. With it, each answer that is
scored is told how long it is, in the unit of the attached control. How a task asks and counts is the harness's to know.
Texts that tasks let the model write (`generate_until`) have no known length, and are written without the countdown.
"""

from collections.abc import Sequence
from typing import Any

import torch
from lm_eval.api.registry import register_model
from lm_eval.models.huggingface import HFLM
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..controls.attach import controls_of, units_of
from ..length.units import measure
from ..models.checkpoint import load_model
from ..models.registry import resolve

Request = tuple[tuple[str, str] | None, list[int], list[int]]  # (context, answer), and the tokens of each


@register_model("lengthwise")  # the harness looks models up by name, and this is its way of giving them one
class LengthwiseLM(HFLM):  # type: ignore[misc]  # the harness is untyped
    """`pretrained` is a name or folder that Lengthwise loads, or a model with its `tokenizer`."""

    def __init__(
        self, pretrained: Any, tokenizer: Any = None, countdown: bool = False, device: Any = None, **options: Any
    ) -> None:
        if isinstance(pretrained, str):
            pretrained, tokenizer = load_model(resolve(pretrained), device=device)
        super().__init__(pretrained=pretrained, tokenizer=tokenizer, **options)
        self.countdown = countdown
        self.unit = next(iter(units_of(controls_of(pretrained))), None)
        if countdown and self.unit is None:
            raise ValueError("countdown=true needs a model with a control that counts; this one has none attached")

    def _loglikelihood_tokens(
        self, requests: Sequence[Request], disable_tqdm: bool = False, override_bs: int | None = None
    ) -> list[tuple[float, bool]]:
        if not self.countdown:
            return super()._loglikelihood_tokens(requests, disable_tqdm=disable_tqdm, override_bs=override_bs)
        order = sorted(range(len(requests)), key=lambda place: -sum(map(len, requests[place][1:])))
        size = override_bs or (self.batch_size if isinstance(self.batch_size, int) else 1)
        found: dict[int, tuple[float, bool]] = {}
        for start in range(0, len(order), size):
            places = order[start : start + size]
            for place, answer in zip(places, self._score([requests[place] for place in places]), strict=True):
                found[place] = answer
                if requests[place][0] is not None:
                    self.cache_hook.add_partial("loglikelihood", requests[place][0], answer)
        return [found[place] for place in range(len(requests))]

    @torch.inference_mode()
    def _score(self, batch: Sequence[Request]) -> list[tuple[float, bool]]:
        """For each answer, its log-probability and whether greedy search would write it."""
        lengths = torch.tensor([self._length(answer) for _, _, answer in batch], device=self.device)
        inputs, starts = self._decoder_pair(batch) if self.backend == "seq2seq" else self._one_text(batch)
        logits = (
            self.model(**inputs, decoder_length=lengths).logits.float().log_softmax(-1)
        )  # (batch, time, vocabulary)
        results = []
        for row, (start, (_, _, answer)) in enumerate(zip(starts, batch, strict=True)):
            steps = logits[row, start : start + len(answer)]  # (answer, vocabulary)
            ids = torch.tensor(answer, device=self.device)
            total = steps.gather(1, ids.unsqueeze(1)).sum().item()
            results.append((total, bool((steps.argmax(-1) == ids).all())))
        return results

    def _length(self, answer: list[int]) -> int:
        assert self.unit is not None
        if self.unit == "tokens":
            return max(1, len(answer))
        return max(1, measure(self.tokenizer.decode(answer, skip_special_tokens=True), self.unit))

    def _one_text(self, batch: Sequence[Request]) -> tuple[dict[str, Tensor], list[int]]:
        """Context and answer as one row; the step that predicts the answer's first token is the context's last."""
        rows, starts = [], []
        for _, context, answer in batch:
            kept = context[
                -(self.max_length + 1 - len(answer)) :
            ]  # what does not fit is lost at the left, as elsewhere
            if len(kept) + len(answer) > self.max_length + 1:
                raise ValueError(f"an answer of {len(answer)} tokens is longer than the model reads: {self.max_length}")
            rows.append(torch.tensor([*kept, *answer][:-1]))
            starts.append(len(kept) - 1)
        inputs = self._padded(rows, "input_ids", "attention_mask")
        inputs["decoder_start"] = torch.tensor(starts, device=self.device) + 1
        return inputs, starts

    def _decoder_pair(self, batch: Sequence[Request]) -> tuple[dict[str, Tensor], list[int]]:
        """The context is read by the encoder, the answer by the decoder."""
        first = self.model.config.decoder_start_token_id
        sources = [torch.tensor(context[-self.max_length :]) for _, context, _ in batch]
        answers = [torch.tensor([first, *answer[:-1]]) for _, _, answer in batch]
        inputs = self._padded(sources, "input_ids", "attention_mask")
        inputs |= self._padded(answers, "decoder_input_ids", "decoder_attention_mask")
        return inputs, [0] * len(batch)

    def _padded(self, rows: list[Tensor], ids: str, mask: str) -> dict[str, Tensor]:
        pad = self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else self.eot_token_id
        live = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        return {
            ids: pad_sequence(rows, batch_first=True, padding_value=pad).to(self.device),
            mask: live.to(self.device),
        }


if __name__ == "__main__":
    from lm_eval.__main__ import cli_evaluate

    cli_evaluate()
