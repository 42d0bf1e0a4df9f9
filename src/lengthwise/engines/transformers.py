"""The transformers engine: any causal or encoder-decoder model of Hugging Face, with or without length controls.

The reference implementation of `Engine`. It uses internals of transformers, as the other files of this folder do.
`generate` prepares a call (cache, encoder outputs, logits processors) and passes it on through its `custom_generate`
hook; the steps are run here.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicLayer, LogitsProcessor

from ..controls.attached import controls_of, core_of
from ..controls.base import Control
from ..protocols import Tokenizer
from .base import Engine, Ids, LengthInputs, Options
from .batch_sizes import BatchSizes
from .decoder_prefix import counting_from_the_text, last_logits_only
from .document_beams import DocumentBeams
from .padding import padded
from .recorded_rows import RecordedSteps, recorded_state
from .rows import Processor, Rows, SearchResult, TokenLogProbs
from .transformers_rows import Prepared, TransformersRows, prepare_rows

Inputs = dict[str, Tensor]  # arguments of the model

_UNLIMITED = 1 << 28  # positions of a model that names no limit
_COLUMNS = 64  # tokens of given texts that are read at a time after a KV cache
_FLOAT_ROWS = 64  # rows with logits in float32 at a time
# Options that change the search itself: only `generate` can carry them out, see `search`.
_SEARCH_OPTIONS = (
    *("assistant_model", "cache_implementation", "custom_generate", "max_time"),
    *("prompt_lookup_num_tokens", "stop_strings"),
)
# Settings of a search that `beam_search` does not have, and their neutral values.
_OTHER_SEARCHES = {
    **dict.fromkeys(("no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "diversity_penalty", "early_stopping"), 0),
    **dict.fromkeys(("repetition_penalty", "encoder_repetition_penalty", "num_beam_groups"), 1),
}
_BEAM_OPTIONS = {"length_penalty", "renormalize_logits"}  # options of beam search that it does have
# Settings of the model's own that are ignored.
_IGNORED = dict.fromkeys(("temperature", "top_p", "top_k", "max_length", "prompt_lookup_num_tokens"))


class TransformersEngine(Engine):
    """A transformers model (possibly inside PEFT) and its tokenizer.

    `fixed_cache`: decode in a KV cache of fixed size, on a GPU with CUDA graphs, if the model allows it. Default: on a
    GPU.
    """

    def __init__(self, model: Any, tokenizer: Tokenizer, name: str = "", *, fixed_cache: bool | None = None) -> None:
        self.model, self.tokenizer = model, tokenizer
        self._fixed_cache = self.device.type == "cuda" if fixed_cache is None else fixed_cache
        self._steps = RecordedSteps(core_of(model))
        self._recorded_beams: tuple[Any, DocumentBeams] | None = None  # and the state of the model that it recorded
        self.name = name or getattr(model.config, "_name_or_path", "") or type(model).__name__
        self.encoder_decoder = model.config.is_encoder_decoder
        model.eval()
        if not self.eos:
            raise ValueError(f"{self.name} has no end-of-text token and would not stop; set tokenizer.eos_token")

    # ---- properties of the model

    @property
    def device(self) -> torch.device:
        return self.model.device

    @property
    def eos(self) -> list[int]:  # type: ignore[override]
        eos = self.model.generation_config.eos_token_id
        eos = self.tokenizer.eos_token_id if eos is None else eos
        return [] if eos is None else list(eos) if isinstance(eos, list | tuple) else [eos]

    @property
    def pad(self) -> int:  # type: ignore[override]
        return self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else self.eos[0]

    @property
    def window(self) -> int:  # type: ignore[override]
        if any(control.positions == "none" for control in self.controls):
            return _UNLIMITED
        return getattr(self.model.config, "max_position_embeddings", None) or _UNLIMITED

    @cached_property
    def _sizes(self) -> BatchSizes:
        return BatchSizes.of(self.model)

    @cached_property
    def batch_tokens(self) -> int:  # type: ignore[override]
        return self._sizes.tokens

    @property
    def max_rows(self) -> int:  # type: ignore[override]
        return self._sizes.rows

    @property
    def batch_size(self) -> int:  # type: ignore[override]
        return self._sizes.texts

    @property
    def forced_start(self) -> list[int]:
        forced = self.model.generation_config.forced_bos_token_id
        return [] if forced is None else [forced]

    @property
    def controls(self) -> list[Control]:
        return controls_of(self.model)

    @property
    def _decoder_start(self) -> list[int]:
        """The ids before the text of an encoder-decoder."""
        start = self.model.generation_config.decoder_start_token_id
        return [self.model.config.decoder_start_token_id if start is None else start, *self.forced_start]

    @property
    def _never_written(self) -> list[int]:
        """Ids with a logit that are never written, such as Marian's padding token."""
        return [ids[0] for ids in self.model.generation_config.bad_words_ids or () if len(ids) == 1]

    @property
    def _prompt_adapter(self) -> bool:
        """Whether PEFT puts virtual tokens before the prompt: then only PEFT's own `generate` reads them."""
        adapter = getattr(self.model, "active_peft_config", None)
        return adapter is not None and adapter.is_prompt_learning

    def _settings(self, options: Options | None) -> dict[str, Any]:
        """Return the model's own generation settings, overridden by the options."""
        return vars(self.model.generation_config) | _IGNORED | dict(options or {})

    def _inputs(
        self, prompts: Sequence[Ids], lengths: LengthInputs | None = None, prefixes: Sequence[Ids] | None = None
    ) -> Inputs:
        """Return the padded arguments of a call of the model.

        Prompts of a causal model are padded on the left, so that the text follows them; encoder inputs on the right.
        """
        if prefixes is not None and not self.encoder_decoder:
            prompts = [[*prompt, *prefix] for prompt, prefix in zip(prompts, prefixes, strict=True)]
        ids, mask = padded(prompts, self.pad, "right" if self.encoder_decoder else "left")
        found = {"input_ids": ids, "attention_mask": mask}
        if lengths is not None:
            found["decoder_length"] = torch.tensor(lengths.length)
            found["decoder_unit"] = torch.tensor(lengths.unit)
            found["decoder_at_most"] = torch.tensor(lengths.at_most)
            if not self.encoder_decoder:
                found["decoder_start"] = ids.shape[1] - torch.tensor(lengths.written)
        if prefixes is not None and self.encoder_decoder:
            ids, mask = padded([[*self._decoder_start, *prefix] for prefix in prefixes], self.pad, "left")
            found |= {"decoder_input_ids": ids, "decoder_attention_mask": mask}
            if lengths is not None:
                found["decoder_start"] = 1 + (1 - mask).sum(1)
        return {name: value.to(self.device) for name, value in found.items()}

    def embedded(self, tokens: torch.Tensor) -> torch.Tensor:
        table = self.model.get_input_embeddings().weight.detach()
        return table[tokens.to(table.device)].to(tokens.device, torch.float32)

    # ---- step by step

    def steps(self, options: Options) -> bool:
        settings = self._settings(options)
        return not (self._prompt_adapter or any(settings.get(name) for name in _SEARCH_OPTIONS))

    @torch.inference_mode()
    def prefill(
        self,
        prompts: Sequence[Ids],
        lengths: LengthInputs | None = None,
        options: Options | None = None,
        *,
        each: int = 1,
        max_new_tokens: int | None = None,
        hidden: bool = False,
    ) -> Rows:
        inputs = self._inputs(prompts, lengths)
        prepared = self._prepared(inputs, options, max_new_tokens)
        if each > 1 and not prepared.can_fork:
            inputs = {name: value.repeat_interleave(each, 0) for name, value in inputs.items()}
            prepared, each = self._prepared(inputs, options, max_new_tokens), 1
        rows = TransformersRows(core_of(self.model), prepared, hidden)
        for _ in self.forced_start if self.encoder_decoder else ():  # by a logits processor of `generate`
            rows.step(rows.scores.argmax(1))
        if each > 1:
            rows.select(torch.arange(len(rows.ids)).repeat_interleave(each))
        return rows.recorded(self._steps) if self._fixed_cache else rows

    def _prepared(self, inputs: Inputs, options: Options | None, max_new_tokens: int | None) -> Prepared:
        found: Prepared = core_of(self.model).generate(
            **inputs,
            **_IGNORED | dict(options or {}),
            forced_eos_token_id=None,  # an end that is forced at the last token would look like the model's own choice
            do_sample=False,
            num_beams=1,
            max_new_tokens=max_new_tokens or self.window,
            eos_token_id=self.eos,
            pad_token_id=self.pad,
            custom_generate=prepare_rows,
        )
        return found

    # ---- searches of transformers

    @torch.inference_mode()
    def search(
        self,
        prompts: Sequence[Ids],
        lengths: LengthInputs | None = None,
        *,
        prefixes: Sequence[Ids] | None = None,
        max_new_tokens: int,
        processors: Sequence[Processor] = (),
        beams: int = 1,
        sequences: int = 1,
        scores: bool = False,
        options: Options | None = None,
    ) -> SearchResult:
        if not (lengths or processors or options or self.forced_start):
            before = [[]] * len(prompts) if prefixes is None else prefixes
            found = self._search_recorded(prompts, before, max_new_tokens, beams, sequences)
            if found is not None:
                return found
        if prefixes is None and self._searches_here(options):
            own = {"length_penalty": self._settings(options).get("length_penalty") or 1.0} | dict(options or {})
            how: dict[str, Any] = {"processors": processors, "beams": beams, "sequences": sequences, "options": own}
            return super().search(prompts, lengths, max_new_tokens=max_new_tokens, **how)
        inputs = self._inputs(prompts, lengths, prefixes)
        forced = self.forced_start if self.encoder_decoder and prefixes is None else []  # by a processor of `generate`
        start = inputs.get("decoder_input_ids", inputs["input_ids"]).shape[1]  # columns before the text
        if self.encoder_decoder and prefixes is None:
            start = len(self._decoder_start)
        with self._after_prefixes() if "decoder_input_ids" in inputs else self._without_cache(options):
            generated = self.model.generate(
                **inputs,
                **_IGNORED | dict(options or {}),
                do_sample=False,
                num_beams=beams,  # named even when 1: a model's own settings may ask for more
                num_return_sequences=sequences,
                logits_processor=[_TextProcessor(processors, start)] if processors else [],
                max_new_tokens=max_new_tokens + len(forced),
                eos_token_id=self.eos,
                pad_token_id=self.pad,
                return_dict_in_generate=True,
                output_scores=scores and beams > 1,
            )
        ids = [_padded_with(self.eos[0], self.pad, row) for row in generated.sequences[:, start:].tolist()]
        known = getattr(generated, "sequences_scores", None)
        return SearchResult(ids, [0.0] * len(ids) if known is None else known.tolist())

    def _searches_here(self, options: Options | None) -> bool:
        """Return whether `beam_search` over rows with a fixed cache can carry out this search."""
        settings = self._settings(options)
        plain = all(settings.get(name) in (None, neutral) for name, neutral in _OTHER_SEARCHES.items())
        return self._fixed_cache and plain and self.steps(options or {}) and _BEAM_OPTIONS.issuperset(options or ())

    def _search_recorded(self, prompts: Sequence[Ids], prefixes: Sequence[Ids], *sizes: int) -> SearchResult | None:
        """Return the result of the search that stays on the GPU; None if there is none for this model."""
        if not self._fixed_cache or self._prompt_adapter or not DocumentBeams.supports(self.model):
            return None
        state = recorded_state(core_of(self.model))
        if self._recorded_beams is None or self._recorded_beams[0] != state:
            self._recorded_beams = state, DocumentBeams(self.model)
        return self._recorded_beams[1].search(prompts, prefixes, *sizes)

    @contextmanager
    def _after_prefixes(self) -> Iterator[None]:
        core = core_of(self.model)
        with counting_from_the_text(core), last_logits_only(core):
            yield

    def _without_cache(self, options: Options | None) -> AbstractContextManager[None]:
        """Without a KV cache every step reads the whole text; only its last logits are needed."""
        cached = self._settings(options).get("use_cache") is not False
        return nullcontext() if cached else last_logits_only(core_of(self.model))

    # ---- scoring given texts

    @torch.inference_mode()
    def score(
        self, prompts: Sequence[Ids], texts: Sequence[Ids], lengths: LengthInputs | None = None, cache: Any = None
    ) -> TokenLogProbs:
        width = max(map(len, texts))
        if cache is not None:  # texts of one length begin in the same column
            texts = [[*text, *[self.pad] * (width - len(text))] for text in texts]
        if self.encoder_decoder:
            inputs = self._inputs(prompts, lengths)
            before = self._decoder_start
            written = padded([[*before, *text] for text in texts], self.pad)[0].to(self.device)
        else:
            if lengths is not None:
                taken = [n + len(text) for n, text in zip(lengths.written, texts, strict=True)]
                lengths = replace(lengths, written=taken)
            inputs = self._inputs([[*prompt, *text] for prompt, text in zip(prompts, texts, strict=True)], lengths)
            written = inputs["input_ids"]  # texts end in the last column
        start = written.shape[1] - width
        ends, never = torch.tensor(self.eos, device=self.device), self._never_written
        found = torch.empty(3, len(written), width, device=self.device)
        for some, columns, logits in self._text_logits(inputs, written, start, cache):
            place = slice(columns.start - start, columns.stop - start)
            found[:, some, place] = _log_probs(logits, written[some, columns], ends, never)
        found = found.cpu()
        if not self.encoder_decoder:  # a text begins in the first column
            for row, text in enumerate(texts):
                found[:, row] = found[:, row].roll(len(text) - width, 1)
        return TokenLogProbs(*found.numpy())

    def _text_logits(
        self, inputs: Inputs, written: Tensor, start: int, cache: Any
    ) -> Iterator[tuple[slice, slice, Tensor]]:
        """Yield rows, columns and the logits that predict `written[rows, columns]`, for the columns from `start` on.

        Logits are as wide as the vocabulary: they are computed for some columns at a time after a cache, and for at
        most `batch_tokens` tokens, or one row, without one.
        """
        width = written.shape[1] - 1
        call: Inputs
        if self.encoder_decoder:
            prompt = {name: inputs[name] for name in ("input_ids", "attention_mask")}
            call = prompt | {"decoder_input_ids": written[:, :-1]}
        else:
            mask = inputs["attention_mask"]
            positions = (mask.cumsum(1) - 1).clamp(min=0)
            call = {"input_ids": written[:, :-1], "attention_mask": mask[:, :-1], "position_ids": positions[:, :-1]}
        if cache is not None:
            for first in range(start - 1, width, _COLUMNS):
                last = min(first + _COLUMNS, width)
                now = {name: value[:, 0 if name == "attention_mask" else first : last] for name, value in call.items()}
                logits = self.model(**now, past_key_values=cache, use_cache=True).logits
                yield slice(None), slice(first + 1, last + 1), logits
            cache.crop(start - 1 - width)  # the prompts alone again
            return
        call |= {name: value for name, value in inputs.items() if name.startswith("decoder_")}
        kept = width + 1 - start
        options = {} if self.encoder_decoder else {"logits_to_keep": kept}
        size = max(1, self.batch_tokens // width)
        for first in range(0, len(written), size):
            rows = slice(first, min(first + size, len(written)))
            logits = self.model(**{name: value[rows] for name, value in call.items()}, **options).logits
            yield rows, slice(start, width + 1), logits[:, -kept:]

    @torch.inference_mode()
    def prompt_cache(self, prompts: Sequence[Ids], each: int = 1, options: Options | None = None) -> Any:
        """Return the KV cache of the prompts without their last tokens, `each` times; None if it cannot be repeated.

        `options` may forbid a cache, or name one of another kind.
        """
        settings = self._settings(options)
        other = settings.get("use_cache") is False or settings.get("cache_implementation")
        inputs = self._inputs(prompts)
        mask = inputs["attention_mask"]
        single = mask.shape[1] == 1  # without its last token the prompt is empty
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


def _padded_with(end: int, pad: int, ids: list[int]) -> list[int]:
    """Return `ids` with the end token in place of padding: a text that a stop string has ended has none."""
    written = len(ids)
    while written and ids[written - 1] == pad:
        written -= 1
    return [*ids[:written], *[end] * (len(ids) - written)]


def _log_probs(logits: Tensor, tokens: Tensor, ends: Tensor, never: Ids) -> Tensor:
    """Return the values of `TokenLogProbs`: logits (rows, time, vocabulary), tokens (rows, time) -> (3, rows, time).

    Some rows at a time: a copy of all logits in float32 would be the largest tensor.
    """
    parts = []
    for some, taken in zip(torch.split(logits, _FLOAT_ROWS), torch.split(tokens, _FLOAT_ROWS), strict=True):
        some = some.float()
        some[..., list(never)] = -torch.inf
        total = some.logsumexp(-1)
        token = some.gather(-1, taken.unsqueeze(-1)).squeeze(-1)
        parts.append(torch.stack([token, some.amax(-1), some[..., ends].amax(-1)]) - total)
    return torch.cat(parts, 1)


class _TextProcessor(LogitsProcessor):  # type: ignore[misc]  # transformers is untyped
    """Hands the text ids, from column `start` on, and the scores to processors of this package."""

    def __init__(self, processors: Sequence[Processor], start: int) -> None:
        self.processors, self.start = processors, start

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        if input_ids.shape[1] >= self.start:  # else a language token is forced here; it is not part of the text
            for processor in self.processors:
                scores = processor(input_ids[:, self.start :], scores)
        return scores
