"""Sentences: find the offsets where a text ends as a finished sentence.

One pass from left to right finds every place where the text may stop: after final punctuation that ends a sentence, or
after a fenced block of code, with every bracket, quotation and code fence closed. Later text can only rule out a place,
so each prefix that `finished_ends` returns is also `finished` by itself. In doubt the answer is no: a missed end
loses a sentence, a false one shows the reader a truncated text.
"""

import re
from collections import Counter

import regex

from .fences import CODE, is_closed_block


def _words(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


# An abbreviation in lower case also stands for its capitalised form ("approx", "Approx"); one with a capital stands for
# itself only ("Gen", not "gen"). Abbreviations that are mostly words ("art", "sun", "may", "in") are left out.
# A word must follow these, so no sentence ends after them.
_LEADING = _words(
    # English
    "Mr Mrs Ms Dr Prof Rev Hon Gen Col Lt Sgt Capt Sen Rep Gov Mt Messrs vs approx cf viz e.g i.e w.r.t eg ie esp incl",
    "resp Fig Figs Eq Eqs Nos Vol vol pp Jan Feb Apr Aug Sept Oct Nov Dec",
    # German
    "Nr Hr Fr Hrsg bzw ca z.B d.h z.T u.U v.a i.d.R o.g vgl ggf evtl bspw sog inkl zzgl geb Abb Tel",
    # French
    "M MM Mme Mlle Mgr p.ex c.-à-d éd",
    # Italian
    "Sig Sigg Dott Avv Ing p.es ad.es pag pagg",
    # Spanish
    "Sr Sra Srta Sres Dra Ud Uds p.ej pág págs núm aprox",
    # Hindi, Arabic
    "डॉ श्री प्रो د أ",
)
# These may end a text or a line; within a line the next word may still belong to them ("U.S. Army", "u. a. Bücher").
_TRAILING = _words("Inc Ltd Co Corp Jr St Ave Str Mio Mrd Chr u.a o.ä u.ä")
# Two capitals that are no initials, so they may end a text after a name: "Acme B.V.", "Virgin Islands U.S."
_NO_INITIALS = _words(
    "U.S U.K U.N E.U D.C L.A N.Y N.J N.C S.C A.D B.C C.E A.M P.M M.D B.A M.A B.S M.S D.O L.P P.C S.A B.V N.V A.G K.K",
    "A.I I.T I.D I.Q T.V P.R P.E R.V O.K O.S P.D H.R U.I V.P",
)
# Before a number these are abbreviations ("No. 5", "Art. 12"), elsewhere words.
_NUMBERED = _words("no art sec ch chap fig p abs cap n num op Bd Mar Jun Jul S")
# "J." after these is the start of a name; after any other small word it is a label: "plan B."
_BEFORE_NAME = _words("by and with from von und mit de par et avec di e da por y con")
# "3." is an ordinal after these or before those: "am 3.", "im 19.", "3. Oktober".
_BEFORE_ORDINAL = _words("am der die das den dem des im zum zur vom beim ab dieser diesem jeder jedem")
_AFTER_ORDINAL = (
    r"Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|Jahrhundert|Weltkrieg"
)

# What a closing mark closes, its own kind first. The order of nesting is not checked: counts are enough.
_CLOSES = {
    ")": "(", "]": "[", "}": "{", "）": "（(", "］": "［", "｝": "｛", "」": "「", "』": "『", "】": "【", "〉": "〈",
    "》": "《", "〕": "〔", "”": "“„”", "“": "„", "»": "«»", "«": "»", "›": "‹", "’": "‘‚", "‘": "‚", '"': '"„“',
}  # fmt: skip
_CLOSED_BY = {mark: tuple(openers) for mark, openers in _CLOSES.items()} | {"**": ("**",), "``": ("``",), "''": ("``",)}
_OPENING = "([{（［｛「『【〈《〔“„«‹‚‘"
_OPENS = regex.compile(
    r"[\[{（［｛「『【〈《〔„‹‚]"
    r"|\((?:(?=\S)|(?<![:;=]\(|[:;=]['-]\())"  # not the mouth of :(
    r"|‘(?<!\w‘)(?!\d|n’|em\b|til\b)"  # not the apostrophe of ‘90s
    r"|[“«](?<![\p{Latin}\d.,!?…].)"  # not the end of a German quotation
    r"|[”»](?<![\w\p{Po}].)(?=[\w%$<])"  # Swedish ”hej”, German »ja«
    r"|\"(?:(?=\w)(?<!\d.)|(?<![\p{L}\p{N}.,;:!?…)\]].))"  # not the end of a quotation, nor the inches of 5"
    r"|\*\*(?<![A-Za-z0-9)]\*\*)\**+(?=\S)"  # not the power of 2**3
    r"|``(?=\w)"
)
_STRAIGHT_RIGHT = regex.compile(r"\"(?!\w)")

_SPACED = ".!?…"  # these need white space after them to end a sentence; 。 and । do not
# Nine levels at most: without a limit, the time for a long chain ("1.1.1.1…") is quadratic in its length.
_MARKER = r"[(]?(?:\d{1,3}(?:\.\d{1,2}){0,8}|\p{Latin}|[ivx]{1,4}|[IVX]{1,4})[.)](?=[\s_]|\*\*|\Z)"
_ITEM = r"(?m:^)[ \t>]*(?:[-*+•–][ \t]+)?"
# Below the rule of a table, Markdown renders each line as a row, up to a blank line or another block.
_RULE = r"(?m:^)[ \t>]*\|[ \t]*:?-[-:| \t]*(?m:$)"
_BELOW = r"\n(?![ \t>]*(?:```|~~~|\#{1,6}[ \t]|[-*+][ \t]|\d{1,9}[.)][ \t]))[ \t>]*[^\s>][^\n]*"
_EVENT = regex.compile(
    rf"(?P<fence>{CODE})"
    rf"|(?P<table>{_RULE}(?:{_BELOW})*)"  # nor does a line below a row
    r"|(?P<line>(?m:^)[ \t>]*(?:\#{1,6}[ \t]|\|)[^\n]*)"  # a heading or a table row ends no sentence
    rf"|(?P<ask>{_ITEM}(?:{_MARKER}[ \t]+)?\*\*[^*\n]+\?\*\*)"  # nor does a question in bold that heads a line
    rf"|(?P<marker>{_ITEM}(?P<bold>\*\*)?{_MARKER})"
    r"|(?P<paragraph>\n\s*\n)"
    r"|(?P<code>(?<!`)`(?!`)(?:[^`\n]+`|[^`\n]*?'(?!\w)|[^`\s)\"'][^`\n]*))"  # `code`, `so quoted', or left open
    r"|(?P<final>(?:[\p{STerm}…]|(?<=\p{Greek})[ \u00a0]?;)+(?:[ \u00a0\u202f][.!?…]+(?=\s|\Z|[)\"'”’»]))*)"
    r"|(?P<mark>\*\*+|``|''|[\[\](){}（）［］｛｝「」『』【】〈〉《》〔〕“”„«»‹›‚‘’\"])"
)
_PLAIN = re.compile(r"(?:[\w ,:-]|'(?!'))*")  # inside a line, no event starts here, except with the last character
# What may follow final punctuation before the end: a closing mark, the number of a note, an emphasis.
_CLOSING = regex.compile(
    r"(?P<space>[^\S\n]?)(?P<mark>\*\*|``|''|[\])}）］｝」』】〉》〕”“»«›’‘\"])"
    r"|\[\d{1,3}\]|[¹²³⁴-⁹]|['*_~](?!\w)|[\u200e\u200f\u202c\u2069]"
)
_SMILE = regex.compile(r"[ \u00a0]?(?:[:;=]-?[)(DP]|[\p{Extended_Pictographic}\p{EMod}\u200d\ufe0f]+)(?=\s|\Z)")

# The sentence continues: a small letter in the same line, also after an opening mark, or a dash
# ('"Stop!" he said', '«Нет!» — сказал он'), but not a name such as iPhone.
_GOES_ON = regex.compile(r"[^\S\n]+(?:(?:-[^\S\n]+)?[\"'“‘„«(\[*_]*+\p{Ll}++(?!\p{Lu})|[–—]|[,;:](?=\s))")
_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Extended_Pictographic}]")
_UNSPACED_GOES_ON = regex.compile(r"[、，,;；:：]|(?<=[」』”）])\p{Hiragana}|(?<=[！？])と")
_LINE_ENDS = regex.compile(r"[^\S\n]*(?:\n|\Z)")
_NUMBER = regex.compile(r"\W*\d[\d.,:/]*")
_DOTTED = regex.compile(r"(?:\p{L}{1,2}\.-?)+\p{L}{1,2}")
_TWO_CAPITALS = regex.compile(r"\p{Lu}\.\p{Lu}")
_CUT_PRICE = regex.compile(r"\W*\p{Sc}0")
_INITIAL = regex.compile(r"[\p{Lu}\p{Arabic}\p{Hebrew}]")
_THEN_NUMBER = regex.compile(r"\s+[#(]?\d")
_THEN_ABBREVIATION = regex.compile(r"\s+\p{L}{1,3}\.")
_THEN_ORDINAL_NOUN = regex.compile(rf"\s+(?:{_AFTER_ORDINAL})")
_WORD = regex.compile(r"[^\W_]")
# Punctuation behind these ends no sentence: "def f(x):.", "x = .", a full stop alone in its line; "..", "?.".
_BEHIND_OPEN = regex.compile(r"(?:[:,;=&|<：，；、]|(?<=[\s\d])[/–—-]|(?m:^))[^\S\n]*\Z")
_NO_FINAL = regex.compile(r"\.\.|[^.]*[!?]\.")
# The mark at the end of these names is a part of them: "He works at Yahoo!." is finished, "at Yahoo! Mail" goes on.
_NAMES = r"Yahoo|Jeopardy|Wham|Joomla|Yum|Chips Ahoy|Mamma Mia|Moulin Rouge"
_NAME_BEFORE = regex.compile(rf"(?r)\b(?:{_NAMES})\Z")


