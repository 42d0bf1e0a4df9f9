"""Rewording: what is asked for, what is kept, and when the search ends. `ask` is a function here."""

from itertools import islice

import pytest

from lengthwise import Budget
from lengthwise.endpoints.client import Reply
from lengthwise.endpoints.rewording import Rewording
from lengthwise.translation.placeholders import count_placeholders, lost


def search(source, budget, replies, calls=8, candidates=1):
    """Run a search whose call n receives `replies[n]`, a text or several; return it and the messages of its calls."""
    asked, left = [], iter(replies)

    def ask(messages, n, max_tokens):
        asked.append(messages)
        texts = next(left)
        return [Reply(text, ended=True) for text in ([texts] if isinstance(texts, str) else texts)]

    known = None if budget is None else Budget.parse(budget)
    marks = {"lost": lambda text: lost(source, text), "keep": list(count_placeholders(source))}
    made = Rewording("Translate.", source, known, ask, candidates=candidates, **marks)
    made.run(lambda: len(asked) < calls)
    return made, asked


def test_a_reply_that_fits_takes_one_call():
    made, asked = search("Save the file.", "at most 20 chars", ["Salva il file."])
    assert (made.best.text, made.best.good, len(asked)) == ("Salva il file.", True, 1)
    [[first]] = asked
    assert first["content"].startswith("Translate. Length: at most 20 characters, that is about 3 words.")
    assert first["content"].endswith("\n\nSave the file.")


def test_any_length():
    made, [[first]] = search("Save the file.", None, ["Salva il file subito, per favore."])
    assert made.best.good
    assert "Length" not in first["content"]


def test_what_is_too_long_is_asked_for_again():
    made, asked = search("Save the file.", "at most 16 chars", ["Salva il documento ora.", "Salva il file."])
    assert (made.best.text, made.best.fits) == ("Salva il file.", True)
    assert asked[1][1] == {"role": "assistant", "content": "Salva il documento ora."}
    assert asked[1][2]["content"].startswith("This has 23 characters. Write it again, in about 14 characters")


def test_only_the_sentence_that_is_off_is_asked_for_again():
    long = "Il disco è pieno. Elimina alcuni file grandi dal disco e poi riprova ancora una volta."
    made, asked = search("The disk is full. Delete files.", "at most 60 chars", [long, "Elimina file e riprova."])
    assert made.best.text == "Il disco è pieno. Elimina file e riprova."
    assert "Write only another sentence in place of “Elimina alcuni file grandi" in asked[1][2]["content"]


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        # all of the text
        ("Il disco è pieno. {long}", "Il disco è pieno. Elimina file.", "Il disco è pieno. Elimina file."),
        ("{long} Grazie mille.", "Elimina file. Grazie mille.", "Elimina file. Grazie mille."),
        ("Aiuto. {long} Grazie mille.", "Aiuto. Elimina file. Grazie.", "Aiuto. Elimina file. Grazie."),
        # the part, and what is on one side of it
        ("Aiuto. {long} Grazie mille.", "Aiuto. Elimina file.", "Aiuto. Elimina file. Grazie mille."),
        ("Aiuto. {long} Grazie mille.", "Elimina file. Grazie mille.", "Aiuto. Elimina file. Grazie mille."),
    ],
)
def test_sentences_around_the_one_asked_for_are_not_doubled(first, second, text):
    long = "Elimina alcuni file grandi dal disco e poi riprova ancora una volta."
    made, asked = search("Help. Delete files. Thank you.", "at most 60 chars", [first.format(long=long), second], 2)
    assert f"in place of “{long}”" in asked[1][2]["content"]
    assert (made.best.text, made.best.fits) == (text, True)


def test_a_reply_without_the_sentence_asked_for_is_no_text():
    long = "Il disco è pieno. Elimina alcuni file grandi dal disco e poi riprova ancora una volta."
    made, _ = search("The disk is full. Delete files.", "at most 60 chars", [long, "Il disco è pieno."], 2)
    assert [one.text for one in made.ranked] == [long]


def test_placeholders_that_were_lost_are_named():
    made, asked = search("Delete {name}?", "at most 30 chars", ["Eliminare il file?", "Eliminare {name}?"])
    assert (made.best.text, made.best.good) == ("Eliminare {name}?", True)
    assert "Keep {name} as in the text." in asked[0][0]["content"]
    assert "does not have {name} as the source has it" in asked[1][2]["content"]


