"""Every format: what is found in a file, and that only the texts given to `splice` change."""

import codecs
import plistlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from format_files import FILES
from lengthwise.formats import FORMATS, FormatError, formats_of, read, splice

STRIPPED = ("srt", "vtt", "store", "text")  # formats in which white space around a text means nothing
NAMES = list(FILES)
TEXTS = st.text(
    st.one_of(
        st.sampled_from("\"'\\<>&{}[]#:;,%@?!|~*-_ \n=é€😀"), st.characters(codec="utf-8", exclude_categories=["C"])
    ),
    max_size=30,
)


def read_text(name, text, encoding="utf-8"):
    return read(name, data=text.encode(encoding))


def test_every_format_has_a_file_here():
    assert {format.name for name in NAMES for format in formats_of(name)} == set(FORMATS)


@pytest.mark.parametrize("name", NAMES)
def test_entries(name):
    text, wanted = FILES[name]
    file = read_text(name, text)
    assert {entry.id: entry.text for entry in file.entries} == wanted
    assert len(file.entries) == len(wanted)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("name", NAMES)
def test_a_splice_of_the_same_texts_returns_the_same_bytes(name, encoding, end):
    text, wanted = FILES[name]
    if end == "\r" and name.endswith((".xlf", ".xliff", ".yml")):
        end = "\r\n"  # a lone \r is not used in these
    data = text.replace("\n", end).encode(encoding)
    file = read(name, data=data)
    assert [entry.text for entry in file.entries] == list(wanted.values())
    assert splice(file, {}) == data
    assert splice(file, {entry: entry.text for entry in file.entries}) == data


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(data=st.data())
def test_only_the_new_text_changes(name, end, data):
    before = FILES[name][0].replace("\n", end).encode()
    file = read(name, data=before)
    entry = data.draw(st.sampled_from([entry for entry in file.entries if not entry.markup]))
    text = data.draw(TEXTS)
    if file.format.name in STRIPPED:
        text = "\n".join(line for line in text.split("\n") if line.strip()).strip()
    if file.format.name in ("srt", "vtt"):
        text = text.replace("-->", "").replace("\u00a0", " ").strip()
    if file.format.name == "ass":
        text = text.replace("\\", "")  # ASS has no escape for it
    after = splice(file, {entry: text})
    place = entry.place
    start, rest = file.document.text[: place.start].encode(), file.document.text[place.end :].encode()
    assert after.startswith(start)
    assert after.endswith(rest)
    wanted = [text if one is entry else one.text for one in file.entries]
    again = read(name, data=after)
    assert [one.text for one in again.entries] == wanted
    assert [one.id for one in again.entries] == [one.id for one in file.entries]
    assert splice(again, {again.entries[file.entries.index(entry)]: entry.text}).startswith(start)


@pytest.mark.parametrize("name", NAMES)
def test_all_texts_at_once(name):
    file = read_text(name, FILES[name][0])
    new = {entry: f"Nuovo testo {n}" for n, entry in enumerate(file.entries)}
    again = read(name, data=splice(file, new))
    assert [entry.text for entry in again.entries] == list(new.values())


@pytest.mark.parametrize("name", ["a.xlf", "a.vtt", "strings.xml"])
def test_markup_is_written_as_it_is(name):
    file = read_text(name, FILES[name][0])
    entry = next(entry for entry in file.entries if (entry.markup and "<b" in entry.text) or "<g" in entry.text)
    text = entry.text.replace("tu", "voi").replace("again", "ancora").replace("you", "tutti").replace("Hi", "L'altro")
    again = read(name, data=splice(file, {entry: text}))
    assert [one.text for one in again.entries] == [text if one is entry else one.text for one in file.entries]


def test_broken_markup_is_refused():
    file = read_text("a.xlf", FILES["a.xlf"][0])
    with pytest.raises(FormatError, match=r"a\.xlf:14: the new text of '2' is not well-formed XML"):
        splice(file, {file.entries[1]: "Ciao <g id='1'>"})


