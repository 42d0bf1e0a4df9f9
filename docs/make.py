"""Write the parts of the docs that quote the program: `make docs`. Tests check that they are current.

docs/cli.md             the help of every command
docs/architecture.md    the tree, with the first sentence of every file
docs/demo.svg           a run of the demo (only with --demo: it runs the model)
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
PACKAGE = ROOT / "src/lengthwise"
# From top to bottom: a room imports only from rooms above it.
ROOMS = (
    *("length", "formats", "constraint", "controls", "models", "engines", "scoring", "generation", "endpoints"),
    *("translation", "shortening", "corpora", "distill", "training", "metrics", "evaluation", "cli", "integrations"),
