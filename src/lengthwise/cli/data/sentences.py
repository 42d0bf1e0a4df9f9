"""`lengthwise data sentences`: collect the sentences of corpora, for a teacher to translate."""

import random
from pathlib import Path
from typing import Annotated

from .. import options
from ..options import argument, integer, option


def sentences(
    corpora: Annotated[list[Path], argument("Corpora as `train` reads them, or texts with one sentence per line.")],
    out: Annotated[Path, option("The file to write, one sentence per line.", "FILE")],
    fields: options.Fields = None,
    both: Annotated[bool, option("Both sides, such as prompts and responses, or texts and titles.")] = False,
    without: Annotated[list[Path] | None, option("Leave out the sentences of FILE: dev and test sets.", "FILE")] = None,
    max_chars: Annotated[int, integer("Leave out longer sentences.")] = 400,
    count: Annotated[int | None, integer("Draw so many. [default: all]")] = None,
    seed: options.Seed = 0,
) -> None:
    """Collect the sentences of corpora, for a teacher to translate.

    \b
    lengthwise data sentences corpus/*.train.jsonl.gz --out sentences.txt --without corpus/debian.en-fr.test.jsonl.gz

    Of parallel corpora the sources are taken; with `--fields target,source` the targets. Each sentence occurs once, in
    random order. `lengthwise data student` translates them.
    """
    from ... import atomic
    from ...distill.sentences import sentences as collect

    names = options.field_names(fields)
    found = list(collect(corpora, fields=names, both=both, without=without or (), max_chars=max_chars))
    random.Random(seed).shuffle(found)
    found = found[:count]
    atomic.write_text(out, "".join(f"{sentence}\n" for sentence in found))
    print(f"{out}: {len(found):,} sentences")
