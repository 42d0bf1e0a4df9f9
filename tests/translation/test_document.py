"""Documents: every sentence once and in order, within the budget, and resumed after an interruption."""

import tracemalloc
from collections import deque
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise import Budget, measure
from lengthwise.translation import document as document_module
from lengthwise.translation import markdown
from lengthwise.translation.document import translate_document
from lengthwise.translation.document_sentences import MAX_CHARS, Document
from lengthwise.translation.records import Translation

TEXT = (
    "# The title\n\nA first `sentence`. It has\n**bold** words.\n\n"
    "```\nx = 1\n```\n\n- An item with a [link](a.html)!\n"
)


class Fake:
    """In place of a translator: `change` is the translation. Within a budget, its first characters."""

    name, target, settings = "fake", "it", {"model": "fake"}

    def __init__(self, change=str):
        self.change, self.asked = change, []

    def at_once(self, limited):
        return 2

    def translate(self, texts, budgets=None):
        self.asked.append(list(texts))
        return [self.one(text, None if budgets is None else budgets[n]) for n, text in enumerate(texts)]

    def one(self, text, budget):
        found = self.change(text)
        if isinstance(found, BaseException):
            raise found
        if budget is not None and not budget.fits(len(found)):
            found = (found + "z" * budget.low)[: budget.high or budget.low]
        asked = str(budget or "")
        return Translation(
            found, len(found), "chars", asked, budget is None or budget.fits(len(found)), True, "fake", 1
        )


