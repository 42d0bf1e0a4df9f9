"""ICU messages: their branches are translated one by one, and the result is an ICU message with the same arguments."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.formats.icu import Argument, Branch, Choice, Text, parse, write
from lengthwise.localisation.drafts import Context
from lengthwise.localisation.messages import message_draft
from lengthwise.localisation.plan import Answer, unique
from localisation.fakes import Capitals

pytest.importorskip("babel", reason="plural forms need Babel")


def translated(text, words=(), target="hr", **context):
    """Return the translation; Croatian has the forms one, few and other."""
    draft = message_draft(text, Context(lambda source: [], **context), target)
    requests = unique(draft.requests)
    found = Capitals(words).translate([one.text for one in requests], [None] * len(requests))
    return draft.build({request: Answer(one.text) for request, one in zip(requests, found, strict=True)})


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("{n, plural, one {# file} other {# files}}", "{n, plural, one {# FILE} few {# FILES} other {# FILES}}"),
        (
            "You have {n, plural, =0 {no file} one {# file} other {# files}} in {x}.",
            "{n, plural, =0 {YOU HAVE NO FILE IN {x}.} one {YOU HAVE # FILE IN {x}.} few {YOU HAVE # FILES IN {x}.}"
            " other {YOU HAVE # FILES IN {x}.}}",
        ),
        (
            "{g, select, f {her {n, plural, one {cat} other {cats}}} other {{name}}}",
            "{g, select, f {{n, plural, one {HER CAT} few {HER CATS} other {HER CATS}}} other {{name}}}",
        ),
        ("{n, selectordinal, one {#st} few {#rd} other {#th}}", "{n, selectordinal, one {#st} few {#rd} other {#th}}"),
        ("{n,plural,\n\tone{a}\n\tother {b}\n}", "{n,plural,\n\tone{A}\n\tfew {B}\n\tother {B}\n}"),
        (
            "{n, plural, one {it''s '{'#'}'} few {y} other {z #}}",
            "{n, plural, one {IT''S '{'#'}'} few {Y} other {Z #}}",
        ),
        ("#1: {n, plural, one {a} few {b} other {c}}", "#1: {n, plural, one {A} few {B} other {C}}"),
        (  # both plurals have the same number
            "{n} {n, plural, one {file} other {files}} {n, plural, one {is} other {are}} hidden",
            "{n, plural, one {{n} FILE IS HIDDEN} few {{n} FILES ARE HIDDEN} other {{n} FILES ARE HIDDEN}}",
        ),
        (
            "No #1: {n, plural, one {a} few {b} other {#}}",
            "{n, plural, one {NO '#'1: A} few {NO '#'1: B} other {NO '#'1: #}}",
        ),
    ],
)
def test_branches(text, new):
    built = translated(text, doubled="''" in text)
    assert (built.text, built.error) == (new, None)


def test_the_number_of_an_outer_plural_is_named():
    text = "{a, plural, one {# dog} other {# dogs}} and {b, plural, one {# cat} other {# cats}} run"
    new = translated(text, target="it").text
    assert new.startswith("{a, plural, one {{b, plural, one {{a, number} DOG AND # CAT RUN}")


def test_a_form_of_one_number_is_not_added_to_its_branch():
    text = "{n, plural, =1{1 file} other{{n} files}}"
    assert translated(text, target="it").text == "{n, plural, =1{1 FILE} other{{n} FILES}}"
    assert translated(text).text == "{n, plural, =1{1 FILE} one{{n} FILES} few{{n} FILES} other{{n} FILES}}"


def test_the_argument_itself_is_a_number_too():
    words = {"5h": "5 ore", "{n}h": "lost"}
    assert translated("{n, plural, =1{1h} other{{n}h}}", words, "it").text == "{n, plural, =1{1H} other{{n} ore}}"


def test_a_number_gives_the_form():
    words = {"1 file": "1 plik", "2 files": "2 pliki", "5 files": "five", "{#n} files": "{#n} pliku"}
    new = translated("{n, plural, one {# file} other {# files}}", words)
    assert new.text == "{n, plural, one {# plik} few {# pliki} other {# pliku}}"  # "five" has no number


@pytest.mark.parametrize("text", ["{n, plural, one {a", "{n, plural, one {a}}", "{n, plural, other {a}} }"])
def test_broken_messages_stay(text):
    new = translated(text)
    assert new.text == text
    assert new.error.startswith("not an ICU message: ")


def test_a_message_that_lost_an_argument_stays():
    new = translated("{n, plural, one {a {x}} other {b}}", {"a {x}": "lost"})
    assert new.error == "placeholders were lost, doubled or misplaced: {x}"


def test_apostrophes_are_doubled_for_java():
    words = {"a": "l'ora", "b": "l'ore"}
    message = "{0, plural, one {a} few {b} other {b}}"
    assert translated(message, words).text == "{0, plural, one {L'ora} few {L'ore} other {L'ore}}".replace("L", "l")
    assert translated(message, words, doubled=True).text == "{0, plural, one {l''ora} few {l''ore} other {l''ore}}"


TEXTS = st.text("ab '{}#", min_size=1, max_size=8).map(Text)


def messages(owner=""):
    parts = [TEXTS, st.sampled_from([Argument("{x}"), Argument("{d, date, short}")])]
    parts += [st.just(Argument("#", owner))] if owner else []
    branches = st.deferred(lambda: messages("n")) if not owner else st.tuples(TEXTS)
    choice = st.builds(
        lambda one, other: Choice("n", "plural", "{n, plural,", (Branch(" one ", one), Branch(" other ", other))),
        branches,
        branches,
    )
    parts += [] if owner else [choice]
    return st.lists(st.one_of(parts), max_size=4).map(tuple)


def joined(message):
    """Return the message with neighbouring texts joined, as the parser has them."""
    found = []
    for part in message:
        if isinstance(part, Choice):
            part = Choice(
                part.name, part.kind, part.head, tuple(Branch(b.head, joined(b.message)) for b in part.branches)
            )
        if isinstance(part, Text) and found and isinstance(found[-1], Text):
            part = Text(found.pop().text + part.text)
        found.append(part)
    return tuple(found)


@settings(max_examples=150)
@given(messages(), st.booleans())
def test_what_is_written_is_read_back(message, doubled):
    assert parse(write(joined(message), doubled=doubled)) == joined(message)


def test_the_number_of_a_plural_with_an_offset_stays_in_it():
    text = (
        "{n, plural, offset:1 one {You and # like {m, plural, one {it} few {x} other {them}}}"
        " few {a} other {{g, select, f {her #} other {its}} # b}}"
    )
    built = translated(text)
    assert (built.error, "number}" in built.text) == (None, False)
    assert "YOU AND # LIKE {m, plural, one {IT} few {X} other {THEM}}" in built.text
    assert "{g, select, f {HER # # B} other {ITS # B}}" in built.text


def test_a_code_with_an_id_occurs_once():
    text = '{n, plural, one {# photo} other {# photos}} in <ph id="1"/>'
    new = '{n, plural, one {# PHOTO} other {# PHOTOS}} IN <ph id="1"/>'
    assert translated(text, target="it", markup=True).text == new
