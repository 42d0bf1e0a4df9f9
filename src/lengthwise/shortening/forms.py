"""Forms of a short text, and the models that write them. Imports no torch, so that the command line can check names."""

from typing import Literal, get_args

Form = Literal["headline", "sentence", "text"]
FORMS: tuple[Form, ...] = get_args(Form)
LANGUAGE_MODEL = "smollm2"  # leaves words out and chooses
# The model that rewrites texts in each form.
WRITERS: dict[str, str] = {"headline": "headlines", "sentence": "shorten", "text": "shorten"}
