"""English words with a grammatical function, and the words of a text that must not be lost in silence.

In other languages these lists match nothing: deletions then follow punctuation and the language model alone.
"""

from collections.abc import Sequence

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
    "below along around throughout despite as than opposite without unlike amid amongst beside besides alongside past"
)
CONJUNCTIONS = _words("and or but nor yet")
SUBORDINATORS = _words(
    "because although though while whereas since when whenever where after before until as so whether once if unless"
)
CONDITIONS = _words("if unless until only except")  # a sentence without them claims more
# A note names them if they are left out.
QUALIFIERS = CONDITIONS | _words("or when almost nearly least most than exception")
# Without them a sentence claims more, or what follows has another meaning: "almost all", "more files", "most users".
DEGREES = _words(
    "almost nearly about approximately often usually generally typically sometimes "
    "probably possibly perhaps likely partly first last next either both mainly mostly largely potentially allegedly "
    "reportedly apparently supposedly rarely seldom"
)
NUMBER_WORDS = _words("one two three four five six seven eight nine ten hundred thousand million billion half several")
# A note names them as it names numbers in digits; not "one", which is mostly a pronoun.
COUNTS = NUMBER_WORDS - {"one", "half", "several"} | _words(
    "eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty "
    "seventy eighty ninety dozen once twice"
)
BOUNDS = _words("least most than up about over under more less fewer only almost nearly to until between within every")
BOUNDING = (("at", "least"), ("at", "most"), ("more", "than"), ("less", "than"), ("fewer", "than"), ("up", "to"))
LIMITS = frozenset({"at most", "at least"})  # as one piece: the short form of "less than or equal to"
COMPARATIVES = _words(
    "more less fewer later earlier larger greater bigger smaller higher lower longer shorter newer older better worse "
    "faster slower"
)
NEED_OF = NUMBER_WORDS | _words(
    "some many most all number lack part kind type sort pair rest majority none any each both either end list amount "
    "lot set variety use instead because out consists consist made capable aware sure"
)
# A clause or an infinitive after these is part of what they say: "said that it works", "is able to open".
NEED_CLAUSE = _words(
    "say says said show shows showed shown find finds found ensure ensures know knows knew known believe believes "
    "believed think thinks thought report reports reported suggest suggests suggested sure mean means meant feel felt "
    "indicate indicates indicated specify specifies determine determines check checks see seen hope hopes fear fears "
    "claim claims claimed argue argued announce announced confirm confirmed note noted state stated stating saying "
    "so such fact decide decides decided ask asks asked wonder wondered whether tell told learn learned "
    "reveal reveals revealed demonstrate demonstrates demonstrated require requires"
)
NEED_INFINITIVE = _words(
    "have has had need needs needed want wants wanted try tries tried trying fail fails failed able unable required "
    "allowed allow allows sure likely unlikely going used ought begin begins began start starts started continue "
    "continues continued like how where what when not attempt attempts attempted ability forced supposed due seem "
    "seems seemed appear appears appeared tend tends refuse refused plan plans planned expected permitted way order "
    "possible impossible necessary enough too expect expects be is are was were chose choose decide decided get got"
)
PAST = _words(
    "came went took got made gave left became began won lost ran set put hit let cut kept held brought led met sent "
    "built paid rose fell grew drew threw flew wrote spoke broke chose stood sat lay caught taught bought fought "
    "sought spent"
)
NOT_ADVERBS = _words(
    "apply reply supply family early italy july ally rely fly multiply comply assembly anomaly monopoly daily weekly "
    "monthly yearly costly timely friendly lovely lonely likely unlikely elderly deadly belly bully jelly imply"
)
NOT_PARTICIPLES = _words(
    "thing string ring spring king wing evening morning ceiling building painting setting meeting recording rating "
    "warning listing drawing speed seed bed"
)
# These words need the preposition that follows them: "differs from", "belongs to".
_TO = _words(
    "belong belongs refer refers lead leads relate relates related switch switches switched equal identical similar "
    "according due prior close next compared corresponds correspond subject"
)
NEED_PREPOSITION = {
    "to": _TO,
    "than": _words("other rather") | COMPARATIVES,
    "from": _words("different differ differs"),
    "on": _words("depend depends depending rely relies based"),
    "of": _words("consist consists instead ahead"),
    "in": _words("result results"),
    "with": _words("deal deals"),
}
# A preposition that follows one of these belongs to it: "according to", "ending in".
WITH_PREPOSITION = frozenset().union(*NEED_PREPOSITION.values()) - COMPARATIVES | _words("ending starting beginning")
AFTER_MEASURE = _words("before after ago old later earlier")  # "10 minutes before it starts"
FOCUSING = _words("even only just right shortly immediately")  # "even if it is off"
DAYS = _words(
    "today yesterday tomorrow tonight monday tuesday wednesday thursday friday saturday sunday january february march "
    "april may june july august september october november december"
)
MOMENTS = DAYS | _words(  # times that a clause can do without
    "time day week month year hour minute second moment night morning evening afternoon times days weeks months years "
    "hours minutes seconds"
)
IMPERATIVES = _words(  # with which interface strings begin
    "add allow apply attach cancel change check choose clear click close confirm connect convert copy create delete "
    "disable disconnect display download drag edit enable enter exit export fill find format go hide import include "
    "insert install keep load lock make move open paste press print read remove rename replace reset restart restore "
    "resume run save search select send set share show sign sort specify start stop switch sync tap test try turn "
    "type undo uninstall unlock update upload use verify view wait write"
)
# A sentence that begins with one of these has its main clause after a comma.
OPENERS = _words(
    "because although though while whereas since when whenever after before until as once if unless to by in on at for "
    "with from during despite without through under using"
)
# With these a phrase begins that needs no comma: "In winter the road is icy."
PHRASE_OPENERS = _words("by in on at for with from during despite without through under")
RELATIVES = _words("which who whom whose that where")
AUXILIARIES = _words(
    "am is are was were be been being has have had do does did will would can could shall should may might must cannot"
)
PRONOUNS = _words("i you he she it we they me him us them one there who")
# Before them a phrase ends.
BOUNDARY = PREPOSITIONS | CONJUNCTIONS | SUBORDINATORS | RELATIVES | AUXILIARIES
# After one of these a verb belongs to a clause that depends on another one: "in case it is full", "by the time he has".
BEFORE_CLAUSE = SUBORDINATORS | RELATIVES | NEED_CLAUSE | _words("what how why case event time moment day way")
MODALS = _words("will would can could shall should may might must cannot do does did")
FINITE = AUXILIARIES - _words("be been being")
NOT_IN_ITEM = BOUNDARY - PREPOSITIONS  # an item of a list that has one of them is a clause
COMPARING = _words("more most less least fewer")
REFERRING = _words("he she it they this these his her its their")
OBJECTS = _words("me you him us them")  # the word before one of these is its verb
SUBJECTS = _words("i you he she it we they who there")
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
# What opens a description of a command before it says what the command does.
_LEAD_INS = regex.compile(
    r"(?:opens (?:a|the) (?:\w+ )?dialog(?: box| window)? (?:to|where you can|that lets you|in which you can|for)"
    r"|(?:use|select|click|choose|press|mark|enable|check) "
    r"(?:here|(?:this|the) (?:\w+ )?(?:option|dialog|button|box|command|field|icon|tool)) to"
    r"|click to|here,? you can|(?:allows|enables|permits) (?:you|users|the user) to|lets you"
    r"|it is possible to|(?:please )?note that|please) "
)
NOT_LAST = (
    DETERMINERS
    | CONJUNCTIONS
    | RELATIVES
    | _words(
        "of from with into onto for at by as than via per upon using regarding including to because although while "
        "whereas since when if unless whether and/or very more most least such is are was were be been being has have "
        "had will would can could shall should may might must not"
    )
)
# None of these may follow a determiner or a preposition where the words between have been left out.
NOT_AFTER_OPENER = (
    ARTICLES | PREPOSITIONS | CONJUNCTIONS | SUBORDINATORS | RELATIVES | AUXILIARIES | SUBJECTS | _words("not never")
)
NOT_FIRST = CONJUNCTIONS | RELATIVES | _words("of than is are was were be been has have had not into onto upon")
NEGATION = regex.compile(
    r"(?:not|no|never|cannot|without|nor|neither|none|nothing|nobody|nowhere|unless|except|hardly|barely|only|"
    r"un\w*able|invalid|impossible|n/a)"
    r"|.*n['’]t|fail(?:s|ed|ing|ure)?|ne|pas|jamais|sans|rien|non|mai|senza|niente|nunca|sin|nicht|kein\w*|nie|ohne",
    regex.IGNORECASE,
)
# Without them a phrase says the opposite or something else: "an (unexpected) answer", "a (newer) version".
OPPOSITE = regex.compile(r"un(?!der|it)\w*ed|unread|unknown|inactive|incorrect|incomplete|incompatible|insufficient")
SYMBOL = regex.compile(r"[%‰§#@\p{Sm}\p{Sc}\p{So}]")  # a mark that says something

