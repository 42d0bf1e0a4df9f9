"""Translations as examples: what is drawn, what is kept of it, and that a run that broke off goes on."""

import copy
import json
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from families import ENCODER_DECODERS, tiny
from lengthwise import EncodingControl, LengthTokens, Writer, attach, measure, save
from lengthwise.cli import main
from lengthwise.corpora import DataError, read
from lengthwise.distill import translations
from lengthwise.distill.candidates import Candidate, Margins, choose, ending, flaw, judged, sound, whole_and_tail
from lengthwise.distill.sampler import Sampler, uniform
from lengthwise.distill.translations import Sentence, Settings, gather, sentences

TEXTS = ["The quick brown fox jumps.", "A line on a small screen", "It was a bright cold day in April, and more."]


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def file(path, text):
    path.write_text(text, encoding="utf-8")
    return path


# ---- what to translate


def test_sentences_are_read_from_rows_and_from_lines(tmp_path):
    named = (
        '{"id": 7, "source": "One  two."}\n\n{"prompt": "Three?"}\n{"id": "d", "segs": [["A.", "B."], ["C.", "D."]]}\n'
    )
    found = sentences(file(tmp_path / "a.jsonl", named))
    assert found == [Sentence("7", "One two."), Sentence("3", "Three?"), Sentence("d.1", "A."), Sentence("d.2", "C.")]
    assert sentences(file(tmp_path / "a.txt", "One.\n\nTwo.\nOne.\n")) == [Sentence("1", "One."), Sentence("3", "Two.")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": 1, "source": "A."}\n{"id": 1, "source": "B."}\n', "a.jsonl:2: the id '1' was there"),
        ('{"text": "A."}\n', 'a.jsonl:1: expected an object with "source"'),
        ('{"segs": [[1, 2]]}\n', "a.jsonl:1: expected an object"),
        ("[1]\n", "a.jsonl:1: expected an object"),
        ("A.\n", "a.jsonl:1: not JSON"),
        ("\n", "holds no sentences"),
    ],
)
def test_what_is_no_sentence_is_told(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        sentences(file(tmp_path / "a.jsonl", text))


# ---- drawing


def test_chances_are_those_of_splitmix64():
    known = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]  # of Vigna's code, seed 0
    found = uniform(np.array([0, 2**64 - 1], dtype=np.uint64), 3)
    assert found[0] == pytest.approx([number / 2**64 for number in known], abs=1e-7)
    many = uniform(np.arange(400, dtype=np.uint64), 50)
    assert many.max() < 1
    assert many.mean() == pytest.approx(0.5, abs=0.01)
    assert len(np.unique(many[:, 0])) == 400


def by_hand(writer, text, most, **told):
    """The tokens that `generate` finds likeliest, text by text."""
    ids = writer.tokenizer(text, return_tensors="pt")
    with torch.inference_mode():
        found = writer.model.generate(**ids, **told, num_beams=1, do_sample=False, max_new_tokens=most)
    return found[0, 1:].tolist()


def spelt(writer, ids):
    return writer.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False).strip()


@pytest.mark.parametrize("family", ENCODER_DECODERS)
def test_of_one_token_the_likeliest_is_drawn(family, sp_unigram, monkeypatch):
    """With top_p 0 nothing is left to chance, and what stands beside a text does not matter."""
    writer = Writer(tiny(family, sp_unigram), sp_unigram)
    monkeypatch.setattr(Sampler, "_decoded", lambda self, written, limits: written[:, 1:10].tolist())
    expected = [by_hand(writer, text, 9) for text in TEXTS]
    sampler = Sampler(writer, top_p=0.0)
    drawn = sampler.draw(TEXTS * 2, [1] * 6, [0.0] * 6, list(range(6)))
    assert drawn[:3] == drawn[3:] == sampler.best(TEXTS, 1)
    for found, known in zip(drawn, expected, strict=False):
        assert found[: len(known)] == known


def test_a_draw_depends_on_its_seed_alone(sp_unigram):
    model = tiny("marian", sp_unigram)
    model.final_logits_bias[0, 2] = 3.0  # or it would never come to an end
    sampler = Sampler(Writer(model, sp_unigram), temperature=2.0)
    together = sampler.draw([TEXTS[0]] * 5 + TEXTS[1:], [1] * 7, [0.0] * 7, [3, 4, 3, 5, 6, 7, 8])
    assert together[0] == together[2]
    assert len(set(together[:5])) > 2
    assert sampler.draw([TEXTS[2]], [1], [0.0], [8]) == together[6:]