def finished(text: str) -> bool:
    """Return whether `text`, without white space at its end, ends as a finished sentence.

    >>> finished("He met Dr. Who."), finished("He met Dr."), finished('He said: "Wait.')
    (True, False, False)
    """
    return finished_ends(text)[-1:] == [len(text.rstrip())]


def left_open(text: str) -> bool:
    """Return whether a bracket, a quotation or bold type is open at the end of `text`.

    >>> left_open("He (and"), left_open("He (and she) came")
    (True, False)
    """
    return bool(_scan(text.rstrip())[1])


def finished_ends(text: str) -> list[int]:
    """Return every offset where `text` could stop as a finished text; `text[:end]` has no white space at its end.

    >>> finished_ends("Pi is 3.14. So says Dr. Who! And th")
    [11, 28]
    """
    return _scan(text.rstrip())[0]


def _scan(text: str) -> tuple[list[int], Counter[str]]:
    """Return the finished ends of `text`, and the marks that are open after it."""
    ends: list[int] = []
    opened: Counter[str] = Counter()  # marks opened and not yet closed; no zeros, so empty means balanced
    at = searched = 0
    worded = False  # whether there is a word since the last end: "..." alone is no sentence
    while event := _next_event(text, at):
        start, at = event.span()
        if event["fence"]:
            if event["open"] is None and is_closed_block(text, start, at) and not opened:  # code ends with its fence
                ends.append(at)
                worded, searched = False, at
        elif event["paragraph"]:
            opened.clear()  # a mark left open in a paragraph is an error, or the next paragraph opens it again
        elif event["marker"]:
            searched = at  # the number of an item is no word of it: "1. ___."
            if event["bold"]:
                opened["**"] += 1
        elif event["mark"]:
            _note(text, start, event["mark"], opened)
        elif event["final"]:
            bare = opened[text[start - 1 : start]] > 0 or _is_stray(text, start, at)  # "[...]", "(?)"
            stop, at = at, _close(text, at, opened)
            worded = worded or _WORD.search(text, searched, start) is not None
            searched = start
            if worded and not bare and not opened and _is_end(text, start, stop, at):
                ends.append(at)
                if smile := _SMILE.match(text, at):
                    at = smile.end()
                    ends.append(at)
                worded, searched = False, at
    return ends, opened


