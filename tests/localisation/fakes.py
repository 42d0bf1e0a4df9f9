"""A translator and a shortener without a model: texts in capitals, or what a dictionary says."""

from types import SimpleNamespace

from lengthwise.translation.placeholders import split_placeholders

AT_ONCE = 8


class Capitals:
    """Writes texts in capitals, with their placeholders, or as `words` says. A text of `words` may be an error.

    After `stop_after` calls it is interrupted.
    """

    def __init__(self, words=(), stop_after=None):
        self.words, self.calls, self.stop_after = dict(words), [], stop_after
        self.settings = {"model": "capitals"}
        self.model = self.writer = SimpleNamespace(name="capitals")

    def at_once(self, limited):
        return AT_ONCE

    def translate(self, texts, budgets):
        if self.stop_after is not None and len(self.calls) >= self.stop_after:
            raise KeyboardInterrupt
        self.calls.append(list(zip(texts, budgets, strict=True)))
        return [self._result(text) for text in texts]

    def shorten(self, texts, budgets, **options):
        self.calls.append(list(zip(texts, budgets, strict=True)))
        found = [(text[: budget.high].strip(), text) for text, budget in zip(texts, budgets, strict=True)]
        return [SimpleNamespace(text=cut, complete=cut == text, note=None, error=None) for cut, text in found]

    def _result(self, text):
        new = self.words.get(text)
        if isinstance(new, ValueError):
            return SimpleNamespace(text="", complete=False, note=None, error=str(new))
        if new is None:
            new = "".join(piece if fixed else piece.upper() for piece, fixed in split_placeholders(text))
        return SimpleNamespace(text=new, complete=not new.startswith("~"), note=None, error=None)

    @property
    def asked(self):
        return [text for call in self.calls for text, _ in call]

    @property
    def budgets(self):
        return {text: str(budget) for call in self.calls for text, budget in call if budget is not None}
