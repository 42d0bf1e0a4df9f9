"""Package descriptions: stanzas, segments, and which translations are rejected."""

import pytest

from lengthwise.corpora.debian.descriptions import Description, Segment, descriptions, reject_reason, segments

MD5 = "9d5c0e4b5a6f71c1d8f0a2b3c4d5e6f7"

BODIES = {  # name: (lines of a stanza after the short description, the segments they make)
    "wrapped": (" One line\n and another.", ["text: One line and another."]),
    "paragraphs": (" One.\n .\n Two.\n .\n .\n Three.", ["text: One.", "text: Two.", "text: Three."]),
    "list": (" Can:\n  * read\n  * write\n .\n End.", ["text: Can:", "item: * read", "item: * write", "text: End."]),
    "wrapped-items": ("  * read what\n    is there\n  * write", ["item: * read what is there", "item: * write"]),
    "lazy-items": ("  - read what\n  is there\n  - write", ["item: - read what is there", "item: - write"]),
    "nested": ("  * a\n    - b\n      c\n  * d", ["item: * a", "item: - b c", "item: * d"]),
    "one-space": (" - read\n it all\n - write", ["item: - read it all", "item: - write"]),
    "text-after-list": ("  * read\n Text.", ["item: * read", "text: Text."]),
    "separated-items": ("  * a\n .\n  * b\n .\n c", ["item: * a", "item: * b", "text: c"]),
    "numbers": ("  1. one\n  2) two\n  o three", ["item: 1. one", "item: 2) two", "item: o three"]),
    "italian-or": (" gatto\n o cane, o\n 2. topo", ["text: gatto o cane, o 2. topo"]),
    "verbatim": (" Try:\n   foo --bar\n   foo --baz", ["text: Try:", "line: foo --bar", "line: foo --baz"]),
    "tabs": ("\tOne\n \tcode  here", ["text: One", "line: code here"]),
    "japanese": (" 古代戦争の\n リアルタイム\n 0 A.D. です", ["text: 古代戦争のリアルタイム 0 A.D. です"]),
    "korean": (" 한국어는\n 아름답다.", ["text: 한국어는 아름답다."]),
    "no-break": (" Oui\u00a0:\n «\u202fnon\u202f»  !", ["text: Oui\u00a0: «\u202fnon\u202f» !"]),
    "nothing": ("", []),
    "dots": (" .\n .", []),
}


def stanza(package="hello", md5=MD5, short="a greeting", body=" Says hello.", language="en"):
    return f"Package: {package}\nDescription-md5: {md5}\nDescription-{language}: {short}\n{body}\n".rstrip("\n") + "\n"


@pytest.mark.parametrize("name", BODIES)
def test_segments(name):
    body, expected = BODIES[name]
    assert [f"{kind}: {text}" for kind, text in segments(line[1:] for line in body.splitlines())] == expected
    (found,) = descriptions(stanza(body=body).encode().splitlines(keepends=True), "en")
    assert [f"{kind}: {text}" for kind, text in found.segments] == ["short: a greeting", *expected]


def test_stanzas():
    text = (
        "\n\n"
        + stanza("a")
        + "\n\n"
        + stanza("b", language="pt_BR").replace("\n", "\r\n")
        + "\r\n"
        + stanza("c", md5="no")
    )
    found = list(descriptions(text.encode().splitlines(keepends=True), "en"))
    assert [one and one.package for one in found] == ["a", None, None]
    (_, found, _) = descriptions(text.encode().splitlines(keepends=True), "pt_BR")
    assert found == Description("b", MD5, (Segment("short", "a greeting"), Segment("text", "Says hello.")))
    assert found.id == "b-9d5c0e"


def described(*texts, encoding="utf-8"):
    body = "\n .\n".join(f" {text}" for text in texts[1:])
    (found,) = descriptions(stanza(short=texts[0], body=body).encode(encoding).splitlines(keepends=True), "en")
    return found


ENGLISH = ("a greeting", "Says hello.", " * politely")
REJECTED = {  # name: (Italian, reason)
    "fine": (("un saluto", "Dice ciao.", " * con garbo"), None),
    "partly the same": (("un saluto", "Says hello.", " * politely"), None),
    "unindented": (("un saluto", "  Dice ciao.", " * con garbo"), None),
    "untranslated": (ENGLISH, "untranslated"),
    "missing part": (("un saluto", "Dice ciao."), "unaligned"),
    "merged item": (("un saluto", "Dice ciao.", "con garbo"), "unaligned"),
    "no long part": (("un saluto",), "empty"),
    "no short part": (("", "Dice ciao.", " * con garbo"), "empty"),
    "marker": (("un saluto", "<trans>", " * con garbo"), "placeholder"),
    "marker in text": (("un saluto <trans>", "Dice ciao.", " * con garbo"), "placeholder"),
    "double": (("un saluto", "Dirà ciao.".encode().decode("latin-1"), " * con garbo"), "encoding"),
    "quotes": (("un saluto", "L’altro".encode().decode("cp1252"), " * con garbo"), "encoding"),
    "replaced": (("un saluto", "Dir\ufffd ciao.", " * con garbo"), "encoding"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_reject_reason(name):
    italian, reason = REJECTED[name]
    assert reject_reason(described(*ENGLISH), described(*italian)) == reason


def test_wrong_bytes_are_rejected_but_not_the_replacement_character():
    latin = described("un saluto", "Dirà ciao.", " * con garbo", encoding="latin-1")
    assert reject_reason(described(*ENGLISH), latin) == "encoding"
    tofu = described("a font", "No \ufffd (U+FFFD) any more.")
    assert reject_reason(tofu, described("un carattere", "Mai più \ufffd (U+FFFD).")) is None
