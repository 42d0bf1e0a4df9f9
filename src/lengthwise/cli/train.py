"""`lengthwise train`: a recipe becomes a model folder. What a recipe may say, `lengthwise.train` knows."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from .loading import hush
from .terminal import Json, complain, console, print_json


def train(
    recipe: Annotated[Path, typer.Argument(help="A YAML file that says what to train on what.")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="train.lr=3e-4, say; may be given again.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder of the run, in place of the recipe's.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it will cost, and train nothing.")] = False,
    resume: Annotated[bool, typer.Option("--resume/--no-resume", help="Go on with a run that broke off.")] = True,
    as_json: Json = False,
) -> None:
    """Train a model with a sense of length.

    \b
    lengthwise train recipe.yaml --dry-run
    lengthwise train recipe.yaml --set train.lr=3e-4 --out runs/first

    Ctrl-C ends the step and writes a checkpoint; a second one quits at once. The same command goes on from the last
    checkpoint. Prints the folder of the trained model, which `write` and `evaluate` take as it is.
    """
    from ..corpora.document import NoFile
    from ..models.registry import ModelNotFound
    from ..training import load_recipe

    overrides = [*(set_ or []), *([f"out={json.dumps(str(out))}"] if out else [])]
    asked = load_recipe(recipe, overrides)
    with console().status("loading"):
        hush()
        from ..training import TrainingError, plan
        from ..training import train as run

    try:
        if dry_run:
            with console().status("taking a few steps"):
                cost = plan(asked)
            if as_json:
                print_json(asdict(cost))
            else:
                print(cost, flush=True)
            return
        folder = run(asked, resume=resume, say=lambda text: print(text, file=sys.stderr, flush=True))
    except NoFile as error:
        raise ValueError(f"{error}; the top of {recipe} may say how its own data are made") from error
    except (TrainingError, ModelNotFound) as error:  # what the user can mend is told in one line, as everywhere
        raise ValueError(str(error)) from error
    except KeyboardInterrupt as stop:
        at_once = f"stopped at once; the same command goes on from the last checkpoint in {asked.out}, if there is one"
        complain(str(stop) or at_once)
        raise
    if as_json:
        print_json({"model": str(folder)})
    else:
        print(folder, flush=True)
