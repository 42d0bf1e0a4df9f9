"""The transformers engine: any causal or encoder-decoder model of Hugging Face, with or without length controls.

The reference for other engines, and, with `controls/attach.py`, the place that uses internals of transformers.
`generate` prepares a call (cache, encoder outputs, logits processors) and hands it over through its `custom_generate`
hook; steps are then taken here. It does not know budgets or units.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence
from transformers import DynamicLayer, LogitsProcessor

from ..controls.attach import controls_of, core_of, units_of
from ..controls.base import Control
from ..protocols import Tokenizer
from .base import Capabilities, LengthInputs, Options
from .sampling import SeededSampler

UNLIMITED = 1 << 28  # positions of a model that names no limit
_COLUMNS = 64  # tokens of given texts that are read at a time after a KV cache
# Options that change the search itself: only `generate` can carry them out, see `search`.
_SEARCH_OPTIONS = ("assistant_model", "cache_implementation", "max_time", "prompt_lookup_num_tokens", "stop_strings")
_OWN_SETTINGS = dict.fromkeys(("temperature", "top_p", "top_k", "max_length"))  # the model's own defaults are ignored


class TransformersEngine:
    """A transformers model (possibly inside PEFT) and its tokenizer."""

    def __init__(self, model: Any, tokenizer: Tokenizer, name: str = "") -> None:
        self.model, self.tokenizer = model, tokenizer
        self.name = name or getattr(model.config, "_name_or_path", "") or type(model).__name__
        self.encoder_decoder: bool = model.config.is_encoder_decoder
        model.eval()
        if not self.eos:
            raise ValueError(f"{self.name} names no end-of-text token; set tokenizer.eos_token, or it cannot stop")

    # ---- what the model is

    @property
    def can(self) -> Capabilities:
        return Capabilities(beams=True, hidden=not self._prompt_adapter, lengths=bool(self.units))

    @property
    def device(self) -> torch.device:
        return self.model.device

    @property
    def eos(self) -> list[int]:
        """The ids that end a text."""
        eos = self.model.generation_config.eos_token_id
        eos = self.tokenizer.eos_token_id if eos is None else eos
        return [] if eos is None else list(eos) if isinstance(eos, list | tuple) else [eos]

    @property
    def pad(self) -> int:
        """The id that fills up a row."""
        return self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else self.eos[0]

    @property
    def window(self) -> int:
        """The number of tokens that the model can attend to."""
        return getattr(self.model.config, "max_position_embeddings", None) or UNLIMITED

    @property
    def model_type(self) -> str:
        return str(self.model.config.model_type)

    @property
    def decoder_start(self) -> int:
        """The id that an encoder-decoder's decoder starts with."""
        start = self.model.generation_config.decoder_start_token_id
        return self.model.config.decoder_start_token_id if start is None else start

    @property
    def never_written(self) -> list[int]:
        """Ids with a logit that are never written, such as Marian's padding token."""
        return [ids[0] for ids in self.model.generation_config.bad_words_ids or () if len(ids) == 1]

    @property
    def controls(self) -> list[Control]:
        return controls_of(self.model)

    @property
    def units(self) -> tuple[str, ...]:
        """The units that the attached controls count in; none if none of them counts."""
        return units_of(self.controls)

    @property
    def plain_without_length(self) -> bool:
        """Whether the model, without length inputs, is the model that it was before controls were attached."""
        return all(control.edits_hidden for control in self.controls)

    def takes_limits_in(self, unit: str) -> bool:
        """Whether the model was always trained with a length that may be a limit, in this unit.

        Such a model can be given a limit so distant that it does not matter.
        """
        trained = [control for control in self.controls if not control.edits_hidden]
        return bool(trained) and all(getattr(c, "at_most", False) and unit in c.units for c in trained)

    @property
    def _prompt_adapter(self) -> bool:
        """Whether PEFT puts virtual tokens before the prompt: then only PEFT's own `generate` reads them."""
        adapter = getattr(self.model, "active_peft_config", None)
        return adapter is not None and adapter.is_prompt_learning

    # ---- prompts

    def prompt_ids(self, text: str, system: str | None = None) -> list[int]:
        """Return the token ids of `text` in the form this model was trained on: a chat template, or encoder input."""
        if self.encoder_decoder:
            if system:
                raise ValueError("a translation model takes no system text")
            return self.tokenizer(text)["input_ids"]
        if not self.tokenizer.chat_template:
            return self.tokenizer(f"{system}\n\n{text}" if system else text)["input_ids"]
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": text})
        try:
            chat = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)
        except Exception as error:  # a template is a program that comes with the model, and fails in its own ways
            raise ValueError(f"the model's chat template refuses this prompt: {error}") from error
        return chat["input_ids"]

    def inputs(self, prompts: Sequence[Sequence[int]], lengths: LengthInputs | None = None) -> dict[str, Tensor]:
        """Return the padded arguments of a call of the model.

        Prompts of a causal model are padded on the left, so that the text follows them; encoder inputs on the right.
        """
        rows = [torch.tensor(prompt) for prompt in prompts]
        side = "right" if self.encoder_decoder else "left"
        ids = pad_sequence(rows, batch_first=True, padding_value=self.pad, padding_side=side)
        mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True, padding_side=side)
        found = {"input_ids": ids, "attention_mask": mask}
        if lengths is not None:
            found["decoder_length"] = torch.tensor(lengths.length)
            found["decoder_unit"] = torch.tensor(lengths.unit)
            found["decoder_at_most"] = torch.tensor(lengths.at_most)
            if not self.encoder_decoder:
                found["decoder_start"] = ids.shape[1] - torch.tensor(lengths.written)
        return {name: value.to(self.device) for name, value in found.items()}

    @property
    def text_start(self) -> int:
        """The column of an encoder-decoder's first text token: behind the start token and a forced language token."""
        return 1 if self.model.generation_config.forced_bos_token_id is None else 2

    # ---- step by step

    def steps(self, options: Options) -> bool:
        """Whether `prefill` and `step` can carry out these options; else use `search`."""
        return not (self._prompt_adapter or any(options.get(name) for name in _SEARCH_OPTIONS))

    def prefill(
        self, prompts: Sequence[Sequence[int]], lengths: LengthInputs | None = None, options: Options | None = None
    ) -> "TransformersRows":
        """Read the prompts and return one row for each, with the scores of its first text token."""
        return self.rows(self.inputs(prompts, lengths), options)

    def rows(self, inputs: dict[str, Tensor], options: Options | None = None, each: int = 1) -> "TransformersRows":
        """Like `prefill`, from padded inputs, with `each` rows per prompt."""
        prepared = self._prepared(inputs, options)
        if each > 1 and not _can_fork(prepared.inputs):
            inputs = {name: value.repeat_interleave(each, 0) for name, value in inputs.items()}
            prepared, each = self._prepared(inputs, options), 1
        rows = TransformersRows(core_of(self.model), prepared)
        if self.encoder_decoder and self.text_start > 1:  # the language token is forced, and is no text
            rows.step(rows.scores.argmax(1))
        if each > 1:
            rows.select(torch.arange(len(rows.ids)).repeat_interleave(each))
        return rows

    def _prepared(self, inputs: dict[str, Tensor], options: Options | None) -> "_Prepared":
        found: _Prepared = core_of(self.model).generate(
            **inputs,
            **_OWN_SETTINGS,
            **(options or {}),
            do_sample=False,
            num_beams=1,
            max_new_tokens=self.window,
            eos_token_id=self.eos,
            pad_token_id=self.pad,
            custom_generate=_prepare,
        )
        return found

    # ---- a search of transformers' own

    def search(
        self,
        inputs: dict[str, Tensor],
        *,
        max_new_tokens: int,
        processors: Sequence[Any] = (),
        beams: int = 1,
        sequences: int = 1,
        scores: bool = False,
        options: Options | None = None,
    ) -> Any:
        """Run `generate` (beam search, assisted decoding) and return its output, `sequences` texts for each prompt.

        With `scores`, the output of a beam search has the log-probability of each text; it then keeps all logits.
        """
        return self.model.generate(
            **inputs,
            **_OWN_SETTINGS,
            **(options or {}),
            do_sample=False,
            num_beams=beams,  # named even when 1: a model's own settings may ask for more
            num_return_sequences=sequences,
            logits_processor=list(processors),
            max_new_tokens=max_new_tokens,
            eos_token_id=self.eos,
            pad_token_id=self.pad,
            return_dict_in_generate=True,
            output_scores=scores and beams > 1,
        )

    # ---- given texts

    def text_logits(
        self, inputs: dict[str, Tensor], written: Tensor, start: int, cache: Any, batch_tokens: int
    ) -> Iterator[tuple[slice, slice, Tensor]]:
        """Yield rows, columns and the logits that predict `written[rows, columns]`, for the columns from `start` on.

        `inputs` and `written` are in the layout of `generate`. `cache`: the KV cache of the prompts without their last
        tokens; it grows by the text. Without it, a forward pass takes at most `batch_tokens` tokens, or one row.
        """
        width = written.shape[1] - 1
        call: dict[str, Tensor]
        if self.encoder_decoder:
            prompt = {name: inputs[name] for name in ("input_ids", "attention_mask")}
            call = prompt | {"decoder_input_ids": written[:, :-1]}
        else:
            mask = pad(inputs["attention_mask"], (0, width + 1 - inputs["attention_mask"].shape[1]), value=1)
            positions = (mask.cumsum(1) - 1).clamp(min=0)
            call = {"input_ids": written[:, :-1], "attention_mask": mask[:, :-1], "position_ids": positions[:, :-1]}
        if cache is not None:
            for first in range(start - 1, width, _COLUMNS):
                last = min(first + _COLUMNS, width)
                now = {name: value[:, 0 if name == "attention_mask" else first : last] for name, value in call.items()}
                logits = self.model(**now, past_key_values=cache, use_cache=True).logits
                yield slice(None), slice(first + 1, last + 1), logits
            return
        call |= {name: value for name, value in inputs.items() if name.startswith("decoder_")}
        kept = width + 1 - start
        options = {} if self.encoder_decoder else {"logits_to_keep": kept}
        size = max(1, batch_tokens // width)
        for first in range(0, len(written), size):
            rows = slice(first, min(first + size, len(written)))
            logits = self.model(**{name: value[rows] for name, value in call.items()}, **options).logits
            yield rows, slice(start, width + 1), logits[:, -kept:]

    # ---- a prompt read once

    def prompt_cache(self, inputs: dict[str, Tensor], each: int, options: Options | None = None) -> Any:
        """Return the KV cache of the prompts without their last token, `each` times; None if it cannot be repeated.

        `options` may forbid a cache, or name one of another kind.
        """
        how = vars(self.model.generation_config) | dict(options or {})
        other = how.get("use_cache") is False or how.get("cache_implementation")
        mask = inputs["attention_mask"]
        single = mask.shape[1] == 1  # without its last token nothing of the prompt remains
        if other or single or self._prompt_adapter or self.encoder_decoder:
            return None
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        found = self.model(**inputs, position_ids=positions, use_cache=True, logits_to_keep=1)
        cache: Any = getattr(found, "past_key_values", None)
        if not all(type(layer) is DynamicLayer for layer in getattr(cache, "layers", [None])):
            return None  # a sliding window or a recurrent state cannot be cropped
        cache.crop(-1)
        cache.batch_repeat_interleave(each)
        return cache


@dataclass
class _Prepared:
    """What `generate` has prepared for a decoding method."""

    ids: Tensor
    processors: Any
    inputs: dict[str, Any]


def _prepare(model: Any, input_ids: Tensor, logits_processor: Any, **inputs: Any) -> _Prepared:
    """Return the prepared call, in place of decoding: the hook of `generate(custom_generate=...)`."""
    unused = ("stopping_criteria", "generation_config", "synced_gpus", "streamer")
    return _Prepared(input_ids, logits_processor, {name: v for name, v in inputs.items() if name not in unused})


class TransformersRows:
    """Unfinished texts with a transformers model; see `engines.base.Rows`."""

    def __init__(self, model: Any, prepared: _Prepared) -> None:
        self._model, self._processors, self._inputs = model, prepared.processors, prepared.inputs
        self.ids, self.scores, self.hidden = prepared.ids, torch.empty(0), torch.empty(0)
        self._forward(None, first=True)

    def step(self, tokens: Tensor) -> None:
        """Append one token to each row, (rows,), and compute the next scores."""
        self.ids = torch.cat([self.ids, tokens[:, None].to(self.ids)], dim=1)
        self._forward(1 if self._inputs.get("use_cache", True) else None, first=False)

    def select(self, rows: Tensor) -> None:
        """Keep these rows in this order. A row that is named twice is forked, one that is not named is dropped."""
        rows = torch.as_tensor(rows, device=self.ids.device)
        count = len(self.ids)
        self.ids, self.scores, self.hidden = self.ids[rows], self.scores[rows], self.hidden[rows]
        self._inputs = {name: _picked(value, rows, count) for name, value in self._inputs.items()}

    @torch.inference_mode()
    def _forward(self, new_tokens: int | None, first: bool) -> None:
        prepare = self._model.prepare_inputs_for_generation
        call = prepare(self.ids, next_sequence_length=new_tokens, is_first_iteration=first, **self._inputs)
        hook = self._model.get_output_embeddings().register_forward_pre_hook(self._keep_hidden)
        try:
            found = self._model(**call, return_dict=True)
        finally:
            hook.remove()
        self._inputs = self._model._update_model_kwargs_for_generation(
            found, self._inputs, is_encoder_decoder=self._model.config.is_encoder_decoder
        )
        logits = found.logits[:, -1].to(copy=True, dtype=torch.float32, device=self.ids.device)
        self.scores = self._processors(self.ids, logits)

    def _keep_hidden(self, layer: Any, inputs: tuple[Tensor, ...]) -> None:
        self.hidden = inputs[0][:, -1]  # (rows, width), what the output layer reads


def _can_fork(inputs: dict[str, Any]) -> bool:
    """Return whether rows of this call can be forked and dropped: every cache in it must support that."""
    caches = [value for name, value in inputs.items() if name in ("past_key_values", "cache_params")]
    return all(value is None or hasattr(value, "reorder_cache") for value in caches)


def _picked(value: Any, rows: Tensor, count: int) -> Any:
    """Return the named rows of an argument of the model: a tensor, an output, a cache; anything else as it is."""
    if isinstance(value, Tensor):
        return value[rows.to(value.device)] if value.dim() and len(value) == count else value
    if hasattr(value, "reorder_cache"):
        value.reorder_cache(rows)
        return value
    if isinstance(value, dict):  # an output of the encoder
        return type(value)(**{name: _picked(one, rows, count) for name, one in value.items()})
    return value


class SampledLogitsProcessor(LogitsProcessor):  # type: ignore[misc]  # transformers is untyped
    """Leaves one sampled token a row: the last of the processors of a search that takes the best token.

    `start`: the column of the first text token.
    """

    def __init__(self, sampler: SeededSampler, start: int) -> None:
        self.sampler, self.start = sampler, start

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        step = input_ids.shape[1] - self.start
        if step < 0:  # a forced language token
            return scores
        return torch.full_like(scores, -torch.inf).scatter(1, self.sampler(scores, step).unsqueeze(1), 0.0)
