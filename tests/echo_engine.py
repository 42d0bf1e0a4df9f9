"""An engine that answers with the prompt itself, so that a test can tell whose answer it has."""

import threading
import time

import numpy as np

from lengthwise.engines.base import Engine
from lengthwise.engines.rows import TokenLogProbs

_BEGIN = 1  # the token between a prompt and its text


class EchoRows:
    """Rows that repeat their prompts."""

    def __init__(self, engine, prompts, each):
        self.engine = engine
        self.texts = [list(ids) for ids in prompts for _ in range(each)]
        self.scores = engine.next_scores(self.texts)

    def step(self, tokens):
        self.engine.step()
        for ids, token in zip(self.texts, np.asarray(tokens).tolist(), strict=True):
            ids.append(token)
        self.scores = self.engine.next_scores(self.texts)

    def select(self, rows):
        self.texts = [list(self.texts[row]) for row in np.asarray(rows).tolist()]
        self.scores = self.scores[np.asarray(rows)]


class EchoEngine(Engine):
    """Its most probable text is the last message, or, after a plain prompt, the last token twice.

    `gate`: steps wait for it. `seconds`: how long a step takes.
    """

    name, encoder_decoder, eos, pad, window = "echo", False, [2], 0, 512

    def __init__(self, tokenizer, seconds=0.0):
        self.tokenizer, self.seconds = tokenizer, seconds
        self.gate = threading.Event()
        self.gate.set()
        self.steps_taken, self.batches = 0, []

    def chat_ids(self, messages):
        return [*self.tokenizer(messages[-1]["content"])["input_ids"], _BEGIN]

    def prompt_ids(self, text, system=None):
        return self.chat_ids([{"content": text}])

    def prefill(self, prompts, lengths=None, options=None, *, each=1, max_new_tokens=None, hidden=False):
        self.batches.append(len(prompts))
        return EchoRows(self, prompts, each)

    def step(self):
        assert self.gate.wait(60)
        self.steps_taken += 1
        time.sleep(self.seconds)

    def next_scores(self, texts):
        scores = np.zeros((len(texts), len(self.tokenizer)), np.float32)
        for row, ids in zip(scores, texts, strict=True):
            if _BEGIN not in ids:
                row[self.eos[0] if len(set(ids[-3:])) == 1 else ids[-1]] = 20.0
                continue
            begin = ids.index(_BEGIN)
            done = len(ids) - begin - 1
            row[ids[done] if done < begin else self.eos[0]] = 20.0
        return scores

    def score(self, prompts, texts, lengths=None, cache=None):
        found = np.zeros((3, len(texts), max(map(len, texts))), np.float32)
        for row, (prompt, text) in enumerate(zip(prompts, texts, strict=True)):
            for n, token in enumerate(text):
                [scores] = self.next_scores([[*prompt, *text[:n]]])
                scores = scores - np.logaddexp.reduce(scores)
                found[:, row, n] = scores[token], scores.max(), scores[self.eos[0]]
        return TokenLogProbs(*found)
