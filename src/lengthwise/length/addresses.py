"""Addresses: web and e-mail addresses, paths and version numbers. A text may end in most without a full stop."""

import regex

_NOT_IN_URL = r"\s<>\"“”«»\u3000-\u303f\uff00-\uff65"  # also the brackets and full stops of Chinese and Japanese
URL = rf"(?:https?|ftp|file)://[^{_NOT_IN_URL}]*[^{_NOT_IN_URL}.,;:!?)\]}}']"
DOMAIN = (  # example.com, www.example.com/help: without these endings a file name or a missing space may be meant
    r"(?<![\w@./\\-])(?:www\.(?:[\w-]+\.)+[a-z]{2,}|(?:[\w-]+\.)+(?:com|org|net|edu|gov|io|dev))(?![\w-]|\.\w)"
    rf"(?:/(?:[^{_NOT_IN_URL}]*[^{_NOT_IN_URL}.,;:!?)\]}}'])?)?"
)
EMAIL = r"[\w.+-]{1,64}+@[\w-]+(?:\.[\w-]+)+"  # without a limit, a long text without spaces takes quadratic time
WINDOWS_PATH = r"(?<![\w\\])[A-Za-z]:\\[^\s\"<>|]+"
UNIX_PATH = r"(?<![\w./~<>-])(?:~|\.{1,2})?(?:/[\w.+-]*[\w+-]){2,}/?|(?<![\w./~<>-])(?:~|\.{1,2})/[\w.+-]*[\w+-]/?"
_VERSION = r"(?<![\w.$€£])v?\d+(?:\.\d+)+\w*"
_LONGEST = 300  # characters at the end of a text that are searched
_STAND_IN = r"\{\d+\}|<\d+>|(?<!\w)X\d+"  # what a translator receives in place of one
_LAST = regex.compile(rf"(?:{URL}|{EMAIL}|{WINDOWS_PATH}|{UNIX_PATH}|{_VERSION}|{_STAND_IN})[)\]>\"'»”]*\Z")


def final_address(text: str) -> str:
    """Return the address, the path or the version number that a text ends in, with closing marks; or nothing.

    >>> final_address("See (https://example.org)"), final_address("Go to https://example.org.")
    ('https://example.org)', '')
    """
    text = text.rstrip()
    # It has no spaces. In a long text without any, such as a Chinese one, the search would take quadratic time.
    word = max(text.rfind(" ") + 1, text.rfind("\n") + 1, len(text) - _LONGEST)
    found = _LAST.search(text, word)
    return found[0] if found else ""
