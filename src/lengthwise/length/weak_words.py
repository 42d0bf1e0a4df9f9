"""Words that belong to the next word, by language: a line, a cue or an item of a list should not end after them.

The lists are short and closed: articles and determiners, prepositions, conjunctions, and words that lean on a verb
(subject pronouns, auxiliaries, negations). They follow what subtitling guides ask for: "The line break should not
separate a noun from an article, a verb from a subject pronoun, a verb from an auxiliary or negation" and "The line
should be broken before conjunctions, before prepositions" (Netflix, Timed Text Style Guide: General Requirements).
"""

from collections.abc import Iterable
from typing import NamedTuple

from .speech import primary


class WeakWords(NamedTuple):
    """The lists of a language, in lower case. `may_end`: words of the first three that can also end a phrase.

    Those are pronouns ("for all"), adverbs and particles of verbs ("turn it on", "schalte es aus").
    """

    articles: frozenset[str]
    prepositions: frozenset[str]
    conjunctions: frozenset[str]
    with_verb: frozenset[str]
    may_end: frozenset[str]

    @property
    def hanging(self) -> frozenset[str]:
        """The words after which a phrase lacks something."""
        return (self.articles | self.prepositions | self.conjunctions) - self.may_end


def _list(articles: str, prepositions: str, conjunctions: str, with_verb: str, may_end: str) -> WeakWords:
    lists = (articles, prepositions, conjunctions, with_verb, may_end)
    return WeakWords(*(frozenset(words.split()) for words in lists))


NONE = _list("", "", "", "", "")