@pytest.fixture
def file(tmp_path):
    def make(text=TEXT, name="in.md"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make


def run(translator, path, budget=None, out=None, per_sentence=False, context="", progress=lambda *_: None):
    known = Budget.parse(budget) if budget else None
    return translate_document(translator, Document.of(path), known, out, per_sentence, context, progress)


def test_every_sentence_has_its_translation(translator, file, tmp_path):
    lines, _ = translator({"The title": "Le titre"})
    out = tmp_path / "out.md"
    done = lines.document(file(), out=out)
    rows = list(done.rows())
    assert out.read_text() == TEXT.replace("The title", "Le titre").replace("A first", "A FIRST").replace(
        "It has", "IT HAS"
    ).replace("bold", "BOLD").replace("words", "WORDS").replace("An item with a", "AN ITEM WITH A").replace(
        "[link]", "[LINK]"
    )
    assert [row["source"] for row in rows] == [
        *("The title", "A first `sentence`.", "It has\n**bold** words.", "An item with a [link](a.html)!")
    ]
    assert [(row["sentence"], row["paragraph"]) for row in rows] == [(1, 1), (2, 2), (3, 2), (4, 3)]
    assert all(row["window"] == 1 for row in rows)
    assert rows[3]["text"] == "AN ITEM WITH A [LINK](a.html)!"
    assert all(row["length"] == measure(row["text"]) and row["intact"] for row in rows)
    assert [path.name for path in tmp_path.iterdir() if path != out] == ["in.md"]  # the journal is gone


@pytest.mark.parametrize(("name", "lines"), [("in.md", [4, 6, 6, 7, 9, 10, 13, 19, 21]), ("in.txt", [2, 4, 6, 6])])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_row_has_the_line_where_its_sentence_begins(file, name, lines, end):
    text = "---\nx: 1\n---\n# A\n\nOne is here. Two\nhas lines. Three\n\n> Four\n> five. Six\n> goes on\n\n- Seven\n\n"
    text += "```\nx = 1\n```\n\n| a |\n|---|\n| b |\n"
    rows = list(run(Fake(), file(text.replace("\n", end), name)).rows())
    assert [row["line"] for row in rows][: len(lines)] == lines


def test_a_link_that_is_a_whole_sentence_keeps_its_label(file, tmp_path):
    def change(text):
        return text.replace("The guide", "La guida").replace("Yarn", "Filo")

    source = "**[The guide][]**\n\n| a |\n|---|\n| [Yarn][] |\n\n[The guide](x.md) [Yarn]\n"
    source += "\n[the guide]: b.md\n[Yarn]: c.md\n"
    done = run(Fake(change), file(source), out=tmp_path / "out.md")
    written = (tmp_path / "out.md").read_text()
    assert written.startswith(
        "**[La guida][The guide]**\n\n| a |\n|---|\n| [Filo][Yarn] |\n\n[La guida](x.md) [Filo][Yarn]\n"
    )
    assert done.length == len(written.strip())
    run(Fake(), file(source), out=tmp_path / "same.md")
    assert (tmp_path / "same.md").read_text() == source


def test_without_markup_the_text_between_it_is_translated_in_pieces(file, tmp_path):
    def lose(text):
        return text.replace("{1}", "") if "{1}" in text else text.upper()

    done = run(Fake(lose), file("Use `x` and go.\n"), out=tmp_path / "out.md")
    [row] = done.rows()
    assert row["text"] == "USE `x` AND GO."
    assert row["note"] == "the text between its markup was translated in pieces"


@pytest.mark.parametrize(
    ("source", "upper"),
    [
        (":::note\nOne, a ::: b.\nTwo.\n:::\n", ":::note\nONE, A ::: B.\nTWO.\n:::\n"),
        ("> ::: {.tip}\n> One.\n>\n> :::\n", "> ::: {.tip}\n> ONE.\n>\n> :::\n"),
        ("> [!WARNING]\n> One.\n\n> [!NOTE]-\n> Two.\n", "> [!WARNING]\n> ONE.\n\n> [!NOTE]-\n> TWO.\n"),
        ("> [!TIP]\n>\n> One [!x] two.\n", "> [!TIP]\n>\n> ONE [!X] TWO.\n"),
        (":::note[Title]\n\nOne.\n\n:::\n", ":::note[Title]\n\nONE.\n\n:::\n"),
        ("- One.\n  :::tip\n  Two `x`.\n  :::\n", "- ONE.\n  :::tip\n  TWO `x`.\n  :::\n"),
        ("Go.\n\n$$\nx + y\n$$\n", "GO.\n\n$$\nx + y\n$$\n"),
        ("Term\n: its meaning in a\n  few words\n", "TERM\n: ITS MEANING IN A\n  FEW WORDS\n"),
        ("One two\n+++\nthree\n", "ONE TWO\n+++\nTHREE\n"),
    ],
)
def test_directives_and_formulas_are_copied(file, tmp_path, source, upper):
    out = tmp_path / "out.md"
    run(Fake(str.upper), file(source), out=out)
    assert out.read_text() == upper


class Failing(Fake):
    """Fails at `failing`, and loses all markup; what it finds within `incomplete` is not complete."""

    def __init__(self, failing=(), incomplete=()):
        super().__init__(lambda text: text.replace("{1}", "").upper())
        self.failing, self.incomplete = failing, incomplete

    def one(self, text, budget):
        found = replace(super().one(text, budget), complete=text not in self.incomplete)
        return replace(found, text="", error="too long", intact=False) if text in self.failing else found


def test_a_piece_that_fails_is_an_error_of_its_sentence(file):
    [row] = run(Failing(failing=["and go."]), file("Use `x` and go.\n")).rows()
    assert (row["text"], row["error"]) == ("Use `x` and go.", "too long")
    assert not row["intact"]
    assert not row["complete"]
    assert "note" not in row


@pytest.mark.parametrize(("incomplete", "complete"), [("Use", False), ("Use {1} and go.", True)])
def test_a_sentence_in_pieces_is_complete_if_its_pieces_are(file, incomplete, complete):
    [row] = run(Failing(incomplete=[incomplete]), file("Use `x` and go.\n")).rows()
    assert (row["text"], row["complete"]) == ("USE `x` AND GO.", complete)


@pytest.mark.parametrize(
    "budget", ["at most 1.0x", "1.0x", "at most 150 chars", "at least 230 chars", "at most 1.2x words"]
)
def test_the_document_meets_its_budget(translator, file, tmp_path, budget):
    text = "".join(f"Sentence number {n} is here. It has `code`.\n\n" for n in "abcd") + "    block\n"
    lines, book = translator(
        {f"Sentence number {n} is here.": f"La frase numero {n} è proprio qui ora." for n in "abcd"}
    )
    book.fragments_are_complete = True
    out = tmp_path / "out.md"
    done = lines.document(file(text), budget, out)
    unit = Budget.parse(budget).unit
    assert done.fits
    assert done.length == measure(out.read_text(), unit)
    assert done.budget.fits(done.length)
    assert out.read_text().count("`code`") == 4
    assert out.read_text().endswith("    block\n")


def test_the_longest_translations_become_shorter(file):
    """The shares are in proportion to the sources; short translations stay, and leave what they do not use."""
    text = "Aaaaaaaaa.\n\nBbbbbbbbb.\n\nCcccccccc.\n"
    longer = {"Aaaaaaaaa.": "a" * 4, "Bbbbbbbbb.": "b" * 30, "Cccccccc.": "c" * 9}
    done = run(Fake(lambda text: longer.get(text, text)), file(text), "at most 34 chars")
    assert [row["length"] for row in done.rows()] == [4, 16, 10]
    assert done.length == 34


def test_sentences_without_a_shorter_translation_are_asked_a_few_times(file):
    """Within their shares, then between these and their lengths."""
    fake = Failing(failing=["One.", "Two."])
    assert not run(fake, file("One. Two.\n"), "at most 5 chars").fits
    assert fake.asked == [["One.", "Two."]] * 3


def test_without_a_translation_within_its_share_a_sentence_still_becomes_shorter(file):
    class NotBelow(Fake):
        """It finds translations of 20 characters or more."""

        def one(self, text, budget):
            found = super().one(text, budget)
            return replace(found, complete=len(found.text) >= 20)

    text, limits = "a" * 40 + ".\n", ("at most 40 chars", "at most 20 chars", "at most 10 chars", "at most 4 chars")
    assert [run(NotBelow(), file(text), limit).length for limit in limits] == [40, 20, 21, 22]


class Cutting(Fake):
    """What it finds within a budget is not complete; nor is any translation of `always`."""

    def __init__(self, always=()):
        super().__init__()
        self.always = always

    def one(self, text, budget):
        return replace(super().one(text, budget), complete=budget is None and text not in self.always)


@pytest.mark.parametrize(("always", "text"), [([], "One two."), (["One two."], "One")])
def test_a_fragment_replaces_no_complete_translation(file, always, text):
    done = run(Cutting(always), file("One two.\n"), "at most 4 chars")
    assert ([row["text"] for row in done.rows()], done.fits) == ([text], text == "One")


def test_a_budget_below_what_is_copied_is_refused(file):
    with pytest.raises(ValueError, match=r"in.md cannot have at most 20 chars: what is not translated has \d+ chars"):
        run(Fake(), file("One.\n\n    " + "x" * 30), "at most 20 chars")
    with pytest.raises(ValueError, match="not counted in tokens"):
        run(Fake(), file(), "at most 20 tokens")


def test_the_length_is_that_of_the_output_in_a_language_with_spaces(file, tmp_path):
    out = tmp_path / "out.txt"
    done = run(Fake(lambda text: "Uno."), file("一つ。二つ。三つ。\n", "in.txt"), out=out)
    assert out.read_text() == "Uno. Uno. Uno.\n"
    assert done.length == measure(out.read_text())


def test_parts_of_a_long_sentence_have_a_space_between_them(file, tmp_path):
    text, out = "我在这里，" * 90 + "好。\n", tmp_path / "out.txt"
    done = run(Fake(lambda text: "I am here,"), file(text, "in.txt"), out=out)
    assert out.read_text() == "I am here, I am here,\n"
    assert done.length == measure(out.read_text())


def test_a_sentence_that_fails_has_no_space_in_front(file, tmp_path):
    out = tmp_path / "out.txt"
    run(Failing(failing=["二つ。"]), file("一つ。二つ。\n", "in.txt"), out=out)
    assert out.read_text() == "一つ。二つ。\n"


@pytest.mark.parametrize("budget", [None, "at most 1.0x"])
def test_an_interrupted_run_is_resumed(file, tmp_path, monkeypatch, budget):
    monkeypatch.setattr(document_module, "WINDOW", 2)
    text, out = "".join(f"Sentence {n}.\n\n" for n in range(9)), tmp_path / "out.md"
    change = {"Sentence 5.": KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        run(Fake(lambda text: change.get(text, text.upper() + "!!")), file(text), budget, out)
    journal = tmp_path / "out.md.sentences.jsonl"
    assert journal.read_text().count("\n[") == 2  # windows
    with journal.open("a") as stream:
        stream.write('[{"sentence": 5, "te')  # killed while it was written
    (tmp_path / "out.md.partial").write_text("x")
    resumed = Fake(lambda text: text.upper() + "!!")
    done = run(resumed, file(text), budget, out)
    assert [row["sentence"] for row in done.rows()] == list(range(1, 10))
    assert list(dict.fromkeys(chain(*resumed.asked))) == [f"Sentence {n}." for n in range(4, 9)]
    whole = run(Fake(lambda text: text.upper() + "!!"), file(text), budget)
    assert out.read_text() == "".join(f"{row['text']}\n\n" for row in whole.rows())


def test_a_run_with_other_settings_is_not_resumed(file, tmp_path):
    out = tmp_path / "out.md"
    with pytest.raises(KeyboardInterrupt):
        run(Fake(lambda _: KeyboardInterrupt()), file(), None, out)
    advice = "; repeat those settings, name another --out, or delete the file"
    with pytest.raises(ValueError, match=rf"settings \(length: none, now '1\.0x chars'\){advice}"):
        run(Fake(), file(), "1.0x", out)
    with pytest.raises(ValueError, match=r"settings \(the text has changed\); "):
        run(Fake(), file(TEXT + "\nMore."), None, out)


@pytest.mark.parametrize("text", ['{"my": "own file"}', '{"my": "own file"}\n', "1\n", "mine\n"])
def test_a_file_in_the_place_of_the_journal_is_kept(file, tmp_path, text):
    mine, partial = tmp_path / "out.md.sentences.jsonl", tmp_path / "out.md.partial"
    mine.write_text(text)
    with pytest.raises(ValueError, match=r"sentences\.jsonl .* is another file; rename it, or give another --out"):
        run(Fake(), file(), None, tmp_path / "out.md")
    partial.touch()
    with pytest.raises(ValueError, match=r"out\.md\.partial exists"):
        run(Fake(), file(), None, tmp_path / "out.md")
    assert partial.exists()
    assert mine.read_text() == text
    assert not (tmp_path / "out.md").exists()


def test_an_empty_file_in_the_place_of_the_journal_is_used(file, tmp_path):
    (tmp_path / "out.md.sentences.jsonl").touch()
    run(Fake(), file(), None, tmp_path / "out.md")
    assert (tmp_path / "out.md").read_text() == TEXT


def interrupted(file, out):
    """Translate two sentences of the same document to the same file."""
    with pytest.raises(KeyboardInterrupt):
        run(Fake(lambda text: {"Four.": KeyboardInterrupt()}.get(text, text)), file, None, out)


def add_settings(file, out):
    journal = out.with_name("out.md.sentences.jsonl")
    with journal.open("a") as stream:
        stream.write(journal.read_text().splitlines()[0] + "\n")  # as if both had found no journal


@pytest.mark.parametrize("other_run", [interrupted, add_settings])
def test_two_runs_for_one_file_write_no_wrong_document(file, tmp_path, monkeypatch, other_run):
    monkeypatch.setattr(document_module, "WINDOW", 2)
    path, out = file("One. Two. Three. Four.\n"), tmp_path / "out.md"
    other = iter([other_run])

    def change(text):
        if text == "Two.":
            next(other)(path, out)
        return text

    with pytest.raises(ValueError, match=r"out\.md\.sentences\.jsonl does not have sentence \d in its place"):
        run(Fake(change), path, None, out)
    assert not out.exists()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "in.md is empty"),
        (b" \n\n", "it has only white space"),
        (b"PK\x03\x04\0\0", "has a zero byte in line 1: it is binary, or UTF-16"),
        ("Già\n".encode() + "Già\n".encode("latin-1"), "in.md is not UTF-8: byte 0xe0 at 3 in line 2; convert it"),
    ],
)
def test_what_is_no_text_is_refused(file, data, says):
    with pytest.raises(ValueError, match=says):
        run(Fake(), file(data))


