"""Limits as people write them: in comments, attributes, descriptions and file names."""

import json

import pytest

from format_files import FILES
from lengthwise.formats import Limit, read
from lengthwise.formats.limits import limits_in
from lengthwise.formats.subtitles import PRESETS, Style, cue_limits


@pytest.mark.parametrize(
    ("comment", "number", "unit", "said"),
    [
        ("max-length:100", 100, "chars", "max-length:100"),
        ("MAX_LENGTH: 12", 12, "chars", "MAX_LENGTH: 12"),
        ('maxLength="30"', 30, "chars", 'maxLength="30'),
        ("Limit to 80 characters.", 80, "chars", "Limit to 80 characters"),
        ("Keep it <= 30 chars", 30, "chars", "<= 30 chars"),
        ("Button; ≤12 characters", 12, "chars", "≤12 characters"),
        ("It should fit in 20 characters.", 20, "chars", "fit in 20 characters"),
        ("Please keep it below 55 columns", 54, "cells", "below 55 columns"),
        ("must not exceed 1,000 bytes", 1000, "bytes", "not exceed 1,000 bytes"),
        ("at most 5 words", 5, "words", "at most 5 words"),
        ("A title [CHAR LIMIT=30]", 30, "chars", "CHAR LIMIT=30"),
        ("[CHAR LIMIT=1,000]", 1000, "chars", "CHAR LIMIT=1,000"),
        ("max-length: 300 px", 300, "pixels", "max-length: 300 px"),
        ("max-length: 20, two words", 20, "chars", "max-length: 20"),
        ("[CHAR_LIMIT: 30]", 30, "chars", "CHAR_LIMIT: 30"),
        ("[CHAR-LIMIT=9]", 9, "chars", "CHAR-LIMIT=9"),
        ("#XFLD,30: a field", 30, "chars", "#XFLD,30:"),
        ("XBUT, 12 : Save", 12, "chars", "XBUT, 12 :"),
        ("132 characters or less", 132, "chars", "132 characters or less"),
        ("(20 chars max)", 20, "chars", "20 chars max"),
        ("Max 16 characters", 16, "chars", "Max 16 characters"),
        ("a 25-character limit", 25, "chars", "25-character limit"),
        ("Maximum length: 40", 40, "chars", "Maximum length: 40"),
        ("Character limit: 22", 22, "chars", "Character limit: 22"),
        ("no more than 300 pixels", 300, "pixels", "no more than 300 pixels"),
        ("two lines\nand at most 7\ncharacters", 7, "chars", "at most 7 characters"),
        ("no more than eight characters", 8, "chars", "no more than eight characters"),
        ("Max. length: 25 characters", 25, "chars", "Max. length: 25 characters"),
        ("maxlen=12", 12, "chars", "maxlen=12"),
        ("Length limit: 40", 40, "chars", "Length limit: 40"),
        ("Keep it < 20 characters", 19, "chars", "< 20 characters"),
        ("Restricted to 12 characters", 12, "chars", "Restricted to 12 characters"),
        ("If possible keep it below 20 characters", 19, "chars", "below 20 characters"),
        ("Shown when idle (at most 9 characters)", 9, "chars", "at most 9 characters"),
        ("%s is the name. Max 30 characters.", 30, "chars", "Max 30 characters"),
        ("Shown when idle - max 30 characters", 30, "chars", "max 30 characters"),
        ("Shown when idle—max 30 characters", 30, "chars", "max 30 characters"),
        ("%s: the name, limit to 20 characters", 20, "chars", "limit to 20 characters"),
        ("Greeting with {name} up to 20 characters", 20, "chars", "up to 20 characters"),
        ("Costs $5, max 30 characters", 30, "chars", "max 30 characters"),
        ("a title [CHAR\n     LIMIT=100]", 100, "chars", "CHAR LIMIT=100"),
        ("a title [CHAR  LIMIT=40]", 40, "chars", "CHAR LIMIT=40"),
        ("[CHARSIZE=40]", 40, "chars", "CHARSIZE=40"),
        ("translator: this string will be truncated at 47\ncharacters expanded.", 47, "chars", None),
        ("The rest is cut off after 20 characters", 20, "chars", "cut off after 20 characters"),
        ("Max bytes: 12", 12, "bytes", "Max bytes: 12"),
        ("Maximum number of characters: 12", 12, "chars", "Maximum number of characters: 12"),
        ("Max 15-20 characters", 20, "chars", "Max 15-20 characters"),
        ("It shouldn't be longer than 9 letters", 9, "chars", "shouldn't be longer than 9 letters"),
        ("20 characters long, at most", 20, "chars", "20 characters long, at most"),
        ("Maximum length: 40\nShown in the menu", 40, "chars", "Maximum length: 40"),
        ("Maximum length: 40 including spaces", 40, "chars", "Maximum length: 40"),
        ("max-length:20px", 20, "pixels", "max-length:20px"),
        ("Maximum length: 40px", 40, "pixels", "Maximum length: 40px"),
        ("max-length: 20-character", 20, "chars", "max-length: 20-character"),
        ("Maximum length: 20 ASCII characters", 20, "chars", "Maximum length: 20 ASCII characters"),
        ("Maximum length: 20 - shown in the menu", 20, "chars", "Maximum length: 20"),
        ("Maximum length: 15-20", 20, "chars", "Maximum length: 15-20"),
        ("Maximum length: 1,000.", 1000, "chars", "Maximum length: 1,000"),
        ("The name of the button, of maximum length: 40\nin the toolbar", 40, "chars", "maximum length: 40"),
        ("Please keep the name of this button, which is shown in the menu,\nbelow 12 characters", 11, "chars", None),
        ("Up to 30 characters are allowed", 30, "chars", "Up to 30 characters"),
        ("Title of the search page, max 30 characters", 30, "chars", "max 30 characters"),
        ("File name (max 8 characters)", 8, "chars", "max 8 characters"),
        ('See "Save". At most 20 characters', 20, "chars", "At most 20 characters"),
        ("v1.5: 20 chars max", 20, "chars", "20 chars max"),
        ("You have 3 new files\nMax 20 characters", 20, "chars", "Max 20 characters"),
        # a number before the limit
        ("Windows 11 100 chars max", 100, "chars", "100 chars max"),
        ("iOS 17 160 characters or less", 160, "chars", "160 characters or less"),
        ("Label 4 100 characters max", 100, "chars", "100 characters max"),
        ("Error 404 120 characters max", 120, "chars", "120 characters max"),
        ("Office 2019 100 chars max", 100, "chars", "100 chars max"),
    ],
)
def test_words(comment, number, unit, said):
    [limit] = limits_in(comment, "a.po", 3)
    assert (limit.high, limit.unit, limit.file) == (number, unit, "a.po")
    assert limit.said == said or said is None
    assert comment.split("\n")[limit.line - 3].count(limit.said.split()[0]) == 1
    assert limit.each_line == (unit == "cells")