def ending_soon(sp_unigram):
    """A model whose texts end by themselves: its end token has a chance at every step."""
    model = tiny("marian", sp_unigram)
    torch.nn.init.zeros_(model.get_output_embeddings().weight)  # tied: all tokens are alike to it …
    model.final_logits_bias[0, 2] = 2.5  # … but the end
    return Writer(model, sp_unigram, name="soon")


def test_thrift_makes_characters_dear(sp_unigram):
    sampler = Sampler(ending_soon(sp_unigram), temperature=1.0, top_p=1.0)
    sizes = []
    for thrift in (0.0, 1.0):
        drawn = sampler.draw([TEXTS[2]] * 60, [1] * 60, [thrift] * 60, list(range(60)))
        sizes.append(np.mean([len(text) for text in drawn if text is not None]))
    assert sizes[1] < 0.5 * sizes[0]


def test_what_does_not_end_is_none(sp_unigram):
    model = tiny("marian", sp_unigram)
    model.generation_config.forced_eos_token_id = 2  # an end that is forced is no end
    model.final_logits_bias[0, 2] = -100.0
    sampler = Sampler(Writer(model, sp_unigram))
    assert sampler.draw(TEXTS, [1] * 3, [0.0] * 3, [1, 2, 3]) == [None] * 3
    assert sampler.best(TEXTS, 2) == [None] * 3


def test_a_model_is_told_a_length_for_each_draw(sp_unigram):
    model = attach(tiny("marian", sp_unigram), EncodingControl(unit=("words", "chars"), scale=4.0), sp_unigram)
    writer = Writer(model, sp_unigram)
    told = {length: by_hand(writer, TEXTS[0], 9, decoder_length=[length], decoder_unit=[1]) for length in (30, 9)}
    assert told[30] != told[9]
    model.generation_config.eos_token_id = [2, told[30][-1], told[9][-1]]
    sampler = Sampler(writer, top_p=0.0)
    assert sampler.told
    drawn = sampler.draw([TEXTS[0]] * 3, [30, 9, 30], [0.0] * 3, [1, 2, 3])
    ends = {length: min(ids.index(token) for token in (told[30][-1], told[9][-1]) if token in ids)
            for length, ids in told.items()}  # fmt: skip
    assert drawn == [spelt(writer, told[length][: ends[length]]) for length in (30, 9, 30)]


def test_a_length_may_stand_before_the_source(sp_unigram):
    tokenizer = copy.deepcopy(sp_unigram)
    writer = Writer(attach(tiny("marian", tokenizer), LengthTokens(), tokenizer), tokenizer)
    asked = []
    writer.tokenizer = SpyOn(tokenizer, asked)
    Sampler(writer).draw([TEXTS[2]] * 3, [5, 90, 6], [0.0] * 3, [1, 2, 3])
    assert asked == [[f"<len:short> {TEXTS[2]}", f"<len:long> {TEXTS[2]}"]]  # the encoder reads each once


class SpyOn:
    """A tokenizer that notes the lists of texts it is given."""

    def __init__(self, tokenizer, asked):
        self._tokenizer, self._asked = tokenizer, asked

    def __call__(self, texts, **options):
        self._asked.append(texts)
        return self._tokenizer(texts, **options)

    def __getattr__(self, name):
        return getattr(self._tokenizer, name)

    def __len__(self):
        return len(self._tokenizer)


def test_what_cannot_draw_says_so(byte_bpe, sp_unigram):
    with pytest.raises(ValueError, match="gpt answers prompts and is no translator"):
        Sampler(Writer(tiny("llama", byte_bpe), byte_bpe, name="gpt"))
    model = attach(tiny("marian", sp_unigram), EncodingControl(unit="words"), sp_unigram)
    with pytest.raises(ValueError, match="counts words; lengths are told in chars"):
        Sampler(Writer(model, sp_unigram, name="wordy"))


# ---- which are good examples?


@pytest.mark.parametrize(
    ("text", "mark"),
    [("Go.", "."), ("Où ?", "?"), ("« Où ? »", "?"), ("(Go!)", "!"), ("Name :", ":"), ("Go", ""), ("…", "."), ("", "")],
)
def test_how_a_text_ends(text, mark):
    assert ending(text) == mark