_CONTRACTION = regex.compile(r".*n['’]t|.+['’](?:re|ve|ll|d|m)|(?:it|that|there|he|she|what)['’]s", regex.IGNORECASE)


def is_adverb(piece: Piece) -> bool:
    """Return whether the word is an adverb that most sentences can do without."""
    word = piece.lower
    return word in ADVERBS or (word.endswith("ly") and len(word) > 4 and word not in NOT_ADVERBS)


def is_contraction(piece: Piece) -> bool:
    """Return whether the word is short for a subject or a verb and another word: "it's", "don't"."""
    return _CONTRACTION.fullmatch(piece.text) is not None


def lead_in(pieces: Sequence[Piece]) -> int:
    """Return how many of the first pieces only announce what follows: "Opens a dialog to"; 0 if there are none."""
    match = _LEAD_INS.match(" ".join(piece.lower for piece in pieces))
    return len(match[0].split()) if match else 0


def is_quantity(piece: Piece) -> bool:
    """Return whether the word is a number, or a placeholder, which may stand for one."""
    return is_number(piece) or piece.is_placeholder or piece.lower in NUMBER_WORDS


def is_number(piece: Piece) -> bool:
    """Return whether the piece has a digit."""
    return any(letter.isdigit() for letter in piece.text)


def is_negation(piece: Piece) -> bool:
    """Return whether a sentence without this word could mean the opposite."""
    return NEGATION.fullmatch(piece.text) is not None


