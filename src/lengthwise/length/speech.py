"""Seconds of speech: how many characters a speaker says in a second, by language.

A linear rate: the characters of a text, spaces included, divided by the characters per second of its language. So a
budget in seconds is a budget in characters, which is counted exactly, token by token, as any other.

English has 15 characters per second: about 175 words per minute, by the equivalence of 200 words per minute and 17
characters per second in Netflix's guide for English templates. In all languages the same content takes about the same
time: 39 bits per second in 17 languages (Coupé, Oh, Dediu & Pellegrino 2019, Science Advances 5, eaaw2594). So the rate
of another language is 15 times the length of a translation into it, relative to English. docs/subtitles.md has the
measurement. The rates were not compared with recordings, and speakers differ.
"""

import re

from .units import measure

# The length of translations from English, in characters, times 15.
CHARS_PER_SECOND: dict[str, float] = {
    **{"en": 15.0, "de": 17.5, "fr": 18.0, "it": 17.0, "es": 17.0, "pt": 17.0, "nl": 17.0, "ro": 16.5, "el": 18.0},
    **{"sv": 15.5, "da": 16.0, "nb": 15.0, "no": 15.0, "fi": 15.0, "hu": 16.0, "tr": 16.5, "id": 16.0, "vi": 15.0},
    **{"pl": 16.5, "cs": 15.0, "ru": 17.0, "uk": 16.0, "ar": 13.5, "he": 11.0, "hi": 15.0, "th": 13.0},
    **{"ja": 7.0, "ko": 8.0, "zh": 5.0},
}
_SECONDS = re.compile(r"(?:s|secs?|seconds?)(?: of (?P<language>\S.*))?", re.IGNORECASE)


def primary(language: str) -> str:
    """Return the language of a code without its country or script: 'pt_BR' → 'pt'."""
    return re.split("[-_@]", language.lower())[0]


def chars_per_second(language: str) -> float:
    """Return how many characters are said in a second, for a language code such as it or pt-BR."""
    code = primary(language)
    if code not in CHARS_PER_SECOND:
        known = ", ".join(sorted(CHARS_PER_SECOND))
        raise ValueError(
            f"no rate of speech is known for the language {language!r}; give a length in chars; known: {known}"
        )
    return CHARS_PER_SECOND[code]


def spoken_seconds(text: str, language: str) -> float:
    """Return how long it takes to say a text.

    >>> round(spoken_seconds("Non so se questa sia la casa che cercavi.", "it"), 1)
    2.4
    """
    return measure(text, "chars") / chars_per_second(language)


def seconds_rate(unit: str) -> float | None:
    """Return the characters per second of a unit such as 'seconds of it', or None if it is another unit."""
    found = _SECONDS.fullmatch(unit.strip())
    if found is None:
        return None
    if found["language"] is None:
        raise ValueError("seconds of speech depend on the language; write for example 'at most 3.5 seconds of it'")
    return chars_per_second(found["language"])


def with_language(length: str, language: str) -> str:
    """Return a length such as 'at most 3.5 seconds' with the language that it is for; other lengths unchanged."""
    found = re.search(r"[\d.]\s*(\D+)$", length.strip())
    if found is None:
        return length
    seconds = _SECONDS.fullmatch(found[1])
    return f"{length.strip()} of {language}" if seconds and seconds["language"] is None else length