def test_a_sentence_that_fails_stays_as_it_is(translator, file, tmp_path):
    lines, _ = translator({"Long `x`.": "TOO LONG", "Long {1}.": "TOO LONG", "Go.": "Va."})
    done = lines.document(file("Long `x`. Go.\n"), out=tmp_path / "out.md")
    assert [(row["text"], row.get("error")) for row in done.rows()] == [
        ("Long `x`.", "the text is too long for the model"),
        ("Va.", None),
    ]


@pytest.mark.parametrize("text", ["word, " * 10_000, "word " * 10_000, "x" * 3000, "字" * 3000, "x`a`" * 900])
def test_a_long_sentence_is_translated_in_parts(file, text):
    done = run(Fake(), file(text, "in.md"))
    rows = list(done.rows())
    stream = SimpleNamespace(text="")
    stream.write = lambda piece: setattr(stream, "text", stream.text + piece)
    done.write(stream)
    assert stream.text == text
    assert all(len(row["source"]) <= MAX_CHARS for row in rows)
    assert rows[0]["note"].startswith("part of a sentence of ")


def test_a_part_within_a_sentence_gets_no_full_stop(file):
    done = run(Fake(lambda text: text.rstrip(" .,") + "."), file("one, two, " * 60 + "three.\n", "in.txt"))
    ends = [row["text"][-3:] for row in done.rows()]
    assert ends == ["two", "ee."]


