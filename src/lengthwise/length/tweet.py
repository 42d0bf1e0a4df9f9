"""The weight of a text in a post on X: a link weighs 23, an emoji 2."""

import unicodedata
from functools import cache

import regex

# X's rule (twitter-text v3): NFC; code points in these ranges weigh 1, all others 2; a link weighs 23, an emoji 2.
_LIGHT = ((0, 4351), (8192, 8205), (8208, 8223), (8242, 8247))
# A bare example.com is a link if its ending is on X's list: those of countries and 1,200 others, here the common ones.
# After http:// any ending is accepted: rare endings of X's list count as on X, endings that do not exist count less.
_COUNTRIES = (
    "ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bw by bz ca cc "
    "cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et eu fi fj fk fm fo fr ga "
    "gb gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo "
    "jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mg mh mk ml mm mn mo mp mq mr "
    "ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re "
    "ro rs ru rw sa sb sc sd se sg sh si sk sl sm sn so sr ss st su sv sx sy sz tc td tf tg th tj tk tl tm tn to tr "
    "tt tv tw tz ua ug uk us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw"
)
_OTHERS = (
    "com org net edu gov int mil info biz name pro mobi jobs museum tel travel aero academy agency app art bank bio "
    "blog cafe care chat city click cloud club community company design dev digital education email energy events "
    "expert fashion film finance fit foundation fun games global group guide health help host house icu international "
    "law life link live london love market marketing media money movie network news ninja one online page paris party "
    "photo photos pictures place plus press pub radio recipes reviews rocks run sale school science services shop "
    "show site social software solutions space store studio style support systems team tech technology tips today "
    "tokyo tools top training video vip watch website wiki win work works world xyz yoga zone"
)
_LETTER = "a-z0-9à-ɏ"
_END = r"(?![a-z0-9@+-])"
# The first two letters are looked at before the 400 endings: else a text such as a.b.c.d takes 40 µs per character.
_ENDING = rf"(?=[a-z]{{2}})(?:{'|'.join((_COUNTRIES + ' ' + _OTHERS).split())}|xn--[a-z0-9-]+){_END}"
_IN_PATH = rf"[{_LETTER}Ѐ-ӿ!*';:=+,.$/%#\[\]–_~@|&-]"
_IN_PARENS = rf"\((?:{_IN_PATH}|\({_IN_PATH}+\))+\)"
_QUERY = r"(?:\?[a-z0-9!?*'@();:&=+$/%#\[\]_.,~|-]*[a-z0-9_&=#/-])?"
_URL = (
    # host: after http:// in any script or with any ending; bare, in Latin letters and with a listed ending
    rf"(?<![a-z0-9@＠$#＃])(?:https?://(?P<host>(?:[{_LETTER}_-]++\.)+[a-z]{{2,}}{_END}|(?:[\w\p{{So}}-]++\.)+{_ENDING})"
    rf"|(?<![_./{_LETTER}-])(?P<host>(?:[{_LETTER}-]++\.)+{_ENDING}))"
    # port, path (a full stop or an unpaired bracket at its end belongs to the sentence), query
    rf"(?::[0-9]+)?(?:/(?:(?:{_IN_PATH}|{_IN_PARENS})*(?:[{_LETTER}Ѐ-ӿ=_#/+-]|{_IN_PARENS}))?)?"
    rf"{_QUERY}"
)
_OWN_LINK = regex.compile(rf"https?://t\.co/(?P<code>[a-z0-9]+){_QUERY}", regex.IGNORECASE)
_PICTURE = r"(?:\p{Emoji_Modifier_Base}\p{Emoji_Modifier}|\p{Extended_Pictographic}\uFE0F?)"
_EMOJI = regex.compile(
    r"\p{Regional_Indicator}{2}|[0-9#*]\uFE0F?\u20E3"
    # © and ® are emoji only with \uFE0F; nothing is one with \uFE0E
    rf"|(?![©®](?!\uFE0F)){_PICTURE}(?!\uFE0E)(?:[\U000E0020-\U000E007E]+\U000E007F|(?:\u200D{_PICTURE})*)"
)


@cache
def _url() -> "regex.Pattern[str]":
    return regex.compile(_URL, regex.IGNORECASE)  # on first use: it takes a tenth of a second


def weight(text: str) -> int:
    """Return how much a text weighs in a post on X."""
    text = _EMOJI.sub("xx", _url().sub(_as_weight, unicodedata.normalize("NFC", text)))
    return sum(1 if any(a <= ord(c) <= b for a, b in _LIGHT) else 2 for c in text)


def _as_weight(url: regex.Match[str]) -> str:
    """Return as many letters as the link weighs, or the text itself if it is not a link."""
    link: str = url[0]
    labels = url["host"].split(".")
    if "_" in labels[-2] or not all(map(_is_label, labels)):
        return link
    own = _OWN_LINK.match(link)  # X's own short links end with their code; an 's after it is text
    if own and len(own["code"]) > 40:
        return link
    return "x" * 23 + (link[own.end() :] if own else "")


def _is_label(label: str) -> bool:
    """Return whether a host name may have this between two dots: at most 63 letters, as DNS encodes them."""
    if len(label) > 63 or label[0] in "-_" or label[-1] in "-_":
        return False
    return label.isascii() or (not label.startswith("xn--") and len(label.encode("punycode")) <= 63 - len("xn--"))
