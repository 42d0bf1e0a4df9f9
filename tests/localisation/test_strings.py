"""String files with a fake translator: what is asked for, what changes, and what stays byte for byte."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace
from xml.dom import minidom

import pytest
import yaml

from format_files import FILES
from lengthwise.formats import read
from lengthwise.formats.rules import Rule
from lengthwise.length.budget import Budget
from lengthwise.localisation.files import shorten_file, translate_file
from lengthwise.localisation.plan import Task
from localisation.fakes import Capitals

pytest.importorskip("babel", reason="plural forms need Babel")
NAMES = [name for name, (text, _) in FILES.items() if not read(name, data=text.encode()).format.is_subtitles]
HEADER = 'msgid ""\nmsgstr ""\n"Language: {}\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
UNLABELLED = HEADER.replace('"Language: {}\\n"\n', "")


def translate(tmp_path, name, text, to="it", words=(), out=None, **task):
    """Return the new text of a file, the outcome, and the translator."""
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    out = out or path.parent / "out" / path.name
    translator = Capitals(words)
    done = translate_file(path, out, translator, Task(to, **task))
    return out.read_bytes().decode(), done.outcome, translator


def limited(length):
    return Rule(Budget.parse(length), length)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("name", NAMES)
def test_a_translator_that_changes_nothing_returns_the_same_texts(tmp_path, name, encoding, end):
    """The translations are copies. Only states, languages and plural forms of the target may differ; here none do."""
    text = FILES[name][0].replace("\n", end)
    sources = {entry.source or entry.text for entry in read(name, data=text.encode()).entries}
    done = [entry.id for entry in read(name, data=text.encode()).entries if entry.source and not entry.text]
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))
    copies = {one.strip(): one.strip() for one in sources}

    class Copies(Capitals):
        def translate(self, texts, budgets):
            self.words = {one: one for one in texts} | copies
            return super().translate(texts, budgets)

    out = tmp_path / "out" / path.name
    outcome = translate_file(path, out, Copies(), Task("it")).outcome
    if not done:
        assert out.read_bytes() == path.read_bytes()
    assert [row.id for row in outcome.rows if not row.changed] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_file_without_anything_to_translate_stays_as_it_is(tmp_path, name):
    """After a translation, those of the output are kept, so that a second run changes nothing."""
    first, _, _ = translate(tmp_path, name, FILES[name][0])
    path = tmp_path / name
    out = path.parent / "out" / path.name
    translator = Capitals({}, stop_after=0)
    again = translate_file(out if read(path).entries[0].source is not None else path, out, translator, Task("it"))
    assert (out.read_bytes().decode(), again.outcome.rows) == (first, [])


@pytest.mark.parametrize("name", NAMES)
def test_all_texts_are_translated_and_nothing_else(tmp_path, name):
    text = FILES[name][0]
    new, outcome, _ = translate(tmp_path, name, text)
    before, after = read(name, data=text.encode()), read(name, data=new.encode())
    changed = {row.id for row in outcome.rows}
    for old, one in zip(before.entries, after.entries, strict=True):
        assert one.id == old.id
        if old.id not in changed:
            assert one.text == old.text
        else:
            assert (
                re.search(r"[a-z]{2,}", re.sub(r"<[^>]*>|&\w+;|\{\{?\w+\}?\}|%\w|\{n, \w+,|one|other", "", one.text))
                is None
            )
    fixed = {entry.id for entry in before.entries if entry.flags & {"fixed", "approved", "final", "fuzzy"}}
    assert not changed & fixed


def test_the_results_are_valid_files(tmp_path):
    for name in NAMES:
        new, _, _ = translate(tmp_path, name, FILES[name][0], to="pl")
        if name.endswith((".json", ".arb")):
            json.loads(new)
        elif name.endswith((".xlf", ".xliff", ".xml", ".stringsdict", ".ts")):
            minidom.parseString(new)
        elif name.endswith(".yml"):
            yaml.safe_load(new)


def test_equal_texts_are_asked_for_once(tmp_path):
    _, outcome, translator = translate(tmp_path, "en.json", '{"a": "Save", "b": "Save", "c": " Save\\n"}')
    assert translator.asked == ["Save"]
    assert [row.text for row in outcome.rows] == ["SAVE", "SAVE", " SAVE\n"]


def test_the_smallest_limit_counts_and_length_wins(tmp_path):
    string = '<string name="a">Hi <b>you</b></string>'
    text = f"<resources>\n<!-- [CHAR LIMIT=30] at most 8 characters -->\n{string}</resources>"
    _, _, translator = translate(tmp_path, "strings.xml", text)
    assert translator.budgets == {"Hi <b>you</b>": "at most 15 chars"}  # 8, and 7 of the tags
    _, _, translator = translate(tmp_path, "strings.xml", text, length=limited("at most 20 chars"), again=True)
    assert translator.budgets == {"Hi <b>you</b>": "at most 27 chars"}
    rules = [Rule(Budget.parse("at most 12 chars"), "", keys="a")]
    _, _, translator = translate(tmp_path, "strings.xml", text, rules=rules, again=True)
    assert translator.budgets == {"Hi <b>you</b>": "at most 19 chars"}


def test_a_relative_length_is_that_of_the_source(tmp_path):
    length = limited("at most 1.5x")
    _, outcome, translator = translate(
        tmp_path, "en.json", '{"a": "Save it now", "b": "Go"}', length=replace(length, min_limit=8)
    )
    assert translator.budgets == {"Save it now": "at most 16 chars", "Go": "at most 8 chars"}
    assert [row.limit for row in outcome.rows] == ["at most 16 chars", "at most 8 chars"]


def test_rows_say_what_does_not_fit(tmp_path):
    words = {"Save": "Salvare tutto", "Open {x}": "Apri", "Quit": ValueError("too long"), "Print": "~Stampa"}
    text = '{"a": "Save", "b": "Open {x}", "c": "Quit", "d": "Print", "e": "%s"}'
    new, outcome, _ = translate(tmp_path, "en.json", text, words=words, length=limited("at most 9 chars"))
    assert json.loads(new) == {"a": "Salvare tutto", "b": "Open {x}", "c": "Quit", "d": "~Stampa", "e": "%s"}
    told = {row.id: (row.length, row.fits, row.complete, row.changed, row.note) for row in outcome.rows}
    assert told == {
        "a": (13, False, True, True, "13 chars, at most 9"),
        "b": (0, False, False, False, "placeholders were lost, doubled or misplaced: {x}"),
        "c": (0, False, False, False, "too long"),
        "d": (7, True, False, True, "not complete"),
    }
    assert [row.id for row in outcome.misfits] == ["a", "b", "c", "d"]


def test_po_misfits_are_fuzzy_with_a_comment(tmp_path):
    text = HEADER.format("it") + (
        '\n#. at most 5 characters\n#: a.c:1\nmsgid "Save"\nmsgstr ""\n'
        '\n# A note\n#: a.c:2\n#, c-format, max-length:5\n#| msgid "Opn"\nmsgctxt "menu"\nmsgid "Open %s"\nmsgstr ""\n'
        '\n#, fuzzy\n# lengthwise: 9 chars, at most 5\nmsgid "Go"\nmsgstr "Andiamo!!"\n'
    )
    words = {"Save": "Salvare", "Open %s": "Aprire %s", "Go": "Vai"}
    new, _, _ = translate(tmp_path, "it.po", text, words=words)
    assert new == text.replace(
        '#. at most 5 characters\n#: a.c:1\nmsgid "Save"\nmsgstr ""',
        '# lengthwise: 7 chars, at most 5\n#. at most 5 characters\n#: a.c:1\n#, fuzzy\nmsgid "Save"\nmsgstr "Salvare"',
    ).replace(
        "# A note\n#: a.c:2\n#, c-format, max-length:5\n",
        "# lengthwise: 9 chars, at most 5\n# A note\n#: a.c:2\n#, fuzzy, c-format, max-length:5\n",
    ).replace('msgid "Open %s"\nmsgstr ""', 'msgid "Open %s"\nmsgstr "Aprire %s"')
    again, _, _ = translate(tmp_path, "b.po", new, words=words | {"Save": "Salva"}, again=True)
    assert "# lengthwise: 7" not in again
    assert '#: a.c:1\nmsgid "Save"\nmsgstr "Salva"' in again
    assert '\nmsgid "Go"\nmsgstr "Vai"' in again
    assert again.count("fuzzy") == 1  # of Open


def test_xliff_and_qt_states(tmp_path):
    xliff = FILES["a.xlf"][0].replace('<trans-unit id="4">', '<trans-unit id="4" maxwidth="3" size-unit="char">')
    new, _, _ = translate(tmp_path, "a.xlf", xliff)
    assert '<target state="needs-review-translation" state-qualifier="rejected-length">EMPTY</target>' in new
    second = FILES["a.xliff"][0].replace('<segment state="final">', "<segment>")
    new, _, _ = translate(tmp_path, "a.xliff", second)
    assert (
        '<segment state="initial" subState="lengthwise:length">\n    <source>Two.</source>\n    <target>TWO.</target>'
        in new
    )
    qt = FILES["it.ts"][0]
    new, _, _ = translate(tmp_path, "it.ts", qt, words={"5 files": "5 archivi lunghissimi"})
    assert "<translation>\n            <numerusform>%n file</numerusform>" in new
    new, _, _ = translate(tmp_path, "it.ts", qt, length=limited("at most 4 chars"), again=True)
    assert '<translation type="unfinished">' in new


def test_states_of_targets_that_are_no_translations(tmp_path):
    text = FILES["a.xlf"][0].replace('<target state="final">Salva', '<target state="needs-translation">Save')
    new, outcome, _ = translate(tmp_path, "a.xlf", text)
    assert '<target state="translated">SAVE &amp; CLOSE</target>' in new
    assert {row.id for row in outcome.rows} == {"1", "4"}


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("a.po", HEADER.format("") + '\nmsgid "a"\nmsgstr ""\n', '"Language: it\\n"'),
        ("a.po", HEADER.format("en") + '\nmsgid "a"\nmsgstr ""\n', '"Language: it\\n"'),
        (
            "a.po",
            UNLABELLED + '\nmsgid "a"\nmsgstr ""\n',
            'UTF-8\\n"\n"Language: it\\n"\n\n',
        ),
        ("a.po", HEADER.format("it_CH") + '\nmsgid "a"\nmsgstr ""\n', '"Language: it_CH\\n"'),
        ("en.yml", "en: # English\n  a: Text\n", "it: # English\n  a: TEXT\n"),
        ("en.yml", "fr:\n  a: Text\n", "fr:\n"),
        ("en.yml", '"en-GB":\n  a: Text\n', '"it":\n  a: TEXT\n'),
        ("en.yml", "en:\n  a: Text\nit:\n  a: Text\n", "en:\n  a: TEXT\nit:\n"),
        ("en.json", '{"en-US": {"a": "Text"}}', '{"it": {"a": "TEXT"}}'),
        ("app_en.arb", '{"@@locale": "en", "a": "Text"}', '{"@@locale": "it", "a": "TEXT"}'),
        ("en.json", '{"en": {"a": "Text"}}', '{"it": {"a": "TEXT"}}'),
        ("en.json", '{"en": "English"}', '{"en": "ENGLISH"}'),
        (
            "a.ts",
            '<TS version="2.1"><context><message><source>a</source><translation/></message></context></TS>',
            '<TS version="2.1" language="it">',
        ),
        ("a.xlf", FILES["a.xlf"][0].replace(' target-language="it"', ""), 'datatype="plaintext" target-language="it">'),
        ("a.xlf", FILES["a.xlf"][0].replace('language="it"', 'language="en-US"'), 'target-language="it"'),
        ("a.xliff", FILES["a.xliff"][0].replace(' trgLang="it"', "").replace('state="final"', ""), ' trgLang="it">'),
    ],
)
def test_the_language_of_the_file(tmp_path, name, text, wanted):
    new, _, _ = translate(tmp_path, name, text)
    assert wanted in new


def test_the_plural_forms_of_the_target(tmp_path):
    words = {"2 files": "2 pliki", "5 files": "5 plików", "1 file": "1 plik", "{#n} files": "{#n} pliku"}
    new, _, _ = translate(tmp_path, "app.arb", '{"a": "{n, plural, one {# file} other {# files}}"}', "pl", words)
    assert json.loads(new)["a"] == "{n, plural, one {# plik} few {# pliki} many {# plików} other {# plików}}"
    new, _, _ = translate(tmp_path, "strings.xml", FILES["strings.xml"][0], "pl", words)
    items = re.findall(r'<item quantity="(\w+)">(.*)</item>', new)
    assert items == [("one", "%d plik"), ("few", "%d pliki"), ("many", "%d plików"), ("other", "%d plików")]
    i18next = '{\n  "file_one": "{{count}} file",\n  "file_other": "{{count}} files"\n}\n'
    new, _, _ = translate(tmp_path, "en.json", i18next, "pl", words)
    assert new.splitlines()[2] == '  "file_few": "{{count}} pliki",'
    assert list(json.loads(new)) == ["file_one", "file_few", "file_many", "file_other"]
    rails = "en:\n  files:\n    one: one file\n    other: '%{count} files'\n"
    new, _, _ = translate(tmp_path, "en.yml", rails, "pl", words)
    assert yaml.safe_load(new)["pl"]["files"] == {
        "one": "ONE FILE",
        "few": "%{count} pliki",
        "many": "%{count} plików",
        "other": "%{count} plików",
    }
    dictionary = FILES["a.stringsdict"][0].replace("<string/>", "<string>%d files</string>")
    new, _, _ = translate(tmp_path, "a.stringsdict", dictionary, "pl", words)
    assert "<key>few</key>\n\t\t\t<string>%d pliki</string>" in new
    arabic, _, _ = translate(tmp_path, "ar.xml", FILES["strings.xml"][0], "ar")
    assert re.findall(r'quantity="(\w+)"', arabic) == ["one", "zero", "two", "few", "many", "other"]


def test_plural_forms_of_gettext_follow_the_header(tmp_path):
    messages = '\nmsgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    template = HEADER.format("") + '"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"\n' + messages
    words = {"2 files": "2 pliki", "5 files": "5 plików", "1 file": "1 plik"}
    new, _, _ = translate(tmp_path, "pl.po", template, "pl", words)
    assert "nplurals=3; plural=(n==1 ? 0" in new
    assert new.endswith('msgstr[0] "%d plik"\nmsgstr[1] "%d pliki"\nmsgstr[2] "%d plików"\n')
    new, _, _ = translate(tmp_path, "ja.po", template, "ja", {"5 files": "5ファイル"})
    assert new.endswith(
        '"Plural-Forms: nplurals=1; plural=0;\\n"\n'
        + messages.replace('[0] ""', '[0] "%dファイル"').replace('msgstr[1] ""\n', "")
    )
    other_way = HEADER.format("it") + '"Plural-Forms: nplurals=2; plural=n==1 ? 1 : 0;\\n"\n' + messages
    new, _, _ = translate(tmp_path, "it.po", other_way)
    assert new.endswith('msgstr[0] "%d FILES"\nmsgstr[1] "%d FILE"\n')


def test_qt_sources_with_an_optional_s(tmp_path):
    text = FILES["it.ts"][0].replace("<numerusform>%n file</numerusform>", "<numerusform></numerusform>")
    _, _, translator = translate(tmp_path, "it.ts", text)
    assert "1 file" in translator.asked
    assert "5 files" in translator.asked
    with_others = text.replace("%n file(s)", "%n file(s) of %1")
    new, _, translator = translate(tmp_path, "it.ts", with_others)
    assert "5 files of %1" in translator.asked
    assert "<numerusform>%n FILES OF %1</numerusform>" in new
    three = text.replace("<numerusform></numerusform>", "<numerusform></numerusform>" * 2, 1)
    new, _, _ = translate(tmp_path, "it.ts", three)
    assert "<numerusform></numerusform>" not in new


def test_a_form_that_cannot_be_added_is_told(tmp_path):
    text = "en:\n  files: {one: one file, other: '%{count} files'}\n"
    _, outcome, _ = translate(tmp_path, "en.yml", text, "pl")
    assert [row.note for row in outcome.misfits] == [
        f"the plural form '{form}' is missing; add it by hand" for form in ("few", "many")
    ]


def test_mnemonics_are_set_again(tmp_path):
    text = (
        HEADER.format("it") + '\nmsgid "&Save %s..."\nmsgstr ""\n\nmsgid "E_xit"\nmsgstr ""\n\nmsgid "R&D"\nmsgstr ""\n'
    )
    words = {"Save %s...": "Registra %s...", "Exit": "Esci", "R&D": "R&S"}
    new, _, translator = translate(tmp_path, "it.po", text, words=words)
    assert re.findall(r'msgstr "(.+)"', new) == ["Regi&stra %s...", "_Esci", "R&S"]
    assert translator.asked == ["Save %s...", "Exit", "R&D"]


def test_codes_are_one_placeholder(tmp_path):
    text = (
        FILES["a.xlf"][0]
        .replace('approved="yes" ', "")
        .replace('<target>Ciao <g id="1">tu</g> <ph id="2">&lt;br/></ph></target>', "")
    )
    new, _, translator = translate(tmp_path, "a.xlf", text)
    assert 'Hi <g id="1">you</g> {@1}' in translator.asked
    assert '<target>HI <g id="1">YOU</g> <ph id="2">&lt;br/></ph></target>' in new


def test_translations_in_the_output_are_kept(tmp_path):
    out = tmp_path / "it.json"
    out.write_text('{"b": "Apri", "a_few": "pochi", "a_one": "uno", "a_other": "altri", "c": "Close"}')
    source = '{"a_one": "One", "a_other": "Others", "b": "Open", "c": "Close", "d": "New"}'
    new, outcome, translator = translate(tmp_path, "en.json", source, "pl", out=out)
    assert json.loads(new) == {
        "a_one": "uno",
        "a_few": "pochi",
        "a_many": "OTHERS",
        "a_other": "altri",
        "b": "Apri",
        "c": "Close",
        "d": "NEW",
    }
    assert (sorted(translator.asked), outcome.notes) == (
        ["New", "Others"],
        ["5 translations that were there before were kept"],
    )
    new, _, _ = translate(tmp_path, "en.json", source, "pl", out=out, again=True)
    assert json.loads(new)["b"] == "OPEN"


def test_rows_of_a_display_are_asked_for_again_with_less_room(tmp_path):
    text = HEADER.format("it") + '\n# c=10 r=2\nmsgid "Hello dear world"\nmsgstr ""\n'
    words = {"Hello dear world": "A bellissimi b"}  # 14 cells, but not in two rows of 10
    _, outcome, translator = translate(tmp_path, "it.po", text, words=words)
    asked = [str(budget) for call in translator.calls for _, budget in call]
    assert asked == ["at most 20 cells", "at most 16 cells", "at most 14 cells"]
    assert [row.fits for row in outcome.rows] == [False]


def test_a_text_of_which_nothing_complete_fits_is_asked_for_once(tmp_path):
    text = HEADER.format("it") + '\n# c=4 r=2\nmsgid "Cancel"\nmsgstr ""\n'
    new, outcome, translator = translate(tmp_path, "it.po", text, words={"Cancel": "Annullamento"})
    assert [str(budget) for call in translator.calls for _, budget in call] == ["at most 8 cells"]
    assert [(row.text, row.fits) for row in outcome.misfits] == [("Annullamento", False)]
    assert "#, fuzzy" in new


def test_a_text_that_the_encoding_lacks_is_not_written(tmp_path):
    text = HEADER.format("it").replace("UTF-8", "ISO-8859-1") + '\nmsgid "a"\nmsgstr ""\n\nmsgid "b"\nmsgstr ""\n'
    new, outcome, _ = translate(tmp_path, "it.po", text.encode("latin-1"), words={"a": "→"})
    assert 'msgid "a"\nmsgstr ""\n\nmsgid "b"\nmsgstr "B"' in new
    assert "cannot be written in ISO-8859-1" in outcome.misfits[0].note


def test_shortening_changes_only_what_is_too_long(tmp_path):
    path, out = tmp_path / "en.json", tmp_path / "short.json"
    path.write_text(
        '{"a": "Save", "b": "Save all of them", "c": "{n, plural, one {# file} other {# very long files}}"}'
    )
    shortener = Capitals()
    done = shorten_file(path, out, shortener, Task(None, length=limited("at most 8 chars")), options={"form": "text"})
    assert shortener.asked == ["Save all of them", "{#n} very long files"]
    new = json.loads(out.read_text())
    assert (new["a"], new["b"]) == ("Save", "Save all")
    assert new["c"] == "{n, plural, one {# file} other {# very l}}"
    assert all(row.fits for row in done.outcome.rows)


def test_a_row_has_the_note_of_its_shortened_text(tmp_path):
    def shorten(texts, budgets, **_):
        return [SimpleNamespace(text="Save", complete=True, note=f"left out: {text}", error=None) for text in texts]

    (tmp_path / "en.json").write_text('{"a": "Save all of them"}')
    model = SimpleNamespace(name="fake")
    shortener = SimpleNamespace(shorten=shorten, model=model, writer=model, at_once=lambda limited: 8)
    task = Task(None, length=limited("at most 8 chars"))
    done = shorten_file(tmp_path / "en.json", tmp_path / "short.json", shortener, task)
    assert [row.note for row in done.outcome.rows] == ["left out: Save all of them"]


def test_alternatives_are_translated_one_by_one(tmp_path):
    text = '{"a": "One file|{{ n }} files", "b": "Menu | File", "c": "Hi {{ x|upper }}"}'
    new, _, translator = translate(tmp_path, "en.json", text)
    assert json.loads(new) == {"a": "ONE FILE|{{ n }} FILES", "b": "MENU | FILE", "c": "HI {{ x|upper }}"}
    assert translator.asked == ["One file", "{{ n }} files", "Menu | File", "Hi {{ x|upper }}"]


def test_stray_braces_of_the_model_are_removed(tmp_path):
    words = {"Week {{ n }}": "Settimana {{{ n }}", "A { b": "A { c"}
    new, _, _ = translate(tmp_path, "en.json", '{"a": "Week {{ n }}", "b": "A { b"}', words=words)
    assert json.loads(new) == {"a": "Settimana {{ n }}", "b": "A { c"}


def test_a_capital_letter_stays(tmp_path):
    words = {"Privacy policy": "politica", "iPhone only": "iPhone", "all": "tutto"}
    new, _, _ = translate(tmp_path, "en.json", '{"a": "Privacy policy", "b": "iPhone only", "c": "all"}', words=words)
    assert list(json.loads(new).values()) == ["Politica", "iPhone", "tutto"]


def test_apostrophes_of_message_formats(tmp_path):
    words = {"Can't open {0}": "L'ha {0}", "Don't": "L'ora", "It's {0}": "L'è {0}"}
    text = "a=Can''t open {0}\nb=Don't\nc=It''s {0}\n"
    new, _, _ = translate(tmp_path, "m.properties", text, words=words)
    assert new == "a=L''ha {0}\nb=L'ora\nc=L''\\u00e8 {0}\n"


def test_a_shortened_text_keeps_its_state_unless_it_needs_a_review(tmp_path):
    path, out = tmp_path / "it.po", tmp_path / "out.po"
    entry = '\nmsgid "{0}"\nmsgstr "{0} {1}"\n'
    path.write_text(HEADER.format("it") + entry.format("a", "bcd") + entry.format("b", "very long text"))
    shorten_file(path, out, Capitals(), Task(None, length=limited("at most 8 chars")))
    assert out.read_text() == path.read_text().replace('"b very long text"', '"b very l"').replace(
        'msgid "b"', '# lengthwise: not complete\n#, fuzzy\nmsgid "b"'
    )


def test_a_file_without_words_keeps_its_language(tmp_path):
    text = '{"@@locale": "en", "a": "%s: {x}", "b": "2.0"}'
    assert translate(tmp_path, "app.arb", text)[0] == text


XLIFF = (
    '<xliff version="1.2"><file source-language="en" target-language="it" original="a"><body>{}</body></file></xliff>'
)
UNIT = '<trans-unit id="{}"><source>{}</source>{}</trans-unit>'
QT = '<TS version="2.1" language="it"><context><name>A</name>{}</context></TS>'


@pytest.mark.parametrize(
    ("name", "empty", "translated"),
    [
        ("a.po", HEADER.format("it") + '\nmsgid "Save"\nmsgstr ""\n', 'msgstr "Salva"'),
        ("a.xlf", XLIFF.format(UNIT.format(1, "Save", "<target></target>")), "<target>Salva</target>"),
        (
            "a.ts",
            QT.format("<message><source>Save</source><translation></translation></message>"),
            "<translation>Salva</translation>",
        ),
    ],
)
def test_translations_in_the_output_are_kept_beside_sources(tmp_path, name, empty, translated):
    out = tmp_path / "out" / name
    out.parent.mkdir()
    out.write_text(empty.replace(re.sub("Salva", "", translated), translated))
    new, _, translator = translate(tmp_path, name, empty)
    assert (translator.asked, translated in new) == ([], True)
    new, _, translator = translate(tmp_path, name, empty.replace("Save", "Save all"))
    assert (translator.asked, "SAVE ALL" in new) == (["Save all"], True)  # another source


def test_a_mark_for_a_review_in_the_output_is_kept(tmp_path):
    empty = HEADER.format("it") + '\nmsgid "Save"\nmsgstr ""\n'
    out = tmp_path / "it.po"
    out.write_text(empty.replace('msgid "Save"\nmsgstr ""', '#, fuzzy\nmsgid "Save"\nmsgstr "Salva"'))
    new, _, _ = translate(tmp_path, "app.po", empty, out=out)
    assert '#, fuzzy\nmsgid "Save"\nmsgstr "Salva"' in new


def test_plural_forms_in_the_output_are_kept(tmp_path):
    forms = '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n'
    message = '\nmsgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] "{}"\nmsgstr[1] "{}"\n'
    out = tmp_path / "it.po"
    out.write_text(HEADER.format("it") + forms + message.format("un file", "tanti file"))
    new, _, translator = translate(tmp_path, "app.po", HEADER.format("it") + forms + message.format("", ""), out=out)
    assert (new, translator.asked) == (out.read_text(), [])


def test_new_targets_in_the_output_are_no_translations(tmp_path):
    empty = XLIFF.format(UNIT.format(1, "Save", ""))
    out = tmp_path / "it.xlf"
    out.write_text(XLIFF.format(UNIT.format(1, "Save", '<target state="new">Save</target>')))
    assert "<target>SAVE</target>" in translate(tmp_path, "a.xlf", empty, out=out)[0]


def test_corrections_with_other_markup_are_kept(tmp_path):
    text = '<resources><string name="a">Hi you</string><string name="b">A <b>b</b></string></resources>'
    out = tmp_path / "values-it.xml"
    corrected = text.replace("Hi you", "Ciao <b>tu</b>").replace("A <b>b</b>", "A &amp; b")
    out.write_text(corrected)
    assert translate(tmp_path, "strings.xml", text, out=out)[0] == corrected


def test_what_is_only_in_the_output_is_told(tmp_path):
    out = tmp_path / "it.json"
    out.write_text('{"a": "Salva", "old": "Vecchio", "steps": ["Uno", "Due"], "x": "1", "x": "2"}')
    source = '{"a": "Save", "steps": ["Zero", "One", "Two"], "x": "First", "x": "Second"}'
    new, outcome, _ = translate(tmp_path, "en.json", source, out=out)
    assert new == '{"a": "Salva", "steps": ["ZERO", "ONE", "TWO"], "x": "FIRST", "x": "SECOND"}'
    assert outcome.notes == [
        "1 translation that was there before was kept",
        f"1 text of {out} is not in the file that is translated, and dropped: old",
    ]


def test_the_output_has_the_encoding_of_the_file(tmp_path):
    path, out = tmp_path / "en.json", tmp_path / "it.json"
    path.write_bytes('{"a": "Café", "b": "New"}'.encode("cp1252"))
    out.write_bytes('{"a": "Caffè"}'.encode("cp1252"))
    translate_file(path, out, Capitals(), Task("it"), encoding="cp1252")
    assert out.read_bytes().decode("cp1252") == '{"a": "Caffè", "b": "NEW"}'


def test_a_locale_as_root_key_is_no_part_of_an_id(tmp_path):
    out = tmp_path / "it.json"
    out.write_text('{"it": {"a": "Salva"}}')
    new, _, _ = translate(tmp_path, "en.json", '{"en": {"a": "Save", "b": "Open"}}', out=out)
    assert json.loads(new) == {"it": {"a": "Salva", "b": "OPEN"}}


@pytest.mark.parametrize(
    "texts",
    [
        {"tools": {"other": "Other tools"}},
        {"gender": {"male": "He", "one": "One", "other": "They have {{count}}"}},
        {"see_other": "Other pages"},
    ],
)
def test_other_is_not_always_a_plural_form(tmp_path, texts):
    for name, text in (("en.json", json.dumps(texts)), ("en.yml", yaml.safe_dump(texts | {"z": {"a": "b"}}))):
        new, _, _ = translate(tmp_path, name, text, "pl")
        assert [entry.id for entry in read(name, data=new.encode()).entries] == [
            entry.id for entry in read(name, data=text.encode()).entries
        ]


def test_other_with_a_number_is_a_plural_form(tmp_path):
    new, _, _ = translate(tmp_path, "en.json", '{"n_other": "{{count}} files"}')
    assert list(json.loads(new)) == ["n_one", "n_other"]


def test_other_keys_between_plural_forms(tmp_path):
    text = '{"item_one": "{{count}} item", "item_one_hint": "Hint", "item_other": "{{count}} items"}'
    new, _, _ = translate(tmp_path, "en.json", text, "pl")
    assert list(json.loads(new)) == ["item_one", "item_one_hint", "item_few", "item_many", "item_other"]


def test_headers_with_the_line_ends_of_windows(tmp_path):
    text = (HEADER.format("") + '\nmsgid "%d a"\nmsgid_plural "%d b"\nmsgstr[0] ""\nmsgstr[1] ""\n').replace(
        "\n", "\r\n"
    )
    new, _, _ = translate(tmp_path, "it.po", text)
    assert "\r\r" not in new
    assert 'charset=UTF-8\\n"\r\n"Plural-Forms: nplurals=2' in new


def test_one_plural_form_has_the_plural_as_source(tmp_path):
    forms = '"Plural-Forms: nplurals=1; plural=0;\\n"\n'
    text = HEADER.format("ja") + forms + '\nmsgid "One file"\nmsgid_plural "%d files"\nmsgstr[0] ""\n'
    _, _, translator = translate(tmp_path, "ja.po", text, "ja", {"5 files": "5ファイル"})
    assert "5 files" in translator.asked
    assert "One file" not in translator.asked


def test_new_texts_have_the_markup_of_their_source(tmp_path):
    one = UNIT.format(1, 'Click <x id="1"/> now &amp; then', '<target state="new">Click now</target>')
    two = UNIT.format(2, "A &amp; b", '<target state="new">A <x id="1"/></target>')
    new, outcome, _ = translate(tmp_path, "a.xlf", XLIFF.format(one + two))
    assert '>CLICK <x id="1"/> NOW &amp; THEN</target>' in new
    assert ">A &amp; B</target>" in new
    assert not outcome.misfits
    message = '<message><source>Bell <byte value="x7"/></source><translation type="unfinished"></translation></message>'
    new, _, _ = translate(tmp_path, "a.ts", QT.format(message))
    assert '<translation>BELL <byte value="x7"/></translation>' in new


def test_final_and_reviewed_targets_stay(tmp_path):
    states = ("final", "signed-off")
    units = [UNIT.format(n, "Save", f'<target state="{state}">Salva</target>') for n, state in enumerate(states)]
    text = XLIFF.format("".join(units))
    assert translate(tmp_path, "a.xlf", text, again=True)[0] == text
    text = FILES["a.xliff"][0].replace("<source>One.", "<source>ONE.")
    text = re.sub(r"<segment[^>]*>", '<segment state="initial" subState="lengthwise:length">', text)
    text = re.sub(r"<target>[^<]+", "<target>Per mano", text)
    assert "Per mano" in text
    assert translate(tmp_path, "a.xliff", text)[0].count("Per mano") == text.count("Per mano")


def test_fuzzy_in_a_second_line_of_flags(tmp_path):
    head = '\n#, c-format\n#, fuzzy\n#| msgid ""\n#| "Opn"\nmsgid "Open"\nmsgstr "Apri"\n'
    new, _, _ = translate(tmp_path, "it.po", HEADER.format("it") + head, again=True)
    assert new == HEADER.format("it") + '\n#, c-format\nmsgid "Open"\nmsgstr "OPEN"\n'


def test_flags_without_fuzzy_keep_a_space(tmp_path):
    entry = '\n#, fuzzy,c-format\nmsgid "Open"\nmsgstr "Apri"\n'
    new, _, _ = translate(tmp_path, "it.po", HEADER.format("it") + entry, again=True)
    assert new == HEADER.format("it") + '\n#, c-format\nmsgid "Open"\nmsgstr "OPEN"\n'


def test_plural_forms_of_two_messages_with_the_same_id(tmp_path):
    forms = '<plurals name="f"{}>\n<item quantity="other">%d {}</item>\n</plurals>\n'
    text = "<resources>\n" + forms.format("", "files") + forms.format(' product="tablet"', "notes") + "</resources>\n"
    new, outcome, _ = translate(tmp_path, "strings.xml", text)
    one = '<item quantity="one">%d {}</item>\n<item quantity="other">'
    assert new == text.replace("%d files", "%d FILES").replace("%d notes", "%d NOTES").replace(
        '<item quantity="other">', one.format("FILES"), 1
    ).replace('tablet">\n<item quantity="other">', 'tablet">\n' + one.format("NOTES"))
    assert [row.length for row in outcome.rows] == [8, 8, 8, 8]


def test_the_header_of_a_template_without_a_language_is_no_longer_fuzzy(tmp_path):
    """pybabel compiles no catalogue whose header is fuzzy, and its templates name a charset but no language."""
    header = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n'
    new, _, _ = translate(tmp_path, "a.pot", f'# Template\n#, fuzzy\n{header}\nmsgid "Open"\nmsgstr ""\n')
    assert new == f'# Template\n{header}"Language: it\\n"\n\nmsgid "Open"\nmsgstr "OPEN"\n'


def test_plural_forms_beside_a_tag(tmp_path):
    new, _, _ = translate(tmp_path, "a.yml", "en:\n  files:\n    other: ! '%{count} files'\n")
    assert new == "it:\n  files:\n    one: ! '%{count} FILES'\n    other: ! '%{count} FILES'\n"


def test_quoted_braces_of_message_formats(tmp_path):
    text = "a=Don''t use '{'x'}' for {0}\nb=Use '{'0'}' for {0}\n"
    new, outcome, _ = translate(tmp_path, "m.properties", text)
    assert new.splitlines()[0] == "a=DON''T USE '{x}' FOR {0}"
    assert new.splitlines()[1] == "b=Use '{'0'}' for {0}"  # it is told, not damaged
    assert [row.id for row in outcome.misfits] == ["b"]


def test_a_worse_text_of_a_later_round_is_not_taken(tmp_path):
    text = HEADER.format("it") + '\n# c=10 r=2\nmsgid "Hello dear world"\nmsgstr ""\n'
    path, out = tmp_path / "app.po", tmp_path / "it.po"
    path.write_text(text)

    class Worse(Capitals):
        def _result(self, text):
            texts = ["Ciao bellissimo x", "Ciao bellissimissimo mondo", ValueError("no text")]
            self.words = {text: texts[min(2, len(self.calls) - 1)]}
            return super()._result(text)

    done = translate_file(path, out, Worse(), Task("it"))
    assert [(row.text, row.changed) for row in done.outcome.rows] == [("Ciao bellissimo x", True)]
    assert 'msgstr "Ciao bellissimo x"' in out.read_text()


def test_shortening_looks_at_all_limits(tmp_path):
    path, out = tmp_path / "strings.xml", tmp_path / "short.xml"
    path.write_text(
        '<resources>\n<!-- at most 6 characters, at most 7 bytes -->\n<string name="a">èèèèè</string></resources>'
    )
    limits = read(path).entries[0].limits
    assert {limit.unit for limit in limits} == {"chars", "bytes"}
    shortener = Capitals()
    shorten_file(path, out, shortener, Task(None))
    assert shortener.budgets == {"èèèèè": "at most 7 bytes"}


def test_the_segments_of_a_unit_share_its_room(tmp_path):
    text = """<xliff version="2.0" srcLang="en" xmlns:slr="urn:x"><file id="f"><unit id="u" slr:sizeRestriction="40">
<segment id="a" state="final"><source>Stay</source><target>Restare</target></segment>
<ignorable><source> </source></ignorable>
<segment id="b"><source>The house is old.</source></segment>
<segment id="c"><source>Go away</source></segment>
</unit></file></xliff>"""
    _, outcome, translator = translate(tmp_path, "a.xlf", text, words={"Go away": "Via di qua"})
    # 40 without "Restare" and a space: 32, of which 17/24 and 7/24 are shared out
    assert translator.budgets == {"The house is old.": "at most 22 chars", "Go away": "at most 9 chars"}
    assert [(row.id, row.fits) for row in outcome.rows] == [("u/b", True), ("u/c", True)]  # 35 in all
    _, outcome, _ = translate(tmp_path, "b.xlf", text, words={"Go away": "Andate via di qua"})
    assert [row.note for row in outcome.misfits] == ["42 chars, at most 40"] * 2
