"""What does a length cost, and what is lost? Translations within a length beside free ones, with five beams.

    python bench/within.py CORPUS.jsonl.gz --model en-fr --model opus-en-fr [--skip 200] [--count 100] [--from en]
        [--to fr] [--fields target,source] [--length "at most 1.0x"] [--few-first] [--back Helsinki-NLP/opus-mt-fr-en]
        [--rank] [--out FOLDER]

The first pair of each document of the corpus is used; `--fields target,source` reverses it. Each model translates all
sources without a length and within it, on one thread. The columns: `free`, chrF without a length; then, within it,
length / source, chrF, texts that fit and are complete (`good`), wide searches of a sentence (`wide`), texts that leave
words out, texts within 10 % of the source's length (`near`), CPU time / that of the free translations (`cost`).

`--back` adds coverage and tail: the shares of the source's words, and of those in its last quarter, in the greedy
back-translation by this model; with `--rank` it also ranks the translations. `--few-first` searches with few beams
first, and further where that fails, in the order for models that read the length before the source. `--out` receives
the texts: MODEL.txt, MODEL.free.txt, src.txt and ref.txt, for `lengthwise score --against`.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before onnxruntime is imported

import lengthwise
from lengthwise.corpora.readers import read
from lengthwise.metrics import Texts, score
from lengthwise.scoring.reverse import ReverseModel
from lengthwise.translation.hypotheses import WIDER
from lengthwise.translation.translator import Translator

COLUMNS = ("system", "free", "length", "chrf", "good", "wide", "left out", "near", "cost", "coverage", "tail")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--model", action="append", required=True, help="can be repeated")
    parser.add_argument("--engine", default="onnx")
    parser.add_argument("--from", dest="source", default="en")
    parser.add_argument("--to", default="fr")
    parser.add_argument("--fields", type=lambda text: tuple(text.split(",")), help="target,source: reverse the corpus")
    parser.add_argument("--length", default="at most 1.0x")
    parser.add_argument("--skip", type=int, default=0, help="leave out the first so many rows")
    parser.add_argument("--count", type=int, help="use so many rows")
    parser.add_argument("--few-first", action="store_true", help="search with few beams first")
    parser.add_argument("--back", help="a model that translates back")
    parser.add_argument("--rank", action="store_true", help="choose translations by the model of --back")
    parser.add_argument("--out", type=Path, help="a folder for the texts")
    options = parser.parse_args()
    pairs = [document.segments[0] for document in read(options.corpus, fields=options.fields)]
    pairs = pairs[options.skip :][: options.count]
    sources, references = map(list, zip(*pairs, strict=True))
    back = ReverseModel(lengthwise.load(options.back, engine=options.engine).engine) if options.back else None
    print(f"lengthwise {lengthwise.__version__}, {options.engine}, {len(pairs)} sources, {options.length}")
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for name in options.model:
        writer = lengthwise.load(name, engine=options.engine)
        reverse = back if options.rank else None
        translator = Translator(writer, options.source, options.to, reverse=reverse)
        if options.few_first:
            translator.search.hypotheses.reads_length_first = True
        row, free, within = measured(translator, sources, options.length)
        row |= {"system": name, "free": chrf(free, references), "chrf": chrf(within, references)}
        if back is not None:
            backs = Texts(within, srcs=sources, backs=back.translate(within))
            row |= {one.name: round(100 * one.value, 1) for one in score(backs, metrics=["coverage", "tail"])}
        print(f"| {' | '.join(str(row.get(column, '–')) for column in COLUMNS)} |", flush=True)
        if options.out:
            write(options.out, {"src": sources, "ref": references, f"{name}.free": free, name: within})


def measured(translator: Translator, sources: list[str], length: str) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return the columns that need no reference, and the translations without a length and within it."""
    wide = [0]
    hypotheses = translator.search.hypotheses
    bound = hypotheses.bound

    def counted(texts: Any, budgets: Any, wider: int = WIDER, asked_share: float = 1.0) -> Any:
        wide[0] += len(texts) if wider > 1 else 0
        return bound(texts, budgets, wider, asked_share)

    hypotheses.bound = counted  # type: ignore[method-assign]
    translator.translate(sources[:1], length)  # tables of the vocabulary
    began = time.process_time()
    free = translator.translate(sources)
    middle = time.process_time()
    wide[0] = 0
    within = translator.translate(sources, length)
    cost = (time.process_time() - middle) / (middle - began)
    ratios = [one.length / len(source) for one, source in zip(within, sources, strict=True)]
    row = {
        "length": round(sum(ratios) / len(ratios), 3),
        "good": sum(one.fits and one.complete for one in within),
        "wide": wide[0],
        "left out": sum("left out" in (one.note or "") for one in within),
        "near": sum(0.9 <= ratio <= 1.1 for ratio in ratios),
        "cost": round(cost, 1),
    }
    return row, [one.text for one in free], [one.text for one in within]


def chrf(texts: list[str], references: list[str]) -> float:
    [found] = score(texts, refs=references, metrics=["chrf"])
    return round(found.value, 1)


def write(folder: Path, columns: dict[str, list[str]]) -> None:
    """Write each list of texts, one a line, to a file of its name."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, texts in columns.items():
        lines = "".join(f"{text}\n" for text in texts)
        (folder / f"{name.replace('/', '_')}.txt").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
