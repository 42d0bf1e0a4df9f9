"""`lengthwise score`: scores of texts that are there already, in files. Knows files and columns; writes no text."""

import json
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .evaluate import ReverseModel, split
from .loading import hush, load_tokenizer
from .terminal import Json, UsageError, complain, print_json, progress_bar

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from ..evaluation.run import Length
    from ..length.budget import Budget
    from ..metrics import Texts

Rows = list[dict[str, Any]]


def score(
    hyp: Annotated[
        Path, typer.Option(metavar="FILE", help="The texts: one a line, JSONL of write, or evaluate's folder.")
    ],
    ref: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="The references; may be given again for more of each.")
    ] = None,
    src: Annotated[Path | None, typer.Option(metavar="FILE", help="The sources.")] = None,
    length: Annotated[
        str | None, typer.Option(help="'at most 75 chars', '1.0x', 'reference:words', ... [default: the JSONL's]")
    ] = None,
    against: Annotated[Path | None, typer.Option(metavar="FILE", help="Test the difference to these texts.")] = None,
    metrics: Annotated[str | None, typer.Option(metavar="A,B", help="Only these. [default: all that apply]")] = None,
    reverse: ReverseModel = None,
    tokenizer: Annotated[str | None, typer.Option(help="For lengths in tokens: whose? A name or folder.")] = None,
    bins: Annotated[bool, typer.Option("--bins", help="Also by target length.")] = False,
    plots: Annotated[Path | None, typer.Option(metavar="DIR", help="Save plots here.")] = None,
    as_json: Json = False,
) -> None:
    """Score texts in files.

    \b
    lengthwise score --hyp out.it --ref test.it --src test.en --length 1.0x
    lengthwise score --hyp results/fit/outputs.jsonl --against results/cut/outputs.jsonl --metrics mae,chrf

    Every score has its 95 % interval and its signature: two scores compare when their signatures agree. Outputs of
    evaluate bring their sources, references and budgets along; those of translate their sources and budgets, of
    write their budgets. Empty lines that were translated as such are left out. --against needs texts with the same
    budgets, or a --length for both.
    """
    from ..evaluation.report import VERDICTS, as_markdown, as_plain, report, save_plots, short_names, verdicts
    from ..evaluation.run import Length
    from ..scoring.reverse import all_with

    hyp, against = _outputs(hyp), _outputs(against) if against else None
    asked = Length.parse(length) if length else None
    counter = load_tokenizer(tokenizer) if tokenizer else None
    rows, others = (_read_texts(path, asked) if path else [] for path in (hyp, against))
    # What stands in several files belongs together line by line: nothing is scored before they are found equally long.
    references = [_equal(hyp, rows, path, _column(path, "reference")) for path in ref or []]
    sources = _equal(hyp, rows, src, _column(src, "source")) if src else _field(rows, "source")
    refs: Sequence[Any] | None = list(zip(*references, strict=True)) if references else _field(rows, "reference")
    if against:
        _equal(hyp, rows, against, others)
        if asked is None:
            _same_budgets(hyp, rows, against, others)
    if empty := _empty(sources or [], *([rows, others] if others else [rows])):
        complain(f"{len(empty)} of {len(rows)} rows have neither a source nor a text, and are left out")
        rows, refs, sources, others = (_but(empty, column) for column in (rows, refs, sources, others))
    for path, of_path in ((hyp, rows), (against, others)):
        if failed := sum(bool(row.get("error")) for row in of_path):
            complain(f"{failed} of {len(of_path)} rows of {path} could not be written, and count as empty texts")
    texts = _texts(hyp, rows, refs, sources, asked, counter)
    if bins and texts.budgets is None:
        raise UsageError("--bins are of the target length: say --length, or give JSONL with budgets")
    (name, other_name), other = short_names(hyp, against), None
    if against:
        other = (other_name, _texts(against, others, refs, sources, asked, counter))
        if (texts.budgets is None) != (other[1].budgets is None):
            raise ValueError(f"of {hyp} and {against}, only one has budgets: say --length to score both by one")
    named, also = split(metrics), all_with(reverse)
    told, told_there = (
        {name: tally for name, tally in verdicts(of_path).items() if name in (named or VERDICTS)}
        for of_path in (rows, others)
    )
    named = [name for name in named if name not in told] if named else None
    _translate_back([*(named or ()), *also], [texts, *([other[1]] if other else [])])
    title = _title(hyp, rows, next(iter([*([src] if src else []), *(ref or [])]), None), asked)
    more = {"more": told, "more_against": told_there}
    found = report(name, texts, metrics=named, also=also, bins=bins, against=other, title=title, **more)
    if plots:
        save_plots(found, plots)
    if as_json:
        print_json(as_plain(found))
    else:
        print(as_markdown(found), end="", flush=True)


def _translate_back(metrics: Sequence[str], systems: "Sequence[Texts]") -> None:
    """What metrics would ask of a reverse model, asked beforehand: it may take minutes, and here they are seen."""
    from ..scoring.reverse import loaded, translators

    if models := translators(metrics):
        if any(texts.srcs is None for texts in systems):
            raise UsageError("what is translated back is looked for in the sources: say --src")
        hush()
        with progress_bar() as bar:
            for model, texts in product(models, systems):
                task = bar.add_task("translating back", total=None)
                loaded(model).translate(texts.hyps, partial(_show, bar, task))


def _show(bar: "Progress", task: "TaskID", done: int, total: int) -> None:
    bar.update(task, completed=done, total=total)


