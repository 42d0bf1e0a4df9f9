"""`lengthwise data check`: read a whole corpus and print what it contains."""

from dataclasses import asdict
from typing import Annotated

import typer

from .. import options
from ..options import argument
from ..terminal import SOME_DO_NOT_FIT, print_json, print_message, progress_bar


def check(
    files: Annotated[list[str], argument("Corpora: JSON Lines, TSV, or two text files as 'a.en,a.it'.")],
    fields: options.Fields = None,
    as_json: options.Json = False,
) -> None:
    """Print the pairs, malformed rows and lengths of a corpus.

    \b
    lengthwise data check corpus.jsonl.gz
    lengthwise data check corpus.en,corpus.it --json

    Exit code 3: there are more malformed rows than training accepts.
    """
    from ...corpora import Limits, Report, read
    from ...corpora.length_statistics import length_statistics

    report, accepted = Report(), Limits().max_malformed
    with progress_bar() as bar:
        task = bar.add_task("reading", total=None)
        documents = read(files, fields=options.field_names(fields), limits=Limits(max_malformed=1), report=report)
        lengths = length_statistics(documents, progress=lambda: bar.update(task, completed=report.kept))
    if as_json:
        print_json({**asdict(report), "characters": lengths})
    else:
        print(report)
        print(f"\n{'characters':<14}" + "".join(f"{name:>10}" for name in lengths["source"]))
        for name, values in lengths.items():
            print(f"{name:<14}" + "".join(f"{value:>10,g}" for value in values.values()))
    if report.malformed > accepted * report.read:
        print_message(f"{report.malformed:,} of {report.read:,} rows are malformed; training accepts {accepted:.0%}")
        raise typer.Exit(SOME_DO_NOT_FIT)