def _next_event(text: str, at: int) -> "regex.Match[str] | None":
    """Return the next match of `_EVENT`. Words are passed over by a faster pattern."""
    if at == 0:
        return _EVENT.match(text) or _next_event(text, 1)
    if text[at - 1 : at] != "\n":  # some events start at the beginning of a line only
        at = max(at, _PLAIN.match(text, at).end() - 1)  # type: ignore[union-attr]  # it matches nothing as well
    return _EVENT.search(text, at)


def _is_stray(text: str, start: int, stop: int) -> bool:
    """Return whether the punctuation `text[start:stop]` stands where a sentence cannot end, as in "Flour,."."""
    final = text[start:stop]
    if _NO_FINAL.fullmatch(final):
        return not (final == "!." and _NAME_BEFORE.search(text, 0, start))
    return not final.startswith(("...", "…")) and _BEHIND_OPEN.search(text, max(0, start - 8), start) is not None


def _note(text: str, start: int, mark: str, opened: Counter[str]) -> None:
    """Remove from `opened` what `mark` closes, or else count it as opened."""
    mark = "**" if mark[0] == "*" else mark
    if mark == "’" and text[start + 1 : start + 2].isalnum():
        return  # an apostrophe
    if not _remove_opener(text, start, mark, opened) and _OPENS.match(text, start):
        opened[mark] += 1


