"""English words with a grammatical function, and the words of a text that must not be lost in silence.

In other languages these lists match nothing: deletions then follow punctuation and the language model alone.
"""

import regex

from .pieces import Piece


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ARTICLES = _words("a an the")
DEMONSTRATIVES = _words("this that these those")
DETERMINERS = ARTICLES | DEMONSTRATIVES | _words("my your his her its our their some any each every another no")
PREPOSITIONS = _words(
    "of in on at by for with from to into onto over under about after before between among during through across "
    "against toward towards within via per upon using regarding including near behind beyond inside outside above "
    "below along around throughout despite as than"
)
CONJUNCTIONS = _words("and or but nor yet")
SUBORDINATORS = _words(
    "because although though while whereas since when whenever where after before until as so whether once if unless"
)
CONDITIONS = _words("if unless until only except")  # a sentence without them claims more
RELATIVES = _words("which who whom whose that where")
AUXILIARIES = _words(
    "am is are was were be been being has have had do does did will would can could shall should may might must cannot"
)
PRONOUNS = _words("i you he she it we they me him us them one there who")
ADVERBS = _words(
    "also very just simply quite rather too even still already currently now then thus hence however moreover "
    "furthermore therefore additionally nevertheless nonetheless meanwhile instead indeed often usually generally "
    "typically actually really here together automatically possibly please well much more most yet again ever "
    "always either both"
)
FUNCTION_WORDS = (
    DETERMINERS
    | PREPOSITIONS
    | CONJUNCTIONS
    | SUBORDINATORS
    | RELATIVES
    | AUXILIARIES
    | PRONOUNS
    | ADVERBS
    | _words("not n't what how why such neither other own same so up out off down if s etc e.g i.e")
)
PRESENTS = _words(  # "This paper presents ..." announces the topic
    "present presents propose proposes introduce introduces describe describes provide provides contain contains "
    "discuss discusses explore explores investigate investigates study studies report reports show shows"
)
NOT_LAST = (
    DETERMINERS
    | CONJUNCTIONS
    | RELATIVES
    | _words(
        "of from with into onto for at by as than via per upon using regarding including to because although while "
        "whereas since when if unless whether and/or very more most such is are was were be been being has have had "
        "will would can could shall should may might must not"
    )
)
# None of these may follow a determiner or a preposition where the words between have been left out.
NOT_AFTER_OPENER = ARTICLES | PREPOSITIONS | CONJUNCTIONS | SUBORDINATORS | RELATIVES | AUXILIARIES
NOT_FIRST = CONJUNCTIONS | RELATIVES | _words("of than is are was were be been has have had not into onto upon")
NEGATION = regex.compile(
    r"(?:not|no|never|cannot|without|nor|neither|none|nothing|nobody|nowhere|unless|except|hardly|barely|only|un\w*able)"
    r"|.*n['’]t|fail(?:s|ed|ing|ure)?|ne|pas|jamais|sans|rien|non|mai|senza|niente|nunca|sin|nicht|kein\w*|nie|ohne",
    regex.IGNORECASE,
)

_CONTRACTION = regex.compile(r".*n['’]t|.+['’](?:re|ve|ll|d|m)|(?:it|that|there|he|she|what)['’]s", regex.IGNORECASE)


def is_number(piece: Piece) -> bool:
    """Return whether the piece has a digit."""
    return any(letter.isdigit() for letter in piece.text)


def is_negation(piece: Piece) -> bool:
    """Return whether a sentence without this word could mean the opposite."""
    return NEGATION.fullmatch(piece.text) is not None


def is_name(piece: Piece, first: bool) -> bool:
    """Return whether the word is written as a name: with a capital, but not as the first word, or with several."""
    letters = piece.text
    return piece.is_word and (
        letters[1:] != letters[1:].lower() or (not first and letters[:1].isupper() and letters != "I")
    )


def is_content(piece: Piece) -> bool:
    """Return whether the word carries meaning of its own."""
    function = piece.lower in FUNCTION_WORDS or _CONTRACTION.fullmatch(piece.text) is not None
    return (piece.is_word and not function and len(piece.text) > 1) or is_number(piece)