@pytest.mark.parametrize(
    ("name", "text", "line", "says"),
    [
        ("a.srt", "1\n00:00:01,000 --> 00:00:0x,000\nHi\n", 2, "expected times such as"),
        ("a.srt", "Hello\n", 1, "no line of times"),
        ("a.vtt", "1\n00:01.000 --> 00:02.000\n", 1, "the first line must be WEBVTT"),
        ("a.vtt", "WEBVTT\n\n00:01,000 --> 00:02.000\nx\n", 3, "expected times"),
        ("a.ass", "[Events]\nFormat: Start, End, Text\nDialogue: 0:00:01.00\n", 3, "expected 3 fields"),
        ("a.ass", "[Events]\nFormat: Start, End, Text\nDialogue: 1,0:00:01.00,Hi\n", 3, "expected a time"),
        ("a.po", 'msgid "a"\nmsgstr "b\n', 2, "not closed"),
        ("a.po", 'msgid "a"\n\nmsgid "b"\nmsgstr "c"\n', 1, "has no msgstr"),
        ("a.po", 'msgid "a"\nmsgstr "b"\n\nnonsense\n', 4, "expected msgid"),
        ("a.xlf", "<xliff>\n<file>\n</xliff>\n", 3, "not well-formed XML: mismatched tag"),
        ("a.xlf", "<html/>", 1, "is <xliff>; got <html>"),
        ("a.json", '{"a": "b",\n "c" "d"}', 2, "expected a colon"),
        ("a.json", '{"a": "b",\n}', 2, "expected a key"),
        ("a.json", '{"a": "b\n"}', 1, "Invalid control character"),
        ("a.json", '{"a": [1,\n2', 2, "expected a comma"),
        ("a.json", "[" * 100_000, 0, "nested too deeply"),
        ("strings.xml", "<resources>\n<string name='a'>&nope;</string></resources>", 2, "undefined entity"),
        ("a.strings", '"a" = "b";\n"c" = \n', 2, 'expected "key" = "value"'),
        ("a.properties", "a=b\nc=\\u12\n", 2, "four hexadecimal digits"),
        ("a.yml", "it:\n  a: 'b\n", 3, "not YAML"),
        ("a.ts", "<TS>\n<message></TS>", 2, "mismatched tag"),
        ("a.ts", "<TS>a\u2028b\x85c\r<message></TS>", 2, "mismatched tag"),
        ("a.ts", "export const a = 1;\n", 1, "its content is not that of qt files"),
        (
            "strings.xml",
            '<?xml version="1.0"?>\n<!-- cut',
            2,
            "its content is not that of android files: not well-formed",
        ),
        ("strings.xml", '<?xml version="1.0"?>\n<menu/>', 2, "the root element of Android strings is <resources>"),
        ("a.doc", "x", 0, "no format has this suffix"),
    ],
)
def test_a_broken_file_is_an_error_with_its_line(name, text, line, says):
    with pytest.raises(FormatError, match=r".*") as caught:
        read_text(name, text)
    assert (caught.value.path, caught.value.line) == (name, line)
    assert says in caught.value.reason


@pytest.mark.parametrize(("name", "head"), [("a.srt", "1\n00:00:01,000"), ("a.vtt", "WEBVTT\n\n00:00:01.000")])
@pytest.mark.parametrize("tail", ["", "\n", "\n\n"])
def test_a_cue_without_a_line_for_its_text(name, head, tail):
    times = f"{head} --> {head[-12:].replace('01', '02', 1)}"
    file = read_text(name, times + tail)
    after = splice(file, {file.entries[0]: "Ciao"})
    assert after.decode().startswith(f"{times}\nCiao\n")
    assert [entry.text for entry in read(name, data=after).entries] == ["Ciao"]


# ---- encodings


def test_an_encoding_is_declared_or_asked_for_and_never_guessed():
    turkish = "1\n00:00:01,000 --> 00:00:02,000\nGüneş\n".encode("iso-8859-9")
    with pytest.raises(FormatError, match=r"a\.srt:3: not utf-8: byte 0xfc; give the encoding with --encoding"):
        read("a.srt", data=turkish)
    file = read("a.srt", data=turkish, encoding="iso-8859-9")
    assert file.entries[0].text == "Güneş"
    assert splice(file, {file.entries[0]: "Işık"}).endswith("Işık\n".encode("iso-8859-9"))
    with pytest.raises(FormatError, match=r"'漢' in the text of '1' cannot be written in iso-8859-9"):
        splice(file, {file.entries[0]: "漢"})
    with pytest.raises(FormatError, match="unknown encoding 'nope'"):
        read("a.srt", data=turkish, encoding="nope")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_asked_for(encoding):
    data = "# a\na=b\n".encode(encoding)
    with pytest.raises(FormatError, match=r"a\.properties:1: it has NUL characters.*--encoding utf-16-le"):
        read("a.properties", data=data)
    assert [entry.text for entry in read("a.properties", data=data, encoding=encoding).entries] == ["b"]


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("a.po", 'msgid ""\nmsgstr "Content-Type: text/plain; charset=ISO-8859-1\\n"\n\nmsgid "a"\nmsgstr "è"\n', "è"),
        ("a.xml", '<?xml version="1.0" encoding="ISO-8859-1"?><resources><string name="a">è</string></resources>', "è"),
        ("a.properties", "a=è\n", "è"),
    ],
)
def test_declared_encodings(name, data, text):
    file = read(name, data=data.encode("iso-8859-1"))
    assert [entry.text for entry in file.entries] == [text]
    assert splice(file, {file.entries[0]: "à"}) == data.replace(
        "è", "à" if name != "a.properties" else "\\u00e0"
    ).encode("iso-8859-1")