def _same_budgets(hyp: Path, rows: Rows, against: Path, others: Rows) -> None:
    """Texts of other lengths differ in every score, and not by the system's merit."""
    pairs = ((row.get("budget"), other.get("budget")) for row, other in zip(rows, others, strict=True))
    for number, (here, there) in enumerate(pairs, 1):
        if here and there and here != there:
            raise ValueError(
                f"a paired test needs texts of the same length; row {number} was to be '{here}' in {hyp} and '{there}' "
                f"in {against}: say --length to score both by one"
            )


def _title(hyp: Path, rows: Rows, data: Path | None, asked: "Length | None") -> str:
    """Which system, on what, at which length: what evaluate said of its outputs, or what the files tell."""
    before = hyp.with_name("scores.json")
    if hyp.name == "outputs.jsonl" and before.exists() and asked is None:
        return json.loads(before.read_text("utf-8")).get("title", str(hyp))
    models, budgets = (sorted({str(row.get(name) or "") for row in rows}) for name in ("model", "budget"))
    system = f"{models[0]} ({hyp})" if len(models) == 1 and models[0] else str(hyp)
    length = str(asked) if asked else budgets[0] if len(budgets) == 1 else "several lengths"
    return f"{system}{f' on {data}' if data else ''}{f', {length}' if length else ''}"


def _read(path: Path) -> Rows:
    """The rows of a file: texts alone, or the objects of JSON Lines."""
    from ..corpora.lines import Malformed, lines

    if not path.exists():
        raise ValueError(f"no file {str(path)!r}")
    jsonl = path.name.removesuffix(".gz").endswith((".jsonl", ".ndjson"))
    rows: Rows = []
    for number, line in lines(path):
        if isinstance(line, Malformed):
            raise ValueError(str(line))
        if not jsonl:
            rows.append({"text": line})
        elif line.strip():
            rows.append(_object(line, f"{path}:{number}"))
    return rows


def _outputs(path: Path) -> Path:
    """The texts of an evaluation, where its folder is named."""
    return path / "outputs.jsonl" if path.is_dir() else path


def _read_texts(path: Path, asked: "Length | None") -> Rows:
    """The rows of a file, with their budgets read if they are to be scored by."""
    from ..length.budget import as_budget

    rows = _read(path)
    for number, row in enumerate(rows, 1):
        try:
            if asked is None and row.get("budget"):
                row["budget"] = as_budget(row["budget"])
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}, row {number}: {error}") from None
    return rows


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{where} is not JSON: {error}") from None
    if not isinstance(row, dict):
        raise ValueError(f"{where} must be an object with a field text; got {line[:40]}")
    return row


def _column(path: Path, name: str) -> list[str]:
    """One text a row: a line, or the field `name` (else `text`) of an object."""
    texts = [row.get(name, row.get("text")) for row in _read(path)]
    if bad := next((n for n, text in enumerate(texts, 1) if not isinstance(text, str)), None):
        raise ValueError(f"{path}, row {bad}: neither {name} nor text is there")
    return texts  # type: ignore[return-value]  # None was refused


def _equal(hyp: Path, rows: Rows, path: Path, column: list[Any]) -> list[Any]:
    if len(rows) != len(column):
        raise ValueError(
            f"{hyp} has {len(rows)} texts and {path} has {len(column)}; line n of one belongs to line n of the other"
        )
    return column


def _empty(sources: list[str], *systems: Rows) -> set[int]:
    """Lines that were empty, and translated as such: they say nothing of a system, and there is no ratio to them."""

    def is_empty(row: dict[str, Any]) -> bool:
        return isinstance(row.get("text"), str) and not row["text"].strip() and not row.get("error")

    return {n for n, source in enumerate(sources) if not source.strip() and all(is_empty(rows[n]) for rows in systems)}


def _but(rows: set[int], column: Any) -> Any:
    return column and [value for n, value in enumerate(column) if n not in rows]


def _field(rows: Rows, name: str) -> list[str] | None:
    """A field that every row has, or nothing."""
    values = [row.get(name) for row in rows]
    return values if values and all(isinstance(value, str) for value in values) else None  # type: ignore[return-value]


def _budgets(path: Path, rows: Rows) -> "list[Budget] | None":
    """What the rows were to be, if every row says so."""
    asked = [row["budget"] for row in rows if row.get("budget")]  # without a length it is empty, or not there
    if asked and len(asked) < len(rows):
        complain(
            f"{len(rows) - len(asked)} of {len(rows)} rows of {path} have no budget: no score of lengths asked for"
        )
    return asked if len(asked) == len(rows) else None


def _texts(
    path: Path,
    rows: Rows,
    refs: Sequence[Any] | None,
    sources: list[str] | None,
    length: "Length | None",
    tokenizer: Any,
) -> "Texts":
    from ..metrics import Texts

    texts = _field(rows, "text")
    if texts is None:
        raise ValueError("every row of the texts needs a field text" if rows else "nothing to score: there is no text")
    counts = [row.get("length") for row in rows]
    budgets: Any = None if length else _budgets(path, rows)
    in_tokens = length.unit == "tokens" if length else bool(budgets) and budgets[0].unit == "tokens"
    relative = length is not None and (length.budget is None or length.budget.of_source)
    if in_tokens and tokenizer is None and (relative or None in counts):
        raise UsageError("each model has its own tokens: say whose, for example --tokenizer smollm2")
    if length is not None:
        nothing: list[None] = [None] * len(rows)
        firsts = [one if isinstance(one, str) else one[0] for one in refs] if refs else nothing
        budgets = [length.of(src, ref, tokenizer) for src, ref in zip(sources or nothing, firsts, strict=True)]
    known: Any = counts if in_tokens and None not in counts else None  # by the writer, which knows best
    return Texts(texts, refs, sources, budgets, lengths=known, tokenizer=tokenizer)
