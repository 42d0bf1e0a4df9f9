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
    revised      sentences are translated alone, then each again with both sides of its context
    compared     revised, where a sentence stays as it was if that is more probable

Except for `whole`, a window with a wrong number of sentences is translated sentence by sentence; these translations are
made once, before the first method. Reported are BLEU and chrF of sentences and of documents, the share of documents in
which the number of sentences was right without that repair, and seconds. The file has the outputs as well.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import lengthwise
from lengthwise.corpora.filters import Limits
from lengthwise.corpora.readers import read
from lengthwise.engines.base import Engine
from lengthwise.metrics import realign, score
from lengthwise.training.dynamic_length_sampling import cut
from lengthwise.translation.sliding import DocumentDecoder, Draft

METRICS = ["bleu", "d-bleu", "chrf", "d-chrf"]
Documents = list[list[str]]
Alone = dict[str, tuple[int, ...]]  # a sentence → the ids of its translation without context


def revised(decoder: DocumentDecoder, pieces: Documents, compare: bool = False) -> list[Draft]:
    known = decoder.translate_alone([source for piece in pieces for source in piece])
    drafts = [Draft(tuple(known[source] for source in piece)) for piece in pieces]
    return decoder.revise(pieces, drafts, compare=compare)


METHODS: dict[str, Callable[[DocumentDecoder, Documents], list[Draft]]] = {
    "whole": DocumentDecoder.segments,
    "counted": DocumentDecoder.segments,
    "segments": DocumentDecoder.segments,
    "slide": DocumentDecoder.slide,
    "held-back": lambda decoder, pieces: decoder.slide(pieces, hold_back=1),
    "candidates": lambda decoder, pieces: decoder.slide(pieces, hold_back=1, candidates=3),
    "revised": revised,
    "compared": partial(revised, compare=True),
}


def decoder_of(engine: Engine, method: str, length: int, asked: argparse.Namespace, alone: Alone) -> DocumentDecoder:
    """Return the decoder of a method: `whole` and `counted` have one window for each piece."""
    one = method in ("whole", "counted")
    options = {"window": length if one else asked.window, "count": method == "counted", "repair": method != "whole"}
    return DocumentDecoder(engine, beams=asked.beams, alone=alone, **options)


def measured(decoder: DocumentDecoder, documents: Documents, refs: Documents, method: str, length: int) -> Any:
    """Translate the documents in pieces of at most `length` tokens, and return their scores and outputs."""
    whole, engine = method == "whole", decoder.engine
    sizes = [[len(ids) for ids in engine.tokenizer(document)["input_ids"]] for document in documents]
    places = [(n, part) for n, size in enumerate(sizes) for part in cut(size, size, repeat(length))]
    began = time.perf_counter()
    drafts = METHODS[method](decoder, [documents[n][part.start : part.stop] for n, part in places])
    seconds = time.perf_counter() - began
    outputs: Documents = [[] for _ in documents]
    for (n, _), draft in zip(places, drafts, strict=True):
        outputs[n] += decoder.texts(draft)
    if whole:  # every output belongs to the reference that it resembles
        outputs = [realign([text for text in found if text], some) for found, some in zip(outputs, refs, strict=True)]
    wrong = {n for (n, _), draft in zip(places, drafts, strict=True) if draft.alone}
    docs = [number for number, document in enumerate(documents) for _ in document]
    hyps, srcs, flat_refs = ([text for document in some for text in document] for some in (outputs, documents, refs))
    scores = score(hyps, refs=flat_refs, srcs=srcs, docs=docs, metrics=METRICS)
    return {
        "method": method,
        "length": length,
        "window": decoder.window,
        "right_count": 1 - len(wrong) / len(documents),
        "repaired_sentences": sum(len(draft.alone) for draft in drafts) / len(hyps),
        "windows": sum(draft.windows for draft in drafts),
        # the sentences of each piece, and how many of them were in a window with a wrong number
        "pieces": [(len(part), len(draft.alone)) for (_, part), draft in zip(places, drafts, strict=True)],
        "seconds": seconds,
        "scores": {
            one.name: {"value": one.value, "interval": one.interval, "signature": one.signature} for one in scores
        },
        "outputs": outputs,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL", help="folders that `lengthwise train` has written")
    parser.add_argument("--data", nargs="+", required=True, metavar="FILE", help="test documents")
    parser.add_argument("--lengths", default="1,64,128,256,512,1024,2048", help="source tokens per piece")
    parser.add_argument("--methods", default="whole", help=f"some of {', '.join(METHODS)}")
    parser.add_argument("--window", type=int, default=None, help="source tokens translated together, except by whole")
    parser.add_argument("--beams", type=int, default=4)
    parser.add_argument("--documents", type=int, default=None, metavar="N", help="the first N of each file")
    parser.add_argument("--dtype", default=None, help="float16 is faster on a GPU")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="JSON")
    asked = parser.parse_args()
    pairs: list[list[tuple[str, str]]] = []
    for file in asked.data:
        found = [list(document.segments) for document in read(file, limits=Limits(duplicates=True))]
        pairs += found[: asked.documents]
    documents, refs = ([[pair[side] for pair in document] for document in pairs] for side in (0, 1))
    print(f"{len(pairs):,} documents, {sum(map(len, pairs)):,} sentences", file=sys.stderr)
    results: dict[str, Any] = {}
    for model in asked.models:
        engine = lengthwise.load(model, **({"dtype": asked.dtype} if asked.dtype else {})).engine
        alone: Alone = {}
        if asked.methods != "whole":
            decoder = DocumentDecoder(engine, beams=asked.beams, alone=alone)
            decoder.translate_alone([source for document in documents for source in document])
        for method in asked.methods.split(","):
            for length in map(int, asked.lengths.split(",")):
                if length > 1 and not DocumentDecoder(engine).window:
                    print(f"{model}  {method} {length}: left out, because it was not trained on documents")
                    continue
                if method in ("whole", "counted") and 1.5 * length > engine.window:
                    print(f"{model}  {method} {length}: beyond its {engine.window} positions")
                    continue
                decoder = decoder_of(engine, method, length, asked, alone)
                one = measured(decoder, documents, refs, method, length)
                results.setdefault(model, []).append(one)
                shown = "  ".join(f"{name} {values['value']:.2f}" for name, values in one["scores"].items())
                right, seconds = one["right_count"], one["seconds"]
                print(f"{model}  {method} {length}: {shown}  right count {right:.1%}  {seconds:.0f} s", flush=True)
                asked.out.write_text(json.dumps(results) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