@pytest.mark.parametrize(
    "comment",
    [
        "Both lines are at most 15 characters",
        "You may insert a line break, as long as both lines are 15 characters or shorter",
        "15 characters or less per line",
        "Never more than 15 characters in each line",
        "Limit to 15 characters a line",
    ],
)
def test_limits_of_each_line(comment):
    [limit] = limits_in(comment, "a.po", 1)
    assert (limit.high, limit.each_line) == (15, True)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("first", ["Title shown when the list is empty", "Greeting with {name}", "%d is the count"])
def test_a_condition_ends_with_its_line(first, end):
    [limit] = limits_in(f"{first}{end}At most 20 chars", "a.po", 3)
    assert (limit.high, limit.line) == (20, 4)


@pytest.mark.parametrize(
    "comment",
    [
        "",
        "Shown 3 times",
        "[CHAR LIMIT=NONE]",
        "80 characters",
        "src/main.c:80",
        "at least 8 characters",
        "the first 20 characters are shown in bold",
        "max-length:0",
        "Error shown when the password has less than 8 characters",
        "Shown if the name is shorter than 3 characters",
        "if the name has less than 3 characters",
        "%1$s is a name of up to 20 characters",
        "%s is up to 20 characters",
        "$name has at most 20 characters",
        # a condition that goes on in the next line
        "Error message that is shown when the user enters a name with\nless than 3 characters",
        " * Warning that is shown if the name of the new folder has\n * no more than 3 letters",
        "Shown at most 3 times\n20 characters wide",
        "Shows up to\n\n20 characters",
        # what is not the text
        "up to 255 characters are shown in the log",
        "Text before up to 20 characters of the file name",
        "Searches within 5 words of the cursor",
        "Help: passwords must be at most 72 characters",
        "Explains that the user name may have up to 20 characters",
        "You can enter up to 300 characters",
        "The field accepts no more than 30 characters",
        "Button that restores the daily limit of 500 words",
        'The text of the error "Names have at most 20 characters"',
        # other units
        "max length: 3 lines",
        "Maximum length: 10 seconds",
        "at most 3 files, 80 characters each",
        "max-length: 20 MB",
        "Maximum length: 2-3 lines",
        "Maximum length: 2 - 3 lines",
        "Max-length: 15-20 lines",
        "Maximum length: 1,000 files",
        "Max length: 40% of the screen",
        "Maximum length: 40 %",
        "max length = 1.5 lines",
        "max-length: 2.5em",
        "Maximum length: 3 hours",
        "Maximum length: 12 months",
        "Length limit: 2 to 3 rows",
        "Length limit: 2 or 3 rows",
        # parts of numbers
        "1.5 words max",
        "1,5 words or less",
        "2-2.5 words max",
        "1 500 characters max",
        "1’500 characters max",
        "Max length 1’500 characters",
        "Max length 1\u202f500 characters",
        "Max length 1 500 characters",
        "Maximum length: 1 500",
        "max 1 500 characters",
        "Keep it to 1 500 characters or less",
        "The text is 12 500 characters max",
    ],
)
def test_these_are_no_limits(comment):
    assert limits_in(comment, "a.po", 1) == ()


