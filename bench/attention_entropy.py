"""Entropy of attention in sentences and in documents, and the gap between them (Zhang et al. 2023, section 5).

    python bench/attention_entropy.py runs/*/model --data data/libreoffice-help.en-fr.dev.jsonl.gz

The reference translations are given to the decoder, so that all models are measured on the same texts. Entropy is in
nats, the mean over layers, heads and queries. With a small gap, attention is as sharp in documents as in sentences.
"""

import argparse
import json
from itertools import islice

import lengthwise
from lengthwise.controls import SentenceSeparator
from lengthwise.corpora.filters import Limits
from lengthwise.corpora.readers import read
from lengthwise.metrics.attention_entropy import entropy_gap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL", help="translators, of documents or of sentences")
    parser.add_argument("--data", required=True, metavar="FILE", help="parallel documents")
    parser.add_argument("--documents", type=int, default=15, metavar="N", help="the first N of the right length")
    parser.add_argument("--words", default="61-149", metavar="LOW-HIGH", help="length of the source of a document")
    parser.add_argument("--separator", default=" ", help="between sentences, for models that were trained on sentences")
    asked = parser.parse_args()
    low, high = map(int, asked.words.split("-"))
    fitting = (
        document.segments
        for document in read(asked.data, limits=Limits(duplicates=True))
        if low <= sum(len(source.split()) for source, _ in document.segments) <= high
    )
    documents = list(islice(fitting, asked.documents))
    for model in asked.models:
        engine = lengthwise.load(model, engine="transformers").engine
        own = [control.separator for control in engine.controls if isinstance(control, SentenceSeparator)]
        found = entropy_gap(engine, documents, own[0] if own else asked.separator)
        rows = {
            kind: {"sentences": found.sentences[kind], "documents": longer, "gap": longer - found.sentences[kind]}
            for kind, longer in found.documents.items()
        }
        print(json.dumps({"model": model, "documents": len(documents)} | rows), flush=True)


if __name__ == "__main__":
    main()
