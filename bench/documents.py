"""Quality of document translation against the decoding length, for each way of decoding.

    python bench/documents.py runs/*/model --data data/libreoffice-help.en-de.test.jsonl.gz --out documents.json

Documents are cut into pieces of at most 1, 64, 128, ... source tokens, which are translated one by one; a length of 1
token is sentence by sentence. A model that is biased towards the lengths of its training loses quality at the others
(Zhang et al. 2023, figure 1). The methods are those of `lengthwise.translation.sliding`:

    whole        a piece is one window, as the model writes it; if the number of its sentences is wrong, they are
                 realigned with the references for the scores of sentences
    counted      a piece is one window, and the logits are masked so that the number of its sentences is right
    segments     windows of half the longest training segment (--window) that do not overlap
    slide        the paper's sliding decoding
    held-back    sliding, where the last sentence of a window waits for its right context
    candidates   held-back, with three drafts that compete
    candidates-reverse   the same, where the model of --reverse scores the drafts as well
    revised      sentences are translated alone, then each again with both sides of its context
    compared     revised, where a sentence stays as it was if that is more probable

Except for `whole`, a window with a wrong number of sentences is translated sentence by sentence; these translations are
made once, before the first method. A piece that two lengths have in common is translated once. Reported are BLEU and
chrF of sentences and of documents, the shares of documents in which the number of sentences was right without that
repair and in the end, and seconds. The file has the outputs as well.

--positions 4 adds BLEU and chrF of the sentences in each quarter of the documents. --metrics names other scores, for
example `bleu,d-bleu,coverage:models/opus-mt-fr-en`, the share of source words that reappear in a back-translation.

--against MODEL:METHOD:LENGTH tests every scored cell against that one by paired bootstrap. --plot draws d-BLEU against
the decoding length for all models and methods with several lengths.

A method may have lengths of its own, `--methods whole,slide:512+4096`; the others have those of --lengths.
--decode only writes the texts, on a GPU for example. A second call scores those that are there and decodes what is
missing.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import lengthwise
from lengthwise import atomic
from lengthwise.corpora.filters import Limits
from lengthwise.corpora.readers import read
from lengthwise.engines.base import Engine
from lengthwise.evaluation import plots
from lengthwise.metrics import Score, Texts, compare, realign, score, score_positions
from lengthwise.metrics.models import reverse_model
from lengthwise.training.dynamic_length_sampling import cut
from lengthwise.translation.sliding import DocumentDecoder, Draft

METRICS = "bleu,d-bleu,chrf,d-chrf,consistency"
TESTED = ["bleu", "d-bleu"]
BY_POSITION = ["bleu", "chrf"]
Documents = list[list[str]]
Alone = dict[str, tuple[int, ...]]  # a sentence → the ids of its translation without context


def revised(decoder: DocumentDecoder, pieces: Documents, compare: bool = False) -> list[Draft]:
    known = decoder.translate_alone([source for piece in pieces for source in piece])
    drafts = [Draft(tuple(known[source] for source in piece)) for piece in pieces]
    return decoder.revise(pieces, drafts, compare=compare)


def candidates(decoder: DocumentDecoder, pieces: Documents) -> list[Draft]:
    return decoder.slide(pieces, hold_back=1, candidates=3)


METHODS: dict[str, Callable[[DocumentDecoder, Documents], list[Draft]]] = {
    "whole": DocumentDecoder.segments,
    "counted": DocumentDecoder.segments,
    "segments": DocumentDecoder.segments,
    "slide": DocumentDecoder.slide,
    "held-back": lambda decoder, pieces: decoder.slide(pieces, hold_back=1),
    "candidates": candidates,
    "candidates-reverse": candidates,
    "revised": revised,
    "compared": partial(revised, compare=True),
}


def decoder_of(engine: Engine, method: str, length: int, asked: argparse.Namespace, alone: Alone) -> DocumentDecoder:
    """Return the decoder of a method: `whole` and `counted` have one window for each piece."""
    one = method in ("whole", "counted")
    options = {"window": length if one else asked.window, "count": method == "counted", "repair": method != "whole"}
    reverse = reverse_model(asked.reverse) if method == "candidates-reverse" else None
    return DocumentDecoder(engine, beams=asked.beams, alone=alone, reverse=reverse, **options)


def as_values(scores: list[Score]) -> dict[str, dict[str, Any]]:
    """Return scores by their names."""
    return {one.name: {"value": one.value, "interval": one.interval, "signature": one.signature} for one in scores}


class Translated:
    """Documents of the test, and the translations of one model: pieces by method, as far as they are known."""

    def __init__(self, documents: Documents, refs: Documents) -> None:
        self.documents, self.refs = documents, refs
        self.known: dict[tuple[str, tuple[str, ...]], Draft] = {}

    def decode(self, decoder: DocumentDecoder, method: str, length: int) -> dict[str, Any]:
        """Translate the documents in pieces of at most `length` tokens, and return the texts."""
        sizes = [[len(ids) for ids in decoder.engine.tokenizer(document)["input_ids"]] for document in self.documents]
        places = [(n, part) for n, size in enumerate(sizes) for part in cut(size, size, repeat(length))]
        pieces = [tuple(self.documents[n][part.start : part.stop]) for n, part in places]
        began = time.perf_counter()
        alone = decoder.translate_alone([piece[0] for piece in pieces if len(piece) == 1])
        for piece in pieces:
            if len(piece) == 1:  # of one sentence, by any method
                self.known[method, piece] = Draft((alone[piece[0]],), 1)
        new = [piece for piece in dict.fromkeys(pieces) if (method, piece) not in self.known]
        if new:
            drafts = METHODS[method](decoder, [list(piece) for piece in new])
            self.known |= {(method, piece): draft for piece, draft in zip(new, drafts, strict=True)}
        drafts = [self.known[method, piece] for piece in pieces]
        texts = [[*decoder.texts(draft)] for draft in drafts]
        wrong = {n for (n, _), draft in zip(places, drafts, strict=True) if draft.alone}
        lost = {n for (n, part), found in zip(places, texts, strict=True) if sum(map(bool, found)) != len(part)}
        return {
            "method": method,
            "length": length,
            "window": decoder.window,
            "right_count": 1 - len(wrong) / len(self.documents),  # before repair
            "kept_count": 1 - len(lost) / len(self.documents),  # as many texts as sentences, and none is empty
            "repaired_sentences": sum(len(draft.alone) for draft in drafts) / sum(map(len, self.documents)),
            "windows": sum(draft.windows for draft in drafts),
            # the sentences of each piece, and how many of them were in a window with a wrong number
            "pieces": [(len(part), len(draft.alone)) for (_, part), draft in zip(places, drafts, strict=True)],
            "new_pieces": len(new),
            "seconds": time.perf_counter() - began,
            "texts": texts,  # of each piece
        }

    def score(self, cell: dict[str, Any], metrics: list[str], parts: int) -> None:
        """Add the scores, those of each of the parts of the documents, and the outputs of each document to a cell."""
        rest, outputs = iter(cell["texts"]), []
        for document in self.documents:
            found: list[str] = []
            while len(found) < len(document):
                found += next(rest)
            outputs.append(found)
        if cell["method"] == "whole":  # every output belongs to the reference that it resembles
            pairs = zip(outputs, self.refs, strict=True)
            outputs = [realign([text for text in found if text], some) for found, some in pairs]
        cell["outputs"] = outputs
        texts = self.as_texts(cell)
        cell["scores"] = as_values(score(texts, metrics=metrics))
        if parts:
            found = score_positions(texts, parts, metrics=BY_POSITION)
            cell["positions"] = {label: as_values(scores) for label, scores in found.items()}

    def as_texts(self, cell: dict[str, Any]) -> Texts:
        """Return the outputs of a cell with the references and the sources."""
        docs = [number for number, document in enumerate(self.documents) for _ in document]
        hyps, srcs, refs = ([t for one in some for t in one] for some in (cell["outputs"], self.documents, self.refs))
        return Texts(hyps, refs, srcs, docs=docs)

    def test(self, cell: dict[str, Any], other: dict[str, Any]) -> None:
        """Add the differences to another cell, with their intervals and p, to the scores of a cell."""
        for name in set(TESTED) & set(cell["scores"]):
            found = compare(self.as_texts(other), self.as_texts(cell), metric=name)
            cell["scores"][name] |= {"delta": found.delta, "delta_interval": found.interval, "p": found.p}


def find(results: dict[str, list[dict[str, Any]]], name: str) -> dict[str, Any] | None:
    """Return the cell MODEL:METHOD:LENGTH."""
    model, method, length = name.rsplit(":", 2) if name else ("", "", "")
    cells = [one for one in results.get(model, ()) if (one["method"], str(one["length"])) == (method, length)]
    if name and not cells:
        raise SystemExit(f"there is no {name!r}: decode it first, or name it among the models")
    return cells[0] if name else None


def add_scores(test: Translated, cells: list[dict[str, Any]], asked: argparse.Namespace, reference: Any) -> None:
    """Score the cells that have no scores, and test those without a test against the reference, if there is one."""
    for cell in cells:
        if "scores" not in cell:
            test.score(cell, asked.metrics.split(","), asked.positions)
    for cell in cells if reference is not None else ():
        if cell is not reference and not any("p" in values for values in cell["scores"].values()):
            test.test(cell, reference)


def curves(results: dict[str, list[dict[str, Any]]]) -> dict[str, plots.Curve]:
    """Return d-BLEU at each length, of the models and methods that have several; a figure has seven at most."""
    found: dict[str, plots.Curve] = {}
    for model, cells in results.items():
        for method in dict.fromkeys(cell["method"] for cell in cells):
            some = [cell for cell in cells if cell["method"] == method and cell["length"] > 1 and "scores" in cell]
            some.sort(key=lambda cell: cell["length"])
            values = [cell["scores"]["d-bleu"] for cell in some]
            scores = [Score("d-BLEU", v["value"], v["signature"], tuple(v["interval"]), None, 0) for v in values]
            if len(some) > 1:
                name = Path(model).parent.name if Path(model).name == "model" else model
                found[f"{name}, {method}"] = [cell["length"] for cell in some], scores
    return dict(list(found.items())[: len(plots.COLOURS)])


def wanted(asked: argparse.Namespace) -> list[tuple[str, int]]:
    """Return the methods and lengths that the command line names."""
    found = []
    for entry in asked.methods.split(","):
        method, _, lengths = entry.partition(":")
        found += [(method, int(length)) for length in (lengths.split("+") if lengths else asked.lengths.split(","))]
    return found


def decode(model: str, test: Translated, cells: list[dict[str, Any]], asked: argparse.Namespace) -> Iterator[None]:
    """Add what is missing to the cells of a model; yield after each."""
    engine = lengthwise.load(model, **({"dtype": asked.dtype} if asked.dtype else {})).engine
    alone: Alone = {}
    there = {(cell["method"], cell["length"]) for cell in cells}
    for method, length in wanted(asked):
        if (method, length) in there:
            continue
        if length > 1 and not DocumentDecoder(engine).window:
            print(f"{model}  {method} {length}: left out, because it was not trained on documents")
            continue
        if method in ("whole", "counted") and 1.5 * length > engine.window:
            print(f"{model}  {method} {length}: beyond its {engine.window} positions")
            continue
        decoder = decoder_of(engine, method, length, asked, alone)
        if decoder.repair:
            decoder.translate_alone([source for document in test.documents for source in document])
        cells.append(cell := test.decode(decoder, method, length))
        counts = f"right count {cell['right_count']:.1%}, in the end {cell['kept_count']:.1%}"
        shown = f"{counts}  {cell['new_pieces']} pieces  {cell['seconds']:.0f} s"
        print(f"{model}  {method} {length}: {shown}", flush=True)
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL", help="folders that `lengthwise train` has written")
    parser.add_argument("--data", nargs="+", required=True, metavar="FILE", help="test documents")
    parser.add_argument("--lengths", default="1,64,128,256,512,1024,2048", help="source tokens per piece")
    parser.add_argument("--methods", default="whole", help=f"some of {', '.join(METHODS)}")
    parser.add_argument("--window", type=int, default=None, help="source tokens translated together, except by whole")
    parser.add_argument("--reverse", default=None, metavar="MODEL", help="that of candidates-reverse: target to source")
    parser.add_argument("--metrics", default=METRICS, help="scores of sentences and documents")
    parser.add_argument("--positions", type=int, default=0, metavar="N", help="score N parts of the documents as well")
    parser.add_argument("--beams", type=int, default=4)
    parser.add_argument("--documents", type=int, default=None, metavar="N", help="the first N of each file")
    parser.add_argument("--dtype", default=None, help="float16 is faster on a GPU")
    parser.add_argument("--decode", action="store_true", help="only write the texts")
    parser.add_argument("--against", default="", metavar="MODEL:METHOD:LENGTH", help="test the others against this one")
    parser.add_argument("--plot", type=Path, default=None, metavar="FILE", help="PNG and SVG")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="JSON")
    asked = parser.parse_args()
    if "candidates-reverse" in asked.methods and not asked.reverse:
        parser.error("candidates-reverse needs --reverse MODEL, a translator from the target to the source language")
    pairs: list[list[tuple[str, str]]] = []
    for file in asked.data:
        found = [list(document.segments) for document in read(file, limits=Limits(duplicates=True))]
        pairs += found[: asked.documents]
    documents, refs = ([[pair[side] for pair in document] for document in pairs] for side in (0, 1))
    print(f"{len(pairs):,} documents, {sum(map(len, pairs)):,} sentences", file=sys.stderr)
    results: dict[str, Any] = json.loads(asked.out.read_text("utf-8")) if asked.out.exists() else {}
    tested, test = asked.against.rpartition(":")[0].rpartition(":")[0], Translated(documents, refs)
    models = sorted(asked.models, key=lambda model: model != tested)  # first the one that the others are tested against
    for model in models:
        cells = results.setdefault(model, [])
        for _ in decode(model, Translated(documents, refs), cells, asked) if Path(model).exists() else ():
            atomic.write_text(asked.out, json.dumps(results, ensure_ascii=False) + "\n")
        if not asked.decode:
            add_scores(test, cells, asked, find(results, asked.against))
            atomic.write_text(asked.out, json.dumps(results, ensure_ascii=False) + "\n")
            for cell in cells:
                shown = "  ".join(f"{name} {values['value']:.2f}" for name, values in cell["scores"].items())
                named = f"{model}  {cell['method']} {cell['length']}"
                print(f"{named}: {shown}  right count {cell['right_count']:.1%}", flush=True)
    if asked.plot:
        drawn = curves({model: results[model] for model in asked.models})
        figure = plots.quality_curve(drawn, along="source tokens translated at once")
        figure.axes[0].set_xscale("log", base=2)
        figure.axes[0].xaxis.set_major_formatter("{x:,.0f}")
        plots.save(figure, asked.plot)


if __name__ == "__main__":
    main()
