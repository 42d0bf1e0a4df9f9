"""Units against tables counted by hand, and against what must hold for any text."""

import unicodedata
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lengthwise.length.units import UNITS, measure, unit_named

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"  # man, joiner, woman, joiner, girl
FLAG = "\U0001f1eb\U0001f1f7"  # regional indicators F, R
THUMB = "\U0001f44d\U0001f3fd"  # thumbs up, medium skin
ENGLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
JAMO = "\u1112\u1161\u11ab"  # the syllable 한 in three letters
MARHABAN = "م\u064eر\u0652ح\u064eب\u064bا"  # 5 letters, 4 vowel marks

TABLE = {  # text: (chars, graphemes, words, bytes, cells, chars-nospace)
    "": (0, 0, 0, 0, 0, 0),
    " \t\r\n\u00a0\u3000": (0, 0, 0, 0, 0, 0),
    "cat": (3, 3, 1, 3, 3, 3),
    "  a cat \n": (5, 5, 2, 5, 5, 4),
    "e\u0301": (1, 1, 1, 3, 1, 1),
    "\u00e9": (1, 1, 1, 2, 1, 1),
    "q\u0301": (2, 1, 1, 3, 1, 2),  # has no composed form
    FAMILY: (5, 1, 1, 18, 6, 5),  # cells add up by character, as in a terminal that does not join emoji
    FLAG: (2, 1, 1, 8, None, 2),  # 1 or 2 columns a letter, as the edition of wcwidth has it
    THUMB: (2, 1, 1, 8, 4, 2),
    JAMO: (1, 1, 1, 9, 2, 1),
    "한": (1, 1, 1, 3, 2, 1),
    MARHABAN: (9, 5, 1, 18, 5, 9),
    "नमस्ते": (6, None, 1, 18, None, 6),  # Unicode 15.1 joined the conjunct स्ते: 3 graphemes, before 4
    "日本語": (3, 3, 1, 9, 6, 3),
    "日\u3000本": (3, 3, 2, 9, 6, 2),
    "ｈｉ ﾊ": (4, 4, 2, 10, 6, 3),  # full width, half width
    "a\u00a0b": (3, 3, 2, 4, 3, 2),
    "a\r\nb": (4, 3, 2, 4, 2, 2),
    "a\tb": (3, 3, 2, 3, 2, 2),
    "a\u200bb": (3, 3, 1, 5, 2, 3),  # a zero-width space is not white space
    "don't stop-and-go": (17, 17, 2, 17, 17, 16),
    "Où est-il ?": (11, 11, 3, 12, 11, 9),
    "\ud800": (1, 1, 1, 3, None, 1),  # half a character, from broken input, counts as one
}
NAMES = ("chars", "graphemes", "words", "bytes", "cells", "chars-nospace")


@pytest.mark.parametrize("text", TABLE)
def test_counts(text):
    for name, expected in zip(NAMES, TABLE[text], strict=True):
        assert expected is None or measure(text, name) == expected, name


WORDS_CJK = {
    "": 0,
    "don't stop-and-go": 2,
    "don’t": 2,  # a curly apostrophe separates
    "1,000.5 and/or x": 6,
    "- one -two --": 2,
    "word—word": 2,
    "我们去 Beijing 。": 4,
    "2024年": 1,  # the number touches a Chinese character
    "café foo_bar ok": 1,
    "日本語 ひらがな": 3,
    "我-我": 3,  # the hyphen has a word boundary on both sides
    "Saint-Étienne": 1,
    "我-": 1,  # a final hyphen has no word boundary after it
    "café-": 0,
    "word-'": 1,
}


@pytest.mark.parametrize("text", WORDS_CJK)
def test_words_and_chinese_characters(text):
    assert measure(text, "words-cjk") == WORDS_CJK[text]


KANA = "あいうえおかきくけこ" * 6
URL_64 = "a" * 64 + ".com"  # a label has at most 63 letters
TWEETS = {
    "": 0,
    "cat": 3,
    "cafe\u0301": 4,
    MARHABAN: 9,
    "日本語": 6,
    "日本 ok": 7,
    JAMO: 2,
    "“quoted” – dashed": 17,
    "wait…": 6,  # the ellipsis is outside the light ranges,
    "5€": 3,  # and so is the euro
    "a\u200bb": 3,
    "\U0001f600": 2,
    FAMILY: 2,
    FLAG: 2,
    FLAG + FLAG: 4,
    THUMB: 2,
    ENGLAND: 2,
    "1\ufe0f\u20e3": 2,
    "\u263a": 2,
    "\u263a\ufe0f": 2,
    "\u263a\ufe0e": 4,  # shown as text: the sign 2, its selector 2
    "©": 1,
    "©\ufe0f": 2,
    "\U0001f600\u0301": 3,
    "\ud800": 2,
    "http://example.com": 23,
    "HTTPS://Example.COM/a/long/path/that/goes/on?with=query&and=more#end": 23,
    "example.com": 23,
    "www.example.co.uk:8080/x": 23,
    "example.com.": 24,
    "example.com, example.org": 48,
    "See https://example.com/a.": 28,
    "(https://en.wikipedia.org/wiki/Primer_(film))": 25,
    "日本語example.com中国語": 35,
    "http://example.com/日本": 27,  # a path has no ideographs: 23 + 4
    "http://ああ.com": 23,
    "http://exa_mple.example.com": 23,
    "http://example_.com": 19,
    "http://-example.com": 19,
    "http://t.co/abc123's": 25,
    "http://t.co/" + "a" * 41: 53,
    URL_64: 68,
    "http://" + URL_64: 75,
    "http://" + KANA[:52] + ".com": 23,  # 63 letters as the name system writes it
    "http://" + KANA[:53] + ".com": 117,
    "jane@example.com": 16,
    "jane.doe@mail.example.org": 25,
    "first.last.me@example.com": 25,
    "#example.com": 12,
    "@example.com": 12,
    "$t.co": 5,
    "x/example.com": 13,
    "example.notadomain": 18,
    "http://example.notadomain": 23,  # X would count 25; see units.py
    "e.g. 3.14 v2.0": 14,
    "Done.It works": 29,  # .it is Italy's, and X does make a link of it
    "a" * 280: 280,
    "字" * 140: 280,
    "a" * 256 + " https://example.com/some/page": 280,
    "a" * 257 + " https://example.com/some/page": 281,
}