def test_escaped_files_stay_ascii():
    file = read_text("a.json", '{"a": "caff\\u00e8", "b": "x"}')
    assert splice(file, {file.entries[1]: "é😀"}) == b'{"a": "caff\\u00e8", "b": "\\u00e9\\ud83d\\ude00"}'
    file = read_text("a.properties", "a=x\n")
    assert splice(file, {file.entries[0]: "é😀"}) == b"a=\\u00e9\\ud83d\\ude00\n"
    assert read("a.properties", data=b"a=\\u00e9\\ud83d\\ude00\n").entries[0].text == "é😀"


def test_a_byte_order_mark_stays():
    for mark, encoding in ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le")):
        file = read("a.strings", data=mark + '"a" = "b";'.encode(encoding))
        assert splice(file, {file.entries[0]: "è"}) == mark + '"a" = "è";'.encode(encoding)


# ---- single formats


def test_a_missing_target_is_made_like_its_source():
    file = read_text("a.xlf", FILES["a.xlf"][0])
    after = splice(file, {file.entries[2]: "Nome & co", file.entries[3]: "Vuoto"}).decode()
    assert "     <source>Name</source>\n     <target>Nome &amp; co</target>\n    </trans-unit>" in after
    assert '<source>Empty</source><target state="new">Vuoto</target></trans-unit>' in after


def test_styles_are_kept_where_they_can_hold_the_text():
    file = read_text("it.yml", FILES["it.yml"][0])
    by_id = {entry.id: entry for entry in file.entries}
    new = {
        "title": "yes",
        "quoted": "l'ora",
        "literal": "a\nb",
        "folded": "uno due tre",
        "days.0": "a, b",
        "anchor": "Nuovo",
    }
    after = splice(file, {by_id[key]: text for key, text in new.items()}).decode()
    assert '  title: "yes" # at most 20 characters\n' in after
    assert "  quoted: 'l''ora'\n" in after
    assert "  literal: |-\n    a\n    b\n  folded: >-\n    uno due tre\n" in after
    assert '  days: ["a, b", "mar"]\n  anchor: &a Nuovo\n' in after


def test_long_texts_of_gettext_are_wrapped():
    file = read_text("it.po", FILES["it.po"][0])
    after = splice(file, {file.entries[4]: "parola " * 20 + "\nfine"}).decode()
    assert 'msgstr ""\n"parola parola' in after
    assert '"\\n"\n"fine"\n\n#~ msgid' in after or '\\n"\n"fine"\n\n#~ msgid' in after
    assert max(map(len, after.splitlines())) < 85


def test_flags_and_sources():
    found = {entry.id: entry for entry in read_text("it.po", FILES["it.po"][0]).entries}
    assert found["menu|Open"].flags == {"fuzzy"}
    assert (found["%d file[0]"].source, found["%d file[1]"].source) == ("%d file", "%d files")
    found = {entry.id: entry for entry in read_text("a.xlf", FILES["a.xlf"][0]).entries}
    assert (found["2"].flags, found["3"].flags, found["3"].source) == ({"approved"}, {"fixed"}, "Name")
    found = {entry.id: entry for entry in read_text("strings.xml", FILES["strings.xml"][0]).entries}
    assert [key for key, entry in found.items() if "fixed" in entry.flags] == ["app", "link"]
    found = {entry.id: entry for entry in read_text("a.xliff", FILES["a.xliff"][0]).entries}
    assert (found["u1/2"].flags, found["u2"].flags) == ({"final"}, {"fixed"})


