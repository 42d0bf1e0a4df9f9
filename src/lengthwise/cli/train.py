"""`lengthwise train`: train a model by a recipe."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from . import options
from .loading import silence_libraries
from .options import argument, flag, option
from .terminal import print_json, status


def train(
    recipe: Annotated[Path, argument("A YAML file: the model, the data, the controls and the settings.")],
    set_: Annotated[list[str] | None, option("Override a setting; can be repeated.", "KEY=VALUE", "--set")] = None,
    out: Annotated[Path | None, option("The folder of the run. [default: the recipe's]", "DIR")] = None,
    dry_run: Annotated[bool, flag("--dry-run", "Estimate time and memory from a few steps; train nothing.")] = False,
    resume: Annotated[bool, flag("--resume/--no-resume", "Resume an interrupted run.")] = True,
    as_json: options.Json = False,
) -> None:
    """Train a model with length control.

    \b
    lengthwise train recipe.yaml --dry-run
    lengthwise train recipe.yaml --set train.lr=3e-4 --out runs/first

    Ctrl-C completes the current step and writes a checkpoint; a second Ctrl-C quits at once. The same command resumes
    from the last checkpoint. The folder of the trained model is printed, for `write --model` and `evaluate`.
    """
    from ..corpora.document import NoFile
    from ..training import load_recipe

    overrides = [*(set_ or []), *([f"out={json.dumps(str(out))}"] if out else [])]
    asked = load_recipe(recipe, overrides)
    with status("loading"):
        silence_libraries()
        from ..training import TrainingError, plan
        from ..training import train as run

    try:
        if dry_run:
            with status("taking a few steps"):
                cost = plan(asked)
            text, values = str(cost), asdict(cost)
        else:
            text = str(run(asked, resume=resume, say=lambda text: print(text, file=sys.stderr, flush=True)))
            values = {"model": text}
    except NoFile as error:
        raise ValueError(f"{error}; comments at the top of {recipe} may say how its data are made") from error
    except TrainingError as error:
        raise ValueError(str(error)) from error
    except KeyboardInterrupt as stop:
        at_once = f"stopped at once; the same command resumes from the last checkpoint in {asked.out}, if there is one"
        raise KeyboardInterrupt(str(stop) or at_once) from None
    if as_json:
        print_json(values)
    else:
        print(text, flush=True)