@pytest.mark.parametrize("text", TWEETS, ids=ascii)
def test_tweet_weights(text):
    assert measure(text, "tweet") == TWEETS[text]


def test_white_space_at_both_ends_is_free_unlike_on_x():
    assert measure(" example.com \n", "tweet") == 23


def test_signatures_are_unique_and_versioned():
    signatures = [unit.signature for unit in UNITS.values()]
    assert len(set(signatures)) == len(UNITS)
    assert all(signature.startswith("unit:") and signature.endswith("|v1") for signature in signatures)


def test_units_answer_to_their_names_and_aliases():
    names = [alias for unit in UNITS.values() for alias in (unit.name, *unit.aliases)]
    assert len(names) == len(set(names))
    for unit in UNITS.values():
        for alias in (unit.name, *unit.aliases, unit.name.upper(), f" {unit.name} "):
            assert unit_named(alias) is unit
    assert measure("cat", "Characters") == 3


@pytest.mark.parametrize("name", ["", "letters", "char s", None])
def test_an_unknown_unit_is_named_beside_the_known(name):
    with pytest.raises(ValueError, match=rf"unknown unit {name!r}; the units are tokens, chars, .*, tweet"):
        unit_named(name)


def test_tokens_need_a_tokenizer():
    with pytest.raises(ValueError, match="lengths in tokens need a tokenizer"):
        measure("a cat", "tokens")


def test_tokens_are_counted_without_special_tokens_and_white_space_at_the_ends():
    def tokenizer(text, add_special_tokens):
        assert (text, add_special_tokens) == ("a cat", False)
        return SimpleNamespace(input_ids=[5, 7]).__dict__

    assert measure(" a cat\n", "tokens", tokenizer=tokenizer) == 2


COUNTED = sorted(UNITS.keys() - {"tokens"})
TRICKY = [
    FAMILY,
    FLAG,
    THUMB,
    ENGLAND,
    JAMO,
    MARHABAN,
    "\u0301",
    "\u200d",
    "\ufe0f",
    "\ud800",
    "\r\n",
    "\u3000",
    "\xa0",
]
LINKS = [
    "http://",
    "https://t.co/a",
    "example",
    ".",
    "com",
    "/",
    "(",
    ")",
    "?",
    "@",
    "#",
    "-",
    "_",
    "あ",
    "xn--",
    "日本.jp",
]
texts = st.text(st.characters()) | st.lists(
    st.sampled_from(TRICKY + LINKS) | st.text(st.characters(), max_size=3), max_size=12
).map("".join)
spaces = st.text(st.sampled_from(" \t\n\r\x0b\x0c\x1c\x85\u00a0\u2003\u2028\u3000"), max_size=3)


@given(texts, spaces, spaces)
def test_white_space_at_both_ends_never_counts(text, before, after):
    for name in COUNTED:
        assert measure(before + text + after, name) == measure(text, name) >= 0, name


@given(texts)
def test_composition_never_counts(text):
    for name in ("chars", "chars-nospace", "words", "tweet"):
        assert measure(unicodedata.normalize("NFC", text), name) == measure(unicodedata.normalize("NFD", text), name)


@given(texts)
def test_units_keep_their_order(text):
    length = {name: measure(text, name) for name in COUNTED}
    assert length["words"] <= length["chars-nospace"] <= length["chars"] <= length["bytes"]
    assert length["words"] <= length["graphemes"] <= length["chars"]
    assert length["cells"] <= 2 * len(text)
    assert (length["chars"] == 0) == (not text.strip())


@given(texts, texts)
def test_words_add_up(one, other):
    assert measure(f"{one} {other}", "words") == measure(one, "words") + measure(other, "words")


@given(st.text(st.characters(max_codepoint=0x10FF, exclude_characters=".\u20e3", exclude_categories=["So"])))
@example("B\u0307")
def test_without_links_and_emoji_a_light_tweet_weighs_its_chars(text):
    # B and a dot above are one character, and not a light one.
    heavy = sum(char > "\u10ff" for char in unicodedata.normalize("NFC", text))
    assert measure(text, "tweet") == measure(text, "chars") + heavy


@pytest.mark.parametrize(
    "text", ["a." * 9999, "é" * 19999, "http://" + "a-" * 9999, "http://a.com/" + "(a" * 9999, "http://あ" * 9999]
)
def test_nothing_takes_for_ever(text):
    assert measure(text, "tweet") > 9999


def test_dots_without_endings_are_no_link_however_many():
    assert measure("a.b.c.d." * 2000, "tweet") == 16_000
