"""Fakes for the models of a translator: a dictionary in place of the search, a table in place of a reverse model."""

from types import SimpleNamespace

import numpy as np

from lengthwise import Written, measure


def fake_writer(name="fake", **settings):
    """Return what a translator reads of a writer before it searches; `settings`: of its tokenizer and config."""
    config = SimpleNamespace(is_encoder_decoder=True, _name_or_path="", **settings.pop("config", {}))
    tokenizer = SimpleNamespace(**{"added_tokens_encoder": {}, **settings})
    device, generation = SimpleNamespace(type="cuda"), SimpleNamespace(forced_bos_token_id=None)
    model = SimpleNamespace(config=config, device=device, generation_config=generation)
    settled = {"forced_start": [], "max_rows": 40, "plain_without_length": False, "takes_limits_in": lambda unit: False}
    engine = SimpleNamespace(model=model, **settled)
    return SimpleNamespace(name=name, model=model, tokenizer=tokenizer, engine=engine)


class Dictionary:
    """In place of the beam search: returns its entries, best first, or the sentence in capitals where it has none.

    Within a budget it returns the first entry that fits, or a fragment: as many letters as the target. With
    `fragments_are_complete`, they count as complete translations.
    """

    needs_length, reads_length_first = False, False
    fragments_are_complete = False

    def __init__(self, entries):
        self.entries, self.free_calls, self.bound_calls = entries, [], []

    def at_once(self, limited):
        return 4 if limited else 8

    def first(self, texts):
        return [written("") for _ in texts]  # a compressed sentence has no translation here

    def free(self, texts):
        self.free_calls.append(list(texts))
        return [[written(text) for text in self.known(text)] for text in texts]

    def bound(self, texts, budgets, *how):
        self.bound_calls.append([(text, str(budget)) for text, budget in zip(texts, budgets, strict=True)])
        return [[self.cut(text, budget)] for text, budget in zip(texts, budgets, strict=True)]

    def cut(self, text, budget):
        found = [one for one in self.known(text) if budget.fits(measure(one, budget.unit))]
        return written(found[0] if found else "z" * int(budget.target), bool(found) or self.fragments_are_complete)

    def known(self, text):
        found = self.entries.get(text, text.upper())
        if isinstance(found, KeyboardInterrupt):
            raise found
        return [found] if isinstance(found, str) else found


def written(text, complete=True):
    error = "the text is too long for the model" if text == "TOO LONG" else None
    text = "" if error else text
    return Written(text, len(text), "chars", "", not error, complete, "fake", len(text.split()), error=error)


class Reader:
    """In place of a reverse model: the score of each output is given."""

    def __init__(self, known):
        self.known, self.calls = known, []

    def mean_log_prob(self, sources, outputs):
        self.calls.append(list(zip(sources, outputs, strict=True)))
        return np.array([self.known.get(output, -9.0) for output in outputs])


def texts(rows):
    return [row.text for row in rows]
