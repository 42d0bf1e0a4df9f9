"""Recipes: everything that decides what a training run makes, as one typed value.

A recipe is a YAML file; a key it does not know is an error that names the nearest one it does. Overrides are written
`train.lr=3e-4`. This file knows what may be asked for; it opens no corpus and builds no model.
"""

import difflib
import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml  # type: ignore[import-untyped]
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from ..controls import CONTROLS, Control, control_from
from ..corpora import Limits
from ..length.units import unit_named

Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, lt=1)]


def _no(value: Any) -> Any:
    return "no" if value is False else value  # which is how YAML reads it


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class RecipeError(ValueError):
    """A recipe cannot be used; the text says where, why, and what to do."""


class Section(BaseModel):
    """A part of a recipe. Frozen; unknown keys are refused by name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, values: Any) -> Any:
        if isinstance(values, dict):
            for key in values:
                if key not in cls.model_fields:
                    raise ValueError(f"unknown key {key!r}; {_nearest(str(key), cls.model_fields)}")
        return values


def _nearest(key: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(key, list(known), n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"the keys here are {', '.join(known)}"


class Lora(Section):
    """Low-rank adapters on the linear layers; the base stays as it is."""

    rank: Positive = 16
    alpha: Positive = 32
    dropout: Share = 0.05  # at 0 the adapter is folded into the weight in each step: fewer, larger kernels
    targets: str | list[str] = "all-linear"


class Fresh(Section):
    """A Transformer of our own: encoder-decoder, shared embeddings, its tokenizer trained on the corpus."""

    size: Literal["tiny", "compact", "base", "large"] = "base"
    decoder: Literal["bpe", "chars"] = "bpe"
    vocabulary: Annotated[int, Field(ge=64)] = 32_000
    dropout: Share = 0.3
    attention_dropout: Share = 0.1
    max_positions: Positive = 1024
    tokenizer_documents: Positive = 1_000_000  # of the corpus, to train the tokenizer on


class ModelSection(Section):
    """Where the weights come from: a `base` by name or folder, or `fresh` ones."""

    base: str | None = None
    fresh: Fresh | None = None
    lora: Lora | None = None
    frozen: bool = False  # the base stays as it is, and only its controls learn

    @model_validator(mode="after")
    def _one(self) -> "ModelSection":
        if (self.base is None) == (self.fresh is None):
            raise ValueError("give either base (a model to start from) or fresh (a size), not both or none")
        if self.fresh and self.lora:
            raise ValueError("lora adapts a base model; a fresh one is trained whole")
        if self.frozen and (self.fresh or self.lora):
            raise ValueError("frozen leaves a base model as it is; leave fresh and lora out")
        return self


class Corpus(Section):
    """Files that belong together and their share of the mixture."""

    files: str | list[str]
    weight: Annotated[float, Field(gt=0)] = 1.0
    format: str | None = None
    fields: tuple[str, str] | None = None
    blank_lines: bool = False


def _corpora(value: Any) -> Any:
    """`file`, or a list of files and {files, weight, …}."""
    items = value if isinstance(value, list) else [value]
    return [{"files": item} if isinstance(item, str) else item for item in items]


Corpora = Annotated[list[Corpus], BeforeValidator(_corpora)]


class DataSection(Section):
    """The corpora, and which of their examples are used."""

    train: Corpora
    dev: Corpora | None = None
    dev_documents: Positive = 2_000
    dev_texts: Annotated[int, Field(ge=0)] = 32  # of them, written at each evaluation to see how far lengths are off
    documents_per_epoch: Positive | None = None  # drawn by weight without end; None: all, once
    shuffle: Positive = 10_000  # documents in the shuffling buffer
    max_tokens: Positive = 1024  # of an example: source + target; longer ones are left out and counted
    max_chars: Positive | None = None
    max_ratio: float | None = None
    max_malformed: Annotated[float, Field(ge=0, le=1)] = 0.01  # of the rows of a file; above it the run stops
    duplicates: bool = False

    def limits(self) -> Limits:
        return Limits(
            max_chars=self.max_chars,
            max_ratio=self.max_ratio,
            max_malformed=self.max_malformed,
            duplicates=self.duplicates,
        )


class LengthsSection(Section):
    """How documents become examples (Zhang et al. 2023); see `lengths.py`.

    `prefixes`: as sentences, but a target ends at one of its sentence ends, drawn anew in each epoch: one text, as many
    lengths as it has sentences. Where the plan of a model fails, it is in the midst of a sentence when no room is left,
    which such texts never are; so a share `anywhere` of them is cut at any token, and of these the end alone is learnt.
    """

    kind: Literal["sentences", "prefixes", "documents", "dynamic", "resolutions"] = "sentences"
    maximum: Positive = 512  # tokens a side
    gamma: float = 5.0  # dynamic: the epoch in which the temperature is 1
    tick: Positive | None = None  # dynamic: documents after which the clock moves on as by an epoch
    separator: str = " "
    anywhere: Share = 0.0  # prefixes

    @model_validator(mode="after")
    def _prefixes(self) -> "LengthsSection":
        if self.anywhere and self.kind != "prefixes":
            raise ValueError(f"anywhere is for prefixes; {self.kind!r} are not cut")
        return self


class ShiftSection(Section):
    """Max New Tokens++ (Butcher et al. 2024); see `shift.py`."""

    start: Annotated[float, Field(gt=0)] = 0.1
    end: Annotated[float, Field(gt=0)] = 2048.0
    maximum: Positive = 1024
    share: Annotated[float, Field(gt=0, le=1)] = 1.0  # of the examples; the others keep their exact length
    cut: Annotated[float, Field(ge=0)] = 0.2  # a text that was cut short uses its room but for this share of itself


class LossSection(Section):
    """Which tokens of a response are learnt. How long a text gets is decided at its end: `last` tokens are all learnt,
    and of those `before` them a share, drawn anew in each epoch. That leaves out most of what says nothing of length.
    """

    last: Positive
    before: Annotated[float, Field(gt=0, lt=1)] = 0.25


class BatchSection(Section):
    """What goes through the device at once."""

    tokens: Positive = 16_384  # padded ones, of both sides
    accumulate: Positive = 1  # batches a process reads before a step
    pool: Positive = 8_192  # documents sorted by length together
    multiple: Positive = 8  # widths are padded to it
    packing: bool = False  # decoder-only: several examples in a row
    workers: Annotated[int, Field(ge=0)] = 1


class TrainSection(Section):
    """The optimiser and when to stop. Exactly one of `epochs` and `steps`."""

    epochs: Positive | None = None
    steps: Positive | None = None
    optimiser: Literal["adamw", "adam"] = "adamw"
    lr: Annotated[float, Field(gt=0)] = 3e-4
    schedule: Literal["linear", "inverse_sqrt", "constant"] = "linear"
    warmup: Annotated[int, Field(ge=0)] = 0
    warmup_from: Annotated[float, Field(ge=0)] = 0.0
    betas: tuple[float, float] = (0.9, 0.99)
    eps: float = 1e-8
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    clip: Annotated[float, Field(gt=0)] | None = 1.0
    label_smoothing: Share = 0.0
    precision: Annotated[Literal["bf16", "no"], BeforeValidator(_no)] = "bf16"
    compile: bool = False
    checkpointing: bool = False  # forget activations and compute them again: slower, for models that fill the memory
    evaluate_every: Positive = 500
    save_every: Positive = 500
    log_every: Positive = 20
    keep: Positive = 2  # the last checkpoints; the best is kept besides
    patience: Positive | None = None  # dev evaluations without a better loss
    average: Positive | None = None  # so many of the last checkpoints make the final model; None: the best on dev does
    half: bool = False  # whose weights are stored in float16: half the size

    @model_validator(mode="after")
    def _one(self) -> "TrainSection":
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("give either epochs or steps")
        if self.schedule == "inverse_sqrt" and not self.warmup:
            raise ValueError("schedule inverse_sqrt falls from the end of the warm-up on; give warmup (papers: 4000)")
        return self


class Recipe(Section):
    """One training run."""

    name: str
    paper: str = ""
    out: Path
    seed: int = 0
    unit: Annotated[list[str], BeforeValidator(_listed)] = ["chars"]  # one, or several: each example draws its own
    model: ModelSection
    controls: list[dict[str, Any]] = []
    data: DataSection
    lengths: LengthsSection = LengthsSection()
    shift: ShiftSection | None = None
    loss: LossSection | None = None  # None: every token
    batch: BatchSection = BatchSection()
    train: TrainSection

    @field_validator("unit")
    @classmethod
    def _unit(cls, value: list[str]) -> list[str]:
        return [unit_named(name).name for name in value]

    @model_validator(mode="after")
    def _agree(self) -> "Recipe":
        controls = self.build_controls()
        for control in controls:
            if control.units and list(control.units) != self.unit:
                own, ours = (", ".join(units) for units in (control.units, self.unit))
                raise ValueError(f"a control counts {own}, the recipe {ours}; give the unit once, on top")
        known = controls or self.model.fresh  # else the base may have controls of its own
        if self.shift and known and not any(getattr(control, "kind", "") == "difference" for control in controls):
            raise ValueError("shift moves the count of a 'difference' encoding; add that control, or leave shift out")
        limits = any(getattr(control, "at_most", False) for control in controls)
        if limits and not self.shift:
            raise ValueError("at_most: true is taught by a shift; add shift: {share: 0.33}, or leave at_most out")
        if self.shift and self.shift.share < 1 and known and not limits:
            raise ValueError("shift.share < 1 mixes limits and exact lengths; a control must tell them: at_most: true")
        if self.batch.packing and any(getattr(control, "scale", "") == "frobenius" for control in controls):
            raise ValueError("scale 'frobenius' is a norm over one example; several in a row (batch.packing) would mix")
        if self.batch.packing and any(control.positions == "replace" for control in controls):
            raise ValueError("batch.packing tells examples apart by their positions; no control may replace them")
        if self.batch.tokens < self.data.max_tokens:
            raise ValueError(
                f"an example may have data.max_tokens = {self.data.max_tokens} tokens, "
                f"but a batch only batch.tokens = {self.batch.tokens}; lower the one or raise the other"
            )
        if self.train.patience and not self.data.dev:
            raise ValueError("train.patience waits for a better dev loss; name data.dev files")
        return self

    def build_controls(self) -> list[Control]:
        """New controls, counting in the recipe's unit."""
        return [control_from(self._with_unit(config)) for config in self.controls]

    def _with_unit(self, config: dict[str, Any]) -> dict[str, Any]:
        name = config.get("control")
        if name not in CONTROLS:
            raise ValueError(f"unknown control {name!r}; {_nearest(str(name), CONTROLS)}")
        counts = "unit" in inspect.signature(CONTROLS[name].__init__).parameters
        return {"unit": self.unit, **config} if counts else dict(config)

    def text(self) -> str:
        """The recipe as YAML, every value spelled out."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


# ---- files and overrides


def load_recipe(path: str | Path, overrides: Iterable[str] = ()) -> Recipe:
    """The recipe in `path`, with `section.key=value` overrides."""
    path = Path(path)
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecipeError(f"cannot read the recipe {path}: {error.strerror or error}") from error
    except yaml.YAMLError as error:
        raise RecipeError(f"{path} is not YAML: {error}") from error
    if not isinstance(values, dict):
        raise RecipeError(f"{path} should hold keys and values (name: …, model: …); found {type(values).__name__}")
    for override in overrides:
        _override(values, override)
    return parse_recipe(values, str(path))


def parse_recipe(values: dict[str, Any], where: str = "the recipe") -> Recipe:
    """A recipe from plain values; all that is wrong with it in one error."""
    try:
        return Recipe.model_validate(values)
    except ValidationError as error:
        faults = [f"  {'.'.join(map(str, fault['loc'])) or '(top)'}: {_plain(fault)}" for fault in error.errors()]
        raise RecipeError(f"{where} cannot be used:\n" + "\n".join(faults)) from None


def _plain(fault: Any) -> str:
    text = str(fault["msg"]).removeprefix("Value error, ")
    own = fault["type"] == "value_error" or isinstance(fault["input"], dict)
    return text if own else f"{text[:1].lower()}{text[1:]}; got {fault['input']!r}"


def _override(values: dict[str, Any], override: str) -> None:
    keys, equals, text = override.partition("=")
    if not equals or not keys.strip():
        raise RecipeError(f"an override is written section.key=value, as train.lr=3e-4; got {override!r}")
    *parents, last = keys.strip().split(".")
    place: Any = values
    for number, key in enumerate(parents):
        if isinstance(place, dict) and place.get(key) is None:
            place[key] = {}
        place = _step(place, key, override, ".".join(parents[:number]))
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise RecipeError(f"cannot read the value in {override!r}: {error}") from error
    if isinstance(place, list):
        _step(place, last, override, ".".join(parents))
        place[int(last)] = value
    elif isinstance(place, dict):
        place[last] = value
    else:
        raise RecipeError(f"cannot set {override!r}: {'.'.join(parents)} is a single value, {place!r}")


def _step(place: Any, key: str, override: str, where: str) -> Any:
    if isinstance(place, dict):
        return place[key]
    if isinstance(place, list) and key.isdigit() and int(key) < len(place):
        return place[int(key)]
    found = f"a list of {len(place)}; use 0 to {len(place) - 1}" if isinstance(place, list) else f"{place!r}"
    raise RecipeError(f"cannot set {override!r}: {where or 'the recipe'} is {found}")
