"""Small files of every format, as people write them: file name → (text, {id: text of the entry})."""

SRT = """1
00:00:01,000 --> 00:00:03,000
Where were you?

2
00:00:03,500 --> 00:00:05,000 X1:40 X2:600
<i>At home.</i>
{\\an8}All day.

3
00:01:05,000 --> 00:01:06,500

4
00:01:07,000 --> 00:01:08,000
- Hello.

- Hello!
"""

VTT = """WEBVTT - Some title

STYLE
::cue { color: white }

NOTE A comment --- with
two lines

intro
00:01.000 --> 00:03.000 align:start
Fish &amp; chips

00:03.500 --> 01:00:05.000
<v Anna>Not <b>again</b>!
Why?

00:06.000 --> 00:07.000

00:08.000 --> 00:09.000
1 &lt; 2"""

ASS = """[Script Info]
Title: Test
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname
Style: Default,Arial

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:01.00,0:00:03.00,Default,,0,0,0,,Hello, world\\Nagain
Comment: 0,0:00:01.00,0:00:03.00,Default,,0,0,0,,not shown
Dialogue: 0,0:00:03.00,0:00:04.50,Default,,0,0,0,,{\\i1}One{\\i0}\\htwo
Dialogue: 0,0:00:05.00,0:00:06.00,Default,,0,0,0,,{\\p1}m 0 0 l 10 0{\\p0}
"""

PO = r"""# Italian
#
msgid ""
msgstr ""
"Project-Id-Version: x\n"
"Content-Type: text/plain; charset=UTF-8\n"

#. Limit to 30 characters
#: src/a.c:80 limit to 5 characters
#, c-format
msgid "Save \"%s\""
msgstr "Salva «%s»"

#, fuzzy, max-length:10
#| msgid "Old, at most 3 characters"
msgctxt "menu"
msgid "Open"
msgstr "Apri"

# c=20 r=3
msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d file"
msgstr[1] ""

msgid ""
"First\n"
"second"
msgstr ""
"Primo\n"
"secondo\ttab \\ barra"

#~ msgid "Gone"
#~ msgstr "Andato"
"""

XLIFF_1 = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
 <file original="a" source-language="en" target-language="it" datatype="plaintext">
  <body>
   <!-- a comment -->
   <trans-unit id="1" maxwidth="20" size-unit='char'>
    <source>Save &amp; close</source>
    <target state="final">Salva &amp; chiudi</target>
    <note>at most 25 characters</note>
    <alt-trans><target>Altro</target></alt-trans>
   </trans-unit>
   <trans-unit id="2" approved="yes" maxwidth="100"
    ><source>Hi <g id="1">you</g> <ph id="2">&lt;br/></ph></source
    ><target>Ciao <g id="1">tu</g> <ph id="2">&lt;br/></ph></target></trans-unit>
   <group maxwidth="0" translate="no">
    <trans-unit id="3">
     <source>Name</source>
    </trans-unit>
   </group>
   <trans-unit id="4"><source>Empty</source><target state="new"/></trans-unit>
   <trans-unit id="5"><source>A</source><target><![CDATA[a < b]]></target></trans-unit>
  </body>
 </file>
</xliff>
"""

XLIFF_2 = """<?xml version="1.0"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.1" srcLang="en" trgLang="it"
 xmlns:slr="urn:oasis:names:tc:xliff:sizerestriction:2.0">
 <file id="f1">
  <slr:profiles generalProfile="xliff:codepoints" storageProfile="xliff:utf8"/>
  <unit id="u1" slr:sizeRestriction="25,100" slr:storageRestriction="40">
   <segment id="s1">
    <source>One.</source>
    <target>Uno.</target>
   </segment>
   <ignorable><source> </source></ignorable>
   <segment state="final">
    <source>Two.</source>
   </segment>
  </unit>
  <unit id="u2" slr:sizeRestriction="*" translate="no"><segment><source>x</source><target>y</target></segment></unit>
 </file>