def is_not(word: str) -> bool:
    """Return whether a lower-case word is "not" or a verb with it: "don't", "cannot"."""
    return word in ("not", "cannot") or word.endswith(("n't", "n’t"))


def is_name(piece: Piece, first: bool) -> bool:
    """Return whether the word is written as a name: with a capital, but not as the first word, or with several."""
    letters = piece.text
    return piece.is_word and (
        letters[1:] != letters[1:].lower() or (not first and letters[:1].isupper() and letters != "I")
    )


def lacks_main_clause(pieces: Sequence[Piece], source: Sequence[Piece]) -> bool:
    """Return whether a sentence is a clause that depends on another one, which the source has: "If it rains."

    Its main clause comes after a comma, unless a subject and a verb follow the first phrase, or the source begins in
    the same way and has no comma.
    """
    if not pieces or any(piece.text in (",", ":", "?") for piece in pieces):
        return False
    first = pieces[0].lower
    if first not in OPENERS and not (first.endswith("ing") and first == source[0].lower):
        return False
    if _has_clause_after_phrase(pieces):
        return False
    return first != source[0].lower or any(piece.text == "," for piece in source)


def _has_clause_after_phrase(pieces: Sequence[Piece]) -> bool:
    """Return whether a subject and a finite verb follow the first phrase: "In 1990 the bridge was closed."

    Only auxiliaries and contractions ("it's") surely are finite verbs.
    """
    if pieces[0].lower not in PHRASE_OPENERS:
        return False
    for place, piece in enumerate(pieces[:-1]):
        if piece.lower in BEFORE_CLAUSE:
            return False
        if place > 1 and is_contraction(piece):
            return True
        subject = place > 2 and pieces[place - 1].lower not in DETERMINERS | PREPOSITIONS | CONJUNCTIONS
        if subject and piece.text in FINITE and pieces[place + 1].is_word:  # "May" is a month; a final "will" is a noun
            return True
    return False


def has_subject_and_verb(sentence: Sequence[Piece]) -> bool:
    """Return whether the sentence surely has a subject and a finite verb: it begins like one and has an auxiliary."""
    if len(sentence) < 2:
        return False
    begins = sentence[0].lower in DETERMINERS | SUBJECTS or is_name(sentence[1], False)
    return begins and any(piece.lower in AUXILIARIES for piece in sentence)


def may_be_verb(piece: Piece) -> bool:
    """Return whether the word can be a finite verb or a participle, judged by its ending and short lists."""
    word = piece.lower
    if word in AUXILIARIES | NEED_CLAUSE | PAST or is_contraction(piece):
        return True
    return word.endswith(("ed", "s")) and not word.endswith(("eed", "ss")) and "-" not in word


def is_content(piece: Piece) -> bool:
    """Return whether the word carries meaning of its own."""
    function = piece.lower in FUNCTION_WORDS or is_contraction(piece)
    return (piece.is_word and not function and len(piece.text) > 1) or is_number(piece)
