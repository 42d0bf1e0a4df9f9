"""Sentences of corpora: each once, none of the test sets, no lines of symbols."""

import json

from lengthwise.distill.sentences import has_words, sentences, split


def corpus(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_texts_are_split_at_sentence_ends_and_line_breaks():
    text = "Dr. Smith came.  He left at 5 p.m. today!\n- an item\n\n終わり。次の文です。"
    assert list(split(text)) == ["Dr. Smith came.", "He left at 5 p.m. today!", "- an item", "終わり。", "次の文です。"]


def test_sources_of_parallel_corpora_and_both_sides_of_others(tmp_path):
    pairs = corpus(tmp_path / "a.jsonl", {"id": 1, "segs": [["Hello there. Go on.", "Ciao."], ["go on.", "Avanti."]]})
    answers = corpus(tmp_path / "b.jsonl", {"prompt": "Say hi.", "response": "Hi to you. Go on."})
    assert list(sentences([pairs])) == ["Hello there.", "Go on."]
    assert list(sentences([pairs, answers], both=True))[-2:] == ["Say hi.", "Hi to you."]


def test_sentences_of_test_sets_are_left_out(tmp_path):
    train, test = tmp_path / "train.txt", tmp_path / "test.txt"
    train.write_text("One is here. Two is here.\nThree is here.\n")
    test.write_text("two IS here.\nFour is here.\n")
    assert list(sentences([train], without=[test])) == ["One is here.", "Three is here."]
    assert list(sentences([train], max_chars=12)) == ["One is here.", "Two is here."]


def test_lines_of_symbols_are_no_sentences():
    assert not has_words("1 + 2 = 3")
    assert not has_words("---- 12:30 ---- 0x7fff a1b2")
    assert has_words("OK (F2)")
    assert has_words("水をください。")
