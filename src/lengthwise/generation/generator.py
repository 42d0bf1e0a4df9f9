"""Write: texts and budgets in, finished texts that fit out.

Ties the pieces together: the prompt as the model wants it, the attached controls, the hard budget of `fit.py`, the
choice of an end of `ending.py`, the other ends of `tails.py`, the choice among candidates. A bad row costs that row
only.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..constraint.mask import UNLIMITED, LengthBudgetLogitsProcessor
from ..controls.attach import controls_of, units_of
from ..engines.prefill import read
from ..length.budget import Budget, as_budget
from ..length.meter import Meter
from ..scoring.completeness import (
    TokenScores,
    distant_length,
    distant_limit_inputs,
    judged_without_length,
    score_tokens,
    without_length_inputs,
)
from .endings import NOTHING, Draft, Ending, choose
from .options import SAMPLING, Search, searching, warpers
from .repair import EACH, LONGER, TAILS, beginning
from .sampling import SeededSampler, uniforms
from .streaming import Look, SentenceStreamer, spelled, stream


@dataclass(frozen=True)
class Written:
    """A text and what is known of it. `complete`: it ends as a finished sentence, or where the model meant to stop."""

    text: str
    length: int
    unit: str
    budget: str
    fits: bool
    complete: bool
    model: str
    tokens: int
    candidates: list["Written"] = field(default_factory=list)
    error: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The fields as plain values; `error` only where there is one."""
        fields = asdict(self)
        if self.error is None:
            del fields["error"]
        for other in fields["candidates"]:
            for known in ("unit", "budget", "model", "candidates", "error"):
                other.pop(known, None)
        return fields


@dataclass(frozen=True)
class _Row:
    """A request that can be carried out."""

    place: int
    prompt: list[int]
    budget: Budget
    limit: int  # tokens to write at most
    seed: int = 0  # where anything is drawn
    kept: Draft = NOTHING  # how its text begins: it goes on from there

    @property
    def start(self) -> int:
        """Tokens that are there already."""
        return len(self.prompt) + len(self.kept.ids)

    @property
    def left(self) -> int:
        """Tokens still to write at most."""
        return self.limit - len(self.kept.ids)


