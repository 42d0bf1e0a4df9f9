"""Chat templates: render a conversation as the text that a model was trained on, without transformers."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any


class ChatTemplate:
    """A compiled Jinja template. `names`: further names that it may use, such as `bos_token`."""

    def __init__(self, source: str, **names: Any) -> None:
        from jinja2.exceptions import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        def raise_exception(message: str) -> None:
            raise TemplateError(message)

        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = lambda value, **options: json.dumps(value, ensure_ascii=False, **options)
        environment.globals["raise_exception"] = raise_exception
        environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
        self._template, self._names = environment.from_string(source), names

    def render(self, messages: Sequence[Mapping[str, str]], *, add_generation_prompt: bool) -> str:
        """Return the text of a conversation; with `add_generation_prompt`, up to where the next message begins."""
        return self._template.render(
            messages=list(messages), add_generation_prompt=add_generation_prompt, **self._names
        )
