"""Find the ends of sentences: their marks, but not those of abbreviations and initials. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from simplemem.note.words import STOP_WORDS

# A mark with the quotes and brackets behind it, before a space; or a mark of a script that needs no
# space. A class of characters comes first, so that `re` skips over everything else at once.
_MARK: Final = re.compile(
    r"[.!?…。！？｡](?:"
    r"(?<=[。！？｡])[。！？｡]*+"
    r"|(?<![.!?…][.!?…])[.!?…]*+[\"'”’»)\]*_]*+(?=\s)"  # only at the first mark of `...`
    r")"
)

# Abbreviations as they are written within a sentence, in lower case and without spaces: `z. B.` is
# `z.b.`. The keys tell what may follow.
_ABBREVIATIONS: Final = {
    # titles, before a name: English, Spanish, German, French, Portuguese, Italian
    "title": """
        dr. mr. mrs. ms. mx. prof. rev. gen. capt. sgt. lt. st.
        dra. sr. sra. srta. sres. dña. lic. ing. arq. profa. sto. sta. av. avda.
        hr. fr. dipl.-ing.
        mme. mlle.
        exmo. exma. eng.
        sig. dott. avv.""",
    # shortenings that never end a sentence
    "amid": """
        e.g. eg. i.e. ie. cf. vs. viz. approx. dept. esp.
        p.ej. ej. aprox. ee.
        z.b. d.h. u.a. o.ä. bzw. bspw. evtl. ggf. inkl. exkl. sog. vgl. zzgl.
        p.ex. c.-à-d. env.
        p.es.""",
    # shortenings that may end a sentence: the sentence goes on if a small letter follows
    "or_last": """
        etc. usw. ecc. inc. ltd. co. corp. jr. a.m. p.m. min. max. incl. u.s.w. ee.uu. s.a. s.l.
        s.p.a. str.""",
    # before a number
    "numbered": """
        no. nos. nr. núm. nº. n. num. vol. fig. art. p. pp. ch. sec. tel. abb. abs. kap. cap. bd.
        s. op. ca. pág. págs.""",
}
_KIND_OF_ABBREVIATION: Final = {
    abbreviation: kind
    for kind, abbreviations in _ABBREVIATIONS.items()
    for abbreviation in abbreviations.split()
}
_MAX_ABBREVIATION_CHARACTERS: Final = max(map(len, _KIND_OF_ABBREVIATION))
# Characters before the mark that may belong to an abbreviation, with its spaces and a bracket.
_CONTEXT_CHARACTERS: Final = _MAX_ABBREVIATION_CHARACTERS + 6

_OPENING_MARKS: Final = "\"'“‘«([*_"
_INITIALS: Final = re.compile(r"(?:[^\W\d_]\.)+")  # J. and J.R.
_NEXT_WORD: Final = re.compile(r"\s*+[\"'“‘«(\[]*+(?P<word>\w*+)")


def sentence_ends(text: str, start: int, stop: int) -> Iterator[int]:
    """Yield the offset behind each sentence of the paragraph `text[start:stop]`.

    The offset is behind the mark and the quotes or brackets that close it. Points of abbreviations
    and initials end no sentence. The end of the last sentence is yielded only if white space or a
    mark such as `。` shows it.
    """
    for mark in find_end_marks(text, start, stop):
        end = mark.end()
        if mark[0] != "." or not _is_abbreviation(text, start, end, stop):
            yield end


def find_end_marks(text: str, start: int, stop: int) -> Iterator[re.Match[str]]:
    """Yield a match for each mark in `text[start:stop]` that may end a sentence.

    The points of abbreviations are among them; `sentence_ends` leaves those out.
    """
    return _MARK.finditer(text, start, stop)


def _is_abbreviation(text: str, start: int, end: int, stop: int) -> bool:
    """Return whether the point before `end` abbreviates a word and the sentence goes on.

    The paragraph is text[start:stop]. Returns False if no word follows in it.
    """
    following = _NEXT_WORD.match(text, end, stop)
    if following is None or not following["word"]:
        return False
    next_word = following["word"]

    context_start = max(start, end - _CONTEXT_CHARACTERS)
    words = text[context_start:end].split()
    word = words[-1].lstrip(_OPENING_MARKS)
    if f"{word}{next_word}.".lower() in _KIND_OF_ABBREVIATION:  # the first half of `z. B.`
        return True

    # The second half of `z. B.`, else an abbreviation of one word.
    pair = "".join(words[-2:]).lstrip(_OPENING_MARKS)
    kind = _KIND_OF_ABBREVIATION.get(pair.lower()) or _KIND_OF_ABBREVIATION.get(word.lower())
    if kind == "or_last":
        return next_word[0].islower()
    if kind == "numbered":
        return next_word[0].isdecimal()
    if kind is not None:
        return True
    return _is_initial(word) and _may_be_surname(next_word)


def _is_initial(word: str) -> bool:
    """Return whether a word is one or more initials. `I.` more likely ends a sentence."""
    return _INITIALS.fullmatch(word) is not None and word.isupper() and word != "I."


def _may_be_surname(word: str) -> bool:
    """Return whether a word that follows an initial may be a name."""
    return word[0].isupper() and word.lower() not in STOP_WORDS
