"""Recipes: every setting that decides the result of a training run, as one typed value.

A recipe is a YAML file. An unknown key is an error that names the nearest known one. Overrides are written
`train.lr=3e-4`. No corpus is opened and no model is built here.
"""

import difflib
import inspect
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml  # type: ignore[import-untyped]
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from ..controls import CONTROLS, Control, control_from, with_new_names
from ..length.units import unit_named

Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, lt=1)]


class RecipeError(ValueError):
    """A recipe cannot be used; the text says where, why, and what to do."""


class Section(BaseModel):
    """A part of a recipe, immutable. An error names each unknown key."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, values: Any) -> Any:
        for key in values if isinstance(values, dict) else ():
            if key not in cls.model_fields:
                raise ValueError(f"unknown key {key!r}; {_nearest(str(key), cls.model_fields)}")
        return values


def _nearest(key: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(key, list(known), n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"the keys here are {', '.join(known)}"


class Lora(Section):
    """Low-rank adapters on the linear layers; the base weights are frozen."""

    rank: Positive = 16
    alpha: Positive = 32
    dropout: Share = 0.05  # at 0 the adapter is merged into the weight in each step: fewer, larger kernels
    targets: str | list[str] = "all-linear"


class Fresh(Section):
    """An untrained encoder-decoder Transformer with shared embeddings; its tokenizer is trained on the corpus."""

    size: Literal["tiny", "small", "compact", "base", "large"] = "base"
    decoder: Literal["bpe", "chars"] = "bpe"
    lstm: Annotated[int, Field(ge=0)] = 0  # layers of an LSTM decoder; 0: a Transformer decoder
    vocabulary: Annotated[int, Field(ge=64)] = 32_000
    dropout: Share = 0.3
    attention_dropout: Share = 0.1
    max_positions: Positive = 1024
    tokenizer_documents: Positive = 1_000_000  # on which the tokenizer is trained


class Smaller(Section):
    """A smaller copy of a Marian base: its most frequent tokens, and some layers of its decoder."""

    vocabulary: Annotated[int, Field(ge=64)] = 16_000
    decoder_layers: Positive = 3
    documents: Positive = 200_000  # in which the tokens are counted


class ModelSection(Section):
    """Where the weights come from: a `base` model by name or folder, or `fresh` ones."""

    base: str | None = None
    smaller: Smaller | None = None
    fresh: Fresh | None = None
    lora: Lora | None = None
    frozen: bool = False  # train only the controls

    @model_validator(mode="after")
    def _one(self) -> "ModelSection":
        if (self.base is None) == (self.fresh is None):
            raise ValueError("give either base (a model to start from) or fresh (a size), not both or none")
        if self.smaller and (self.fresh or self.lora or self.frozen):
            raise ValueError(
                "smaller makes a copy of a base model, which is trained whole; leave fresh, lora, frozen out"
            )
        if self.fresh and self.lora:
            raise ValueError("lora adapts a base model; a fresh one is trained whole")
        if self.frozen and (self.fresh or self.lora):
            raise ValueError("frozen leaves a base model as it is; leave fresh and lora out")
        return self

    @property
    def has_new_tokenizer(self) -> bool:
        """Whether the tokenizer is made from the training corpus."""
        return bool(self.fresh or self.smaller)


class Corpus(Section):
    """Files of one corpus, and its share of the mixture."""

    files: str | list[str]
    weight: Annotated[float, Field(gt=0)] = 1.0
    format: str | None = None
    fields: tuple[str, str] | None = None
    blank_lines: bool = False


def _corpora(value: Any) -> Any:
    """Accept a file, or a list of files and of {files, weight, …}."""
    items = value if isinstance(value, list) else [value]
    return [{"files": item} if isinstance(item, str) else item for item in items]


Corpora = Annotated[list[Corpus], BeforeValidator(_corpora)]


class DataSection(Section):
    """The corpora, and which of their examples are used."""

    train: Corpora
    dev: Corpora | None = None
    dev_documents: Positive = 2_000
    dev_texts: Annotated[int, Field(ge=0)] = 32  # generated at each evaluation, for the mean length error
    documents_per_epoch: Positive | None = None  # drawn by weight, with repetition; None: each document once
    shuffle: Positive = 10_000  # documents in the shuffling buffer
    max_tokens: Positive = 1024  # of source and target; longer examples are left out and counted
    max_chars: Positive | None = None
    max_ratio: float | None = None
    max_malformed: Annotated[float, Field(ge=0, le=1)] = 0.01  # share of a file's rows; above it the run stops
    duplicates: bool = False


class LengthsSection(Section):
    """How documents become examples: `dynamic_length_sampling.py` (Zhang et al. 2023).

    `prefixes`: as `sentences`, but a target ends at one of its sentence ends, drawn in each epoch: one text gives as
    many lengths as it has sentences. In generation a text can be inside a sentence when its budget ends, which never
    happens in such examples. So a share `anywhere` is truncated at any token, and only their end token has a loss.
    """

    kind: Literal["sentences", "prefixes", "documents", "dynamic", "resolutions"] = "sentences"
    maximum: Positive = 512  # tokens per side
    gamma: float = 5.0  # dynamic: the epoch at which T = 1
    tick: Positive | None = None  # dynamic: the number of documents that counts as one epoch in the schedule of T
    separator: str = " "
    anywhere: Share = 0.0  # prefixes
    without: list[Positive] = []  # targets of exactly these lengths, in the recipe's unit, are left out

    @property
    def several_sentences(self) -> bool:
        """Whether an example can have several sentences."""
        return self.kind in ("documents", "dynamic", "resolutions")

    @property
    def joins_sentences(self) -> bool:
        """Whether an example can have several sentences, with a token between them."""
        return self.several_sentences and bool(self.separator.strip())

    @model_validator(mode="after")
    def _prefixes(self) -> "LengthsSection":
        if self.anywhere and self.kind != "prefixes":
            raise ValueError(f"anywhere needs kind: prefixes; got kind {self.kind!r}")
        return self


class ShiftSection(Section):
    """Max New Tokens++ (Butcher et al. 2024): `max_new_tokens_pp.py`."""

    start: Annotated[float, Field(gt=0)] = 0.1
    end: Annotated[float, Field(gt=0)] = 2048.0
    maximum: Positive = 1024
    share: Annotated[float, Field(gt=0, le=1)] = 1.0  # of the lengths are upper limits; the others are exact
    cut: Annotated[float, Field(ge=0)] = 0.2  # the largest shift of a truncated text, as a share of its length


class LossSection(Section):
    """The tokens of a response that have a loss: the `last`, and a share of those `before`, drawn in each epoch."""

    last: Positive
    before: Annotated[float, Field(gt=0, lt=1)] = 0.25  # most of these tokens do not depend on the length


class BatchSection(Section):
    """The size of a batch."""

    tokens: Positive = 16_384  # of source and target together, padding included
    accumulate: Positive = 1  # batches of a process in one step
    pool: Positive = 8_192  # documents that are sorted by length together
    multiple: Positive = 8  # every width is a multiple of this
    packing: bool = False  # decoder-only: several examples in a row
    workers: Annotated[int, Field(ge=0)] = 1


Precision = Annotated[Literal["bf16", "no"], BeforeValidator(lambda value: "no" if value is False else value)]


class TrainSection(Section):
    """The optimiser, and the number of `epochs` or `steps`."""

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
    precision: Precision = "bf16"
    compile: bool = False
    checkpointing: bool = False  # gradient checkpointing: slower, less memory
    evaluate_every: Positive = 500
    save_every: Positive = 500
    log_every: Positive = 20
    keep: Positive = 2  # of the last checkpoints; the best one is always kept
    patience: Positive | None = None  # dev evaluations without a better loss
    average: Positive | None = None  # average the last checkpoints; None: the best on dev is the final model
    half: bool = False  # store the final model in float16

    @model_validator(mode="after")
    def _one(self) -> "TrainSection":
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("give either epochs or steps")
        if self.schedule == "inverse_sqrt" and not self.warmup:
            raise ValueError("schedule inverse_sqrt needs train.warmup above 0, for example 4000 as in the papers")
        return self


Units = Annotated[
    list[str],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    AfterValidator(lambda value: [unit_named(name).name for name in value]),
]
Controls = Annotated[list[dict[str, Any]], AfterValidator(lambda value: [with_new_names(config) for config in value])]


class Recipe(Section):
    """One training run."""

    name: str
    paper: str = ""
    out: Path
    seed: int = 0
    unit: Units = ["chars"]  # one, or several: each example draws its own
    model: ModelSection
    controls: Controls = []
    data: DataSection
    lengths: LengthsSection = LengthsSection()
    shift: ShiftSection | None = None
    loss: LossSection | None = None  # None: every token
    batch: BatchSection = BatchSection()
    train: TrainSection

    @model_validator(mode="after")
    def _agree(self) -> "Recipe":
        controls = self.build_controls()
        known = controls or self.model.fresh  # otherwise the base may have controls of its own
        if known:
            self.check_controls(controls)
        limits = any(control.at_most for control in controls)
        if limits and not self.shift:
            raise ValueError("at_most: true is trained with a shift; add shift: {share: 0.33}, or leave at_most out")
        if self.shift and self.shift.share < 1 and known and not limits:
            raise ValueError("shift.share < 1 mixes limits and exact lengths; add at_most: true to a control")
        if self.batch.packing and any(control.norm_of_example for control in controls):
            raise ValueError("scale 'frobenius' is a norm over one example; batch.packing puts several in a row")
        if self.batch.packing and any(control.positions == "replace" for control in controls):
            raise ValueError("batch.packing separates examples by their positions; no control may replace these")
        if self.batch.tokens < self.data.max_tokens:
            found = f"batch.tokens = {self.batch.tokens} is below data.max_tokens = {self.data.max_tokens}"
            raise ValueError(f"{found}; raise the first or lower the second")
        if self.train.patience and not self.data.dev:
            raise ValueError("train.patience needs a dev loss; set data.dev")
        return self

    def check_controls(self, controls: Sequence[Control]) -> None:
        """Raise an error if these controls, the recipe's or those of its base model, do not fit `unit` and `shift`."""
        for control in controls:
            if control.units and list(control.units) != self.unit:
                own, ours = (", ".join(units) for units in (control.units, self.unit))
                raise RecipeError(f"a control counts {own}, the recipe {ours}; write unit: [{own}] at the top")
        if self.shift and not any(control.can_shift for control in controls):
            needed = "a 'difference' encoding, a countdown head or the length in the prompt"
            raise RecipeError(f"shift needs {needed}; add one, or leave shift out")

    def build_controls(self) -> list[Control]:
        """Return new controls that count in the recipe's unit."""
        built = []
        for config in self.controls:
            if (name := config.get("control")) not in CONTROLS:
                raise ValueError(f"unknown control {name!r}; {_nearest(str(name), CONTROLS)}")
            counts = "unit" in inspect.signature(CONTROLS[name].__init__).parameters
            built.append(control_from({"unit": self.unit, **config} if counts else config))
        return built

    def text(self) -> str:
        """Return the recipe as YAML, with every value."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


# ---- files and overrides


def load_recipe(path: str | Path, overrides: Iterable[str] = ()) -> Recipe:
    """Return the recipe in `path`, with `section.key=value` overrides."""
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
    """Return a recipe from plain values; one error lists all faults."""
    try:
        return Recipe.model_validate(values)
    except ValidationError as error:
        lines = [f"{where} cannot be used:"]
        for fault in error.errors():
            text = fault["msg"].removeprefix("Value error, ")
            if fault["type"] != "value_error" and not isinstance(fault["input"], dict):
                text = f"{text[:1].lower()}{text[1:]}; got {fault['input']!r}"
            lines.append(f"  {'.'.join(map(str, fault['loc'])) or '(top)'}: {text}")
        raise RecipeError("\n".join(lines)) from None


def _override(values: dict[str, Any], override: str) -> None:
    keys, equals, text = override.partition("=")
    if not equals or not keys.strip():
        raise RecipeError(f"an override has the form section.key=value, for example train.lr=3e-4; got {override!r}")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise RecipeError(f"cannot read the value in {override!r}: {error}") from error
    *parents, last = keys.strip().split(".")
    place: Any = values
    for number, key in enumerate(parents):
        if isinstance(place, dict) and place.get(key) is None:
            place[key] = {}
        place = place[_key_in(place, key, override, parents[:number])]
    place[_key_in(place, last, override, parents)] = value


def _key_in(place: Any, key: str, override: str, parents: list[str]) -> Any:
    """Return `key` as a key of a section, or as an index of a list."""
    if isinstance(place, dict):
        return key
    listed = isinstance(place, list)
    if listed and key.isdigit() and int(key) < len(place):
        return int(key)
    found = f"a list of {len(place)}; use 0 to {len(place) - 1}" if listed else f"a single value, {place!r}"
    raise RecipeError(f"cannot set {override!r}: {'.'.join(parents) or 'the recipe'} is {found}")
