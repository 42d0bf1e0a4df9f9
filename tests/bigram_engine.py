"""A bigram model in numpy: an engine with the least that a writer needs."""

import numpy as np
import torch

from lengthwise.engines.base import Engine
from lengthwise.engines.rows import TokenLogProbs


class BigramRows:
    def __init__(self, table, last):
        self.table, self.last, self.hidden = table, last, None

    @property
    def scores(self):
        return torch.from_numpy(self.table[self.last])

    def step(self, tokens):
        self.last = tokens.numpy()

    def select(self, rows):
        self.last = self.last[np.asarray(rows)]


class BigramEngine(Engine):
    """A random bigram model."""

    name, encoder_decoder, eos, pad, window = "bigrams", False, [2], 0, 512

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.table = np.random.default_rng(0).normal(size=(len(tokenizer), len(tokenizer))).astype(np.float32)

    def prefill(self, prompts, lengths=None, options=None, *, each=1, max_new_tokens=None, hidden=False):
        return BigramRows(self.table, np.array([ids[-1] for ids in prompts]).repeat(each))

    def score(self, prompts, texts, lengths=None, cache=None):
        found = np.zeros((3, len(texts), max(map(len, texts))), np.float32)
        for row, (prompt, text) in enumerate(zip(prompts, texts, strict=True)):
            logits = self.table[[prompt[-1], *text[:-1]]]
            logits = logits - np.logaddexp.reduce(logits, 1, keepdims=True)
            found[:, row, : len(text)] = logits[range(len(text)), text], logits.max(1), logits[:, 2]
        return TokenLogProbs(*found)
