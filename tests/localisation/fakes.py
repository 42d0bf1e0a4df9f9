"""A translator without a model: it knows some texts, and writes others in capitals, with their placeholders."""

from types import SimpleNamespace

from lengthwise.translation.placeholders import split_placeholders


class Capitals:
    """Translates to capitals; `words`: other translations, the shortest that fits is not searched for."""

    def __init__(self, words=(), stop_after=None):
        self.words, self.calls, self.stop_after = dict(words), [], stop_after
        self.settings = {"model": "capitals"}

    def translate(self, texts, budgets):
        if self.stop_after is not None and len(self.calls) >= self.stop_after:
            raise KeyboardInterrupt
        self.calls.append(list(zip(texts, map(str, budgets), strict=True)))
        return [
            SimpleNamespace(text=self.one(text, budget), complete=True, note=None, error=None)
            for text, budget in zip(texts, budgets, strict=True)
        ]

    def one(self, text, budget):
        if text in self.words:
            return self.words[text]
        return "".join(piece if fixed else piece.upper() for piece, fixed in split_placeholders(text))

    shorten = None

    @property
    def asked(self):
        return [text for call in self.calls for text, _ in call]
