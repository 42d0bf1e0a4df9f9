"""Train the toy tokenizers of the tests: `python tests/vocabularies/train.py` writes the three JSON files beside it.

They are kept as files, made with SentencePiece 0.2.2, because another release finds another vocabulary.
"""

import io
from pathlib import Path

import sentencepiece as spm
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

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


def byte_bpe() -> Tokenizer:
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
    return tokenizer


def sentencepiece(kind: str, **options: object) -> Tokenizer:
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
    return tokenizer


if __name__ == "__main__":
    trained = {
        "byte_bpe": byte_bpe(),
        "sp_unigram": sentencepiece("unigram", vocab_size=600, byte_fallback=True, hard_vocab_limit=False),
        "sp_bpe": sentencepiece("bpe", vocab_size=700, byte_fallback=True),
    }
    for name, tokenizer in trained.items():
        tokenizer.save(str(Path(__file__).with_name(f"{name}.json")), pretty=False)
