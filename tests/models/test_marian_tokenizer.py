"""The faster tokenizer of Marian models: the ids, texts and files of transformers' own."""

import copy
import json
import pickle

import pytest
import torch
import transformers

from lengthwise.models.checkpoint import load_tokenizer
from lengthwise.models.marian_tokenizer import MarianTokenizer
from marian_tokenizer import save_marian_tokenizer

SOURCES = ["The quick brown fox jumps over the lazy dog.", "Where is the station? It is 5 km away.", "Save the file."]
TARGETS = ["Le vif renard brun saute par-dessus le chien.", "Où est la gare ? Elle est à 5 km.", "Enregistrez."]
TEXTS = ["The fox.", "", " a  b ", "日本語 gare", "mid</s>dle", ">>fr<< The fox.", "The fox.", "Où est ▁ la ½ gare"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files of a Marian tokenizer."""
    found = tmp_path_factory.mktemp("marian")
    save_marian_tokenizer(found, SOURCES, TARGETS, pieces=60, more=[">>fr<<"])
    return found


@pytest.fixture(scope="module")
def both(folder):
    return transformers.MarianTokenizer.from_pretrained(folder), load_tokenizer(folder)


@pytest.mark.parametrize(
    "given",
    [
        {"text": TEXTS},
        {"text": TEXTS[0]},
        {"text_target": TEXTS},
        {"text": TEXTS, "add_special_tokens": False},
        {"text": TEXTS[:3], "padding": True, "return_tensors": "pt"},
        {"text": TEXTS[0], "text_target": TEXTS[1]},
    ],
)
def test_inputs_of_transformers(both, given):
    reference, tokenizer = both
    expected, found = reference(**given), tokenizer(**given)
    assert type(tokenizer) is MarianTokenizer
    assert type(found) is type(expected)
    assert found.keys() == expected.keys()
    for name in expected:
        same = torch.equal if isinstance(expected[name], torch.Tensor) else list.__eq__
        assert same(found[name], expected[name])


@pytest.mark.parametrize("options", [{}, {"skip_special_tokens": True}, {"clean_up_tokenization_spaces": True}])
def test_texts_of_transformers(both, options):
    reference, tokenizer = both
    ids = reference(TEXTS)["input_ids"]
    assert tokenizer.batch_decode(ids, **options) == reference.batch_decode(ids, **options)
    for given in (ids[0], torch.tensor(ids[0]), ids[0][0], []):
        assert tokenizer.decode(given, **options) == reference.decode(given, **options)


def test_a_saved_tokenizer_is_one_of_transformers(both, tmp_path):
    reference, tokenizer = both
    tokenizer.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["tokenizer_class"] == "MarianTokenizer"
    assert type(transformers.AutoTokenizer.from_pretrained(tmp_path)) is transformers.MarianTokenizer
    assert load_tokenizer(tmp_path)(TEXTS)["input_ids"] == reference(TEXTS)["input_ids"]


def test_added_tokens_stay_whole(both):
    reference, tokenizer = map(copy.deepcopy, both)
    for one in (reference, tokenizer):
        one.add_tokens(["<long>"], special_tokens=True)
    text = "The <long> fox."
    assert tokenizer(text)["input_ids"] == reference(text)["input_ids"]
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == reference.decode(reference(text)["input_ids"])
    assert both[1](text)["input_ids"] == both[0](text)["input_ids"]


def test_it_can_be_sent_to_another_process(both):
    reference, tokenizer = both
    tokenizer(TEXTS)
    assert pickle.loads(pickle.dumps(tokenizer))(TEXTS)["input_ids"] == reference(TEXTS)["input_ids"]


def test_two_vocabularies_are_left_to_transformers(folder, tmp_path):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    assert MarianTokenizer.can_read(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config | {"separate_vocabs": True}))
    assert not MarianTokenizer.can_read(tmp_path)