WEAK_WORDS: dict[str, WeakWords] = {
    "en": _list(
        "a an the this that these those my your his her its our their some any every each no all another",
        "of in on at to for from with by about into onto over under after before between among through during without "
        "within against toward towards upon as like than near off behind beside beyond across along around until since "
        "despite via per",
        "and or but nor so yet because if when while although though unless whereas whether where that which who whom "
        "whose",
        "i you he she it we they don't doesn't didn't can't won't isn't aren't wasn't not is are was were am be been "
        "have has had do does did will would can could shall should may might must i'm you're he's she's it's we're "
        "they're i've you've we've they've i'll you'll he'll she'll we'll they'll i'd you'd very too so mr mrs ms dr",
        "this that these those his its some any all each another no in on off over under after before between through "
        "across along around about by near behind beside beyond without within since as like to so yet though when "
        "where while who whom which whether",
    ),
    "it": _list(
        "il lo la i gli le un uno una questo questa questi queste quel quello quella quei quegli quelle mio mia miei "
        "mie tuo tua tuoi tue suo sua suoi sue nostro nostra nostri nostre vostro vostra vostri vostre ogni qualche "
        "alcuni alcune tutto tutti tutte",
        "di a da in con su per tra fra del dello della dei degli delle al allo alla ai agli alle dal dallo dalla dai "
        "dagli dalle nel nello nella nei negli nelle sul sullo sulla sui sugli sulle col coi come senza verso dopo "
        "prima durante sotto sopra contro presso oltre fino tramite",
        "e ed o od ma però oppure né se che perché poiché quando mentre dove anche benché sebbene affinché quindi "
        "dunque cui quale quali",
        "io tu lui lei noi voi loro non mi ti si ci vi lo la li le ne me te se ce ve è sono sei siamo siete ho hai ha "
        "abbiamo avete hanno era erano sta stanno più molto così troppo sig dott",
        "questo questa questi queste quello quella quelle mio mia miei mie tuo tua tuoi tue suo sua suoi sue nostro "
        "nostra nostri nostre vostro vostra vostri vostre alcuni alcune tutto tutti tutte su come dopo prima sotto "
        "sopra contro oltre però perché quando dove anche quindi dunque quale quali se",
    ),
    "fr": _list(
        "le la les un une des du au aux ce cet cette ces mon ma mes ton ta tes son sa ses notre nos votre vos leur "
        "leurs chaque quelques tout toute tous toutes",
        "de à en dans sur sous avec sans pour par vers chez entre contre depuis pendant avant après devant derrière "
        "malgré selon jusque jusqu'à comme dès",
        "et ou mais donc or ni car que qui quand lorsque si puisque parce quoique où dont tandis",
        "je tu il elle on nous vous ils elles ne me te se y en lui n'est c'est est suis es sommes êtes sont ai as a "
        "avons avez ont était été être avoir pas très trop plus si m mme mlle",
        "leur leurs tout toute tous toutes en avec avant après devant derrière contre depuis pendant comme donc or "
        "car quand où si",
    ),
    "de": _list(
        "der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner dieser diese dieses "
        "diesen diesem jener jene mein meine meinen meinem meiner dein deine deinen deinem deiner sein seine seinen "
        "seinem seiner ihr ihre ihren ihrem ihrer unser unsere unseren unserem euer eure jeder jede jedes jeden alle",
        "in im ins an am ans auf aus bei beim mit nach von vom zu zum zur für durch gegen ohne um über unter vor "
        "hinter neben zwischen seit bis während wegen trotz als wie",
        "und oder aber denn sondern dass weil wenn ob obwohl damit während bevor nachdem sobald falls wo",
        "ich du er sie es wir ihr man nicht ist sind bin bist war waren habe hast hat haben hatte wird werden wurde "
        "kann sehr zu so herr frau dr",
        "das dieser diese dieses diesen diesem jener jene mein meine meiner dein deine deiner sein seine seiner ihr "
        "ihre ihrer unser unsere euer eure jeder jede jedes jeden alle an auf aus bei mit nach zu durch gegen ohne um "
        "über unter vor hinter neben zwischen seit während aber denn damit wo",
    ),
    "es": _list(
        "el la los las un una unos unas lo este esta estos estas ese esa esos esas aquel aquella mi mis tu tus su sus "
        "nuestro nuestra nuestros nuestras vuestro vuestra cada algún alguna algunos algunas todo todos todas ningún",
        "a al ante bajo con contra de del desde durante en entre hacia hasta para por según sin sobre tras como",
        "y e o u pero sino ni que porque pues si cuando mientras aunque donde quien quienes cuyo",
        "yo tú él ella nosotros vosotros ellos ellas usted ustedes no me te se nos os le les lo la es soy eres somos "
        "son he has ha hemos han está están estoy muy tan más sr sra",
        "lo este esta estos estas ese esa esos esas aquel aquella alguna algunos algunas todo todos todas contra como "
        "si cuando mientras donde quien quienes",
    ),
    "pt": _list(
        "o a os as um uma uns umas este esta estes estas esse essa esses essas aquele aquela meu minha meus minhas teu "
        "tua teus tuas seu sua seus suas nosso nossa nossos nossas cada algum alguma todo todos todas nenhum",
        "a ao aos à às ante após até com contra de do da dos das desde em no na nos nas entre para por pelo pela pelos "
        "pelas sem sob sobre num numa dum duma deste desta neste nesta como",
        "e ou mas nem que porque pois se quando enquanto embora onde quem cujo porém",
        "eu tu ele ela nós vós eles elas você vocês não me te se nos lhe lhes o a é sou és somos são está estão estou "
        "tem têm tenho há muito tão mais sr sra",
        "este esta estes estas esse essa esses essas aquele aquela meu minha meus minhas teu tua teus tuas seu sua "
        "seus suas nosso nossa nossos nossas algum alguma todo todos todas nenhum contra após até como se quando "
        "enquanto embora onde quem porém",
    ),
}  # fmt: skip

# Forms of French and Italian words before a vowel. "Po'" is none: it can end a phrase.
_ELIDED = (
    "l d j m t s n c qu jusqu lorsqu puisqu quoiqu presqu un gl dell all dall nell sull coll quell quest bell buon "
    "sant grand nessun ciascun alcun com dov cos tutt mezz anch senz"
)
ELISIONS = frozenset(f"{word}'" for word in _ELIDED.split())


def weak_words(language: str) -> WeakWords:
    """Return the lists for a language code such as it or pt-BR; empty lists for other languages."""
    return WEAK_WORDS.get(primary(language), NONE)


def language_of(words: Iterable[str]) -> str:
    """Return the language whose lists have most of these words in lower case; English if none has any."""
    found = list(words)
    return max(WEAK_WORDS, key=lambda code: sum(any(word in some for some in WEAK_WORDS[code][:4]) for word in found))
