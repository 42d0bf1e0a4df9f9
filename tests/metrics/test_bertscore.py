"""BERTScore with a tiny random encoder, and against the authors' code."""

import pytest

from lengthwise.metrics import score
from lengthwise.metrics.bertscore import greedy_f1
from lengthwise.metrics.models import encoder as load_encoder
from metric_texts import FAR, REFS


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A tiny random BERT with a vocabulary of letters."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("tiny-bert")
    letters = list("abcdefghijklmnopqrstuvwxyz.,")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_max_length=64).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=4,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
    return str(folder)


def test_bertscore(encoder):
    (same,) = score(REFS[:3], REFS[:3], metrics=[f"bertscore:{encoder}@2"], bootstrap=0)
    assert same.value == pytest.approx(1, abs=1e-5)
    assert "layer:2|" in same.signature
    assert "encoder:tiny-bert" in same.signature
    usual, *_ = score(FAR[:3], REFS[:3], metrics=[f"bertscore:{encoder}"], bootstrap=0)
    assert "layer:3|" in usual.signature
    assert usual.value < 1
    together = score([*FAR[:3], ""], [*REFS[:3], "a"], metrics=[f"bertscore:{encoder}"], bootstrap=0)[0].per_item
    assert together == pytest.approx([*usual.per_item, 0], abs=1e-5)  # padding changes nothing; nothing is worth 0
    best = score(
        FAR[:3], [[ref, hyp] for ref, hyp in zip(REFS, FAR[:3], strict=False)], metrics=[f"bertscore:{encoder}"]
    )
    assert best[0].value == pytest.approx(1, abs=1e-5)


def test_bertscore_equals_that_of_its_authors(encoder):
    utils = pytest.importorskip("bert_score.utils")
    import torch

    hyp, ref = (load_encoder(encoder).encode([text])[text] for text in (FAR[0], REFS[0]))
    batch = [torch.tensor(part)[None].clone() for part in (*ref, *hyp)]
    r, r_counts, h, h_counts = (part.float() for part in batch)
    _, _, f1 = utils.greedy_cos_idf(r, torch.ones_like(r_counts), r_counts, h, torch.ones_like(h_counts), h_counts)
    assert greedy_f1(hyp, ref) == pytest.approx(float(f1), abs=1e-5)


def test_bertscore_says_what_is_wrong(encoder):
    for argument, message in (
        ("", "needs an encoder"),
        ("/no/such/folder", "no encoder was found at"),
        (f"{encoder}@9", "0 to 4"),
    ):
        with pytest.raises(ValueError, match=message):
            score(["a"], ["a"], metrics=[f"bertscore:{argument}"])
