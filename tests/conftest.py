"""Small real tokenizers of the three kinds that models use, trained here on a few lines of many languages."""

import copy
import io
import signal
from collections.abc import Iterator
from functools import cache

import pytest
import sentencepiece as spm
import torch
from hypothesis import settings
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

torch.set_num_threads(1)
settings.register_profile("lengthwise", deadline=None)  # a busy machine is no failure
settings.load_profile("lengthwise")
# Of tests that are started in the background, too, Ctrl-C must reach the programs they run.
signal.signal(signal.SIGINT, signal.default_int_handler)

CORPUS = """
The quick brown fox jumps over the lazy dog. It was a bright cold day in April, and the clocks were striking thirteen.
Text that fits is text that people read: a title, a caption, a button, a line on a small screen.
Der schnelle braune Fuchs springt über den faulen Hund. Die Straße ist heute größer und schöner als gestern.
Où est-il ? L'été dernier, nous étions déjà là, près de la forêt. « C'est ça », dit-elle.
La città è bella; perché no? Il caffè è già pronto.
""".strip().splitlines()

OTHER_SCRIPTS = """
吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。
إن اللغة العربية جميلة، أليس كذلك؟ مَرْحَبًا بِكُمْ
한국어는 아름답다. हिन्दी भाषा सुंदर है।
""".strip().splitlines()


@cache
def _byte_bpe() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=["<pad>", "<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS * 5, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>", padding_side="left"
    )


@cache
def _sentencepiece(kind: str, **options: object) -> PreTrainedTokenizerFast:
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter((CORPUS + OTHER_SCRIPTS) * 5),
        model_writer=model,
        model_type=kind,
        pad_id=0,
        bos_id=1,
        eos_id=2,
        unk_id=3,
        minloglevel=2,
        **options,
    )
    proto = spm.SentencePieceProcessor(model_proto=model.getvalue())
    scores = [(proto.id_to_piece(i), proto.get_score(i)) for i in range(proto.get_piece_size())]
    if kind == "unigram":
        tokenizer = Tokenizer(models.Unigram(scores, unk_id=3, byte_fallback=True))
    else:
        ranks = {piece: i for i, (piece, _) in enumerate(scores)}
        merges = [
            (piece[:n], piece[n:])
            for piece, _ in scores
            for n in range(1, len(piece))
            if piece[:n] in ranks and piece[n:] in ranks and not piece.startswith("<")
        ]
        tokenizer = Tokenizer(models.BPE(ranks, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        padding_side="left",
    )


@pytest.fixture(autouse=True)
def onednn_restored() -> Iterator[None]:
    """Undo what PyTorch does on an ARM CPU without bfloat16: the first product in it disables oneDNN for good."""
    before = torch.backends.mkldnn.enabled
    yield
    torch.backends.mkldnn.enabled = before


# Each test file has its own copy: `attach` may add tokens to it.


@pytest.fixture(scope="module")
def byte_bpe() -> PreTrainedTokenizerFast:
    """Byte-level BPE (GPT-2, Llama 3, SmolLM2, Qwen): other scripts fall apart into bytes of split characters."""
    return copy.deepcopy(_byte_bpe())


@pytest.fixture(scope="module")
def sp_unigram() -> PreTrainedTokenizerFast:
    """SentencePiece unigram (Marian, T5, NLLB)."""
    return copy.deepcopy(_sentencepiece("unigram", vocab_size=600, byte_fallback=True, hard_vocab_limit=False))


@pytest.fixture(scope="module")
def sp_bpe() -> PreTrainedTokenizerFast:
    """SentencePiece BPE with byte fallback (Llama 2, Mistral)."""
    return copy.deepcopy(_sentencepiece("bpe", vocab_size=700, byte_fallback=True))