class Writer:
    """A model that keeps to budgets. Made by `lengthwise.load`, or from any transformers model and its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any, *, name: str = "", batch_size: int = 16) -> None:
        self.model, self.tokenizer, self.batch_size = model, tokenizer, batch_size
        self.name = name or getattr(model.config, "_name_or_path", "") or type(model).__name__
        self.model.eval()
        if not self.ends:
            raise ValueError(f"{self.name} names no end-of-text token; set tokenizer.eos_token, or it cannot stop")
        self._meters: dict[str, Meter] = {}

    # ---- the public verbs

    def write(
        self,
        texts: str | Sequence[str],
        budgets: str | Budget | Sequence[str | Budget],
        *,
        system: str | None = None,
        candidates: int = 1,
        seed: int | None = None,
        finish: bool = True,
        progress: Callable[[int], None] | None = None,
        **generation: Any,
    ) -> list[Written]:
        """Answers (or translates, with an encoder-decoder) each text within its budget.

        `budgets`: one for all, or one a text. `candidates`: write several at once and keep the best. `finish=False`
        keeps the hard limits but does not look for a sentence end. `generation` goes to `model.generate`
        (`temperature`, `num_beams`, `repetition_penalty`, ...). A row that cannot be written has its `error` set.
        """
        texts = [texts] if isinstance(texts, str) else list(texts)
        if isinstance(budgets, bytes | Mapping) or not isinstance(budgets, str | Budget | Iterable):
            raise TypeError(f"a budget is a text such as 'at most 75 chars', or a Budget; got {budgets!r}")
        asked = [budgets] * len(texts) if isinstance(budgets, str | Budget) else list(budgets)
        if len(asked) != len(texts):
            raise ValueError(f"one budget for all texts or one for each; got {len(asked)} for {len(texts)} texts")
        search = searching(candidates, seed, generation)
        results: dict[int, Written] = {}
        rows: list[_Row] = []
        for place, (text, budget) in enumerate(zip(texts, asked, strict=True)):
            try:
                rows.append(replace(self._row(place, text, budget, system), seed=search.seed + 1_000_003 * place))
            except (ValueError, TypeError) as error:
                results[place] = self._failed(budget, str(error))
        if progress and results:
            progress(len(results))
        for batch in self._batches(rows, max(candidates, search.beams)):
            results.update(self._write_batch(batch, candidates, finish, search))
            if progress:
                progress(len(batch))
        return [results[place] for place in range(len(texts))]

    def stream(
        self,
        text: str,
        budget: str | Budget,
        *,
        system: str | None = None,
        seed: int | None = None,
        **generation: Any,
    ) -> Iterator[str]:
        """Yields the text sentence by sentence, as soon as a sentence is sure to stay.

        What was yielded is never taken back: joined, it is the text that `write` would return.
        """
        search = searching(1, seed, generation)
        row = replace(self._row(0, text, budget, system), seed=search.seed)
        if search.beams > 1:
            raise ValueError("beams are compared at the end, so nothing can be streamed; leave num_beams at 1")
        tap = SentenceStreamer(self.meter(row.budget.unit), row.budget, self._measure(row.budget.unit))
        search = replace(search, options=search.options | {"stopping_criteria": [tap]})
        yield from stream(tap, lambda: self._write_batch([row], 1, True, search, tap)[0].text)

    def meter(self, unit: str) -> Meter:
        """The meter that counts `unit` for this model's tokenizer."""
        if unit not in self._meters:
            self._meters[unit] = Meter(self.tokenizer, unit)
        return self._meters[unit]

    # ---- one row in

    def _row(self, place: int, text: str, budget: str | Budget, system: str | None) -> _Row:
        if not isinstance(text, str):
            raise TypeError(f"a text is a string; got {type(text).__name__}")
        if not text.strip():
            raise ValueError("the text is empty; there is nothing to write about")
        text.encode()  # half a surrogate pair is no text: a ValueError, here and for this row only
        known = as_budget(budget).resolve(text, self.tokenizer)
        for control in controls_of(self.model):
            text = control.prefix(text, int(known.target), known.unit, self.tokenizer)
        prompt = self.prompt_ids(text, system)
        limit = self._limit(prompt, known)
        return _Row(place, prompt, known, limit)

    def prompt_ids(self, text: str, system: str | None = None) -> list[int]:
        """The token ids of `text` as this model reads it: in its chat format, or as its encoder's input."""
        if self.model.config.is_encoder_decoder:
            if system:
                raise ValueError("a translation model takes no system text")
            return self.tokenizer(text)["input_ids"]
        if not self.tokenizer.chat_template:
            return self.tokenizer(f"{system}\n\n{text}" if system else text)["input_ids"]
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": text})
        try:
            chat = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)
        except Exception as error:  # a template is a program of the model's makers, and fails in its own ways
            raise ValueError(f"the model's chat template refuses this prompt: {error}") from error
        return chat["input_ids"]

    def _limit(self, prompt: list[int], budget: Budget) -> int:
        """Tokens that may be written: what the budget can use and the model's window leaves."""
        window, taken = self.window, self._taken(len(prompt))
        if len(prompt) >= window:
            raise ValueError(f"the text is too long for the model: {len(prompt)} tokens, and it reads {window}")
        least = self._fewest_tokens(budget)
        if least > window - taken - 1:
            raise ValueError(
                f"'{budget}' is impossible here: it takes {least} tokens or more, "
                f"and the model's window of {window} leaves {window - taken - 1}"
            )
        longest = budget.high if budget.high is not None else 2 * budget.low + 200
        # The most that a unit can take: words come in pieces, characters in up to four bytes, graphemes in characters.
        # The hard budget ends nearly all rows long before.
        per_unit = {"tokens": 1, "bytes": 1, "words": 8, "graphemes": 8}.get(budget.unit, 4)
        return int(min(per_unit * longest + 16, window - taken - 1))

    def _fewest_tokens(self, budget: Budget) -> int:
        """What the minimum takes in tokens on the dear side of usual; a text of the very longest tokens is no text."""
        prices = self.meter(budget.unit).prices
        dear = int(prices[prices > 0].float().quantile(0.95)) if budget.low else 1
        return -(-int(budget.low) // max(dear, 1))

    def _batches(self, rows: list[_Row], each: int) -> Iterator[list[_Row]]:
        """Rows of one unit and like size together, so that little is padded; `batch_size` sequences at a time.

        A row that has ended is padded until the last one has, and even its padding must stay inside the window.
        """
        batch: list[_Row] = []
        for row in sorted(rows, key=lambda row: (row.budget.unit, row.left, row.start)):
            together = [*batch, row]
            overruns = row.left > min(self.window - self._taken(r.start) for r in together)
            if batch and (len(batch) * each >= self.batch_size or row.budget.unit != batch[0].budget.unit or overruns):
                yield batch
                batch = []
            batch.append(row)
        if batch:
            yield batch

    @property
    def window(self) -> int:
        """The tokens that the model can see."""
        return getattr(self.model.config, "max_position_embeddings", None) or UNLIMITED

    def _taken(self, read: int) -> int:
        """How much of the window the tokens that are read take from those that are written."""
        return 0 if self.model.config.is_encoder_decoder else read

    # ---- a batch through the model

    def _write_batch(
        self, rows: list[_Row], candidates: int, finish: bool, search: Search, tap: SentenceStreamer | None = None
    ) -> dict[int, Written]:
        drafts = self._draft(rows, candidates, finish, search, tap)
        shown, heard = (0, True) if tap is None else (tap.shown, not tap.closed.is_set())
        if finish and heard and search.simple and not self.model.config.is_encoder_decoder:
            self._mend(rows, drafts, shown, search)
        return {row.place: self._best(row, drafts[row.place], candidates, shown) for row in rows}

    def _mend(self, rows: list[_Row], drafts: dict[int, list[Draft]], shown: int, search: Search) -> None:
        """Adds drafts with other ends where no text is complete, taking back more each time."""
        for tail in TAILS:
            torn, still = [], []
            for row in rows:
                ending, draft = self._ranked(row, drafts[row.place], shown)[0]
                if not (ending.fits and ending.complete):
                    kept = beginning(draft, tail, self.meter(row.budget.unit).pieces, shown)
                    # One that went on and on would hold up the rest.
                    limit = min(row.limit, len(kept.ids) + LONGER * tail)
                    # What nobody draws is the same each time, and so are its ends.
                    seed = (row.seed if search.drawn else 0) + tail
                    torn.append(replace(row, kept=kept, limit=limit, seed=seed))
                    still.append(row)
            rows = still
            again = replace(search, drawn=SAMPLING | (search.drawn or {}))
            each = min(EACH, self.batch_size)
            for batch in self._batches(torn, each):
                for first in range(0, EACH, each):
                    some = [replace(row, seed=row.seed + _APART * first) for row in batch]
                    for place, more in self._draft(some, min(each, EACH - first), True, again).items():
                        drafts[place] += more

    @torch.inference_mode()
    def _draft(
        self, rows: list[_Row], each: int, finish: bool, search: Search, tap: SentenceStreamer | None = None
    ) -> dict[int, list[Draft]]:
        """Every row's text, `each` times."""
        inputs, start = self._inputs(rows)
        kept = torch.tensor([len(row.kept.ids) for row in rows])
        limit = torch.tensor([row.limit for row in rows])
        low = torch.tensor([int(row.budget.low) for row in rows])
        high = torch.tensor([UNLIMITED if (h := row.budget.high) is None else min(int(h), UNLIMITED) for row in rows])
        steps = int((limit - kept).max()) + 2  # a language token before and an end behind the text
        fit = LengthBudgetLogitsProcessor(
            self.meter(rows[0].budget.unit),
            low,
            high,
            start=start - int(kept.max()),
            skip=kept.max() - kept,
            eos=self.ends,
            limit=limit,
            finish=finish,
            observe=search.beams == 1,
        )
        processors: list[Any] = [fit]
        options: dict[str, Any] = _repeated(inputs, each if search.drawn is not None else 1)
        if search.drawn is not None:  # every candidate is a row of its own, with its own random numbers
            seeds = [(row.seed + _APART * n) % 2**63 for row in rows for n in range(each)]
            processors += [*warpers(search.drawn), SeededSampler(uniforms(seeds, steps), start)]
            if each > 1:
                options["past_key_values"] = read(self.model, inputs, each, search.options)
        if tap is not None:
            tap.fit, tap.sober = fit, self._sober(fit, inputs, start)
            options["streamer"] = tap
        written = self.model.generate(
            **options,
            logits_processor=processors,
            max_new_tokens=steps,
            max_length=None,  # a model's own settings may name one
            num_beams=search.beams,
            num_return_sequences=each if search.drawn is None else 1,
            eos_token_id=self.ends,
            pad_token_id=self.pad,
            **search.options,
        )
        notes = self._notes(fit, inputs, written, start, each, search)
        drafts = self._drafts(written[:, start:], [row for row in rows for _ in range(each)], notes)
        return {row.place: drafts[n * each :][:each] for n, row in enumerate(rows)}

    def _notes(
        self,
        fit: LengthBudgetLogitsProcessor,
        inputs: dict[str, Tensor],
        written: Tensor,
        start: int,
        each: int,
        search: Search,
    ) -> TokenScores:
        """What the model thinks of its texts, of which there are `each` for every row of `inputs`."""
        notes = fit.notes(written[:, -1])
        if notes is None:
            notes = score_tokens(self.model, _repeated(inputs, each), written, start, self.ends)
        plain = self._less_told(inputs, fit.meter.unit.name)
        if plain is None:
            return notes
        cache = read(self.model, plain, each, search.options) if self.steered else None  # what is told reads no cache
        own = score_tokens(self.model, _repeated(plain, each), written, start, self.ends, cache)
        notes = judged_without_length(notes, own, fit.prices.full_stops(written[:, start:]))
        if self.steered or self.model.config.is_encoder_decoder:
            return notes
        return replace(notes, end_ratio=torch.zeros_like(notes.end_ratio))  # it ends where it was told to

    def _less_told(self, inputs: dict[str, Tensor], unit: str) -> dict[str, Tensor] | None:
        """What the model hears, to judge its text as if nobody said how long; None if it was not told, or has to be.

        An answer can always go on, so it may be told of a longer one; a translation has come to its end.
        """
        if "decoder_length" not in inputs:
            return None
        if self.steered:
            return without_length_inputs(inputs)
        if not self.model.config.is_encoder_decoder:
            return inputs | {"decoder_length": distant_length(inputs["decoder_length"])}
        return inputs | distant_limit_inputs(inputs["decoder_length"]) if self.takes_limits_in(unit) else None

    @property
    def steered(self) -> bool:
        """Is it the plain model when it is not told a length?"""
        return all(control.edits_hidden for control in controls_of(self.model))

    def takes_limits_in(self, unit: str) -> bool:
        """Is it always told a length, which may be a limit, so that it can be told of one that hinders nobody?"""
        told = [control for control in controls_of(self.model) if not control.edits_hidden]
        return bool(told) and all(getattr(control, "at_most", False) and unit in control.units for control in told)

    def _sober(self, fit: LengthBudgetLogitsProcessor, inputs: dict[str, Tensor], start: int) -> Look:
        """For a stream: what `_notes` will say of the freedom of the one row's first tokens."""
        plain = self._less_told(inputs, fit.meter.unit.name)
        if plain is None or self.model.config.is_encoder_decoder:
            return lambda ids, freedom: freedom
        cache = read(self.model, plain, 1) if self.steered else None

        def look(ids: list[int], freedom: list[float]) -> list[float]:
            new = torch.tensor([ids], device=self.model.device)
            own = score_tokens(self.model, plain, torch.cat([plain["input_ids"], new], 1), start, self.ends, cache)
            if cache is not None:
                cache.crop(-len(ids))  # the prompt again, for the next look
            told = replace(own, freedom=torch.tensor([freedom], device=self.model.device))
            return judged_without_length(told, own, fit.prices.full_stops(new)).freedom[0].tolist()

        return look

    def _inputs(self, rows: list[_Row]) -> tuple[dict[str, Tensor], int]:
        """What `generate` reads, and the column of the first token it will write.

        A prompt is padded on the left, for the answer to go on from it; an encoder counts from its first column.
        """
        translates = self.model.config.is_encoder_decoder
        prompts = [torch.tensor([*row.prompt, *row.kept.ids]) for row in rows]
        side = "right" if translates else "left"
        ids = pad_sequence(prompts, batch_first=True, padding_value=self.pad, padding_side=side)
        mask = pad_sequence([torch.ones_like(p) for p in prompts], batch_first=True, padding_side=side)
        both = {"input_ids": ids, "attention_mask": mask}
        inputs = {key: value.to(self.model.device) for key, value in both.items()} | self._signal(rows)
        if not translates:
            if "decoder_length" in inputs:
                kept = torch.tensor([len(row.kept.ids) for row in rows], device=self.model.device)
                inputs["decoder_start"] = ids.shape[1] - kept
            return inputs, ids.shape[1]
        return inputs, 1 if self.model.generation_config.forced_bos_token_id is None else 2

    def _signal(self, rows: list[_Row]) -> dict[str, Tensor]:
        """What attached controls want to know: target lengths and of which kind, if they count in this unit."""
        units, unit = units_of(controls_of(self.model)), rows[0].budget.unit
        if unit not in units:
            return {}
        told = {
            "decoder_length": [min(int(row.budget.target), UNLIMITED) for row in rows],
            "decoder_unit": [units.index(unit)] * len(rows),
            "decoder_at_most": [row.budget.is_limit for row in rows],
        }
        return {name: torch.tensor(values, device=self.model.device) for name, values in told.items()}

    @property
    def ends(self) -> list[int]:
        """The ids that end a text."""
        eos = self.model.generation_config.eos_token_id
        eos = self.tokenizer.eos_token_id if eos is None else eos
        return [] if eos is None else list(eos) if isinstance(eos, list | tuple) else [eos]

    @property
    def pad(self) -> int:
        """The id that fills up a row."""
        return self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else self.ends[0]

    def _drafts(self, written: Tensor, rows: list[_Row], notes: TokenScores) -> list[Draft]:
        drafts, eos, meter = [], set(self.ends), self.meter(rows[0].budget.unit)
        columns = zip(written.tolist(), rows, *(t.tolist() for t in vars(notes).values()), strict=True)
        for new, row, freedom, end_ratio, scores in columns:
            end = next((i for i, token in enumerate(new) if token in eos), len(new))
            kept, ids = row.kept, [*row.kept.ids, *new[:end]]
            text, reach = spelled(meter, ids)
            score = (len(kept.ids) * kept.score + sum(scores[:end])) / max(len(ids), 1)
            free = [*kept.freedom, *freedom[:end]]
            drafts.append(Draft(text, reach, free, end_ratio[end] if end < len(new) else 0.0, score, ids))
        return drafts

    # ---- the best of the drafts

    def _measure(self, unit: str) -> Callable[[str, int], int]:
        """(text, tokens) -> length."""
        meter = self.meter(unit)
        return lambda text, tokens: tokens if meter.unit.name == "tokens" else meter.unit.measure(text)

    def _ranked(self, row: _Row, drafts: list[Draft], shown: int) -> list[tuple[Ending, Draft]]:
        """The drafts and their best ends, the best first."""
        measure = self._measure(row.budget.unit)
        found = [(choose(draft, row.budget, measure, shown), draft) for draft in drafts]
        return sorted(found, key=lambda one: (*one[0].rank(row.budget), one[1].score), reverse=True)

    def _best(self, row: _Row, drafts: list[Draft], candidates: int, shown: int) -> Written:
        """The best of the drafts; beside it the `candidates` that came first, but for itself or the worst of them."""
        ending, best = self._ranked(row, drafts, shown)[0]
        first = self._ranked(row, drafts[:candidates], shown)  # other ends come behind them
        others = [ending for ending, draft in first if draft is not best][: candidates - 1]
        return replace(
            self._written(row.budget, ending), candidates=[self._written(row.budget, other) for other in others]
        )

    def _written(self, budget: Budget, ending: Ending) -> Written:
        return Written(unit=budget.unit, budget=str(budget), model=self.name, **vars(ending))

    def _failed(self, budget: str | Budget, error: str) -> Written:
        unit = budget.unit if isinstance(budget, Budget) else ""
        return Written("", 0, unit, str(budget), False, False, self.name, 0, error=error)


_APART = 7_919  # the seeds of a text's candidates


def _repeated(inputs: dict[str, Tensor], each: int) -> dict[str, Tensor]:
    return {key: value.repeat_interleave(each, 0) for key, value in inputs.items()}
