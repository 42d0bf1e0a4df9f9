"""`lengthwise score`: score texts that are in files."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from . import options
from .loading import load_tokenizer, silence_libraries
from .options import flag, option
from .terminal import UsageError, print_json, print_message, progress_bar

if TYPE_CHECKING:
    from ..metrics import Texts


def score(
    hyp: Annotated[Path, option("Texts: one per line, JSON Lines, or the folder of an evaluation.", "FILE")],
    ref: Annotated[list[Path] | None, option("References; repeat the option for several per text.", "FILE")] = None,
    src: Annotated[Path | None, option("Sources.", "FILE")] = None,
    length: Annotated[str | None, option("'at most 75 chars', 'reference:words', ... [default: of JSON Lines]")] = None,
    against: Annotated[Path | None, option("Test the difference to these texts (paired bootstrap).", "FILE")] = None,
    metrics: options.Metrics = None,
    reverse: options.ReverseModel = None,
    tokenizer: Annotated[str | None, option("For lengths in tokens: the model of the tokenizer.", "MODEL")] = None,
    bins: Annotated[bool, flag("--bins", "Also score each bin of target lengths.")] = False,
    plots: Annotated[Path | None, option("Save plots here.", "DIR")] = None,
    as_json: options.Json = False,
) -> None:
    """Score texts in files.

    \b
    lengthwise score --hyp out.it --ref test.it --src test.en --length 1.0x
    lengthwise score --hyp results/fit/outputs.jsonl --against results/cut/outputs.jsonl --metrics mae,chrf

    Each score has a 95 % interval and a signature; two scores can be compared if their signatures are equal. JSON Lines
    of `evaluate` contain sources, references and budgets; those of `translate`, sources and budgets; those of `write`,
    budgets. Rows with an empty source and an empty text are left out. --against needs texts with the same budgets, or
    --length.
    """
    from ..evaluation.report import as_markdown, as_plain, report, save_plots
    from ..evaluation.scored_files import read_systems
    from ..evaluation.target_length import TargetLength
    from ..metrics.likelihood import reverse_metrics

    asked = TargetLength.parse(length) if length else None
    counter = load_tokenizer(tokenizer) if tokenizer else None
    systems = read_systems([hyp, against] if against else [hyp], ref or [], src, asked, counter, print_message)
    system = systems[0]
    if bins and system.texts.budgets is None:
        raise UsageError("--bins needs target lengths: give --length, or JSON Lines with budgets")
    named, also = options.metric_names(metrics, reverse), reverse_metrics(reverse)
    verdicts = [one.verdicts(named) for one in systems]
    named = None if named is None else [name for name in named if name not in verdicts[0]]
    _translate_back([*(named or ()), *also], [one.texts for one in systems])
    title = system.title(src or next(iter(ref or []), None), asked)
    given: dict[str, Any] = {"metrics": named, "also": also, "more": verdicts[0], "bins": bins, "title": title}
    if against:
        given |= {"against": (systems[1].name, systems[1].texts), "more_against": verdicts[1]}
    found = report(system.name, system.texts, **given)
    if plots:
        save_plots(found, plots)
    if as_json:
        print_json(as_plain(found))
    else:
        print(as_markdown(found), end="", flush=True)


def _translate_back(metrics: Sequence[str], systems: "Sequence[Texts]") -> None:
    """Translate back what the metrics need, with a progress bar. The reverse model caches the results."""
    from ..metrics.likelihood import back_translators
    from ..metrics.models import reverse_model

    if models := back_translators(metrics):
        if any(texts.srcs is None for texts in systems):
            raise UsageError("metrics of back-translations need the sources: give --src")
        silence_libraries()
        with progress_bar() as bar:
            task = bar.add_task("translating back", total=None)
            for model, texts in product(models, systems):
                back = reverse_model(model)
                back.translate(texts.hyps, lambda done, total: bar.update(task, completed=done, total=total))
