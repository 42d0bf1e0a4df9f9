"""Quality against decoding length: documents translated in segments of at most 1, 64, 128, ... tokens.

    python bench/documents.py runs/*/model --data data/libreoffice-help.en-de.test.jsonl.gz --out documents.json

A limit of 1 token translates every sentence alone. A model that is biased towards the lengths of its training loses
quality at the others (Zhang et al. 2023, figure 1). The scores are BLEU and chrF of sentences and
of documents, and the share of segments with as many sentences as their source. Where the numbers differ, missing
sentences are empty and surplus ones belong to the last.
"""

import argparse
import json
import sys
import time
from itertools import repeat
from pathlib import Path
from typing import Any

import lengthwise
from lengthwise.corpora.filters import Limits
from lengthwise.corpora.readers import read
from lengthwise.engines.base import Engine
from lengthwise.metrics import score
from lengthwise.scoring.log_likelihood import batches_by_size
from lengthwise.training.dynamic_length_sampling import cut

METRICS = ["bleu", "d-bleu", "chrf", "d-chrf"]


def translate(engine: Engine, texts: list[str], beams: int) -> list[list[int]]:
    """Return the token ids of the translation of each text, in batches of similar length."""
    prompts = [engine.prompt_ids(text) for text in texts]
    found: list[list[int]] = [[] for _ in texts]
    for rows in batches_by_size([len(prompt) for prompt in prompts], 262144 // beams):
        longest = max(len(prompts[row]) for row in rows)
        steps = min(3 * longest // 2 + 20, engine.window - 2)
        ids = engine.search([prompts[row] for row in rows], max_new_tokens=steps, beams=beams).ids
        for row, text in zip(rows, ids, strict=True):
            end = next((n for n, token in enumerate(text) if token in engine.eos), len(text))
            found[row] = text[:end]
    return found


def sentences(engine: Engine, ids: list[int], separator: int, count: int) -> tuple[list[str], bool]:
    """Return `count` sentences of a segment's translation, and whether it had as many."""
    parts: list[list[int]] = [[]]
    for token in ids:
        if token == separator:
            parts.append([])
        else:
            parts[-1].append(token)
    texts = [text.strip() for text in engine.tokenizer.batch_decode(parts, skip_special_tokens=True)]
    exact = len(texts) == count
    kept = [*texts[: count - 1], " ".join(texts[count - 1 :])] if len(texts) >= count else texts
    return kept + [""] * (count - len(kept)), exact


def measured(engine: Engine, documents: list[list[tuple[str, str]]], limit: int, separator: str, beams: int) -> Any:
    """Translate the documents in segments of at most `limit` tokens of the source, and return their scores."""
    segments, sizes = [], {}
    for number, document in enumerate(documents):
        sizes[number] = [len(engine.tokenizer(source)["input_ids"]) for source, _ in document]
        segments += [(number, part) for part in cut(sizes[number], sizes[number], repeat(limit))]
    began = time.perf_counter()
    texts = [separator.join(documents[number][n][0] for n in part) for number, part in segments]
    found = translate(engine, texts, beams)
    seconds = time.perf_counter() - began
    mark = engine.tokenizer.get_vocab().get(separator.strip(), -1)
    outputs = [sentences(engine, ids, mark, len(part)) for ids, (_, part) in zip(found, segments, strict=True)]
    hyps = [text for texts, _ in outputs for text in texts]
    srcs, refs = zip(*(documents[number][n] for number, part in segments for n in part), strict=True)
    docs = [number for number, part in segments for _ in part]
    scores = score(hyps, refs=list(refs), srcs=list(srcs), docs=docs, metrics=METRICS)
    exact = sum(same for _, same in outputs) / len(outputs)
    values = {one.name: {"value": one.value, "interval": one.interval, "signature": one.signature} for one in scores}
    return {"limit": limit, "segments": len(segments), "same_count": exact, "seconds": seconds, "scores": values}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL", help="folders that `lengthwise train` has written")
    parser.add_argument("--data", nargs="+", required=True, metavar="FILE", help="test documents")
    parser.add_argument("--limits", default="1,64,128,256,512,900", help="tokens of the source per segment")
    parser.add_argument("--separator", default="<sep>", help="as in the recipe")
    parser.add_argument("--beams", type=int, default=4)
    parser.add_argument("--documents", type=int, default=None, metavar="N", help="the first N of each file")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="JSON")
    asked = parser.parse_args()
    documents: list[list[tuple[str, str]]] = []
    for file in asked.data:
        found = [list(document.segments) for document in read(file, limits=Limits(duplicates=True))]
        documents += found[: asked.documents]
    print(f"{len(documents):,} documents, {sum(map(len, documents)):,} sentences", file=sys.stderr)
    results: dict[str, Any] = {}
    for model in asked.models:
        engine = lengthwise.load(model).engine
        for limit in map(int, asked.limits.split(",")):
            one = measured(engine, documents, limit, asked.separator, asked.beams)
            results.setdefault(model, []).append(one)
            shown = "  ".join(f"{name} {values['value']:.2f}" for name, values in one["scores"].items())
            print(
                f"{model}  at most {limit}: {shown}  same count {one['same_count']:.1%}  {one['seconds']:.0f} s",
                flush=True,
            )
            asked.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