@pytest.mark.parametrize(
    ("source", "text", "reason"),
    [
        ("Open %s now.", "Ouvrez %s maintenant.", None),
        ("Open %s now.", "Ouvrez maintenant.", "lost a number or placeholder"),
        ("All 12 of them.", "Tous les 13.", "lost a number or placeholder"),
        ("Open it.", "Ouvrez-le", "ends otherwise"),
        ("Open", "Ouvrir.", "ends otherwise"),
        ("Why?", "Pourquoi ?", None),
        ("Stop.", "stop.", "copied"),
        ("Stop.", "", "empty"),
        ("Stop.", "Va va va. " * 4, "repetitive"),
    ],
)
def test_flaws(source, text, reason):
    assert flaw(source, text.strip()) == reason


def test_the_sound_ones_once_and_none_without_a_best():
    why = Counter()
    texts = ["Ouvrez le fichier.", None, "Ouvrez le file.", "Ouvrez ce fichier.", "Ouvrez ce fichier.", "Ouvrez"]
    found = sound("Open the file.", texts, why)
    assert [(one.text, one.length, one.own) for one in found] == [(texts[0], 18, True), (texts[3], 18, False)]
    assert why == {"unfinished": 1, "left a word as it is": 1, "duplicate": 1, "ends otherwise": 1}
    assert sound("Open the file.", ["Ouvrez", "Ouvrez le fichier."], Counter()) == []
    assert sound("Open the file.", [None, "Ouvrez le fichier."], Counter()) == []


OWN = Candidate("x" * 100, 100, True, -0.5, -0.4, 0.0, -0.3, -2.0)


def other(length, **known):
    return replace(OWN, text="y" * length, length=length, own=False, **known)


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        ({}, None),
        ({"score": -0.74, "tail": -0.64, "worst": 3.9, "likely": -0.59, "oddest": -4.9}, None),
        ({"score": -0.76}, "says less"),
        ({"tail": -0.66}, "says less at its end"),
        ({"worst": 4.1}, "leaves out a word"),
        ({"likely": -0.61}, "no good translation"),
        ({"oddest": -5.1}, "no good translation"),
    ],
)
def test_margins(known, reason):
    why = Counter()
    chosen = choose([OWN, other(90, **known)], Margins(), 4, why)
    assert [one.length for one in chosen] == ([100, 90] if reason is None else [100])
    assert [name for name, count in why.items() if count] == ([reason] if reason else [])


def test_the_shortest_is_kept_and_a_spread():
    many = [OWN, *(other(length) for length in (80, 81, 82, 90, 99, 110, 130))]
    assert [one.length for one in choose(many, Margins(), 3, Counter())] == [100, 80, 90]
    assert [one.length for one in choose(many, Margins(), 7, Counter())] == [100, 80, 81, 82, 90, 99, 130]
    assert [one.length for one in choose(many, Margins(), 9, Counter())] == [100, 80, 81, 82, 90, 99, 130]
    assert [one.length for one in choose([OWN, other(110), other(120)], Margins(), 4, Counter())] == [100, 120]
    assert [one.length for one in choose(many, Margins(), 2, Counter())] == [100, 80]
    assert [one.length for one in choose(many, Margins(), 1, Counter())] == [100]
    why = Counter()
    twins = [OWN, other(80, score=-0.6), other(80, score=-0.4), other(100, score=0.0)]
    assert choose(twins, Margins(), 4, why) == [twins[0], twins[2]]
    assert why["as long as another"] == 2
    assert choose([], Margins(), 4, Counter()) == []


# (score, tail, worst, likely, oddest) as opus-mt-fr-en and opus-mt-en-fr gave them in single precision.
WAVES = (
    "Les ondes sonores sont créées lorsque les molécules se déplacent à travers une substance, comme l'air ou l'eau.",
    (-0.21, -0.14, 0.0, -0.28, -1.14),
)
SUN = (
    "Vous aurez besoin de fournir la bonne quantité de soleil et la bonne quantité d'eau.",
    (-0.4, -0.13, 0.0, -0.25, -1.09),
)
REAL = [
    # Sound waves are created when molecules move through a substance, such as air or water.
    (WAVES, "Des ondes sonores sont créées lorsque les molécules traversent une substance, comme l'air ou l'eau.",
     (-0.45, -0.14, 3.79, -0.36, -1.63), True),
    (WAVES, "Les ondes sonores sont créées lorsque les molécules se déplacent à travers une substance.",
     (-1.51, -2.81, 6.86, -0.71, -5.97), False),
    (WAVES, "Les ondes sonores sont créées lorsque les molécules se déplacent à travers",
     (-2.12, -3.12, 9.27, -1.18, -10.55), False),
    # You'll need to provide the right amount of sunlight and the right amount of water.
    (SUN, "Vous devrez fournir la bonne quantité de soleil et la bonne quantité d'eau.",
     (-0.48, -0.13, 0.51, -0.26, -0.95), True),
    (SUN, "Vous aurez besoin de fournir la bonne quantité de soleil et la bonne.",
     (-0.73, -1.63, 4.42, -1.0, -10.8), False),
    # Even this one is refused: what is said once is not read back twice.
    (SUN, "Vous aurez besoin de fournir la bonne quantité de soleil et d'eau.",
     (-0.89, -0.17, 7.38, -0.54, -4.07), False),
]  # fmt: skip


