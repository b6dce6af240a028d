"""Where a sentence ends: at its mark, unless that is the point of an abbreviation or of an initial. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from simplemem.note.words import STOP_WORDS

# A mark and what closes it before a space, or a mark of a script that needs no space. A class of characters stands
# first, so that `re` skips over everything else at once.
_MARK: Final = re.compile(
    r"[.!?…。！？｡](?:(?<=[。！？｡])[。！？｡]*+|(?<![.!?…][.!?…])[.!?…]*+[\"'”’»)\]*_]*+(?=\s))"
)

# Abbreviations as they stand within a sentence, in small letters and without spaces: `z. B.` is `z.b.`.
_ABBREVIATIONS: Final = {
    # Titles, before a name: English, Spanish, German, French, Portuguese, Italian
    "title": """
        dr. mr. mrs. ms. mx. prof. rev. gen. capt. sgt. lt. st.
        dra. sr. sra. srta. sres. dña. lic. ing. arq. profa. sto. sta. av. avda.
        hr. fr. dipl.-ing.
        mme. mlle.
        exmo. exma. eng.
        sig. dott. avv.""",
    # Shortenings, always before more
    "amid": """
        e.g. eg. i.e. ie. cf. vs. viz. approx. dept. esp.
        p.ej. ej. aprox. ee.
        z.b. d.h. u.a. o.ä. bzw. bspw. evtl. ggf. inkl. exkl. sog. vgl. zzgl.
        p.ex. c.-à-d. env.
        p.es.""",
    # Shortenings that may end a sentence: none ends where a small letter follows
    "or_last": """
        etc. usw. ecc. inc. ltd. co. corp. jr. a.m. p.m. min. max. incl. u.s.w. ee.uu. s.a. s.l. s.p.a. str.""",
    # Before a number
    "numbered": """
        no. nos. nr. núm. nº. n. num. vol. fig. art. p. pp. ch. sec. tel. abb. abs. kap. cap. bd. s. op. ca. pág. págs.""",
}
_KIND: Final = {word: kind for kind, words in _ABBREVIATIONS.items() for word in words.split()}
_LONGEST: Final = (
    max(map(len, _KIND)) + 6
)  # characters before the mark that are looked at, with spaces and a bracket
_INITIALS: Final = re.compile(r"(?:[^\W\d_]\.)+")  # J. and J.R.
_NEXT_WORD: Final = re.compile(r"\s*+([\"'“‘«(\[]*+)(\w*+)")


def sentence_ends(text: str, start: int, stop: int) -> Iterator[int]:
    """Where the sentences of a paragraph end, but the last one, which may have no mark."""
    for found in marks(text, start, stop):
        if found.group() != "." or not _is_abbreviation(text, start, found.end(), stop):
            yield found.end()


def marks(text: str, start: int, stop: int) -> Iterator[re.Match[str]]:
    """The marks that end sentences, and those of abbreviations."""
    return _MARK.finditer(text, start, stop)


def _is_abbreviation(text: str, start: int, end: int, stop: int) -> bool:
    """Whether the point before `end` belongs to an abbreviation or an initial, and the sentence goes on."""
    following = _NEXT_WORD.match(text, end, stop)
    next_word = following[2] if following else ""
    if not next_word:
        return False

    words = text[max(start, end - _LONGEST) : end].split()
    word = words[-1].lstrip("\"'“‘«([*_")
    pair = "".join(words[-2:]).lstrip("\"'“‘«([*_")
    if f"{word}{next_word}.".lower() in _KIND:  # the first half of `z. B.`
        return True
    kind = _KIND.get(pair.lower()) or _KIND.get(word.lower())
    if kind == "or_last":
        return next_word[0].islower()
    if kind == "numbered":
        return next_word[0].isdecimal()
    if kind is not None:
        return True
    is_initial = _INITIALS.fullmatch(word) is not None and word.isupper() and word != "I."
    return is_initial and next_word[0].isupper() and next_word.lower() not in STOP_WORDS