def _remove_opener(text: str, start: int, mark: str, opened: Counter[str]) -> bool:
    opener = next((o for o in _CLOSED_BY.get(mark, ()) if opened[o]), None)
    if opener is None or (mark == '"' != opener and not _STRAIGHT_RIGHT.match(text, start)):
        return False
    opened[opener] -= 1
    if not opened[opener]:
        del opened[opener]
    return True


def _close(text: str, at: int, opened: Counter[str]) -> int:
    """Return the offset after the closing marks at `at`, and remove from `opened` what they close."""
    while closing := _CLOSING.match(text, at):
        if mark := closing["mark"]:
            closes = _remove_opener(text, closing.start("mark"), mark, opened)
            if not closes and (closing["space"] or _OPENS.match(text, closing.start("mark"))):
                break
        at = closing.end()
    return at


def _is_end(text: str, start: int, stop: int, end: int) -> bool:
    """Return whether the punctuation `text[start:stop]`, with its closing marks up to `end`, ends a sentence."""
    spaced = text[stop - 1] in _SPACED
    if end < len(text) and not text[end].isspace():
        if _UNSPACED_GOES_ON.match(text, end) or text[end].isdigit():
            return False
        return not spaced or (text[stop - 1] in "!?" and _UNSPACED.match(text, end) is not None)
    if spaced and _GOES_ON.match(text, end):
        return False
    if text[start:end] == "!" and _NAME_BEFORE.search(text, 0, start):
        return _LINE_ENDS.match(text, end) is not None
    return text[start:stop] != "." or not _belongs_to_word(text, start, end)


def _belongs_to_word(text: str, dot: int, end: int) -> bool:
    """Return whether the full stop at `dot` belongs to an abbreviation, an initial or an ordinal."""
    if text[dot - 1].isspace():
        return False
    # Only the last 60 characters: a text without spaces may be long.
    earlier, before, word = ["", "", *text[max(0, dot - 60) : dot].split()][-3:]
    word = word.lstrip(_OPENING + "\"'*_")
    forms = {word, word[:1].lower() + word[1:]}
    if before.endswith("."):
        forms.add(before.lstrip(_OPENING) + word)  # "z. B."
    line_ends = _LINE_ENDS.match(text, end) is not None
    then_number = _THEN_NUMBER.match(text, end) is not None
    if forms & _LEADING or (forms & _NUMBERED and then_number):
        return True
    if word == "No":
        return before[:1].isupper() and before[-1].isalnum()  # "Symphony No." but "The answer is No."
    if _NUMBER.fullmatch(word):
        by_noun = before.lower() in _BEFORE_ORDINAL and earlier != "I"  # "am 3.", but "I am 3."
        return _is_ordinal(word, before, by_noun or _THEN_ORDINAL_NOUN.match(text, end) is not None, line_ends)
    if forms & _TRAILING or (_DOTTED.fullmatch(word) and not word.islower()):
        return not line_ends or _are_initials(word, before, earlier)
    if len(word) == 1 and _INITIAL.match(word):
        return _is_initial(word, before, line_ends)
    if len(word) == 1:  # "solve for x." but "Obst, z. B. Äpfel"
        listed = before.endswith(",") and len(before) > 2
        return listed or then_number or _THEN_ABBREVIATION.match(text, end) is not None
    return False


def _is_ordinal(number: str, before: str, by_noun: bool, line_ends: bool) -> bool:
    """Return whether "3." is an ordinal ("am 3. Oktober"), a marker ("Do this. 3. Do that") or cut ("≈ 3.", "$0.")."""
    if "≈" in before + number or (line_ends and _CUT_PRICE.fullmatch(number)):
        return True
    if len(number) > 2:
        return False
    if before.endswith((":", ";")):
        return not line_ends or number == "1"  # "The answer is: 4."
    lone = before.endswith((".", "!", "?", "**")) and not {before[:-1], before[:-1].lower()} & (_LEADING | _NUMBERED)
    return by_noun or lone


def _are_initials(letters: str, before: str, earlier: str) -> bool:
    """Return whether a surname is missing after "J.K.": in "by J.K." and "by John M.M.", not in "Watch T.V."."""
    if letters in _NO_INITIALS or not _TWO_CAPITALS.fullmatch(letters):
        return False
    return before == "by" or (before.istitle() and before.isalpha() and earlier[-1:].isalnum())


def _is_initial(letter: str, before: str, line_ends: bool) -> bool:
    """Return whether "J." is an initial. In "than I", "220 V", "plan B" and "GNU R" the letter is a word."""
    if letter == "I" or before[-1:].isdigit():
        return False
    label = before.islower() or (before.isupper() and len(before) > 1)
    return not line_ends or not label or before in _BEFORE_NAME