@pytest.mark.parametrize(("best", "text", "numbers", "kept"), REAL)
def test_real_translations(best, text, numbers, kept):
    """Paraphrases pass; a translation that was cut, with its full stop or without, does not."""
    own = Candidate(best[0], len(best[0]), True, *best[1])
    assert (len(choose([own, Candidate(text, len(text), False, *numbers)], Margins(), 4, Counter())) == 2) == kept


def test_judges_compare_with_the_best():
    class Fixed:
        """Knows log P of the tokens of each text, whatever it is given."""

        def __init__(self, known):
            self.known = known

        def log_probs(self, sources, outputs):
            pairs = list(enumerate(zip(sources, outputs, strict=True)))
            yield from ((row, np.array(self.known[pair])) for row, pair in reversed(pairs))

    back = Fixed({("s", "long"): [-1.0, -1, -2, -2, -9], ("s", "cut"): [-1.0, -1, -2, -8, 0], ("t", "own"): [-1.0, -9]})
    there = Fixed({("long", "s"): [-1.0, -3], ("cut", "s"): [-2.0, -6], ("own", "t"): [-1.0]})
    options = [[Candidate("long", 4, True), Candidate("cut", 3)], [], [Candidate("own", 3, True)]]
    found = judged(back, there, ["s", "empty", "t"], options)
    assert found == [
        [Candidate("long", 4, True, -1.5, -5 / 3, 0.0, -2.0, -3.0), Candidate("cut", 3, False, -3, -11 / 3, 6, -4, -6)],
        [],
        [Candidate("own", 3, True, -1.0, -1.0, 0.0, -1.0, -1.0)],
    ]


# ---- files


class Book:
    """In the place of a sampler: a translation is the source in capitals with a Z first, cut to what is asked for."""

    told = True

    def __init__(self):
        self.writer, self.asked, self.groups = SimpleNamespace(name="book"), [], []

    def best(self, texts, beams):
        self.groups.append(list(texts))
        return ["Z" + text[1:].upper() + "X." for text in texts]

    def draw(self, texts, lengths, thrift, seeds):
        assert len(set(seeds)) == len(seeds)
        self.asked += list(zip(texts, lengths, thrift, strict=True))
        cut = zip(texts, lengths, strict=True)
        return ["Z" + text[1:].upper()[: length - 2] + "." if length > 8 else "Lost" for text, length in cut]


class Judge:
    """In the place of a reverse model: a source is read back but for the letters that are missing."""

    def __init__(self, writer=None):
        self.name = "judge"

    def log_probs(self, sources, outputs):
        for row, (source, output) in enumerate(zip(sources, outputs, strict=True)):
            missing = max(0, len(source) - len(output))
            yield row, np.array([-0.1] * (len(source) - missing) + [-3.0] * missing + [-0.1])


@pytest.fixture
def book(monkeypatch):
    monkeypatch.setattr(translations, "ReverseModel", Judge)
    return Book()


ASKED = [Sentence(f"n{n}", "abcdefghij" + "k" * n + ".") for n in range(9)]
SETTINGS = Settings(each=4, ratios=(0.5, 0.9, 1.0, 1.2), word_margin=99, margin=0.5, tail_margin=9, seed=1)