@settings(max_examples=50)
@given(
    start=st.sampled_from(["word " * 90, "x" * 450, "字" * 450, "<" + "1" * 450]),
    end=st.lists(st.sampled_from([*"{}<>/a1`* ", "if (x) {", "、"]), max_size=8).map("".join),
    name=st.sampled_from(["any.md", "any.txt"]),
)
def test_a_long_sentence_is_its_parts(tmp_path_factory, start, end, name):
    path = tmp_path_factory.getbasetemp() / name
    path.write_text(start + end)
    pieces = list(Document.of(path).pieces())
    assert "".join(one if isinstance(one, str) else one.source for one in pieces) == start + end
    assert all(isinstance(one, str) or len(one.source) <= MAX_CHARS for one in pieces)


@settings(max_examples=30)
@given(
    words=st.lists(st.sampled_from(["One.", "two", "**three**", "`four`", "[five](a.b)", "\n", "\n\n", "> ", "- "])),
    ratio=st.sampled_from([0.7, 0.9, 1.0]),
)
def test_any_document_keeps_its_markup_within_its_budget(tmp_path_factory, words, ratio):
    path = tmp_path_factory.getbasetemp() / "any.md"
    path.write_text("Start. " + " ".join(words))
    free = run(Fake(lambda text: text.replace("two", "twooooo")), path)
    rows = list(free.rows())
    sentences = list(Document.of(path).sentences())
    assert [row["source"] for row in rows] == [one.source for one in sentences]
    whole = measure(path.read_text()) + 4 * sum(one.text.count("two") for one in sentences)
    # A break of three characters (" \n ") is a space where a translation has no other space before a letter.
    assert whole - 2 * path.read_text().count("\n") <= free.length <= whole
    out = path.with_name("out.md")
    with suppress(ValueError):  # refused: mostly markup
        done = run(Fake(), path, f"at most {ratio}x", out)
        assert done.length == measure(out.read_text())
        assert out.read_text().count("`four`") == path.read_text().count("`four`")


