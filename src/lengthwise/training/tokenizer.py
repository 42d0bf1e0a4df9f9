"""Train a tokenizer: SentencePiece BPE on a corpus, as a fast tokenizer of transformers.

Encoder and decoder share it. Every character of the training corpus and every byte is a token, so a decoder that writes
character by character uses it as well. This file knows texts only.
"""

import io
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

from .examples import SEPARATOR
from .recipe import RecipeError

PAD, BEGIN, END, UNKNOWN = "<pad>", "<s>", "</s>", "<unk>"
_LONGEST = 1 << 20  # bytes of a text; SentencePiece ignores longer ones


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> Any:
    """Return a tokenizer of at most `vocabulary` tokens; a small corpus gives fewer."""
    import sentencepiece

    trained = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_lines(texts),
            model_writer=trained,
            model_type="bpe",
            vocab_size=vocabulary,
            hard_vocab_limit=False,
            character_coverage=0.9999,
            byte_fallback=True,
            normalization_rule_name="identity",  # a tokenizer that rewrites the text would change its length
            remove_extra_whitespaces=False,
            max_sentence_length=_LONGEST,
            pad_id=0,
            bos_id=1,
            eos_id=2,
            unk_id=3,
            control_symbols=[SEPARATOR],
            minloglevel=2,
        )
    except RuntimeError as error:
        raise RecipeError(
            f"SentencePiece could not train a tokenizer of {vocabulary:,} tokens on this corpus: {error}\n"
            "What to do: check that the corpus has texts, or ask for another model.fresh.vocabulary."
        ) from error
    return _fast(sentencepiece.SentencePieceProcessor(model_proto=trained.getvalue()))


def _lines(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for line in unicodedata.normalize("NFC", text).splitlines():
            if line.strip():
                yield line


def _fast(trained: Any) -> Any:
    """Return the trained pieces and merges as a tokenizer of transformers."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    ranks = {trained.id_to_piece(n): n for n in range(trained.get_piece_size())}
    merges = [
        (piece[:cut], piece[cut:])
        for piece, n in ranks.items()
        if not (trained.is_control(n) or trained.is_byte(n) or trained.is_unknown(n))
        for cut in range(1, len(piece))
        if piece[:cut] in ranks and piece[cut:] in ranks
    ]
    tokenizer = Tokenizer(models.BPE(ranks, merges, unk_token=UNKNOWN, byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.post_processor = processors.TemplateProcessing(single=f"$A {END}", special_tokens=[(END, ranks[END])])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        bos_token=BEGIN,
        eos_token=END,
        unk_token=UNKNOWN,
        additional_special_tokens=[SEPARATOR],
    )
