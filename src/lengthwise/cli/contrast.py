"""`lengthwise contrast`: measure how often a translator prefers the right translation to wrong ones."""

from pathlib import Path
from typing import Annotated

from . import options
from .loading import load
from .options import argument, integer, option
from .terminal import UsageError, print_json, print_message


def contrast(
    file: Annotated[Path, argument("ContraPro's JSON, or JSON Lines with source, reference, contrasts and context.")],
    model: Annotated[str, option(f"Required: the translator. {options.MODEL_HELP}")] = "",
    context: Annotated[int, integer("Give up to N sentences before each source, and their translations.", 0)] = 0,
    context_source: Annotated[Path | None, option("ContraPro's context of the sources.", "FILE")] = None,
    context_target: Annotated[Path | None, option("ContraPro's context of the translations.", "FILE")] = None,
    separator: Annotated[
        str | None, option("Between sentences. [default: that of a model trained on documents, else a space]")
    ] = None,
    to: Annotated[str, option("Target language, for a model of several languages.", "LANG", "--to")] = "",
    source: Annotated[str, option("Source language.", "LANG", "--from")] = "en",
    device: options.Device = None,
    dtype: options.Dtype = None,
    as_json: options.Json = False,
) -> None:
    """Compare the probabilities of right and wrong translations.

    \b
    lengthwise contrast items.jsonl --model Helsinki-NLP/opus-mt-en-fr --context 2
    lengthwise contrast contrapro.json --model ./my-model --context 1 \\
        --context-source contrapro.context.en --context-target contrapro.context.de

    Nothing is translated: the model assigns a log-probability to each given translation. An item is right if its
    reference has the highest. The accuracy is printed for all items and by group: pronoun, distance of the antecedent
    in sentences, phenomenon. The JSON also has the verdict of each item, 1 or 0. A line of JSON Lines is
    {"source": "It is open.", "reference": "Elle est ouverte.", "contrasts": ["Il est ouvert."],
    "context": [["The door.", "La porte."]]}; the context has the sentences before the source and their translations.
    """
    from ..controls import SentenceSeparator
    from ..corpora.contrasts import read_contrasts
    from ..metrics.contrastive import contrastive_scores
    from ..metrics.score import as_table

    if not model:
        raise UsageError("--model is missing; give a translator, for example Helsinki-NLP/opus-mt-en-fr")
    files = None
    if context_source and context_target:
        files = (context_source, context_target)
    elif context_source or context_target:
        raise UsageError("--context-source and --context-target belong together; give both")
    items, prefix = read_contrasts(file, files), ""
    writer = load(model, device, dtype=dtype)
    if to:
        from ..translation.languages import prepare

        prefix, note = prepare(writer, source, to)
        if note:
            print_message(note)
    if separator is None:
        trained = [one for one in writer.engine.controls if isinstance(one, SentenceSeparator)]
        separator = trained[0].separator if trained else " "
    scores = contrastive_scores(writer.engine, items, context=context, separator=separator, prefix=prefix)
    if as_json:
        print_json([vars(score) for score in scores])
    else:
        print(as_table(scores), end="", flush=True)