def test_a_budget_for_each_sentence(file):
    text = "Use `some_long_name` here. Go on.\n"
    done = run(Fake(lambda text: text + "zzzzzzzz"), file(text), "at most 26 chars", per_sentence=True)
    assert [(row["text"], row["length"], row["fits"]) for row in done.rows()] == [
        ("Use `some_long_name` here.", 26, True),  # its limit is that of the text with its markup
        ("Go on.zzzzzzzz", 14, True),
    ]
    assert done.fits
    done = run(Fake(), file(text), "at most 10 chars", per_sentence=True)
    assert [row["fits"] for row in done.rows()] == [False, True]
    assert not done.fits


def test_with_context_a_window_is_translated_again_as_a_whole(file, monkeypatch):
    monkeypatch.setattr(document_module, "WINDOW", 2)
    fake = Fake()
    fake.in_context = lambda texts, old, context: [
        replace(one, text=f"{text}{context}{len(texts)}") for text, one in zip(texts, old, strict=True)
    ]
    done = run(fake, file("One. Two. Three.\n"), context="sliding")
    assert [row["text"] for row in done.rows()] == ["One.sliding2", "Two.sliding2", "Three.sliding1"]
    with pytest.raises(ValueError, match="context is for documents without a budget for each sentence"):
        run(fake, file(), "at most 20 chars", per_sentence=True, context="revise")


def test_progress_counts_sentences(file, monkeypatch):
    monkeypatch.setattr(document_module, "WINDOW", 2)
    seen = []
    run(Fake(), file("One. Two. Three.\n"), progress=lambda *done: seen.append(done))
    assert list(dict.fromkeys(seen)) == [(0, 3), (2, 3), (3, 3)]


def test_progress_moves_inside_a_window(file):
    text, seen = "".join(f"Sentence {n}.\n\n" for n in range(8)), []
    run(Fake(), file(text), progress=lambda done, _: seen.append(done))
    assert list(dict.fromkeys(seen)) == [0, 2, 4, 6, 8]
    seen.clear()
    run(Fake(lambda text: text + "!!"), file(text), "at most 1.0x", progress=lambda done, _: seen.append(done))
    assert list(dict.fromkeys(seen)) == [0, 1, 2, 3, 4, 5, 8]  # from 2 on, sentences become shorter


