"""Languages: which models can translate from English to French, and how they are set to do so."""

import re

import pytest

from families import tiny
from lengthwise import Writer
from lengthwise.translation import Translator
from lengthwise.translation.languages import prepare
from translation.fakes import fake_writer

CODES = {"lang_code_to_id": {"en_XX": 7, "fr_XX": 8, "it_IT": 9}}


NLLB = {"added_tokens_encoder": {"eng_Latn": 7, "fra_Latn": 8, "<pad>": 1}}


T5 = {"config": {"task_specific_params": {"translation_en_to_fr": {"prefix": "translate English to French: "}}}}


@pytest.mark.parametrize(
    ("writer", "prefix", "note"),
    [
        (fake_writer("here/opus-mt-en-fr"), "", None),
        (fake_writer(source_lang="en", target_lang="fr"), "", None),
        (fake_writer(**CODES), "", None),
        (fake_writer(**NLLB), "", None),
        (fake_writer(**T5), "translate English to French: ", None),
        (fake_writer(supported_language_codes=[">>fr<<", ">>it<<"]), ">>fr<< ", None),
        (fake_writer("my-model"), "", "my-model does not name its languages; it is assumed to translate from en to fr"),
    ],
)
def test_models_of_these_languages(writer, prefix, note):
    assert prepare(writer, "en", "fr") == (prefix, note)
    codes = getattr(writer.tokenizer, "lang_code_to_id", writer.tokenizer.added_tokens_encoder)
    assert writer.model.generation_config.forced_bos_token_id == (8 if codes else None)
    assert not codes or writer.tokenizer.src_lang in ("en_XX", "eng_Latn")
    assert not codes or writer.tokenizer.tgt_lang in ("fr_XX", "fra_Latn")  # a reverse model tokenizes sources in it


@pytest.mark.parametrize(
    ("writer", "says"),
    [
        (fake_writer("opus-mt-en-de"), "opus-mt-en-de translates from en to de, not from en to fr"),
        (fake_writer(source_lang="fr", target_lang="en"), "fake translates from fr to en"),
        (fake_writer(added_tokens_encoder={"eng_Latn": 1}), "does not support the language 'fr', only eng_Latn"),
        (fake_writer(supported_language_codes=[">>it<<"]), "does not translate to fr, only to >>it<<"),
    ],
)
def test_models_of_other_languages(writer, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        prepare(writer, "en", "fr")


def test_a_decoder_only_model_is_no_translator(byte_bpe):
    with pytest.raises(ValueError, match="is a causal model, not a translator"):
        Translator(Writer(tiny("llama", byte_bpe), byte_bpe))
