"""Marian's tokenizer without transformers: the ids and texts of transformers' own."""

import pytest
from transformers import MarianTokenizer

from lengthwise.length.vocabulary import pieces
from lengthwise.models.spm_tokenizer import SpmTokenizer
from marian_tokenizer import save_marian_tokenizer

SOURCES = ["The quick brown fox jumps over the lazy dog.", "Where is the station? It is 5 km away.", "Save the file."]
TARGETS = ["Le vif renard brun saute par-dessus le chien.", "Où est la gare ? Elle est à 5 km.", "Enregistrez."]
TEXTS = [
    *("", "  ", "The fox.", " a  b ", "Où est\tla gare ?\n", "e\u0301 é ﬁ ½", "日本語", "👩‍👩‍👧 x"),
    *("%s {name} <b>x</b>", "a\xa0b"),
    *("</s> in", "mid</s>dle  </s>", "<unk> <pad>", ">>fr<< The fox.", ">>fr<<The>>x<<", ">>x", "<s> x"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files of a Marian tokenizer."""
    found = tmp_path_factory.mktemp("marian")
    save_marian_tokenizer(found, SOURCES, TARGETS, pieces=60, more=[">>fr<<"])
    return found


@pytest.mark.parametrize("text", TEXTS)
def test_ids_and_texts_of_transformers(folder, text):
    reference, tokenizer = MarianTokenizer.from_pretrained(folder), SpmTokenizer(folder)
    for given in ({"text": text}, {"text_target": text}, {"text": [text, "The"], "add_special_tokens": False}):
        assert tokenizer(**given)["input_ids"] == reference(**given)["input_ids"]
    ids = tokenizer(text)["input_ids"]
    for skip in (True, False):
        expected = reference.decode(ids, skip_special_tokens=skip, clean_up_tokenization_spaces=False)
        assert tokenizer.decode(ids, skip_special_tokens=skip) == expected


def test_its_properties(folder):
    reference, tokenizer = MarianTokenizer.from_pretrained(folder), SpmTokenizer(folder)
    assert pieces(tokenizer) == pieces(reference)
    assert len(tokenizer) == len(reference)
    assert sorted(tokenizer.all_special_ids) == sorted(reference.all_special_ids)
    for name in ("eos_token_id", "pad_token_id", "source_lang", "target_lang", "supported_language_codes"):
        assert getattr(tokenizer, name) == getattr(reference, name)


def test_two_vocabularies_are_refused(folder, tmp_path):
    (tmp_path / "tokenizer_config.json").write_text('{"separate_vocabs": true}')
    with pytest.raises(ValueError, match="two vocabularies; use the engine transformers"):
        SpmTokenizer(tmp_path)