def test_rows_and_their_account(book, tmp_path):
    out, told = tmp_path / "new/t.jsonl", []
    report = gather(book, Judge(), ASKED[:2], out, SETTINGS, rows=10, progress=told.append)
    found = {row["id"]: row for row in rows(out)}
    # n0 has 11 characters: asked for are 6 ("Lost"), 10, 11 and 13, of which 12 come; the best has 13
    assert found["n0.0"] == {
        "id": "n0.0",
        "source": "abcdefghij.",
        "target": "ZBCDEFGHIJ.X.",
        "ratio": round(13 / 11, 3),
        "score": -0.1,
        "tail": -0.1,
    }
    assert [found[f"n0.{n}"]["target"] for n in (1, 2, 3)] == ["ZBCDEFGHI.", "ZBCDEFGHIJ.", "ZBCDEFGHIJ.."]
    assert found["n0.1"]["score"] == pytest.approx(-(0.1 * 10 + 3) / 11, abs=1e-3)
    assert {text for text, _, _ in book.asked} == {sentence.text for sentence in ASKED[:2]}
    assert [length for text, length, _ in book.asked if text == ASKED[0].text] == [6, 10, 11, 13]
    journal = {row["id"]: row for row in rows(tmp_path / "new/t.dropped.jsonl")}
    assert journal["n0"] == {
        "id": "n0",
        "source": "abcdefghij.",
        "best": round(13 / 11, 3),
        "kept": 4,
        "reasons": {"ends otherwise": 1},
    }
    ratios = [row["ratio"] for row in found.values()]
    assert (report["sentences"], report["kept"], report["without"]) == (2, len(ratios), 0)
    assert report["ratio"] == pytest.approx(np.mean(ratios), abs=1e-3)
    assert report["below_1.0x"] == pytest.approx(np.mean([ratio < 1 for ratio in ratios]), abs=1e-3)
    assert report["reasons"]["ends otherwise"] >= 1
    assert sum(told) == 2
    assert json.loads((tmp_path / "new/t.settings.json").read_text())["ratios"] == [0.5, 0.9, 1.0, 1.2]
    assert len(list(read(out))) == report["kept"]  # and can be trained on


def test_sentences_of_like_length_go_together(book, tmp_path):
    gather(book, Judge(), ASKED, tmp_path / "t.jsonl", SETTINGS, rows=15)
    assert sorted(map(len, book.groups)) == [3, 3, 3]
    assert all(max(map(len, group)) - min(map(len, group)) == 2 for group in book.groups)


def test_a_model_that_knows_no_length_is_made_thrifty(book, tmp_path):
    book.told = False
    gather(book, Judge(), ASKED[:1], tmp_path / "t.jsonl", replace(SETTINGS, thrift=(0.0, 0.4)))
    assert [thrift for _, _, thrift in book.asked] == [0.0, 0.4, 0.0, 0.4]


def test_another_model_may_set_the_standard(book, tmp_path):
    other = Book()
    other.writer = SimpleNamespace(name="plain")
    gather(book, Judge(), ASKED[:2], tmp_path / "t.jsonl", SETTINGS, standard=other)
    assert (len(other.groups), book.groups, other.asked) == (1, [], [])
    known = json.loads((tmp_path / "t.settings.json").read_text())
    assert (known["model"], known["standard"], known["reverse"]) == ("book", "plain", "judge")


@pytest.mark.parametrize("torn", [0, 1, 7])
@pytest.mark.parametrize("done", [0, 3, 8])
def test_a_run_that_broke_off_goes_on(book, tmp_path, done, torn):
    """Killed after `done` sentences were in the journal, and in the middle of writing the rows of the next."""
    out, journal = tmp_path / "t.jsonl", tmp_path / "t.dropped.jsonl"
    gather(book, Judge(), ASKED, out, SETTINGS, rows=5)
    whole = sorted(map(json.dumps, rows(out))), sorted(map(json.dumps, rows(journal)))
    lines, kept = journal.read_bytes().splitlines(keepends=True), out.read_bytes().splitlines(keepends=True)
    owners = [json.loads(line)["id"] for line in lines[: done + 1]]
    there = [line for line in kept if json.loads(line)["id"].rpartition(".")[0] in owners]
    out.write_bytes(b"".join(there)[: -torn or None])
    journal.write_bytes(b"".join(lines[:done]) + lines[done][:torn])
    told = []
    gather(book, Judge(), ASKED, out, SETTINGS, rows=5, progress=told.append)
    assert (sorted(map(json.dumps, rows(out))), sorted(map(json.dumps, rows(journal)))) == whole
    assert (told[0], sum(told)) == (done, 9)
    before = out.read_bytes(), journal.read_bytes()
    gather(book, Judge(), ASKED, out, SETTINGS)
    assert (out.read_bytes(), journal.read_bytes()) == before