</xliff>
"""

JSON = """{
  "title": "Hello",
  "menu": {"file_one": "{{count}} file", "file_other": "{{count}} files", "n": 3, "on": true},
  "list": ["a", "b\\n\\u00e9 \\"c\\""],
  "@title": {"description": "x"},
  "empty": ""
}
"""

CHROME = """{
  "appName": {"message": "Blocker", "description": "The name."},
  "appDesc": {
    "description": "A summary: 132 characters or less, please.",
    "message": "Blocks $THING$.",
    "placeholders": {"thing": {"content": "$1", "example": "ads"}}
  }
}
"""

ARB = """{
  "@@locale": "it",
  "save": "Salva",
  "@save": {"description": "A button, at most 12 characters", "x-max-length": 10},
  "files": "{n, plural, one {# file} other {# file}}"
}
"""

ANDROID = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE resources [
  <!ENTITY app "App">
]>
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">
    <!-- Title of the screen. [CHAR LIMIT=30] -->
    <string name="title">It\\'s  a
        \\u00e8 \\"title\\"\\n</string>
    <!-- [CHAR_LIMIT=NONE] -->
    <string name="welcome">Hi <b>you</b>, <xliff:g id="name" example="Bob">%1$s</xliff:g>!</string>
    <string name="about" maxLength="12">About &app;</string>
    <string name="app" translatable="false">App</string>
    <string name="spaces">"  two  "</string>
    <string name="html"><![CDATA[<b>bold</b>]]></string>
    <string name="none"/>
    <string name="link">@string/app</string>
    <string-array name="days">
        <item>Monday</item>
        <item>Tuesday</item>
    </string-array>
    <!-- CHAR LIMIT: 15 -->
    <plurals name="files">
        <item quantity="one">%d file</item>
        <item quantity="other">%d files</item>
    </plurals>
</resources>
"""

STRINGS = """/* Title, max 20 characters */
"title" = "It's a \\"title\\"";

// a line
key.bare = "two\\nlines";
"same";
'single' = 'it\\'s';
"format" = "%1$@ of %2$@ \\U00e9"  ;
"""

STRINGSDICT = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<!-- no more than 15 characters -->
	<key>%d files</key>
	<dict>
		<key>NSStringLocalizedFormatKey</key>
		<string>%#@files@</string>
		<key>files</key>
		<dict>
			<key>NSStringFormatSpecTypeKey</key>
			<string>NSStringPluralRuleType</string>
			<key>NSStringFormatValueTypeKey</key>
			<string>d</string>
			<key>one</key>
			<string>%d file &amp; more</string>
			<key>other</key>
			<string/>
		</dict>
	</dict>
</dict>
</plist>
"""

PROPERTIES = """# General
#XFLD,30: label of a field
name=Nome
! at most 8 characters
open : Apri\\u00e8

path\\ with\\:colon = C:\\\\dir\\n
long = one \\
    two
empty
tab\tvalue with = sign
"""

YAML = """# a comment
it:
  title: Ciao a tutti # at most 20 characters
  # max-length:12
  quoted: 'it''s'
  double: "two\\nlines"
  on: true
  number: 3
  literal: |
    First line
      indented
  folded: >-
    one
    two
  days: [lun, "mar"]
  anchor: &a Testo
  alias: *a
  empty: ""
"""

QT = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="it_IT">
<context>
    <name>Main</name>
    <message>
        <location filename="a.cpp" line="3"/>
        <source>&amp;File</source>
        <extracomment>limit to 10 characters</extracomment>
        <translation>&amp;File</translation>
    </message>
    <message numerus="yes">
        <source>%n file(s)</source>
        <comment>status</comment>
        <translation type="unfinished">
            <numerusform>%n file</numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Old</source>
        <translation type="vanished">Vecchio</translation>
    </message>
</context>
</TS>
"""

