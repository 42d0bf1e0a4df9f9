"""Known ids: the ids of joined sentences are those of the whole text, and each sentence is tokenised once."""

from lengthwise.training import known_ids
from lengthwise.training.known_ids import KnownIds


class Words:
    """Tokenises words by their lengths, and records what it was asked for."""

    def __init__(self):
        self.asked = []

    def __call__(self, texts):
        self.asked += texts
        return [[len(word) for word in text.split()] for text in texts]


def test_a_separator_that_is_a_token_joins_the_ids_of_sentences():
    words = Words()
    known = KnownIds(words, "<sep>", 99)
    assert known(["a bb<sep>ccc", "ccc", "<sep>"]) == [[1, 2, 99, 3], [3], [99]]
    assert known(["ccc<sep>a bb"]) == [[3, 99, 1, 2]]
    assert words.asked == ["a bb", "ccc", ""]


def test_with_another_separator_a_text_is_tokenised_as_a_whole_and_not_kept():
    words = Words()
    known = KnownIds(words, " ■ ", None)
    assert known(["a ■ bb", "ccc"]) == [[1, 1, 2], [3]]
    known(["a ■ bb", "ccc"])
    assert words.asked == ["a ■ bb", "ccc", "a ■ bb"]


def test_beyond_the_limit_nothing_is_kept(monkeypatch):
    monkeypatch.setattr(known_ids, "_TOKENS", 3)
    words = Words()
    known = KnownIds(words, " ", None)
    assert known(["aa bb", "c d e"]) == known(["aa bb", "c d e"]) == [[2, 2], [1, 1, 1]]
    assert words.asked == ["aa bb", "c d e", "c d e"]