def test_a_comment_before_a_blank_line_belongs_to_no_message():
    text = '# Limit to 500 characters\n\n#. Limit to 30 characters\n#, c-format\nmsgid "a"\nmsgstr "b"\n'
    text += '#~ msgid "at most 3 characters"\n#~ msgstr "x"\nmsgid "c"\nmsgstr "d"\n'
    assert [[one.high for one in entry.limits] for entry in read("a.po", data=text.encode()).entries] == [[30], []]


def test_a_display_has_columns_and_rows():
    [limit] = limits_in("MSG_X c=20 r=3", "a.po", 1)
    assert limit == Limit(20, "cells", "c=20 r=3", "a.po", 1, lines=3, each_line=True, wraps=True)
    [limit] = limits_in("MSG_X c=18", "a.po", 1)
    assert (limit.high, limit.lines) == (18, 1)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "strings.xml",
            '<resources>\n<string name="a">A</string> <!-- max 9 chars -->\n<string name="b">B</string>\n</resources>',
        ),
        ("a.strings", '"a" = "A"; // max 9 chars\n"b" = "B";\n'),
        ("a.strings", '"a" = "A"; /* max 9 chars */\n"b" = "B";\n'),
        ("a.yml", "a: A # max 9 chars\nb: B\n"),
    ],
)
def test_a_comment_at_the_end_of_a_line_is_for_this_line(name, text):
    assert [(e.id, [one.high for one in e.limits]) for e in read(name, data=text.encode()).entries] == [
        ("a", [9]),
        ("b", []),
    ]


