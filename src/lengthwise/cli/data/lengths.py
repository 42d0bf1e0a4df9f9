"""`lengthwise data lengths`: measure how long a model's texts are without a budget, for `--explain`."""

from pathlib import Path
from typing import Annotated

from .. import options
from ..loading import load
from ..options import argument, option
from ..terminal import UsageError, print_json, progress_bar

BATCH_SIZE = 16


def lengths(
    sources: Annotated[Path, argument("A text file with one prompt, or one text to translate, per line.")],
    model: options.Model = "smollm2",
    to: Annotated[str, option("The model is a translator into this language.", "LANG", "--to")] = "",
    source: Annotated[str, option("Source language.", "LANG", "--from")] = "en",
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

    Each prompt is answered without a budget. Each text is translated without a budget, and as short as possible. Only
    lengths are kept, not texts. Answers that do not end within 512 tokens are left out.
    """
    from ...corpora.lines import Malformed, lines

    texts = [text for _, text in lines(sources) if not isinstance(text, Malformed) and text.strip()]
    if not texts:
        raise UsageError(f"{sources} has no lines with text")
    writer = load(model, device, fitted=bool(to), engine=None)
    from ...evaluation.free_lengths import answers, translations
    from ...models.typical_lengths import add
    from ...translation import Translator

    translator = Translator(writer, source, to) if to else None
    counts = {"free": 0, "shortest": 0}
    with progress_bar() as bar:
        task = bar.add_task("measuring", total=len(texts))
        for start in range(0, len(texts), BATCH_SIZE):  # an interrupted run keeps what it has measured
            part = texts[start : start + BATCH_SIZE]
            free, shortest = translations(translator, part) if translator else (answers(writer, part), [])
            add(model, "translate" if to else "write", "free", free, out)
            add(model, "translate" if to else "write", "shortest", shortest, out)
            counts = {"free": counts["free"] + len(free), "shortest": counts["shortest"] + len(shortest)}
            bar.advance(task, len(part))
    if as_json:
        print_json({"model": model, "texts": len(texts), **counts})
    else:
        also = f", {counts['shortest']} as short as possible" if to else ""
        print(f"{model}: lengths of {counts['free']} texts without a budget{also}, from {len(texts)} lines")
