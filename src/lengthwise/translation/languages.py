"""Languages: which ones a model translates, and what it has to be told to do so.

Read from the tokenizer, the config and the name, in this order. Knows nothing of lengths or placeholders. A model that
says nothing is believed: whoever chose it knows better.
"""

import re
from pathlib import Path
from typing import Any

# NLLB names languages by three letters; these are the common ones.
_THREE = {
    **{"ar": "arb", "cs": "ces", "da": "dan", "de": "deu", "el": "ell", "en": "eng", "es": "spa", "fi": "fin"},
    **{"fr": "fra", "hi": "hin", "hu": "hun", "it": "ita", "ja": "jpn", "ko": "kor", "nl": "nld", "pl": "pol"},
    **{"pt": "por", "ro": "ron", "ru": "rus", "sv": "swe", "tr": "tur", "uk": "ukr", "vi": "vie", "zh": "zho"},
}
_NAMED = re.compile(r"(?:^|[-_./])(?=([a-z]{2})[-_]([a-z]{2})(?:$|[-_./]))")
_CODE = re.compile(r"[a-z]{2,3}_[A-Z][A-Za-z]{1,3}")  # fr_XX, fra_Latn
UNSPACED = ("zh", "ja", "th", "lo", "km", "my")  # no space between their sentences


def prepare(writer: Any, source: str, target: str) -> tuple[str, str | None]:
    """Readies the model to translate from `source` to `target`; an error if it translates something else.

    Returns what has to stand before each text, and a note if the languages could not be checked.
    """
    model, tokenizer, asked = writer.model, writer.tokenizer, f"from {source} to {target}"
    if not model.config.is_encoder_decoder:
        raise ValueError(f"{writer.name} answers prompts and is no translator; a model {asked} is needed")
    if codes := _codes(tokenizer):
        _tell(model, tokenizer, _code(codes, source, writer.name), _code(codes, target, writer.name))
        return "", None
    tasks = getattr(model.config, "task_specific_params", None) or {}
    if task := tasks.get(f"translation_{source}_to_{target}"):  # T5
        return task.get("prefix", ""), None
    if several := getattr(tokenizer, "supported_language_codes", None):  # >>fr<<
        wanted = [code for code in several if code.strip("<>") in (target, _THREE.get(target))]
        if not wanted:
            raise ValueError(f"{writer.name} does not translate to {target}; it knows {', '.join(several)}")
        return wanted[0] + " ", None
    known = _pair(writer)
    if known is None:
        return "", f"{writer.name} does not say what it translates; it is taken to go {asked}"
    if known != (source, target):
        raise ValueError(f"{writer.name} translates from {known[0]} to {known[1]}; asked for was {asked}")
    return "", None


def _codes(tokenizer: Any) -> dict[str, int]:
    """The language tokens of a model for many languages, by code."""
    if codes := getattr(tokenizer, "lang_code_to_id", None):
        return dict(codes)
    return {token: number for token, number in tokenizer.added_tokens_encoder.items() if _CODE.fullmatch(token)}


def _code(codes: dict[str, int], language: str, name: str) -> tuple[str, int]:
    for code, number in codes.items():
        if code == language or code.partition("_")[0] in (language, _THREE.get(language)):
            return code, number
    raise ValueError(f"{name} does not know the language {language!r}; it knows {', '.join(sorted(codes))}")


def _tell(model: Any, tokenizer: Any, source: tuple[str, int], target: tuple[str, int]) -> None:
    tokenizer.src_lang, tokenizer.tgt_lang = source[0], target[0]
    model.generation_config.forced_bos_token_id = target[1]  # `Writer` looks here for it


def _pair(writer: Any) -> tuple[str, str] | None:
    """From its tokenizer's settings (Marian) or its name: opus-mt-en-fr."""
    told = getattr(writer.tokenizer, "source_lang", None), getattr(writer.tokenizer, "target_lang", None)
    if isinstance(told[0], str) and isinstance(told[1], str) and told[0] and told[1]:
        return told[0], told[1]
    for name in (Path(writer.name).name, str(getattr(writer.model.config, "_name_or_path", ""))):
        for one, other in reversed(_NAMED.findall(name)):
            if one in _THREE and other in _THREE:
                return one, other
    return None
