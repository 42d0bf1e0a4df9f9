"""Titles of a given number of characters (Takase & Okazaki 2019): quality and length of trained models.

    python bench/titles.py runs/titles-*/model --data data/{acl,debian}.titles.test.jsonl.gz --out titles \
        --baselines titles-transformer,titles-lc,titles-leninit --words data/{acl,debian}.titles.train.jsonl.gz

For each target (20, 30, 50, 75, 100 characters) the sources whose own title has the target's length ± 5 get a title of
exactly the target's length; `reference` is every source at the length of its own title, all lengths in one batch. A
system is named after its run's folder. The ways of decoding, by beam search with five beams:

    soft     the model receives the length; nothing else holds it to it
    hard     the same, under the hard budget
    limit    at most the length, under the hard budget
    rerank   soft, and of the 20 best titles the one that shares most stems with the source
    free     a model without a length control, once for all targets
    cut      the same title, cut at the last word that fits

Scores: recall of ROUGE-1, 2 and L of the title's first bytes, as many as the target; variance of the length; share of
exact lengths; `whole-phrase` (`lengthwise/metrics/phrases.py`); `known-word`: the last word is a word of the source or
of the --words files; `whole`: both. At each target every system that is no baseline is compared with the baseline
whose ROUGE-1 is best there, by paired bootstrap.

--decode only writes the titles, OUT/titles/NAME.json, on a GPU for example. A second call scores those that are there
and decodes what is missing. OUT/scores.json is written after each system, OUT/lengths.{png,svg} at the end. --of scores
the sources of one of the files alone.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import regex

import lengthwise
from lengthwise import Writer, atomic
from lengthwise.corpora.filters import Limits
from lengthwise.corpora.readers import read
from lengthwise.evaluation import plots
from lengthwise.evaluation.baselines import rerank, truncate
from lengthwise.generation.requests import Request
from lengthwise.generation.unconstrained import UnconstrainedWriter
from lengthwise.length.units import measure
from lengthwise.metrics import Texts, compare, score
from lengthwise.metrics.phrases import is_whole
from lengthwise.metrics.tally import as_score, mean_of

Rows = list[tuple[str, str]]  # (source, title)
Cells = dict[str, dict[str, Any]]  # "30/soft" → the titles and the seconds
TARGETS = "20,30,50,75,100,reference"
ROUGE = [f"rouge-{kind}-recall:target" for kind in ("1", "2", "l")]
METRICS = [*ROUGE, "variance", "mae", "exact", "whole-phrase"]
_AROUND = 5  # characters: how far the length of a source's own title may be from the target
_LONGEST = 250  # tokens of a title without a length
_OVERRUN = 50  # tokens of a title beyond its length, in characters
_HYPOTHESES = 20
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+")


# ---- decoding


def rows_in(files: Iterable[str], most: int | None) -> Rows:
    """Return the sources and titles of the first `most` rows of each file, without those that ROUGE cannot read."""
    rows: Rows = []
    for file in files:
        pairs = [pair for document in read(file, limits=Limits(duplicates=True)) for pair in document.segments]
        rows += [(source.strip(), title.strip()) for source, title in pairs[:most]]
    return [row for row in dict(rows).items() if regex.search(r"[a-zA-Z0-9]", row[1])]


def counted(targets: str, rows: Rows) -> dict[str, int]:
    """Return how many rows each target has, and print it."""
    counts = {target: len(rows_of(target, rows)) for target in targets.split(",")}
    print(f"{len(rows):,} titles; by target: {counts}", file=sys.stderr)
    return counts


def rows_of(target: str, rows: Rows) -> Rows:
    """Return the rows of a target: those whose own title has about that length."""
    if target == "reference":
        return rows
    return [row for row in rows if abs(measure(row[1], "chars") - int(target)) <= _AROUND]


def budgets_of(target: str, rows: Rows) -> list[str]:
    return [f"exactly {target if target != 'reference' else measure(title, 'chars')} chars" for _, title in rows]


def limits_of(budgets: list[str]) -> list[str]:
    return [budget.replace("exactly", "at most") for budget in budgets]


class Decoding:
    """The ways of decoding with one model. `sequences`: how many are decoded at once, five or twenty for a title."""

    def __init__(self, writer: Writer, beams: int, sequences: int) -> None:
        self.beams, self.writer, self.counts = beams, Writer(writer.engine, batch_size=sequences), writer.engine.units

        def limit(request: Request) -> int:
            return min(request.limit, int(request.budget.target) + _OVERRUN) if self.counts else _LONGEST

        def search(beams: int, **options: Any) -> Callable[..., list[Any]]:
            options |= {"receives_length": bool(self.counts), "token_limit": limit}
            return UnconstrainedWriter(writer, beams=beams, batch_size=max(1, sequences // beams), **options).write

        self.modes: dict[str, Callable[..., list[Any]]] = {
            "soft" if self.counts else "free": search(beams),
            "hard": lambda texts, budgets: self.writer.write(texts, budgets, finish=False, num_beams=beams),
            "limit": lambda texts, budgets: self.writer.write(texts, limits_of(budgets), num_beams=beams),
            "rerank": search(_HYPOTHESES, hypotheses=_HYPOTHESES, choose=chosen),
        }

    def cells(self, targets: Iterable[str], modes: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        """Yield the name, the target and the mode of each cell. Without a length, one for all targets."""
        if "free" in self.modes:
            yield "free", "reference", "free"
        targets = list(targets)
        for mode in modes:
            for target in targets:
                if (mode == "soft" and self.counts) or (target != "reference" and self._wanted(mode)):
                    yield f"{target}/{mode}", target, mode

    def _wanted(self, mode: str) -> bool:
        return mode in ("hard", "limit") or (mode == "rerank" and bool(self.counts))


def chosen(source: str, found: list[Any]) -> int:
    return rerank(source, [one.text for one in found], [one.log_prob for one in found])


def decode(model: str, rows: Rows, file: Path, asked: argparse.Namespace, settings: dict[str, Any]) -> Cells:
    """Return the titles of a model, from `file` as far as they are there; the file is written after each cell."""
    known = json.loads(file.read_text("utf-8")) if file.exists() else {"settings": settings, "cells": {}}
    if known["settings"] != settings:
        raise SystemExit(f"{file} has titles of other settings: {known['settings']}; give another --out")
    cells: Cells = known["cells"]
    options = {"dtype": asked.dtype} if asked.dtype else {}
    if not Path(model).exists():
        return cells
    decoding = Decoding(lengthwise.load(model, **options), asked.beams, asked.sequences)
    for name, target, mode in decoding.cells(asked.targets.split(","), asked.modes.split(",")):
        if name in cells:
            continue
        some = rows_of(target, rows)
        began = time.perf_counter()
        written = decoding.modes[mode]([source for source, _ in some], budgets_of(target, some))
        seconds = time.perf_counter() - began
        failed = [one.error for one in written if one.error]
        cells[name] = {"seconds": seconds, "failed": failed, "texts": [one.text for one in written]}
        lengths = sorted(measure(one.text, "chars") for one in written)
        quartiles = [lengths[(len(lengths) - 1) * n // 4] for n in range(5)]
        print(f"{file.stem} {name}: {len(some)} titles, {seconds:.1f} s, quartiles of length {quartiles}", flush=True)
        atomic.write_text(file, json.dumps(known, ensure_ascii=False) + "\n")
    return cells


# ---- scores


def texts_of(name: str, cells: Cells, rows: Rows) -> Texts:
    """Return the titles of a cell with their references, sources and budgets; "30/cut" and "30/free" are of "free"."""
    target, _, mode = name.partition("/")
    some = rows_of(target, rows)
    budgets = budgets_of(target, some)
    if mode in ("free", "cut"):
        of_source = dict(zip((source for source, _ in rows), cells["free"]["texts"], strict=True))
        hyps = [of_source[source] for source, _ in some]
        if mode == "cut":
            hyps = [truncate(text, budget) for text, budget in zip(hyps, budgets, strict=True)]
    else:
        hyps = cells[name]["texts"]
    return Texts(hyps, [title for _, title in some], [source for source, _ in some], budgets)


def scored(texts: Texts, words: frozenset[str]) -> dict[str, Any]:
    known = [_known_end(hyp, src, words) for hyp, src in zip(texts.hyps, texts.srcs or (), strict=True)]
    whole = [one and is_whole(hyp) for one, hyp in zip(known, texts.hyps, strict=True)]
    found = score(texts, metrics=METRICS)
    found += [as_score("known-word", mean_of(known, "known-word")), as_score("whole", mean_of(whole, "whole"))]
    return {one.name: {"value": one.value, "interval": one.interval, "signature": one.signature} for one in found}


def _known_end(text: str, source: str, words: frozenset[str]) -> bool:
    found = _WORD.findall(text.lower())
    return bool(found) and (found[-1] in words or found[-1] in _WORD.findall(source.lower()))


def known_words(files: Iterable[str]) -> frozenset[str]:
    pairs = (pair for file in files for document in read(file) for pair in document.segments)
    return frozenset(word for pair in pairs for text in pair for word in _WORD.findall(text.lower()))


def cells_of(cells: Cells, rows: Rows, part: Rows) -> Cells:
    """Return the cells with the titles of the rows of `part` alone."""

    def kept(name: str) -> list[str]:
        some = rows_of("reference" if name == "free" else name.partition("/")[0], rows)
        return [text for text, row in zip(cells[name]["texts"], some, strict=True) if row in wanted]

    wanted = set(part)
    found = {name: cells[name] | {"texts": kept(name)} for name in cells}
    return {name: cell for name, cell in found.items() if cell["texts"]}


def names_in(cells: Cells, targets: Iterable[str]) -> list[str]:
    """Return the names of all cells that can be scored."""
    free = [f"{target}/{mode}" for target in targets for mode in ("free", "cut")] if "free" in cells else []
    return [*(name for name in cells if name != "free"), *free]


def compared(a: Texts, b: Texts) -> dict[str, Any]:
    """Return the paired tests of system b against system a."""
    tests = {metric: compare(a, b, metric=metric) for metric in (ROUGE[0], ROUGE[1], ROUGE[2])}
    return {name: {"a": t.a, "b": t.b, "delta": t.delta, "interval": t.interval, "p": t.p} for name, t in tests.items()}


def comparisons(systems: dict[str, Cells], scores: dict[str, Any], rows: Rows, asked: Any) -> list[dict[str, Any]]:
    """Return the tests of each system against the best baseline of its target, and those of the --against pairs."""

    @cache
    def texts(system: str, cell: str) -> Texts:
        return texts_of(cell, systems[system], rows)

    def tested(kind: str, a: tuple[str, str], b: tuple[str, str]) -> dict[str, Any]:
        return {"kind": kind, "a": "/".join(a), "b": "/".join(b), "tests": compared(texts(*a), texts(*b))}

    found, baselines = [], [name for name in asked.baselines.split(",") if name in systems]
    for target in asked.targets.split(","):
        own = [(name, f"{target}/{mode}") for name in baselines for mode in ("free", "soft")]
        own = [cell for cell in own if cell[1] in scores[cell[0]]]
        if not own:
            continue
        best = max(own, key=lambda cell: scores[cell[0]][cell[1]][ROUGE[0]]["value"])
        others = [(name, f"{target}/{mode}") for name in systems for mode in ("soft", "hard", "limit", "rerank")]
        others = [cell for cell in others if cell[0] not in baselines and cell[1] in scores[cell[0]]]
        found += [tested("best baseline", best, cell) for cell in others]
    for pair in asked.against:
        a, _, b = pair.partition(":")
        if a in systems and b in systems:
            found += [tested("pair", (a, cell), (b, cell)) for cell in scores[a] if cell in scores[b]]
    return found


# ---- the command


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL", help="folders that `lengthwise train` has written")
    parser.add_argument("--data", nargs="+", required=True, metavar="FILE", help="test titles")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--targets", default=TARGETS)
    parser.add_argument("--modes", default="soft,hard,rerank")
    parser.add_argument("--baselines", default="", metavar="NAMES")
    parser.add_argument("--against", nargs="*", default=[], metavar="A:B", help="more pairs to test: b against a")
    parser.add_argument("--words", nargs="*", default=[], metavar="FILE", help="training titles, for known-word")
    parser.add_argument("--plot", default="", metavar="NAMES", help="in the histogram; default: the first seven")
    parser.add_argument("--beams", type=int, default=5)
    parser.add_argument("--sequences", type=int, default=1280, help="decoded at once: titles × beams")
    parser.add_argument("--rows", type=int, default=None, metavar="N", help="the first N of each file")
    parser.add_argument("--dtype", default=None, help="float16 is faster on a GPU")
    parser.add_argument("--of", metavar="FILE", help="one of --data: score its titles alone")
    parser.add_argument("--decode", action="store_true", help="only write the titles")
    asked = parser.parse_args()
    rows = rows_in(asked.data, asked.rows)
    asked.targets = ",".join(target for target, count in counted(asked.targets, rows).items() if count)
    settings = {"data": [Path(file).name for file in asked.data], "rows": asked.rows, "beams": asked.beams}
    (asked.out / "titles").mkdir(parents=True, exist_ok=True)
    systems: dict[str, Cells] = {}
    for model in asked.models:
        name = Path(model).absolute().parent.name if Path(model).name == "model" else Path(model).name
        systems[name] = decode(model, rows, asked.out / "titles" / f"{name}.json", asked, settings)
    if asked.decode:
        return
    if asked.of:
        part = rows_in([asked.of], asked.rows)
        systems = {name: cells_of(cells, rows, part) for name, cells in systems.items()}
        rows = [row for row in rows if row in set(part)]
    counts = counted(asked.targets, rows)
    asked.targets = ",".join(target for target, count in counts.items() if count)
    words, targets = known_words(asked.words), asked.targets.split(",")
    references = {}
    for target in targets:
        titles = [title for _, title in rows_of(target, rows)]
        references[target] = sum(map(is_whole, titles)) / max(1, len(titles))
    settings |= {"of": Path(asked.of).name} if asked.of else {}
    results: dict[str, Any] = {"settings": settings, "rows": counts, "references whole-phrase": references}
    scores: dict[str, Any] = {}
    results["scores"] = scores
    for name, cells in systems.items():
        scores[name] = {cell: scored(texts_of(cell, cells, rows), words) for cell in names_in(cells, targets)}
        for cell, values in scores[name].items():
            shown = "  ".join(f"{key.partition(':')[0]} {values[key]['value']:.3f}" for key in values)
            print(f"{name} {cell}: {shown}", flush=True)
        atomic.write_text(asked.out / "scores.json", json.dumps(results, indent=1) + "\n")
    results["comparisons"] = comparisons(systems, scores, rows, asked)
    atomic.write_text(asked.out / "scores.json", json.dumps(results, indent=1) + "\n")
    drawn = [name for name in asked.plot.split(",") if name in systems] or list(systems)[: len(plots.COLOURS)]
    plots.save(histogram({name: systems[name] for name in drawn}, rows, targets), asked.out / "lengths")


def histogram(systems: dict[str, Cells], rows: Rows, targets: list[str]) -> Any:
    """Return the histogram of length errors, of all fixed targets together."""
    lengths = {}
    for name, cells in systems.items():
        mode = "free" if "free" in cells else "soft"
        cells_of = [f"{target}/{mode}" for target in targets if target != "reference"]
        texts = [texts_of(cell, cells, rows) for cell in cells_of if mode == "free" or cell in cells]
        pairs = [(t, n) for one in texts for t, n in zip(one.targets, one.written, strict=True)]
        lengths[name] = ([t for t, _ in pairs], [n for _, n in pairs])
    return plots.error_histogram(lengths, title="Titles of 20, 30, 50, 75 and 100 characters")


if __name__ == "__main__":
    main()