def limits(name, text=None):
    """Return id → [(low, high, unit, line)] of the entries with a limit."""
    file = read(name, data=(text or FILES[name][0]).encode())
    return {e.id: [(one.low, one.high, one.unit, one.line) for one in e.limits] for e in file.entries if e.limits}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (
            "it.po",
            {
                'Save "%s"': [(0, 30, "chars", 8)],
                "menu|Open": [(0, 10, "chars", 14)],
                "%d file[0]": [(0, 20, "cells", 20)],
                "%d file[1]": [(0, 20, "cells", 20)],
            },
        ),
        ("a.xlf", {"1": [(0, 20, "chars", 6), (0, 25, "chars", 9)], "2": [(0, 100, "pixels", 12)]}),
        (
            "a.xliff",
            {
                "u1/s1": [(25, 100, "chars", 6), (0, 40, "bytes", 6)],
                "u1/2": [(25, 100, "chars", 6), (0, 40, "bytes", 6)],
            },
        ),
        ("_locales/it/messages.json", {"appDesc": [(0, 132, "chars", 4)]}),
        ("app_it.arb", {"save": [(0, 12, "chars", 4), (0, 10, "chars", 4)]}),
        (
            "strings.xml",
            {
                "title": [(0, 30, "chars", 6)],
                "about": [(0, 12, "chars", 11)],
                "files[one]": [(0, 15, "chars", 21)],
                "files[other]": [(0, 15, "chars", 21)],
            },
        ),
        ("Localizable.strings", {"title": [(0, 20, "chars", 1)]}),
        (
            "a.stringsdict",
            {
                "%d files/NSStringLocalizedFormatKey": [(0, 15, "chars", 5)],
                "%d files/files/one": [(0, 15, "chars", 5)],
                "%d files/files/other": [(0, 15, "chars", 5)],
            },
        ),
        ("m_it.properties", {"name": [(0, 30, "chars", 2)], "open": [(0, 8, "chars", 4)]}),
        ("it.yml", {"title": [(0, 20, "chars", 3)], "quoted": [(0, 12, "chars", 4)]}),
        ("it.ts", {"Main|&File": [(0, 10, "chars", 9)]}),
        ("fastlane/metadata/android/it-IT/title.txt", {"title": [(0, 30, "chars", 0)]}),
        ("notes.txt", {}),
        ("it.json", {}),
    ],
)
def test_limits_in_files(name, wanted):
    assert limits(name) == wanted


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("fastlane/metadata/android/en-US/short_description.txt", 80),
        ("fastlane/metadata/android/en-US/full_description.txt", 4000),
        ("fastlane/metadata/android/en-US/changelogs/12.txt", 500),
        ("fastlane/metadata/en-US/name.txt", 30),
        ("fastlane/metadata/en-US/subtitle.txt", 30),
        ("fastlane/metadata/en-US/promotional_text.txt", 170),
        ("fastlane/metadata/en-US/keywords.txt", 100),
        ("fastlane/metadata/en-US/description.txt", 4000),
    ],
)
def test_store_listings(path, number):
    [[(_, high, unit, _)]] = limits(path, "x").values()
    assert (high, unit) == (number, "chars")


@pytest.mark.parametrize(
    ("value", "wanted"), [("40", (0, 40)), ("25,100", (25, 100)), ("*", None), ("", None), ("5,*", (5, None))]
)
def test_size_restrictions(value, wanted):
    text = FILES["a.xliff"][0].replace('"25,100"', f'"{value}"').replace('slr:storageRestriction="40"', "")
    found = limits("a.xliff", text).get("u1/s1")
    assert found == (None if wanted is None else [(*wanted, "chars", 6)])


@pytest.mark.parametrize(("profile", "unit"), [("xliff:codepoints", "chars"), ("acme:pixels", "acme:pixels")])
def test_units_of_size_restrictions(profile, unit):
    text = FILES["a.xliff"][0].replace("xliff:codepoints", profile)
    assert [found[2] for found in limits("a.xliff", text)["u1/s1"]] == [unit, "bytes"]


@pytest.mark.parametrize(
    ("unit", "counted"), [("char", "chars"), ("byte", "bytes"), ("pixel", "pixels"), (None, "pixels"), ("em", "em")]
)
def test_units_of_maxwidth(unit, counted):
    text = FILES["a.xlf"][0].replace("size-unit='char'", f"size-unit='{unit}'" if unit else "")
    assert limits("a.xlf", text)["1"][0] == (0, 20, counted, 6)
    assert "1" not in limits("a.xlf", text.replace('maxwidth="20"', 'maxwidth="0"').replace("at most 25", "25"))


def test_the_manifest_of_an_extension(tmp_path):
    folder = tmp_path / "_locales" / "it"
    folder.mkdir(parents=True)
    (folder / "messages.json").write_text(FILES["_locales/it/messages.json"][0])
    (tmp_path / "manifest.json").write_text(json.dumps({"name": "__MSG_appname__", "short_name": "__MSG_appName__"}))
    found = {entry.id: [limit.high for limit in entry.limits] for entry in read(folder / "messages.json").entries}
    assert found == {"appName": [75, 12], "appDesc": [132]}


def test_a_cue_has_time_and_lines():
    cue = read("a.srt", data=FILES["a.srt"][0].encode()).entries[0]
    assert cue.seconds == 2
    time, lines = cue_limits(cue, PRESETS["netflix"])
    assert (time.high, time.unit, time.said) == (34, "chars", "17 characters/s of netflix × 2.00 s")
    assert (lines.high, lines.lines, lines.each_line) == (42, 2, True)
    assert cue_limits(cue, Style()) == []
    times = [entry.seconds for entry in read("a.vtt", data=FILES["a.vtt"][0].encode()).entries]
    assert times == pytest.approx([2, 3601.5, 1, 1])
    times = [entry.seconds for entry in read("a.ass", data=FILES["a.ass"][0].encode()).entries]
    assert times == pytest.approx([2, 1.5, 1])
