"""`lengthwise data lengths`: measure how long a model's texts are without a budget, for `--explain`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from .. import options
from ..loading import load
from ..options import argument, flag, option
from ..terminal import UsageError, print_json, progress_bar

if TYPE_CHECKING:
    from ...evaluation.free_lengths import Pairs
    from ...models.typical_lengths import Task

    _Measure = Callable[[list[str]], tuple[Pairs, Pairs]]

BATCH_SIZE = 16


def lengths(
    sources: Annotated[Path, argument("A text file with one prompt per line, or one text to translate or to shorten.")],
    model: options.Model = "smollm2",
    to: Annotated[str, option("The model is a translator into this language.", "LANG", "--to")] = "",
    source: Annotated[str, option("Source language.", "LANG", "--from")] = "en",
    shorten: Annotated[bool, flag("--shorten", "The lines are texts to shorten.")] = False,
    out: Annotated[
        Path | None, option("The model's folder, for the JSON file. [default: the user's cache]", "FOLDER")
    ] = None,
    device: options.Device = None,
    as_json: options.Json = False,
) -> None:
    """Measure how long a model's texts are without a budget, for --explain.

    \b
    lengthwise data lengths prompts.txt --model my-model
    lengthwise data lengths sentences.txt --model en-it --to it
    lengthwise data lengths sentences.txt --shorten

    Each prompt is answered, or each text translated, without a budget and as short as possible. With --shorten, texts
    are only made as short as possible. Only lengths are kept, not texts. An answer that does not end within 512 tokens
    counts with the length that it has by then.
    """
    if shorten and to:
        raise UsageError("--shorten and --to are two tasks; give one of them")
    from ...corpora.lines import Malformed, lines

    texts = [text for _, text in lines(sources) if not isinstance(text, Malformed) and text.strip()]
    if not texts:
        raise UsageError(f"{sources} has no lines with text")
    from ...models.typical_lengths import add

    task, measure = _task(model, source, to, shorten, device)
    counts = {"free": 0, "shortest": 0}
    with progress_bar() as bar:
        shown = bar.add_task("measuring", total=len(texts))
        for start in range(0, len(texts), BATCH_SIZE):  # an interrupted run keeps what it has measured
            part = texts[start : start + BATCH_SIZE]
            free, shortest = measure(part)
            add(model, task, "free", free, out)
            add(model, task, "shortest", shortest, out)
            counts = {"free": counts["free"] + len(free), "shortest": counts["shortest"] + len(shortest)}
            bar.advance(shown, len(part))
    if as_json:
        print_json({"model": model, "texts": len(texts), **counts})
    else:
        measured = [] if shorten else [f"{counts['free']} texts without a budget"]
        measured += [f"{counts['shortest']} texts as short as possible"]
        print(f"{model}: lengths of {', '.join(measured)}, from {len(texts)} lines")


def _task(model: str, source: str, to: str, shorten: bool, device: str | None) -> "tuple[Task, _Measure]":
    """Load the model and return its task, and what gives the free and the shortest texts for some lines."""
    writer = load(model, device, fitted=bool(to), engine=None)
    from ...evaluation.free_lengths import answers, shortened, translations

    if to:
        from ...translation import Translator

        return "translate", partial(translations, Translator(writer, source, to))
    if shorten:
        from ...shortening.shortener import Shortener

        shortener = Shortener(writer)
        return "shorten", lambda part: ([], shortened(shortener, part))
    return "write", partial(answers, writer)
