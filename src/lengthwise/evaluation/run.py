"""Run an evaluation: generate a text for each row of a test set at its target length, and score the outputs."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..corpora import Limits, read
from ..length.budget import as_budget
from ..metrics import Texts, score
from ..metrics.likelihood import back_translators, reverse_metrics
from ..metrics.models import reverse_model
from ..metrics.texts import short_name
from ..models.registry import resolve
from ..version import __version__
from .baselines import DecodingMode
from .outputs import Folder, Key, Output, key_of
from .report import Report, report, short_names, verdicts
from .target_length import TargetLength

if TYPE_CHECKING:
    from ..generation.generator import Writer

BATCHES = 8  # decoded before they are saved
Progress = Callable[[int, int], None]  # texts done so far, and in all


def check_inputs(
    data: str, length: TargetLength, fields: tuple[str, str] | None = None, against: Path | None = None
) -> None:
    """Raise, before a model is loaded, if the test set cannot be read or cannot be compared with `against`."""
    next(read(data, fields=fields, limits=Limits(duplicates=True)))
    settings = against and against / "settings.json"
    # All scores depend on the length, so texts of different target lengths cannot be compared.
    there = json.loads(settings.read_text("utf-8")).get("length") if settings and settings.exists() else None
    if there not in (None, str(length)):
        found = f"{against} has '{there}' and this evaluation '{length}'"
        raise ValueError(f"a paired test needs texts of the same length; {found}; evaluate both with one --length")


def evaluate(
    writer: "Writer",
    data: str,
    length: str | TargetLength,
    mode: DecodingMode | None = None,
    *,
    out: Path | None = None,
    limit: int | None = None,
    fields: tuple[str, str] | None = None,
    metrics: Sequence[str] | None = None,
    reverse: str | None = None,
    against: Path | None = None,
    weights: str = "",
    progress: Progress | None = None,
    back_progress: Progress | None = None,
) -> Report:
    """Write a text for each row of `data`, score the texts, and return the report; with `out`, save all of it there.

    `reverse`: a model that translates the outputs back; its metrics are added. `weights`: the fingerprint of the files
    of the model; outputs of other weights are not reused. `progress`: of writing. `back_progress`: of translating back.
    """
    mode = mode or DecodingMode()
    length = TargetLength.parse(length) if isinstance(length, str) else length
    units = writer.engine.units
    if mode.soft and units and length.unit not in units:  # the controls cannot receive it
        counted = f"the model's controls count {', '.join(sorted(units))} and the length is in {length.unit}"
        raise ValueError(f"{counted}; soft control needs a length in {min(units)}")
    settings = {"model": writer.name, "weights": weights, "length": str(length), **asdict(mode), "version": __version__}
    rows = list(islice(_rows(data, length, fields, writer.tokenizer), limit))
    # All inputs are checked first, because decoding may take hours.
    name, other_name = (writer.name, "") if out is None else short_names(out, against)
    others, other = [], None
    if against is not None:
        check_inputs(data, length, fields, against)
        others = Folder(against).paired(rows)
        other = (other_name or Folder(against).name, _texts(others, writer.tokenizer))
    also = reverse_metrics(reverse)
    _check_metrics(rows, metrics, also, writer.tokenizer)
    folder, write = None if out is None else Folder(out), mode.write_with(writer)
    known: dict[Key, Output] = folder.known(settings) if folder else {}
    missing = [row for row in rows if key_of(row) not in known]
    for batches in _decode(missing, write, writer.batch_size, progress):
        known |= {key_of(output): output for output in batches}
        if folder:
            folder.add(batches)
    outputs, models = [known[key_of(row)] | row for row in rows], back_translators([*(metrics or ()), *also])
    _translate_back(outputs, models, back_progress)
    if folder:
        folder.finish(outputs, known)
    _translate_back(others, models, back_progress)
    found = report(
        name,
        _texts(outputs, writer.tokenizer),
        metrics=metrics,
        also=also,
        more=verdicts(outputs),
        bins=True,
        against=other,
        more_against=verdicts(others),
        about={**settings, "data": data, "not written": sum("error" in output for output in outputs)},
        title=", ".join([f"{writer.name} on {data}", str(length), *mode.baselines]),
    )
    if folder:
        folder.save(found)
    return found


def fingerprint(folder: Path) -> str:
    """Return a hash of the names, sizes and times of the files. It changes if the model is saved again."""
    files = sorted(path for path in Path(folder).iterdir() if path.is_file())
    seen = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return blake2b(repr(seen).encode(), digest_size=8).hexdigest()


def _check_metrics(rows: list[Output], metrics: Sequence[str] | None, also: Sequence[str], tokenizer: Any) -> None:
    """Score one reference as if it were an output: a misspelt metric or a missing library raises an error."""
    several = len({row["document"] for row in rows}) < len(rows)
    texts = _texts([rows[0] | {"text": rows[0]["reference"], "length": 1}], tokenizer)
    for asked in (metrics, also):
        score(replace(texts, docs=[0] if several else None), metrics=asked, bootstrap=0)


def _rows(data: str, length: TargetLength, fields: tuple[str, str] | None, tokenizer: Any) -> Iterator[Output]:
    """Yield one row per pair of the test set, duplicates included."""
    for number, document in enumerate(read(data, fields=fields, limits=Limits(duplicates=True))):
        for part, (source, reference) in enumerate(document.segments, 1):
            id_ = document.id if len(document.segments) == 1 else f"{document.id}#{part}"
            row = {"id": id_, "document": number, "source": source, "reference": reference}
            yield row | {"budget": str(length.of(source, reference, tokenizer))}


def _decode(
    rows: list[Output], write: Callable[..., list[Any]], batch_size: int, progress: Progress | None
) -> Iterator[list[Output]]:
    """Yield the outputs of the rows, `BATCHES` batches at a time."""
    done = 0

    def written(count: int) -> None:
        nonlocal done
        done += count
        if progress:
            progress(done, len(rows))

    written(0)
    for start in range(0, len(rows), batch_size * BATCHES):
        some = rows[start : start + batch_size * BATCHES]
        texts = write([r["source"] for r in some], [r["budget"] for r in some], seed=start, progress=written)
        outputs = [row | text.as_json() for row, text in zip(some, texts, strict=True)]
        for output in outputs:
            del output["model"], output["candidates"]
        yield outputs


def _translate_back(outputs: list[Output], models: Sequence[str], progress: Progress | None) -> None:
    """Add each reverse model's translations to the outputs, and to the model, from which the metrics take them."""
    for model in models:
        translator, key = reverse_model(model), f"{short_name(model)} {fingerprint(resolve(model))}"
        saved = {output["text"]: output["back"][key] for output in outputs if key in output.get("back", {})}
        translator.translations.update(saved)
        backs = translator.translate([output["text"] for output in outputs], progress)
        for output, back in zip(outputs, backs, strict=True):
            output["back"] = output.get("back", {}) | {key: back}


def _texts(outputs: list[Output], tokenizer: Any) -> Texts:
    names = ("text", "reference", "source", "document", "length")
    hyps, refs, srcs, documents, counts = ([output[name] for output in outputs] for name in names)
    budgets = [as_budget(output["budget"]) for output in outputs]
    docs = documents if len(set(documents)) < len(documents) else None
    lengths = counts if budgets[0].unit == "tokens" else None  # as generated: tokenizing the text may give others
    return Texts(hyps, refs, srcs, budgets, docs, lengths=lengths, tokenizer=tokenizer)
