"""Shorter forms: which may be faithful, how much strain their words have, and which are chosen."""

import numpy as np
import pytest

from lengthwise.distill.shorter_forms import Judged, choose, is_sound, plausible, strains

SENTENCE = "Scientists at the centre predict that the storm will grow."


def judged(text, translator, language_model, understood=0.0):
    return Judged(text, text.rstrip(".").split(), np.array(translator), np.array(language_model), understood)


WHOLE = judged(SENTENCE, [-1.0] * 11, [-5.0] * 11)


@pytest.mark.parametrize(
    ("sentence", "form", "expected"),
    [
        (SENTENCE, "Scientists predict that the storm will grow.", True),
        (SENTENCE, "Scientists predict that the storm will grow", False),  # no full stop
        (SENTENCE, SENTENCE, False),  # not shorter
        (SENTENCE, "Storms.", False),  # too short
        (SENTENCE, "Physicians expect thunder, lightning, hail.", False),  # other words
        ("The file was not saved on the disk.", "The file was saved.", False),
        ("Delete the file only if it is empty.", "Delete the file.", False),
        ("Save %s to the folder of the user.", "Save to the folder.", False),
        ("It takes 5 minutes or so to load it.", "It takes 6 minutes or so.", False),
        ("It not only reads but also writes all files.", "It not only reads files.", False),
        ("Open the file (in the old folder) again.", "Open the file again.", True),
        ("Wrap the text automatically: Off", "Wrap the text", False),
    ],
)
def test_plausible(sentence, form, expected):
    assert plausible(sentence, form) == expected


def test_a_word_after_a_deletion_has_no_strain_if_one_model_expects_it():
    form = judged("Scientists predict that the storm will grow.", [-1, -9, *[-1.0] * 6], [-5.0] * 8)
    strain, unsupported = strains(WHOLE, form)
    assert strain.max() == 0.0
    assert unsupported == 8.0
    assert is_sound(WHOLE, form)


def test_a_word_that_both_models_find_less_probable_has_strain():
    form = judged("Scientists at predict that the storm will grow.", [-1, -1, -7, *[-1.0] * 6], [-5, -5, -8, *[-5] * 6])
    strain, _ = strains(WHOLE, form)
    assert strain[2] == 3.0
    assert not is_sound(WHOLE, form)


def test_new_words_need_both_models():
    written = "Researchers at the centre predict that the storm will grow."
    good = judged(written, [-1.0] * 11, [-5.0] * 11)
    odd = judged(written, [-1.0] * 11, [-9, *[-5.0] * 10])
    assert is_sound(WHOLE, good)
    assert not is_sound(WHOLE, odd)


def test_the_end_is_compared_with_the_end():
    form = judged("Scientists at the centre predict.", [*[-1.0] * 5, -9], [*[-5.0] * 5, -8])
    assert strains(WHOLE, form)[0][-1] == 3.0


def test_the_form_that_is_understood_best_is_chosen_in_each_range():
    short = "Scientists predict that it will grow."  # 0.63 of the sentence
    forms = [
        judged("Scientists predict that the storm will grow.", [-1.0] * 8, [-5.0] * 8, -20),
        judged("Scientists at the centre predict the growth.", [-1.0] * 8, [-5.0] * 8, -30),
        judged(short, [-1.0] * 7, [-5.0] * 7, -40),
    ]
    assert choose(WHOLE, forms) == [forms[0].text, short]
    assert choose(WHOLE, []) == []