def test_what_a_reader_sees():
    shown = {entry.id: entry.shown for entry in read_text("a.srt", SRT_OF).entries}
    assert shown["2"] == "At home.\nAll day."
    assert read_text("a.xlf", FILES["a.xlf"][0]).entries[1].shown == "Ciao tu "
    assert read_text("a.ass", FILES["a.ass"][0]).entries[1].shown == "One\u00a0two"
    assert read_text("strings.xml", FILES["strings.xml"][0]).entries[1].shown == "Hi you, %1$s!"
    assert read_text("a.vtt", FILES["a.vtt"][0]).entries[1].shown == "Not again!\nWhy?"


SRT_OF = FILES["a.srt"][0]


@pytest.mark.parametrize(
    ("name", "text", "texts"),
    [
        ("strings.xml", r'<resources><string name="a">Hi \ud83d\ude00</string></resources>', ["Hi 😀"]),
        ("strings.xml", '<resources><item type="string" name="a">Yes</item></resources>', ["Yes"]),
        ("a.strings", r'"a" = "Hi \Ud83d\Ude00";', ["Hi 😀"]),
        ("a.strings", '"a" /* key */ = // value\n"Yes" /* end */;', ["Yes"]),
        ("a.po", 'msgid "a" "b"\nmsgstr "" "c"\n" d" "e"\n', ["c de"]),
        ("a.po", 'msgid\n"a"\nmsgstr\n"b"\n', ["b"]),
        ("a.po", 'msgid "a"\nmsgstr "caf\\303\\251 \\x41"\n', ["café A"]),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nA --> B\n", ["A --> B"]),
        ("a.vtt", "WEBVTT\n\n0:00:01.000-->0:00:02.000\nHi\n", ["Hi"]),
        ("a.ass", "[Script Info]\nTitle: x\n", []),
        ("a.ass", "[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,Hi, you\n", ["Hi, you"]),
    ],
)
def test_rare_ways_to_write_a_text(name, text, texts):
    file = read_text(name, text)
    assert [entry.text for entry in file.entries] == texts
    again = read(name, data=splice(file, {entry: entry.text + " è" for entry in file.entries}))
    assert [entry.text for entry in again.entries] == [text + " è" for text in texts]


@pytest.mark.parametrize("rest", ["", "B\r\n", '00:00:03,000 "-> 00:00:04,000\r\nB\r\n'])
def test_a_cue_with_broken_times_is_an_error(rest):
    text = f"1\r\n00:00:01,000 --> 00:00:02,000\r\nA\r\n\r\n2\r\n{rest}"
    with pytest.raises(FormatError, match=r"a\.srt:5: the cue 2 has no line of times"):
        read_text("a.srt", text)
    years = "1\n00:00:01,000 --> 00:00:02,000\nIn\n\n1984\nB\n\n2\n00:00:03,000 --> 00:00:04,000\nC\n"
    assert [entry.text for entry in read_text("a.srt", years).entries] == ["In\n\n1984\nB", "C"]


def test_a_long_root_key_that_is_no_locale_is_read_at_once():
    key = "ab" + "_a" * 60 + "!"
    assert [entry.id for entry in read_text("a.json", f'{{"{key}": {{"c": "d"}}}}').entries] == [f"{key}.c"]


@pytest.mark.parametrize("comments", ["/* c */ " * 200, "/" * 200 + "\n", "// c\n" * 200])
def test_a_missing_semicolon_before_comments_is_found_at_once(comments):
    text = f'"a" = "b" {comments}"d" = "e";'
    with pytest.raises(FormatError, match=":1: expected"):
        read_text("a.strings", text)


def test_a_binary_property_list_is_named():
    data = plistlib.dumps({"a": "b"}, fmt=plistlib.FMT_BINARY)
    with pytest.raises(FormatError, match="binary property list; convert it with `plutil -convert xml1`"):
        read("Localizable.strings", data=data)


def test_times_of_srt_without_hours():
    [cue] = read("a.srt", data=b"1\n00:01,500 --> 01:02,000\nHi\n").entries
    assert (cue.text, cue.start, cue.seconds) == ("Hi", 1.5, 60.5)


def test_a_charset_after_a_space():
    text = 'msgid ""\nmsgstr "Content-Type: text/plain; charset= koi8-r\\n"\n\nmsgid "Yes"\nmsgstr "\u0414\u0430"\n'
    assert [entry.text for entry in read("ru.po", data=text.encode("koi8-r")).entries] == ["\u0414\u0430"]
