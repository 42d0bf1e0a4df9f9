"""Fixtures: a translator with a dictionary in place of its search, and a tiny random Marian."""

import copy

import pytest
from tokenizers import processors

from families import tiny
from lengthwise import Writer
from lengthwise.translation import Translator
from translation.fakes import Dictionary, fake_writer


@pytest.fixture
def translator(monkeypatch):
    """Returns a translator with these entries, and its dictionary."""

    def make(entries=(), forward=None, **options):
        book = Dictionary(dict(entries))
        monkeypatch.setattr("lengthwise.translation.translator.Hypotheses", lambda writer, beams: book)
        monkeypatch.setattr("lengthwise.translation.translator.forward_model", lambda engine, prefix: forward)
        return Translator(fake_writer(source_lang="en", target_lang="fr"), **options), book

    return make


@pytest.fixture(scope="module")
def marian(sp_unigram):
    return Writer(tiny("marian", sp_unigram), sp_unigram, name="tiny-en-fr")


@pytest.fixture(scope="module")
def tokenizer(sp_unigram):
    """The tokenizer that adds an end token to each text, as those of translators do."""
    found = copy.deepcopy(sp_unigram)
    ended = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", found.eos_token_id)])
    found.backend_tokenizer.post_processor = ended
    return found
