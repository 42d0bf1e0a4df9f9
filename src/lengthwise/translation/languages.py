"""Languages: check which language pair a model translates, and set its language tokens or prefix.

They are read from the tokenizer, the config or the name of the model, in this order. If none of these names them, the
model is used as it is, with a note.
"""

import re
from pathlib import Path

from ..generation.generator import Writer

# The most common languages of NLLB, which names languages by three letters.
_THREE_LETTERS = {
    **{"ar": "arb", "cs": "ces", "da": "dan", "de": "deu", "el": "ell", "en": "eng", "es": "spa", "fi": "fin"},
    **{"fr": "fra", "hi": "hin", "hu": "hun", "it": "ita", "ja": "jpn", "ko": "kor", "nl": "nld", "pl": "pol"},
    **{"pt": "por", "ro": "ron", "ru": "rus", "sv": "swe", "tr": "tur", "uk": "ukr", "vi": "vie", "zh": "zho"},
}
_NAMED = re.compile(r"(?:^|[-_./])(?=([a-z]{2})[-_]([a-z]{2})(?:$|[-_./]))")
_CODE = re.compile(r"[a-z]{2,3}_[A-Z][A-Za-z]{1,3}")  # fr_XX, fra_Latn
UNSPACED = ("zh", "ja", "th", "lo", "km", "my")  # languages without a space between sentences


def prepare(writer: Writer, source: str, target: str) -> tuple[str, str | None]:
    """Set the model to translate from `source` to `target`, or raise an error if it translates other languages.

    Returns the prefix that each text needs, and a note if the languages could not be checked.
    """
    model, tokenizer, asked = writer.model, writer.tokenizer, f"from {source} to {target}"
    config = getattr(model, "config", None)  # an engine may have no model of transformers
    if not (writer.engine.encoder_decoder if config is None else config.is_encoder_decoder):
        raise ValueError(f"{writer.name} is a causal model, not a translator; give a model that translates {asked}")
    codes = getattr(tokenizer, "lang_code_to_id", None)  # a multilingual model has one token per language
    added = getattr(tokenizer, "added_tokens_encoder", {})
    codes = codes or {code: id_ for code, id_ in added.items() if _CODE.fullmatch(code)}
    if codes:
        known_source, known_target = _code(codes, source, writer.name), _code(codes, target, writer.name)
        tokenizer.src_lang, tokenizer.tgt_lang = known_source[0], known_target[0]
        model.generation_config.forced_bos_token_id = known_target[1]  # `Writer` reads it
        return "", None
    tasks = getattr(config, "task_specific_params", None) or {}
    if task := tasks.get(f"translation_{source}_to_{target}"):  # T5
        return task.get("prefix", ""), None
    if several := getattr(tokenizer, "supported_language_codes", None):  # >>fr<<
        wanted = [code for code in several if code.strip("<>") in (target, _THREE_LETTERS.get(target))]
        if not wanted:
            raise ValueError(f"{writer.name} does not translate to {target}, only to {', '.join(several)}")
        return wanted[0] + " ", None
    known = _pair(writer)
    if known is None:
        return "", f"{writer.name} does not name its languages; it is assumed to translate {asked}"
    if known != (source, target):
        raise ValueError(f"{writer.name} translates from {known[0]} to {known[1]}, not {asked}")
    return "", None


def _code(codes: dict[str, int], language: str, name: str) -> tuple[str, int]:
    for code, number in codes.items():
        if code == language or code.partition("_")[0] in (language, _THREE_LETTERS.get(language)):
            return code, number
    raise ValueError(f"{name} does not support the language {language!r}, only {', '.join(sorted(codes))}")


def _pair(writer: Writer) -> tuple[str, str] | None:
    """Return the languages from the tokenizer's settings (Marian) or from the name: opus-mt-en-fr."""
    source, target = (getattr(writer.tokenizer, f"{side}_lang", None) for side in ("source", "target"))
    if isinstance(source, str) and isinstance(target, str) and source and target:
        return source, target
    config = getattr(writer.model, "config", None)
    for name in (Path(writer.name).name, str(getattr(config, "_name_or_path", ""))):
        for one, other in reversed(_NAMED.findall(name)):
            if one in _THREE_LETTERS and other in _THREE_LETTERS:
                return one, other
    return None
