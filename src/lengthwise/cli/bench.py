"""`lengthwise bench`: measure speed and memory beside transformers and other engines."""

from dataclasses import replace
from typing import Annotated

from . import options
from .loading import silence_libraries
from .options import flag, integer, option
from .terminal import print_json, print_message


def bench(
    quick: Annotated[bool, flag("--quick", "Fewer sizes, steps and rounds: a minute or two.")] = False,
    busy: Annotated[
        bool, flag("--busy", "For a busy machine: one thread, and CPU time in place of wall time.")
    ] = False,
    rounds: Annotated[
        int | None, integer("Rounds of each comparison, and of each command. [default: 3; --quick: 2, 1]")
    ] = None,
    model: Annotated[str, option("The model that writes.", "NAME")] = "smollm2",
    translator: Annotated[str, option("The model that translates.", "NAME")] = "en-it",
    as_json: options.Json = False,
) -> None:
    """Measure the onnx engine beside transformers, llama.cpp and CTranslate2, as far as they are installed.

    \b
    lengthwise bench --quick
    lengthwise bench --busy --translator Helsinki-NLP/opus-mt-en-fr --json > bench.json

    All write and translate the same texts in turns, in one process, so that a busy machine slows down each of them.
    Ratios are medians of the rounds, with their range. Texts have a hard budget and the model's length control;
    CTranslate2 has neither. Models that are not cached are fetched first. Progress goes to stderr.
    """
    from ..benchmark.rounds import Clock, one_thread

    if busy:
        one_thread()  # before numpy is imported
    from ..benchmark.peers import why_missing
    from ..benchmark.report import report
    from ..benchmark.run import FULL, QUICK, run

    if why_missing("transformers") is None:
        silence_libraries()
    plan = QUICK if quick else FULL
    if rounds is not None:
        plan = replace(plan, rounds=rounds, command_rounds=rounds)
    found = run(plan, writer=model, translator=translator, clock=Clock(busy), say=_say)
    print_json(found) if as_json else print(report(found))


def _say(message: str) -> None:
    print_message(f"{message} ...")