def test_a_sentence_that_returns_is_not_done_before_it_is_translated(file):
    seen = []
    run(Fake(), file("Go.\n\nCome.\n\nGo.\n\nGo.\n\n"), progress=lambda done, _: seen.append(done))
    assert (seen[0], seen[-1]) == (0, 4)


@pytest.mark.parametrize("budget", [None, "at most 1.0x"])
def test_a_run_that_is_interrupted_inside_a_window_is_resumed_there(file, tmp_path, budget):
    text, out = "".join(f"Sentence {n}.\n\n" for n in range(9)), tmp_path / "out.md"
    path, seen = file(text), []
    whole = Fake(lambda text: text.upper() + "!!")
    run(whole, path, budget, tmp_path / "whole.md")
    first = Fake(lambda text: text.upper() + "!!")
    for batches in (1, 2):  # each run does so many batches
        one, stop = first.one, len(first.asked) + batches

        def interrupted(text, budget, one=one, stop=stop):
            if len(first.asked) > stop:
                raise KeyboardInterrupt
            return one(text, budget)

        first.one = interrupted
        with pytest.raises(KeyboardInterrupt):
            run(first, path, budget, out)
        first.one = one
        first.asked.pop()
    run(first, path, budget, out, progress=lambda done, _: seen.append(done))
    assert first.asked == whole.asked
    assert seen[0] == (6 if budget is None else 1)
    assert out.read_text() == (tmp_path / "whole.md").read_text()


def test_a_file_that_changes_meanwhile_is_not_written(file, tmp_path):
    path = file()
    with pytest.raises(ValueError, match="has changed while it was translated"):
        run(Fake(lambda text: path.write_text("New. One.") and text), path, None, tmp_path / "out.md")
    assert not (tmp_path / "out.md").exists()


def test_a_text_in_memory(translator):
    lines, _ = translator({"Go.": "Va."})
    done = lines.document("# Go.\n\n    code\n")
    assert done.text == "# Va.\n\n    code\n"
    assert lines.document("# Go.\r\n").text == "# Va.\r\n"
    with pytest.raises(ValueError, match=r"there is no file 'nowhere\.md'$"):
        lines.document("nowhere.md")
    with pytest.raises(ValueError, match=r"no file 'Go'; if it is the text itself, end it with a line break"):
        lines.document("Go")


def peak_memory(path, out):
    """Translate a document, check that all of it is written, and return the most memory that this took, in bytes."""
    translator = Fake()
    translator.asked = deque(maxlen=1)
    tracemalloc.start()
    run(translator, path, None, out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert out.read_bytes() == path.read_bytes()
    return peak


@pytest.mark.parametrize("name", ["in.txt", "in.md"])
def test_memory_grows_with_the_window(file, tmp_path, monkeypatch, name):
    monkeypatch.setattr(markdown, "CHUNK", 20)
    monkeypatch.setattr(markdown, "FRONT_MATTER", 20)
    paragraph = "A sentence of a long document is here.\nIt has two, and **goes** on.\n\n"
    peaks = [peak_memory(file(paragraph * size, name), tmp_path / "out") for size in (100, 800)]
    assert peaks[1] < 1.5 * peaks[0]  # the rows of the sentences in memory would take four times as much


def test_memory_does_not_grow_with_a_file_of_2_mb(file, tmp_path):
    """Most of it is code, which is read and copied fast. The text in memory would more than double the peak."""
    section = f"A sentence is here.\n\n```\n{('x = 1  # copied' + ' and so on' * 10 + chr(10)) * 160}```\n\n"
    small, large = (file(section * size, f"{size}.md") for size in (25, 110))
    assert large.stat().st_size > 2_000_000
    peaks = [peak_memory(path, tmp_path / "out") for path in (small, large)]
    assert peaks[1] < 1.2 * peaks[0]


def test_the_rest_of_a_long_sentence_is_one_part(file):
    text = f"{'many words ' * 34}and more, so that the rest is short and stopped.\n"
    done = run(Fake(), file(text))
    assert [row["source"].split()[-1] for row in done.rows()] == ["more,", "stopped."]


def test_only_the_first_part_of_a_long_sentence_has_a_capital(file):
    text = f"Wenn {'viele Worte ' * 32}kommen, Häuser und noch mehr Häuser stehen.\n"
    rows = list(run(Fake(str.lower), file(text)).rows())
    assert [row["text"].split()[0] for row in rows] == ["Wenn", "häuser"]
