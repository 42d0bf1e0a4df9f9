"""Are the words that a note names really left out? Judged by a model that translates back and had no part in it.

    python bench/omissions.py CORPUS.jsonl.gz --model en-fr --back Helsinki-NLP/opus-mt-fr-en [--skip 200] [--count 100]
        [--length "at most 1.0x"] [--list]

The first pair of each document of the corpus is translated within the length, on one thread. The content words of the
source are of three kinds: named as left out, not named, and those of translations that were not checked (the best
translation at any length, which fits). The columns: words of the kind, and the share of them in the greedy
back-translation, in lower case. `--list` prints each checked text with its note, to read.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before onnxruntime is imported

import lengthwise
from lengthwise.corpora.readers import read
from lengthwise.metrics.coverage import returned
from lengthwise.scoring.reverse import ReverseModel
from lengthwise.translation.omissions import content_words, find_omissions
from lengthwise.translation.translator import Translator


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--back", required=True, help="a model that translates back")
    parser.add_argument("--engine", default="onnx")
    parser.add_argument("--from", dest="source", default="en")
    parser.add_argument("--to", default="fr")
    parser.add_argument("--length", default="at most 1.0x")
    parser.add_argument("--skip", type=int, default=0, help="leave out the first so many rows")
    parser.add_argument("--count", type=int, help="use so many rows")
    parser.add_argument("--list", action="store_true", help="print the texts that were checked")
    options = parser.parse_args()
    sources = [document.segments[0][0] for document in read(options.corpus)][options.skip :][: options.count]
    translator = Translator(lengthwise.load(options.model, engine=options.engine), options.source, options.to)
    free, within = translator.translate(sources), translator.translate(sources, options.length)
    back = ReverseModel(lengthwise.load(options.back, engine=options.engine).engine)
    backs = back.translate([one.text for one in within])
    forward = translator.search.channel.forward
    if forward is None:
        parser.error(f"{options.model} cannot score translations")
    omitted = find_omissions(
        forward, [(one.source, one.text) for one in within], options.source, translator.search.alone
    )
    kinds: dict[str, list[bool]] = {"named": [], "not named": [], "not checked": []}
    for source, first, one, text, left_out in zip(sources, free, within, backs, omitted, strict=True):
        words = source.split()
        for places in content_words(source, options.source):
            checked = "named" if places <= left_out else "not named"
            kind = checked if one.text != first.text else "not checked"
            kinds[kind].append(any(all(returned(words[place], text)) for place in places))
        if options.list and one.text != first.text:
            print(f"{source}\n{one.text}\n{one.note or 'nothing'}\n")
    print(f"lengthwise {lengthwise.__version__}, {options.engine}, {len(sources)} sources, {options.length}")
    print("| content words | number | in the back-translation, % |\n|---|---|---|")
    for kind, found in kinds.items():
        share = f"{100 * sum(found) / len(found):.1f}" if found else "–"
        print(f"| {kind} | {len(found)} | {share} |")


if __name__ == "__main__":
    main()
