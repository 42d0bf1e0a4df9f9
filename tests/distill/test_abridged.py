"""Abridged sources: shorter forms that keep what may not be lost."""

import pytest

from lengthwise.distill.abridged import abridged
from lengthwise.translation.compression import balanced

TEXT = 'Do not open the "very old file" (now) with {name}, if you can read it here.'


def test_forms_are_shorter_and_keep_negations_placeholders_and_pairs():
    forms = abridged(TEXT, 30, seed=1)
    assert len(forms) == len(set(forms)) > 10
    for form in forms:
        assert 0.55 * len(TEXT.split()) <= len(form.split()) < len(TEXT.split())
        assert "not" in form.lower().split()
        assert "{name}" in form
        assert balanced(form)
        assert form.endswith(".")


def test_a_seed_makes_the_same_forms():
    assert abridged(TEXT, 5, seed=1) == abridged(TEXT, 5, seed=1) != abridged(TEXT, 5, seed=2)


@pytest.mark.parametrize(("text", "count"), [("", 5), ("Open it.", 5), (TEXT, 0)])
def test_there_may_be_no_form(text, count):
    assert abridged(text, count, seed=0) == []