@pytest.mark.parametrize(
    "echo", ["This has 41 characters.", "It does not have %d as the source has it. Write it again."]
)
def test_a_reply_that_repeats_the_request_is_no_text(echo):
    long = "Tutti i file sono stati salvati adesso: eccoli."
    made, _ = search("%d files were saved.", "at most 30 chars", [long, echo, "%d file salvati."])
    assert echo not in [one.text for one in made.found]
    assert made.best.text == "%d file salvati."


def test_a_text_with_its_placeholders_is_better_than_one_that_fits():
    made, _ = search("Delete {name}?", "at most 9 chars", ["Eliminare {name}?", "Elimina?"] * 4)
    assert (made.best.text, made.best.fits) == ("Eliminare {name}?", False)


@pytest.mark.parametrize("calls", [1, 3, 8])
def test_no_more_calls_than_are_left(calls):
    many = islice((f"Questo testo è troppo lungo, {n}." for n in range(99)), 99)
    made, asked = search("Save.", "at most 5 chars", many, calls)
    assert (len(asked), made.best.fits) == (calls, False)


def test_the_text_is_asked_for_anew_if_other_words_do_not_help():
    _, asked = search("Save.", "at most 5 chars", ["Salvare adesso il file."] * 8, 6)
    assert [len(messages) for messages in asked] == [1, 3, 3, 1, 3, 3]
    assert "at most" not in asked[3][0]["content"]  # the corrected number would contradict it


@pytest.mark.parametrize(
    "reply",
    [
        "Salva.",
        '"Salva."',
        "Here is the translation:\n\nSalva.",
        "Sure! Here's the text in Italian:\nSalva.\n\nNote: it is an imperative.",
        "Traduzione:\nSalva.",
        "  Salva. (6 characters)",
        "Here is the translation: Salva.",
        'Sure! Here\'s the Italian translation of the text: "Salva."',
        "Italian translation: Salva.",
    ],
)
def test_what_models_put_around_a_text_is_removed(reply):
    made, _ = search("Save.", None, [reply])
    assert made.best.text == "Salva."


@pytest.mark.parametrize(
    ("source", "reply"),
    [
        ("Traduzione: salva.", "Translation: save."),
        ("翻译：保存", "Translation: save"),
        ("Ecco la nuova versione, la 2.0", "Here is the new version: 2.0"),
        ("Attenzione, il disco è pieno", "Warning: the disk is full"),
    ],
)
def test_a_colon_of_the_text_stays(source, reply):
    assert search(source, None, [reply])[0].best.text == reply


def test_quotation_marks_of_the_source_stay():
    assert search('"Save."', None, ['"Salva."'])[0].best.text == '"Salva."'


@pytest.mark.parametrize(
    ("source", "reply"),
    [
        ("Inserisci una password (8 caratteri)", "Enter a password (8 characters)"),
        ("Titolo [massimo 20]:", "Title [20 chars]"),
        ("密码（8个字符）", "Password (8 characters)"),
    ],
)
def test_a_count_of_the_source_stays(source, reply):
    assert search(source, None, [reply])[0].best.text == reply


def test_lines_of_the_source_stay():
    assert search("One.\nTwo.", None, ["Uno.\nDue."])[0].best.text == "Uno.\nDue."


def test_a_talk_is_not_complete():
    made, asked = search("Save.", None, ["As a language model, I " * 20, "Salva."])
    assert (made.best.text, len(asked)) == ("Salva.", 2)


def test_empty_replies():
    made, asked = search("Save.", None, [""] * 8, 3)
    assert (made.best, len(asked)) == (None, 3)


def test_the_tokens_of_a_script_with_a_token_for_each_byte():
    source, seen = "கோப்பைச் சேமிக்கவும் " * 20, []

    def ask(messages, n, max_tokens):
        seen.append(max_tokens)
        return [Reply("Save.", ended=True)]

    Rewording("Translate.", source, None, ask, lost=lambda text: [], keep=[]).run(lambda: not seen)
    assert seen[0] >= len(source.strip().encode())


def test_the_best_of_several_replies():
    made, asked = search("Save.", "at most 8 chars", [["Salvare ora.", "Salva.", "S."]], candidates=3)
    assert ([one.text for one in made.ranked][:2], len(asked)) == (["Salva.", "S."], 1)
