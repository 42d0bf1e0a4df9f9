"""Texts of many scripts, meters of three tokenizers, and noise as scores: shared by the tests of lengths and limits."""

import pytest
import torch
from hypothesis import strategies as st

from lengthwise.length.budget import Budget
from lengthwise.length.meter import Meter
from lengthwise.length.units import measure

KINDS = ["byte_bpe", "sp_unigram", "sp_bpe"]
TEXTS = [
    "The quick brown fox jumps over the lazy dog.",
    "Straße, größer und schöner: Übermut!",
    "吾輩は猫である。名前はまだ無い。",
    "مَرْحَبًا بِكُمْ، أليس كذلك؟",
    "family 👨‍👩‍👧‍👦 and flags 🇫🇷🇩🇪 and a thumb 👍🏽!",
    "cafe\u0301 re\u0301sume\u0301 x\u030c \u1112\u1161\u11ab",  # decomposed: NFC merges characters of several tokens
    "\ufb2a\ufb2c \u0958 i\u0344 \u2adc \U0001d15f",  # composed: NFC splits a character of one token, or of three
    "wide\u3000space, no\u00a0break,\u2003em",
    "two\n\nparagraphs\tand  double  spaces",
    "naïve Ångström — “quotes” … ½ €5",
    "我-我 café-' it- 我- 2-年-",  # hyphens that count as a word, or do not, by what follows
    "See example.com and http://t.co/abc. Or a.b, v1.2 👍🏽 ok. No e\u0301 \u0301 more.",
]
everything = st.text(st.characters(exclude_categories=["Cs", "Co", "Cn", "Cc"]), max_size=30)


def meters(request: pytest.FixtureRequest, kind: str, unit: str) -> Meter:
    cache = request.config.stash.setdefault(_METERS, {})
    if (kind, unit) not in cache:
        cache[kind, unit] = Meter(request.getfixturevalue(kind), unit)
    return cache[kind, unit]


_METERS = pytest.StashKey[dict[tuple[str, str], Meter]]()


def spell(meter, text):
    return meter.tokenizer(text, add_special_tokens=False)["input_ids"]


def byte_words(meter, many):
    """Tokens that would count if they were part of the text, and that would join the text after them."""
    ids = spell(meter, "e. The dog is ok.com e")
    return (ids * (many // len(ids) + 1))[:many]


def limits(budgets):
    read = [Budget.parse(b) for b in budgets]
    return {"low": [b.low for b in read], "high": [b.high for b in read]}


def noise(generator, rows, width, favour=(), eos=2):
    scores = 3 * torch.randn(rows, width, generator=generator)
    scores[:, eos] += 4.0
    scores[:, favour] += 8.0
    return scores


def text_and_length(tokenizer, unit, row):
    ids = [i for i in row.tolist() if i not in tokenizer.all_special_ids]
    text = tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    return text, len(ids) if unit == "tokens" else measure(text, unit)
