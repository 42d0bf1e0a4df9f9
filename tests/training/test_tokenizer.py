"""The tokenizer that is trained on a corpus."""

from random import Random

from lengthwise.training.fresh_model import train_tokenizer
from toy_corpora import sentence


def test_tokenizer_is_lossless() -> None:
    tokenizer = train_tokenizer([sentence(Random(n)) for n in range(200)], 300)
    for text in ("The cat sleeps.", "Größe, 10 €: 日本", "a  b"):
        ids = tokenizer(text)["input_ids"]
        assert ids[-1] == tokenizer.eos_token_id
        assert tokenizer.decode(ids, skip_special_tokens=True) == text
