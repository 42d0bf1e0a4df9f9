"""Rewriting: a model writes a shorter text under the hard budget, given the source and an example."""

from collections.abc import Sequence

from ..engines.base import Engine
from ..generation.generator import Writer, Written
from ..length.budget import Budget
from .pieces import split_sentences

LONGEST = 512  # tokens of a prompt
NEUTRAL = "Write a sentence."  # the prompt of texts that are scored without their source
_LONG = "The match that had been planned for Sunday was cancelled because the weather was extremely bad."
# An example for each form. A second one hardly changes the results and takes as long to read as the source.
_SHORT = {"text": "The match was cancelled because the weather was bad.", "headline": "Match cancelled: weather bad"}


def prompt_for(source: str, form: str) -> str:
    """Return the prompt for a short text of this form."""
    short = _SHORT["headline" if form == "headline" else "text"]
    return f"Make each text shorter.\n\nText: {_LONG}\nShort: {short}\n\nText: {source}\nShort:"


def source_prompt(engine: Engine, source: str, form: str, room: int) -> list[int]:
    """Return the ids of the prompt, or of a neutral one if it leaves less than `room` tokens of the window."""
    ids = engine.prompt_ids(prompt_for(source, form))
    return ids if len(ids) + room < engine.window else engine.prompt_ids(NEUTRAL)


def is_trained_for(form: str, engine: Engine) -> bool:
    """Return whether the model was trained to write short texts of this form: its prompt template asks for it."""
    asks = "headline" if form == "headline" else "shorter text"
    return not engine.encoder_decoder and any(asks in control.prefix("", 1, "chars") for control in engine.controls)


def trained_prompt(engine: Engine, text: str, limit: int, unit: str) -> list[int]:
    """Return the ids of the prompt with which a model was trained to write short texts; none for a longer source.

    The sources of training (`recipes/shorten.yaml`) had at most `LONGEST` tokens.
    """
    for control in engine.controls:
        text = control.prefix(text, limit, unit, engine.tokenizer)
    ids = engine.prompt_ids(text)
    return ids if len(ids) <= LONGEST else []


def only_rewrites(engine: Engine, form: str) -> bool:
    """Return whether the model receives the text itself: a summariser, or a model that was trained for the form."""
    return engine.encoder_decoder or is_trained_for(form, engine)


def leading_sentences(engine: Engine, source: str) -> str:
    """Return the source, or the first sentences of it that fit the window of the model; at least one.

    A headline is mostly about the beginning of a long text.
    """
    if len(engine.prompt_ids(source)) < engine.window:
        return source
    first, *rest = split_sentences(source)
    for sentence in rest:
        longer = f"{first} {sentence}"
        if len(engine.prompt_ids(longer)) >= engine.window:
            break
        first = longer
    return first


def rewrite(
    writer: Writer, sources: Sequence[str], budgets: Sequence[Budget], form: str, candidates: int
) -> list[list[Written]]:
    """Return, for each source, up to `candidates` texts written within its budget. Errors give none."""
    if only_rewrites(writer.engine, form):
        prompts = [leading_sentences(writer.engine, one) for one in sources]
    else:
        prompts = [prompt_for(one, form) for one in sources]
    # Beams, not samples: a small model that samples soon writes about something else.
    written = writer.write(prompts, list(budgets), candidates=candidates, num_beams=candidates)
    return [[one for one in (first, *first.candidates) if first.error is None] for first in written]
