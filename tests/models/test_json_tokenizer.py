"""A tokenizer without transformers does what transformers' own does with the same files."""

import pytest
from transformers import AutoTokenizer

from lengthwise.length.vocabulary import pieces
from lengthwise.models.json_tokenizer import JsonTokenizer

TEMPLATE = "{% for m in messages %}{{ '<s>' + m['role'] + ': ' + m['content'] + '</s>\\n' }}{% endfor %}" + (
    "{% if add_generation_prompt %}\n    {{ '<s>' }}\n{% endif %}"
)
TEXTS = ["The dog.", "  Où est-il ?\n\n1. x", "吾輩は猫である。", "<s>a</s> b", ""]


@pytest.fixture
def both(byte_bpe, tmp_path):
    byte_bpe.chat_template = TEMPLATE
    byte_bpe.save_pretrained(tmp_path)
    return AutoTokenizer.from_pretrained(tmp_path), JsonTokenizer(tmp_path)


def test_ids_and_texts(both):
    theirs, ours = both
    assert ours(TEXTS)["input_ids"] == theirs(TEXTS)["input_ids"]
    for text in TEXTS:
        ids = theirs(text)["input_ids"]
        assert ours(text)["input_ids"] == ids
        assert ours(text, add_special_tokens=False)["input_ids"] == theirs(text, add_special_tokens=False)["input_ids"]
        for skip in (True, False):
            assert ours.decode(ids, skip_special_tokens=skip) == theirs.decode(ids, skip_special_tokens=skip)
    assert ours.batch_decode([[5, 9], [2]]) == theirs.batch_decode([[5, 9], [2]])


def test_properties(both):
    theirs, ours = both
    assert (len(ours), ours.eos_token_id, ours.pad_token_id) == (len(theirs), theirs.eos_token_id, theirs.pad_token_id)
    assert sorted(ours.all_special_ids) == sorted(theirs.all_special_ids)
    assert ours.get_vocab() == theirs.get_vocab()
    assert pieces(ours) == pieces(theirs)


def test_chat_templates(both):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
    theirs, ours = (
        tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)["input_ids"]
        for tokenizer in both
    )
    assert ours == theirs


def test_what_it_does_not_know(both):
    with pytest.raises(TypeError, match="no option text_pair"):
        both[1]("a", text_pair="b")
