"""Where texts end. In the tables ¶ stands at every end: a text is finished when ¶ is its last character."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.length.sentences import finished, finished_ends, left_open

CASES = {
    "plain": [
        "It rains.¶",
        "It rains",
        "Stop!¶ Why?¶ Because.¶",
        "Really?!¶",
        "One.¶ Two.¶ Thr",
        "It was cooler .¶",
        "He ran, jumped,",
        "",
        " ",
        ".",
        "...",
        "?!",
        "Line one.¶\nline two.¶",
        "One.¶  \n\n  Two.¶",
    ],
    "punctuation that ends nothing": [
        "def f(x):.",
        "Flour, milk,.",
        "x = .",
        "15/.",
        "Milk - .",
        "Milk\n.",
        "It rains.¶\n.",
        "材料：。",
        "It rains..",
        "Is it so?.",
        "Go!.",
        "Так ли это?..¶",
        "One, two, ...¶",
        "I like C++.¶",
        "1. ___.",
        "It rains.¶\n13._",
        "**1.**",
        "**1.** It rains.¶",
        "Old: **great expectations** 1.",
    ],
    "names that end in a mark": [
        "He works at Yahoo!.¶ She left.¶",
        "We watch Jeopardy!¶",
        "Open Yahoo! Mail now.¶",
        "He said: “I like Yahoo!”¶ She left.¶",
        "NotYahoo!.",
    ],
    "ellipsis": [
        "And then…¶",
        "And then...¶",
        "And then . . .¶",
        "Well… maybe.¶",
        "Well... maybe not.¶",
        "He left…¶ She stayed.¶",
        "... He left.¶",
        "He said: “[...] no.”¶",
        "She [...] left.¶",
    ],
    "lower case goes on": [
        '"Stop!" he said.¶ He left.¶',
        "“Why?” she asked.¶",
        "Yahoo! is a company.¶",
        "We left.¶ iPhones rang.¶",
        "«Нет!» — сказал он.¶",
        "Choose Options… – Language – Default.¶",
        "They sell food, tools, etc. and books.¶",
    ],
    "quotes": [
        'He said: "Wait.',
        'He said: "Wait."¶',
        'He said: "Wait. I come."¶ We waited.¶',
        'He said "wait".¶',
        '"Yes," he said.¶ "But',
        '"A." He said: "B.',
        "“One. Two.”¶ Three.¶",
        "‘It’s late,’ she said.¶",
        "‘It’s late. We go",
        "He said, “I am ‘fine.’”¶",
        "``It works,'' they say.¶",
        "He said ``no.''¶",
        'A 5" screen is small.¶ A 9" one is not.¶',
        'The boy left."¶',  # closes a quotation that began before the text
        '"One.\n\n"Two."¶',  # each paragraph of a long quotation has an opening mark
        "A slip: \"here.\n\nAll is well.¶",
    ],
    "apostrophes": [
        "I don't know.¶",
        "That is James'.¶",
        "They play rock 'n' roll.¶",
        "They play rock ‘n’ roll.¶",
        "He is 5' tall.¶",
        "It was the ‘90s.¶",
        "The dogs’ bowls are empty.¶",
        "He said 'no.'¶",
    ],
    "brackets": [
        "He left (at noon.",
        "He left (at noon).¶",
        "(He left.)¶ She stayed.¶",
        "(He left. She stayed.)¶",
        "See [the note. It",
        "He left.[1]¶ She stayed.[2]¶",
        "He left.²¶",
        "a) Go there.¶",
        "First, 1) go there; 2) come back.¶",
        "Have fun :)",
        "Have fun!¶ :)¶",
        "Have fun!¶ 😊¶",
        "I am sad :( but fine.¶",
        "Is it (?) so.¶",
        "A slip (here.\n\nAll is well.¶",
    ],
    "emphasis and code": [
        "This is **bold.**¶",
        "This is **bold.",
        "**Note:** it rains.¶",
        "It is *so.*¶ Yes.¶",
        "2**3 is 8.¶",
        "Run `make. All` now.¶",
        "Run `make all.",
        "Use `print('a')` here.¶",
        "Use `ls' here.¶",
        "Run:\n```\nls.\n",
        "Run:\n```\nls. \n```¶\nIt lists files.¶",
        "Run this.¶\n```\nls.\n```¶",
    ],
    "abbreviations": [
        "He met Dr. Who.¶",
        "He met Dr.",
        "SentenceRequest Mr. Fox and Mrs. Hen and Prof. Owl.¶",
        "Good vs. Evil.¶",
        "Big cats, e.g. Lions.¶",
        "Big cats, e.g.",
        "Cats, i.e. the big ones.¶",
        "It takes approx.",
        "See Fig. 3.¶",
        "See Fig.",
        "Cats, dogs, etc.¶",
        "Cats, dogs, etc.¶ The rest left.¶",
        "Cats (lions, etc.) sleep.¶",
        "He lives in the U.S.¶",
        "The U.S. Army came.¶",
        "At 5 p.m.¶ He left.¶",
        "At 5 p.m. he left.¶",
        "She has a Ph.D.¶",
        "She works at Acme Inc.¶",
        "On Jan. 5 it rained.¶",
    ],
    "No. and no.": [
        "No.¶",
        "No.¶ We stay.¶",
        "The answer is no.¶",
        "The answer is No.¶",
        "We are No. 5 now.¶",
        "He plays Symphony No.",
        "I love art.¶ You?¶",
    ],
    "initials": [
        "It was written by John M.M.",
        "It was written by J.K.",
        "It was written by John M.M. Smith.¶",
        "She moved to Washington D.C.¶",
        "We watch T.V.¶",
        "Watch T.V.¶",
        "He works for Acme B.V.¶",
        "J. K. Rowling wrote it.¶",
        "It is by J.",
        "It is by J. K. Rowling.¶",
        "J.K. Rowling wrote it.¶",
        "We need a plan B.¶",
        "It holds for small values of K.¶",
        "She is older than I.¶ He is not.¶",
        "It needs 220 V.¶ So plug it in.¶",
        "Solve for x.¶ Then stop.¶",
        "The sides are a, b, c.¶",
        "It is written in GNU R.¶",
    ],
    "numbers": [
        "Pi is 3.14.¶ So it is.¶",
        "Pi is 3.14",
        "π ≈ 3.",
        "It was in 1998.¶",
        "It was in 1998.¶ He left.¶",
        "x = 5.¶ Then y = 6.¶",
        "I am 5.¶",
        "The answer is: 4.¶",
        "Three tips: 1.",
        "Do this.¶ 2. Do that.¶",
        "Do this.¶ 2.",
        "It costs $3.50.¶",
        "It costs $0.",
        "I got $0.¶ Then I left.¶",
        "It costs $3.¶",
    ],
    "names with dots": [
        "See example.com for more.¶",
        "See example.com.¶",
        "Read https://example.com/a?b=1.¶ Then go",
        "Use v2.0 of main.py.¶",
        "Use Node.js.¶ It works.¶",
        "We like .NET here.¶",
        "Missing space.Here it goes on.¶",
    ],
    "lists": [
        "- apples\n- pears",
        "Here are three tips:",
        "It is easy.¶ Here are three tips:\n\n1.",
        "It is easy.¶\n\n1. **First**: do this.¶ ",
        "Tips:\n1. Do this.¶\n2. Do that.¶\n3.",
        "Tips:\n1. Do this.¶\n2. Do th",
        "Tips:\n- Do this.¶\n- Do that.¶",
        "Tips:\na. Do this.¶\nb. Do that.¶",
        "Tips:\n  ii. Do this.¶",
        "**1. Go.**¶\n**2. Stay.**¶",
        "1.2. Scope",
        "It rains.¶\n\n## What now?\n\nWe wait.¶",
        "It rains.¶\n\n**What now?**\nWe wait.¶",
        "It rains.¶\n\n**What now:**",
        "1. **Why?** It rains.¶",
        "| It rains. | Yes. |\n",
        "| A |\n|---|\n| 1 |\nThis is a row.",
        "| A |\n| :-: |\nSo is this.\n  And this.",
        "| A |\n|---|\n| 1 |\n\nThis is none.¶\nNor this.¶",
        "| A |\n|---|\n| 1 |\n- Do this.¶",
        "| A |\n|---|\n| 1 |\n2. Do that.¶",
        "| A |\n| is no table.\nIt has no rule.¶",
        "> It rains.¶",
    ],
    "German": [
        "Das kostet z. B. Geld.¶",
        "Es gibt Obst, z. B. Äpfel.¶",
        "Es gibt Obst, z.",
        "Es gibt Obst, z.B.",
        "Am 3. Oktober war Feier.¶ Wir kamen.¶",
        "Er kam am 3.",
        "Im 19. Jahrhundert war das so.¶",
        "Der 2. Band fehlt.¶",
        "Siehe Nr. 5.¶",
        "Siehe Nr.",
        "Äpfel, Birnen usw.¶ Das reicht.¶",
        "Er sagte: „Ja.“¶ Dann ging er.¶",
        "Er sagte: „Ja. Und",
        "Das ist „gut“.¶",
        "Das ist „gut\".¶",
        "Das ist »gut«.¶",
        "Das ist »gut. Und",
        "Dr. Müller, d. h. der Arzt, kam.¶",
        "Caesar starb 44 v. Chr.¶",
        "Wir lesen u. a. Bücher.¶",
    ],
    "French": [
        "Vraiment ?¶ Oui !¶",
        "Il dit : « Viens ! »¶ Elle vient.¶",
        "Il dit : « Viens",
        "Il dit : « Viens. Je",
        "« Oui ! » dit-il.¶",
        "M. Dupont est là.¶",
        "Voici M.",
        "Des fruits, p. ex. des pommes.¶",
        "Des pommes, des poires, etc.¶",
        "Il part ;",
        "Mme Roux dort.¶ L'eau bout.¶",
    ],
    "Italian and Spanish": [
        "Il Sig. Rossi dorme.¶ È tardi.¶",
        "Disse: \"Vieni\".¶ E andò.¶",
        "¿Qué hora es?¶ ¡No sé!¶",
        "¿Qué hora es",
        "El Sr. García duerme.¶",
        "«Ven», dijo.¶ Y se fue.¶",
    ],
    "Chinese and Japanese": [
        "今天下雨。¶我们在家。¶",
        "今天下雨",
        "好!¶我们走吧。¶",
        "他说：“好。”¶她走了。¶",
        "他说：“好。我们",
        "我……我不知道。¶",
        "（下雨了。）¶我们走。¶",
        "雨です。¶家にいます",
        "「行く。」と言った。¶",
        "「行く。」¶",
        "「行く。『そう",
        "本当？¶はい！¶",
        "値は３．１４です。¶",
        "これは**大事**です。¶",
    ],
    "other scripts": [
        "هل أنت بخير؟¶ نعم.¶",
        "هل أنت بخير",
        "جاء د. أحمد.¶",
        "یہ کتاب ہے۔¶",
        "यह किताब है।¶ वह घर है।¶",
        "यह किताब है",
        "डॉ. सिंह आए।¶",
        "Πού είναι;¶ Εδώ.¶",
        "Сегодня дождь.¶ Мы дома.¶",
        "See https://example.com/.¶",
        "What the—?¶",
        "Սա գիրք է։¶",
    ],
}  # fmt: skip


def split(marked: str) -> tuple[str, list[int]]:
    parts = marked.split("¶")
    offsets, at = [], 0
    for part in parts[:-1]:
        at += len(part)
        offsets.append(at)
    return "".join(parts), offsets


@pytest.mark.parametrize("marked", [pytest.param(c, id=f"{kind}: {c}") for kind, cs in CASES.items() for c in cs])
def test_table(marked: str) -> None:
    text, ends = split(marked)
    assert finished_ends(text) == ends
    assert finished(text) == marked.rstrip().endswith("¶")


def test_the_table_is_long_enough() -> None:
    assert sum(map(len, CASES.values())) >= 120


# Texts that look like texts: pieces that matter here, in any order.
PIECES = (
    *"aBzI.!?…。！？।;:,-–()[]「」“”„‘’«»\"'*_`#|>1３好と\n \t😊≈α\u00a0\u200f",
    *(
        "**",
        "``",
        "''",
        "```",
        "...",
        "\n\n",
        "\n1. ",
        "\n- ",
        " Dr",
        " No",
        " z. B",
        " am 3",
        " U.S",
        " Oktober",
        ":)",
    ),
    *("The cat", " sat", " He", "[1]", "e.g"),
)
unhurried = settings(deadline=None)  # a busy machine is no bug
texts = st.text() | st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


@unhurried
@given(texts)
def test_ends_are_in_order_and_bare_of_white_space(text: str) -> None:
    ends = finished_ends(text)
    assert ends == sorted(set(ends))
    assert all(0 < end <= len(text) and not text[end - 1].isspace() for end in ends)


@unhurried
@given(texts)
def test_every_offered_prefix_is_finished_by_itself(text: str) -> None:
    assert all(finished(text[:end]) for end in finished_ends(text))


@unhurried
@given(texts)
def test_finished_means_that_the_last_end_is_the_texts_end(text: str) -> None:
    assert finished(text) == (finished_ends(text)[-1:] == [len(text.rstrip())])


@unhurried
@given(texts, st.text(" \t\n\u00a0\u3000", max_size=4))
def test_white_space_at_the_end_changes_nothing(text: str, space: str) -> None:
    assert finished_ends(text + space) == finished_ends(text)


@pytest.mark.parametrize(
    "piece",
    [
        "The cat sat. ",
        "a. ",
        ". ",
        "(",
        "([",
        '"a." ',
        "`a",
        "**a?",
        ".\n",
        "1.1",
        "x.  ",
        "行く。」",
        "- 1. x\n",
        "...a",
    ],
)
def test_time_is_linear(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        start = time.process_time()
        finished_ends(text)
        return time.process_time() - start

    seconds(1_000)
    # Eight times the text may take eight times as long, not sixty-four; the constant forgives a busy machine.
    most = 24 * min(seconds(10_000) for _ in range(3)) + 0.05
    assert any(seconds(80_000) < most for _ in range(2))


def test_the_number_of_a_section_ends_no_sentence() -> None:
    for levels in (1, 3, 9):
        text = ".".join("123456789"[:levels]) + ". Hello there."
        assert finished_ends(text) == [len(text)]


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        ("He (and", True),
        ("He (and she) came", False),
        ('He said: "Wait.', True),
        ("**Milk", True),
        ("a (b\n\nc", False),
    ],
)
def test_marks_that_are_open_at_the_end(text: str, is_open: bool) -> None:
    assert left_open(text) is is_open
