"""The language a note is written in, and the words that only hold its sentences together. Pure, and the same every time.

A note says its language itself (`lang: de`), or it shows in the small words of its text. English and what cannot be told
are "": nothing is done for them. A wrong guess costs little, since what is made of it (stems) only adds to a note.
"""

from __future__ import annotations

import importlib
import threading
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable
from functools import cache, lru_cache
from typing import Any

from simplemem.note.words import STOP_WORDS, spaced_words

_SMALL_WORDS = {
    "de": """aber als am an auch auf aus bei beim bin bis bist da dann das dass dein deine dem den denn der des dich die
        dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines er es euch für
        gegen gibt hab habe haben hat hatte hatten hier ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ins ist jede
        jeden jeder jedes kann kein keine keinen können man mehr mein meine mich mir mit muss müssen nach nicht noch nur
        ob oder ohne schon sehr sein seine seit sich sie sind so soll sollen über um und uns unser unsere unter vom von
        vor während wann war waren warum was weil welche welchem welchen welcher welches wem wen wenn wer werden wie wir
        wird wo wurde wurden zu zum zur zwischen""",
    "es": """a al algo algunos ante antes aquí así aunque cada como cómo con contra cual cuál cuales cuáles cuando cuándo
        de del desde donde dónde dos durante el él ella ellas ellos en entre era eran es esa ese eso esta está están este
        esto estos fue fueron ha han hasta hay la las le lo los más me mi mientras mis mucho muy nada ni no nos
        nosotros nuestra nuestro o os otra otro para pero poco por porque pues que qué quien quién quienes se sea según
        ser si sí sido sin sobre son soy su sus también tan te tenemos tenía tiene tienen todo todos tu tú un una unas
        uno unos usted y ya yo""",
    "fr": """à ai ainsi alors après au aucun aussi autre aux avant avec avez avons c'est ce ceci cela ces cet cette chez
        comme comment contre d'un d'une dans de depuis des deux dont du elle elles en encore entre est et étaient était
        été être eu fait il ils j'ai je l'on la le les leur leurs lors lui ma mais me même mes moi mon n'est ne nos notre
        nous on ont ou où par parce pas pendant peu peut plus pour pourquoi qu'il qu'elle quand que quel quelle quelles
        quels qui sa sans se sera ses si son sont sous sur ta te tes toi ton tous tout toute toutes très tu un une vos
        votre vous y""",
    "it": """a agli ai al alla alle anche anno ancora avere che chi ci come con contro cosa così cui da dagli dai dal
        dalla dalle degli dei del dell della delle di dopo dove e è ed era erano essere fatto fra gli ha hanno ho i il
        in io la le lei li lo loro lui ma mi molto ne nei nel nella nelle noi non nostra nostro o ogni per perché però
        più poi prima quale quali quando quanto quella quello questa queste questi questo se sei senza si sia siamo sono
        sta stato sua sue sui sul sulla suo tra tutti tutto un una uno vi voi""",
    "nl": """aan al alleen als altijd bij daar dan dat de deze die dit doch doen door dus een en er ge geen geweest haar
        had hadden heb hebben heeft hem het hier hij hoe hun iets ik in is ja je kan kon kunnen maar me meer men met mij
        mijn moet na naar niet niets nog nu of om omdat ons onze ook op over reeds te tegen toch toen tot u uit uw van
        veel voor waar waarom wanneer want waren was wat we wel welke werd wezen wie wij wil worden wordt zal ze zei zelf
        zich zij zijn zo zonder zou""",
    "pt": """a à ainda ao aos aquele aquilo as às até com como da das de dela dele depois do dos e é ela elas ele eles em
        entre era eram essa esse esta está estão este eu foi foram há isso isto já lhe mais mas me mesmo meu minha muito
        na não nas nem no nos nós nossa nosso num numa o onde os ou para pela pelas pelo pelos por porque quais qual
        quando que quem se sem ser seu seus só sua suas também te tem temos tinha todos tu um uma umas uns você vocês""",
}
LANGUAGES = tuple(_SMALL_WORDS)

