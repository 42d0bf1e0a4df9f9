"""Sentences per second of translating: greedy or beam search with the hard budget.

The budget is twice the source, so it runs but rarely binds. CTranslate2 runs the same weights without a budget.
"""

import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ..constraint.mask import LengthConstraint
from ..engines.base import LengthInputs
from ..engines.threads import threads
from ..generation.generator import Writer
from ..models.registry import resolve
from .peers import OURS, why_missing
from .rounds import Clock, in_turns, times_as_fast

Translate = Callable[[list[str], int, int], list[str]]  # sentences, how many at once, beams


def translators(writers: Mapping[str, Writer], model: str, missing: dict[str, str]) -> dict[str, Translate]:
    """Return functions that translate, by peer. Why CTranslate2 cannot is noted in `missing`."""
    found: dict[str, Translate] = {name: _engine(writer) for name, writer in writers.items()}
    reason = why_missing("ctranslate2")
    if reason is None and "transformers" not in writers:
        reason = "it converts models with transformers, which is missing"
    if reason is None:
        try:
            found["ctranslate2"] = _ctranslate2(resolve(model), writers[OURS])
        except (OSError, ValueError, RuntimeError) as error:
            reason = f"it cannot convert {model}: {error}"
    if reason is not None:
        missing["ctranslate2"] = reason
    return found


def speeds(
    peers: Mapping[str, Translate], sources: list[str], size: int, beams: int, rounds: int, clock: Clock
) -> dict[str, Any]:
    """Return sentences/s of each peer, the ratios of ours to the others, and how many texts are the same."""
    for translate in peers.values():
        translate(sources[:1], 1, 1)
    runs = {name: partial(clock.timed, partial(one, sources, size, beams)) for name, one in peers.items()}
    turns = in_turns(runs, rounds)
    seconds = {name: [time for time, _ in own] for name, own in turns.items()}
    texts = {name: own[0][1] for name, own in turns.items()}
    return {
        "at_once": size,
        "beams": beams,
        "sentences": len(sources),
        "sentences_per_second": {name: len(sources) / min(own) for name, own in seconds.items()},
        "times_as_fast_as": {n: times_as_fast(seconds[OURS], own) for n, own in seconds.items() if n != OURS},
        "same_texts": {
            name: sum(one == other for one, other in zip(texts[OURS], own, strict=True))
            for name, own in texts.items()
            if name != OURS
        },
    }


def _engine(writer: Writer) -> Translate:
    engine: Any = writer.engine

    def one_batch(some: list[str], beams: int) -> list[str]:
        ids, limits = [engine.prompt_ids(text) for text in some], [2 * len(text) for text in some]
        lengths = None
        if "chars" in engine.units:
            unit = engine.units.index("chars")
            lengths = LengthInputs(limits, [unit] * len(some), [True] * len(some), [0] * len(some))
        constraint = LengthConstraint(writer.meter("chars"), [1] * len(some), limits, eos=engine.eos)
        how: dict[str, Any] = {"max_new_tokens": 200, "processors": [constraint], "beams": beams}
        found = engine.search(ids, lengths, **how).ids
        return [engine.tokenizer.decode(text, skip_special_tokens=True) for text in found]

    def translate(sources: list[str], size: int, beams: int) -> list[str]:
        getattr(engine, "forget", lambda: None)()  # encoder outputs of the last round
        return [text for some in _batches(sources, size) for text in one_batch(some, beams)]

    return translate


def _ctranslate2(model: Path, writer: Writer) -> Translate:
    """Return a function that translates with CTranslate2 in 8 bits, without budget and length control."""
    import ctranslate2

    with tempfile.TemporaryDirectory() as folder:
        plain, converted = Path(folder) / "plain", str(Path(folder) / "converted")
        _copy_with_padding_last(model, plain)
        ctranslate2.converters.TransformersConverter(str(plain)).convert(converted, quantization="int8")
        translator = ctranslate2.Translator(converted, intra_threads=threads())
    tokenizer: Any = writer.tokenizer

    def translate(sources: list[str], size: int, beams: int) -> list[str]:
        found = []
        for some in _batches(sources, size):
            tokens = [tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"]) for text in some]
            results = translator.translate_batch(tokens, beam_size=beams, max_decoding_length=200)
            vocabulary = tokenizer.get_vocab()
            for result in results:
                ids = [vocabulary[token] for token in result.hypotheses[0]]
                found.append(tokenizer.decode(ids, skip_special_tokens=True))
        return found

    return translate


def _copy_with_padding_last(model: Path, folder: Path) -> None:
    """Copy a Marian model. CTranslate2 drops the last embedding, which it takes for padding, so one must be there."""
    from transformers import MarianMTModel

    loaded = MarianMTModel.from_pretrained(model)
    size = loaded.config.vocab_size
    if loaded.config.pad_token_id != size - 1:
        loaded.resize_token_embeddings(size + 1, mean_resizing=False)
    loaded.save_pretrained(folder)
    for file in model.iterdir():
        if file.name.startswith(("tokenizer", "vocab", "special_tokens", "source.", "target.")):
            shutil.copy(file, folder)


def _batches(sources: list[str], size: int) -> list[list[str]]:
    return [sources[first : first + size] for first in range(0, len(sources), size)]