def test_files_of_others_are_left_alone(book, tmp_path):
    out = tmp_path / "t.jsonl"
    for text in ('{"my": "precious"}\n', '{"id": "n0.0", "source": "s", "target": "t", "ratio": 1}\n', "precious"):
        file(out, text)
        with pytest.raises(DataError, match="name another file"):
            gather(book, Judge(), ASKED, out, SETTINGS)
        assert out.read_text() == text
    for text in ('{"my": "precious"}\n', "precious"):
        file(tmp_path / "t.dropped.jsonl", text)
        with pytest.raises(DataError, match="is no row of translations"):
            gather(book, Judge(), ASKED, out, SETTINGS)
    out, other = tmp_path / "u.jsonl", [Sentence("n0", "Another.")]
    gather(book, Judge(), ASKED[:1], out, SETTINGS)
    with pytest.raises(DataError, match=r"another sentence as id 'n0'.+found 'abcdefghij\.'"):
        gather(book, Judge(), other, out, SETTINGS)
    with pytest.raises(DataError, match=r"begun with each 4, now 5; name another file"):
        gather(book, Judge(), ASKED[:1], out, replace(SETTINGS, each=5))


# ---- the command


@pytest.fixture
def ask(tmp_path):
    lines = file(tmp_path / "lines.txt", "\n".join(sentence.text for sentence in ASKED) + "\n")
    return ["data", "translations", str(lines), str(tmp_path / "t.jsonl"), "--each", "4"]


def test_the_command(ask, book, monkeypatch, tmp_path, capfd):
    asked = []
    book.writer = SimpleNamespace(name="book", model=SimpleNamespace(device=torch.device("cpu")))
    monkeypatch.setattr("lengthwise.cli.translations.load", lambda name, device: asked.append(name) or book.writer)
    monkeypatch.setattr("lengthwise.distill.sampler.Sampler", lambda writer, **options: book)
    monkeypatch.setattr("lengthwise.scoring.reverse.ReverseModel", Judge)
    ask += ["--model", "there", "--reverse", "back", "--standard", "plain", "--ratios", "0.9,1,1.2"]
    ask += ["--word-margin", "99", "--margin", "0.5", "--tail-margin", "9"]
    assert main([*ask, "--json"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert asked == ["there", "back", "plain"]
    found = rows(tmp_path / "t.jsonl")
    assert (report["sentences"], report["kept"]) == (9, len(found))
    assert len(found) > 9
    for row in found:
        assert row["ratio"] == round(measure(row["target"], "chars") / measure(row["source"], "chars"), 3)
    assert main(ask) == 0
    shown = capfd.readouterr().out
    assert f"{len(found)} translations of 9 sentences" in shown
    assert f"below 1.0x {report['below_1.0x']:.1%}" in shown


def test_the_command_with_a_model(ask, sp_unigram, tmp_path, capfd):
    folder = str(save(ending_soon(sp_unigram).model, sp_unigram, tmp_path / "model"))
    ask += ["--model", folder, "--reverse", folder]
    assert main([*ask, "--beams", "1", "--json"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert (report["sentences"], report["reasons"]) == (9, {"empty": 9})  # of all, its best is to say nothing
    assert main([*ask, "--beams", "1"]) == 0
    assert "0 translations of 9 sentences; none of 9\nleft out: 9 (empty 9)\n" in capfd.readouterr().out


def test_bad_usage(ask, tmp_path, capfd):
    ask += ["--model", "m", "--reverse", "r"]
    for more, said in [
        (["--ratios", "1.0;0.9"], "--ratios takes numbers"),
        (["--ratios", "0"], "above 0"),
        (["--each", "0"], "at least 1"),
    ]:
        assert main([*ask, *more]) == 2
        assert said in capfd.readouterr().err
    ask[3] = str(tmp_path / "t.txt")
    assert main(ask) == 2
    assert "t.txt" in capfd.readouterr().err


def test_the_last_quarter_of_the_tokens_or_three_of_them():
    assert whole_and_tail(np.array([-1.0] * 12 + [-5.0] * 4)) == (-2.0, -5.0)
    assert whole_and_tail(np.array([-1.0, -1, -1, -5, -5, -5])) == (-3.0, -5.0)
    assert whole_and_tail(np.array([-1.0, -3.0])) == (-2.0, -2.0)