FILES: dict[str, tuple[str, dict[str, str]]] = {
    "a.srt": (
        SRT,
        {
            "1": "Where were you?",
            "2": "<i>At home.</i>\n{\\an8}All day.",
            "3": "",
            "4": "- Hello.\n\n- Hello!",
        },
    ),
    "a.vtt": (VTT, {"intro": "Fish & chips", "2": "<v Anna>Not <b>again</b>!\nWhy?", "3": "", "4": "1 < 2"}),
    "a.ass": (
        ASS,
        {"1": "Hello, world\nagain", "2": "{\\i1}One{\\i0}\u00a0two", "3": "{\\p1}m 0 0 l 10 0{\\p0}"},
    ),
    "it.po": (
        PO,
        {
            'Save "%s"': "Salva «%s»",
            "menu|Open": "Apri",
            "%d file[0]": "%d file",
            "%d file[1]": "",
            "First\nsecond": "Primo\nsecondo\ttab \\ barra",
        },
    ),
    "a.xlf": (
        XLIFF_1,
        {
            "1": "Salva & chiudi",
            "2": 'Ciao <g id="1">tu</g> <ph id="2">&lt;br/></ph>',
            "3": "",
            "4": "",
            "5": "a < b",
        },
    ),
    "a.xliff": (XLIFF_2, {"u1/s1": "Uno.", "u1/2": "", "u2": "y"}),
    "it.json": (
        JSON,
        {
            "title": "Hello",
            "menu.file_one": "{{count}} file",
            "menu.file_other": "{{count}} files",
            "list.0": "a",
            "list.1": 'b\né "c"',
            "empty": "",
        },
    ),
    "_locales/it/messages.json": (CHROME, {"appName": "Blocker", "appDesc": "Blocks $THING$."}),
    "app_it.arb": (ARB, {"save": "Salva", "files": "{n, plural, one {# file} other {# file}}"}),
    "strings.xml": (
        ANDROID,
        {
            "title": 'It\'s a è "title"\n',
            "welcome": 'Hi <b>you</b>, <xliff:g id="name" example="Bob">%1$s</xliff:g>!',
            "about": "About &app;",
            "app": "App",
            "spaces": "  two  ",
            "html": "<b>bold</b>",
            "none": "",
            "link": "@string/app",
            "days[0]": "Monday",
            "days[1]": "Tuesday",
            "files[one]": "%d file",
            "files[other]": "%d files",
        },
    ),
    "Localizable.strings": (
        STRINGS,
        {
            "title": 'It\'s a "title"',
            "key.bare": "two\nlines",
            "same": "same",
            "single": "it's",
            "format": "%1$@ of %2$@ é",
        },
    ),
    "a.stringsdict": (
        STRINGSDICT,
        {
            "%d files/NSStringLocalizedFormatKey": "%#@files@",
            "%d files/files/one": "%d file & more",
            "%d files/files/other": "",
        },
    ),
    "InfoPlist.strings": (
        '<plist version="1.0"><dict><key>A</key><string>Text</string></dict></plist>\n',
        {"A": "Text"},
    ),
    "m_it.properties": (
        PROPERTIES,
        {
            "name": "Nome",
            "open": "Apriè",
            "path with:colon": "C:\\dir\n",
            "long": "one two",
            "empty": "",
            "tab": "value with = sign",
        },
    ),
    "it.yml": (
        YAML,
        {
            "title": "Ciao a tutti",
            "quoted": "it's",
            "double": "two\nlines",
            "literal": "First line\n  indented\n",
            "folded": "one two",
            "days.0": "lun",
            "days.1": "mar",
            "anchor": "Testo",
            "empty": "",
        },
    ),
    "it.ts": (
        QT,
        {"Main|&File": "&File", "Main|%n file(s)|status[0]": "%n file", "Main|%n file(s)|status[1]": ""},
    ),
    "fastlane/metadata/android/it-IT/title.txt": ("  La mia app\n", {"title": "La mia app"}),
    "notes.txt": ("Novità:\n- una\n\n- due\n", {"notes": "Novità:\n- una\n\n- due"}),
}
