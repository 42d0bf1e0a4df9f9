"""Write: texts and budgets in, finished texts that fit out.

Ties the pieces together: the prompt as the model wants it, the attached controls, the hard budget of `fit.py`, the
choice of an end of `ending.py`, the choice among candidates. A bad row costs that row only.
"""

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..attachment import controls_of
from ..budget import Budget, as_budget
from ..meter import Meter
from ..sentences import finished_ends
from .ending import Draft, Ending, choose
from .fit import UNLIMITED, Fit
from .review import Notes, review

SAMPLING = {"temperature": 0.8, "top_p": 0.95}  # for candidates, when the caller names no temperature


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


class Writer:
    """A model that keeps to budgets. Made by `lengthwise.load`, or from any transformers model and its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any, *, name: str = "", batch_size: int = 16) -> None:
        self.model, self.tokenizer, self.batch_size = model, tokenizer, batch_size
        self.name = name or getattr(model.config, "_name_or_path", "") or type(model).__name__
        self.model.eval()
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
        asked = [budgets] * len(texts) if isinstance(budgets, str | Budget) else list(budgets)
        if len(asked) != len(texts):
            raise ValueError(f"one budget for all texts or one for each; got {len(asked)} for {len(texts)} texts")
        if candidates < 1:
            raise ValueError(f"candidates must be at least 1; got {candidates}")
        results: dict[int, Written] = {}
        rows: list[_Row] = []
        for place, (text, budget) in enumerate(zip(texts, asked, strict=True)):
            try:
                rows.append(self._row(place, text, budget, system))
            except ValueError as error:
                results[place] = self._failed(budget, str(error))
        if progress and results:
            progress(len(results))
        options = _sampling(candidates, generation)
        with _seeded(seed, self.model.device):
            for batch in self._batches(rows, candidates):
                results.update(self._write_batch(batch, candidates, finish, options))
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
        row = self._row(0, text, budget, system)
        tokens: queue.Queue[int | Written | BaseException] = queue.Queue()
        options = _sampling(1, generation)

        def work() -> None:
            try:
                with _seeded(seed, self.model.device):
                    results = self._write_batch([row], 1, True, options | {"streamer": _Streamer(tokens)})
                tokens.put(results[0])
            except BaseException as error:  # handed to the reader's thread, which raises it
                tokens.put(error)

        threading.Thread(target=work, daemon=True).start()
        meter, ids, shown = self.meter(row.budget.unit), [], 0
        while isinstance(item := tokens.get(), int):
            ids.append(item)
            sofar = self._spell(ids).rstrip()
            for end in finished_ends(sofar):
                # An end before the target stays: any end chosen later lies behind it.
                length = meter.unit.measure(sofar[:end]) if meter.unit.name != "tokens" else len(ids)
                if shown < end < len(sofar) and length <= row.budget.target:
                    yield sofar[shown:end]
                    shown = end
        if isinstance(item, BaseException):
            raise item
        if item.text[shown:]:
            yield item.text[shown:]

    def meter(self, unit: str) -> Meter:
        """The meter that counts `unit` for this model's tokenizer."""
        if unit not in self._meters:
            self._meters[unit] = Meter(self.tokenizer, unit)
        return self._meters[unit]

    # ---- one row in

    def _row(self, place: int, text: str, budget: str | Budget, system: str | None) -> _Row:
        if not text.strip():
            raise ValueError("the text is empty; there is nothing to write about")
        text.encode()  # half a surrogate pair is no text: a ValueError, here and for this row only
        known = as_budget(budget).resolve(text, self.tokenizer)
        for control in controls_of(self.model):
            text = control.prefix(text, int(known.target), known.unit, self.tokenizer)
        prompt = self._prompt(text, system)
        limit = self._limit(prompt, known)
        return _Row(place, prompt, known, limit)

    def _prompt(self, text: str, system: str | None) -> list[int]:
        if self.model.config.is_encoder_decoder:
            if system:
                raise ValueError("a translation model takes no system text")
            return self.tokenizer(text)["input_ids"]
        if not self.tokenizer.chat_template:
            return self.tokenizer(f"{system}\n\n{text}" if system else text)["input_ids"]
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": text})
        return self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)["input_ids"]

    def _limit(self, prompt: list[int], budget: Budget) -> int:
        """Tokens that may be written: what the budget can use and the model's window leaves."""
        window = getattr(self.model.config, "max_position_embeddings", None) or UNLIMITED
        taken = 0 if self.model.config.is_encoder_decoder else len(prompt)
        if len(prompt) >= window:
            raise ValueError(f"the text is too long for the model: {len(prompt)} tokens, and it reads {window}")
        least = self._fewest_tokens(budget)
        if least > window - taken - 1:
            raise ValueError(
                f"'{budget}' is impossible here: it takes {least} tokens or more, "
                f"and the model's window of {window} leaves {window - taken - 1}"
            )
        longest = budget.high if budget.high is not None else 2 * budget.low + 200
        # Words come in pieces, characters in bytes: a generous bound; the hard budget ends most rows long before it.
        per_unit = {"tokens": 1, "bytes": 1, "words": 6}.get(budget.unit, 2)
        return int(min(per_unit * longest + 16, window - taken - 1))

    def _fewest_tokens(self, budget: Budget) -> int:
        dearest = int(self.meter(budget.unit).prices.max())
        return -(-int(budget.low) // max(dearest, 1))

    def _batches(self, rows: list[_Row], candidates: int) -> Iterator[list[_Row]]:
        """Rows of one unit and like size together, so that little is padded; `batch_size` sequences at a time."""
        size = max(1, self.batch_size // candidates)
        rows = sorted(rows, key=lambda row: (row.budget.unit, row.limit, len(row.prompt)))
        while rows:
            batch = [row for row in rows[:size] if row.budget.unit == rows[0].budget.unit]
            yield batch
            rows = rows[len(batch) :]

    # ---- a batch through the model

    def _write_batch(
        self, rows: list[_Row], candidates: int, finish: bool, options: dict[str, Any]
    ) -> dict[int, Written]:
        device = self.model.device
        prompts = [row.prompt for row in rows]
        inputs = dict(self.tokenizer.pad({"input_ids": prompts}, padding_side="left", return_tensors="pt").to(device))
        inputs = {key: inputs[key] for key in ("input_ids", "attention_mask")} | self._signal(rows)
        start = 1 if self.model.config.is_encoder_decoder else inputs["input_ids"].shape[1]
        low = torch.tensor([int(row.budget.low) for row in rows], device=device)
        high = torch.tensor([UNLIMITED if (h := row.budget.high) is None else int(h) for row in rows], device=device)
        eos, pad, beams = self._eos(), self._pad(), options["num_beams"] > 1
        meter, limit = self.meter(rows[0].budget.unit), max(row.limit for row in rows)
        fit = Fit(meter, low, high, start=start, eos=eos, limit=limit, finish=finish, observe=not beams)
        with torch.inference_mode():
            written = self.model.generate(
                **inputs,
                logits_processor=[fit],
                max_new_tokens=limit,
                num_return_sequences=candidates,
                eos_token_id=eos,
                pad_token_id=pad,
                **options,
            )
            notes = fit.notes(written[:, -1])
            if notes is None:
                again = {key: value.repeat_interleave(candidates, 0) for key, value in inputs.items()}
                notes = review(self.model, again, written, start, eos)
        drafts = self._drafts(written[:, start:], notes, set(eos))
        return {row.place: self._best(row, drafts[n * candidates : (n + 1) * candidates]) for n, row in enumerate(rows)}

    def _signal(self, rows: list[_Row]) -> dict[str, Tensor]:
        """What attached controls want to know: the target lengths, if they count in this unit."""
        units = {control.unit for control in controls_of(self.model)}
        if rows[0].budget.unit not in units:
            return {}
        return {"decoder_length": torch.tensor([int(row.budget.target) for row in rows], device=self.model.device)}

    def _eos(self) -> list[int]:
        eos = self.model.generation_config.eos_token_id
        eos = self.tokenizer.eos_token_id if eos is None else eos
        return list(eos) if isinstance(eos, list | tuple) else [eos]

    def _pad(self) -> int:
        return self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else self._eos()[0]

    def _drafts(self, written: Tensor, notes: Notes, eos: set[int]) -> list[Draft]:
        drafts = []
        columns = zip(written.tolist(), *(t.tolist() for t in vars(notes).values()), strict=True)
        for row, liking, end_liking, scores in columns:
            end = next((i for i, token in enumerate(row) if token in eos), len(row))
            drafts.append(
                Draft(
                    text=self._spell(row[:end]),
                    ids=row[:end],
                    liking=liking[:end],
                    end_liking=end_liking[end] if end < len(row) else 0.0,
                    score=sum(scores[:end]) / max(end, 1),
                )
            )
        return drafts

    def _spell(self, ids: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text.lstrip()

    # ---- the best of the drafts

    def _best(self, row: _Row, drafts: list[Draft]) -> Written:
        unit = self.meter(row.budget.unit).unit

        def measure(text: str, tokens: int) -> int:
            return tokens if unit.name == "tokens" else unit.measure(text)

        endings = [choose(draft, row.budget, measure, self._spell) for draft in drafts]
        order = sorted(range(len(drafts)), key=lambda n: (*endings[n].rank(row.budget), drafts[n].score))[::-1]
        ranked = [self._written(row.budget, endings[n]) for n in order]
        return Written(**(vars(ranked[0]) | {"candidates": ranked[1:]}))

    def _written(self, budget: Budget, ending: Ending) -> Written:
        return Written(unit=budget.unit, budget=str(budget), model=self.name, **vars(ending))

    def _failed(self, budget: str | Budget, error: str) -> Written:
        unit = budget.unit if isinstance(budget, Budget) else ""
        return Written("", 0, unit, str(budget), False, False, self.name, 0, error=error)


class _Streamer:
    """What `generate` calls with each new token."""

    def __init__(self, tokens: "queue.Queue[Any]") -> None:
        self.tokens, self.prompt_seen = tokens, False

    def put(self, value: Tensor) -> None:
        if self.prompt_seen:
            for token in value.flatten().tolist():
                self.tokens.put(token)
        self.prompt_seen = True

    def end(self) -> None:
        pass


def _sampling(candidates: int, generation: dict[str, Any]) -> dict[str, Any]:
    """`generate`'s options: greedy unless beams, a temperature or several candidates are asked for."""
    options = {"num_beams": 1} | generation  # not what a model's generation_config happens to say
    beams, temperature = options["num_beams"], options.pop("temperature", None)
    if beams == 1 and candidates > 1 and temperature == 0:
        raise ValueError("candidates differ only if drawn: give a temperature above 0, or as many beams")
    if 1 < beams < candidates:
        raise ValueError(f"{candidates} candidates need as many beams; got {beams}")
    drawn = bool(temperature) or (beams == 1 and candidates > 1 and temperature is None)
    if not options.setdefault("do_sample", drawn):
        return options | {"temperature": None, "top_p": None, "top_k": None}
    return SAMPLING | ({} if temperature is None else {"temperature": temperature}) | options


@contextlib.contextmanager
def _seeded(seed: int | None, device: torch.device) -> Iterator[None]:
    """The same seed writes the same text, and the caller's random state is left alone."""
    if seed is None:
        yield
        return
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        yield