# Words that an English text has as well: they say nothing about the language of a note.
_ALSO_ENGLISH = STOP_WORDS | frozenset(
    """al ante bin car come comment da de' die doe dos e en fait fin ha had han hat he hem her het i ja kan la' ma mais man
    me mi mine mis mit mon na ne o on os ou pas per plus pour que' sa se sea ser she sin so son sou sur ta te ten tes tot
    tout tu u un van' via vi war was we wel wig wie will wo y zo""".split()
)
_NAMES = {
    "de": "de deu ger german deutsch", "es": "es spa spanish español espanol castellano",
    "fr": "fr fra fre french français francais", "it": "it ita italian italiano", "nl": "nl nld dut dutch nederlands",
    "pt": "pt por portuguese português portugues",
}  # fmt: skip
_TOLD = {name: language for language, names in _NAMES.items() for name in names.split()}
# Letters that make one small word enough.
_LETTERS = {"de": "äöüß", "es": "ñ¿¡", "fr": "œçêèà", "it": "òìùè", "nl": "ĳ", "pt": "ãõ"}

_SAMPLE = 300  # characters from the beginning, and as many from the middle
_LEAST = 2  # different small words
_SHARE = 0.08  # of the sample's different words; a text of lists and names has about this many


def _plain(word: str) -> str:
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c)).replace("ß", "ss")


_STOP = {language: frozenset(map(_plain, words.split())) for language, words in _SMALL_WORDS.items()}
_TELLING: dict[str, tuple[str, ...]] = {}  # a small word no English text has, and whose it may be
for _language, _words in _SMALL_WORDS.items():
    for _word in {form for word in _words.split() for form in (word, _plain(word), word.replace("'", "’"))}:
        if _word not in _ALSO_ENGLISH:
            _TELLING[_word] = (*_TELLING.get(_word, ()), _language)

_ALL_TELLING = frozenset(_TELLING)


def language_of(text: str, told: str | None = None) -> str:
    """The language of a note, one of LANGUAGES or "". What the note says itself is believed."""
    if told:
        return _TOLD.get(told.strip().casefold().replace("_", "-").partition("-")[0], "")
    middle = len(text) // 2
    sample = text if len(text) <= 2 * _SAMPLE else f"{text[:_SAMPLE]} {text[middle : middle + _SAMPLE]}"
    in_order = sample.lower().split()
    if _ALL_TELLING.isdisjoint(in_order):
        return ""
    words = set(in_order)
    telling = _ALL_TELLING & words
    if len(telling) < _SHARE * len(words):
        return ""
    found = Counter(language for word in telling for language in _TELLING[word])
    if any(word.startswith(("l'", "d'", "l’", "d’")) for word in words):
        found.update(("fr", "it"))
    if not sample.isascii():
        small = sample.lower()
        found.update(language for language, letters in _LETTERS.items() if any(letter in small for letter in letters))
    best = max(LANGUAGES, key=lambda language: found[language])
    return best if found[best] >= _LEAST and found[best] > len(STOP_WORDS & words) else ""


def holding_together(words: Iterable[str], languages: Collection[str]) -> frozenset[str]:
    """Those words of a question that only hold it together, when it is in one of the vault's `languages`. A word that may
    be of two languages (la) is one of both."""
    plain = {word: _plain(word) for word in words}
    found = Counter(language for word in plain for language in _TELLING.get(word, ()) if language in languages)
    most = max(found.values(), default=0)
    if not most or sum(word in STOP_WORDS for word in plain) > most:
        return frozenset()
    small = frozenset().union(*(_STOP[language] for language, count in found.items() if count == most))
    return frozenset(word for word, form in plain.items() if form in small)


def is_small_word(word: str, language: str) -> bool:
    """Whether it only holds a sentence of that language together."""
    return _plain(word) in _STOP[language]


MARKS = {language: chr(0xE001 + place) for place, language in enumerate(LANGUAGES)}
_STEMMERS = {
    "de": "German", "es": "Spanish", "fr": "French", "it": "Italian", "nl": "Dutch", "pt": "Portuguese", "en": "Porter",
}  # fmt: skip
_ONE_AT_A_TIME = threading.Lock()  # a stemmer keeps the word it works on


def stems_of(text: str, language: str) -> str:
    """The stems of a text's words in their order, without those of words that only hold it together."""
    return " ".join(stem(word, language) for word in spaced_words(text) if not is_small_word(word, language))


@lru_cache(maxsize=20_000)
def stem(word: str, language: str) -> str:
    """The marked stem of a word in small letters. The mark comes last, where no ending can be taken off it again."""
    with _ONE_AT_A_TIME:
        return str(_stemmer(language).stemWord(word)) + MARKS[language]


def english_stem(word: str) -> str:
    """The stem that SQLite's tokenizer gives a word."""
    with _ONE_AT_A_TIME:
        return str(_stemmer("en").stemWord(word))


@cache
def _stemmer(language: str) -> Any:
    name = _STEMMERS[language]
    return getattr(importlib.import_module(f"snowballstemmer.{name.lower()}_stemmer"), f"{name}Stemmer")()
