"""Read by rules what a statement says: its words in a normal form, and the slot that it fills.

`language.py` has the words and patterns. A rule that is in doubt reads no slot. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from simplemem.features.fact import Slot
from simplemem.features.facts.language import (
    MAX_READ,
    Language,
    SlotForm,
    language_of,
    plain_text,
    words_of,
)

_MAX_NEGATION_WORDS: Final = 6  # the first words, in which a negation is looked for
_MAX_PLACE_WORDS: Final = 4  # the first words, of which one says what somebody lives in
_SUBJECT_WORD: Final = re.compile(r"[\w-]+")
_EPISODE_PATTERNS: Final = ("happened", "lately", "dated", "date")


class Reading(NamedTuple):
    """A statement as the rules read it."""

    text: str  # the statement as it was given
    words: tuple[str, ...]
    """Stems in their order, without the user, articles, negations and what says that it ended."""
    slot: Slot | None  # None if no rule reads one
    value: frozenset[str]  # the stems of the slot's value; empty without a slot
    limit: str  # the only place or time at which the value applies, as in "on Sundays"; or ""
    is_affirmed: bool  # false for what is denied, disliked or over
    has_ended: bool  # "no longer"
    is_episode: bool  # it happened, and may happen again
    is_hedged: bool  # a plan, a condition, a question, or what others say
    is_limited: bool  # "only", "except"
    is_one_of_several: bool
    """"My brother works at …" may be about another brother, unless something has changed."""


@dataclass(frozen=True)
class _FilledSlot:
    """A slot with the stems of its value, and the limit of that value, as in `Reading`."""

    slot: Slot | None = None
    words: frozenset[str] = frozenset()
    limit: str = ""


_NO_SLOT: Final = _FilledSlot()


@lru_cache(maxsize=50_000)
def read_statement(text: str) -> Reading:
    """Return what the rules read in a statement. A text in no known form has no slot.

    Only the first 300 characters are read. Nothing is raised, whatever the text is.
    """
    plain = plain_text(text)
    language = language_of(plain)
    without_end, end_count = language.patterns["ended"].subn(" ", plain)
    statement = " ".join(without_end.split())
    main_clause = language.patterns["but"].split(statement)[0]

    first_words = words_of(main_clause)[:_MAX_NEGATION_WORDS]
    is_negated = language.has("no", first_words)
    is_disliked = language.has("hates", first_words)
    is_affirmed = is_negated == is_disliked

    is_hedged = text.rstrip().endswith("?") or _is_hedged(language, main_clause)
    filled = _NO_SLOT
    if not is_hedged:
        filled = _read_slot(language, statement, text)
    slot = filled.slot

    has_happened = any(language.matches(name, statement) for name in _EPISODE_PATTERNS)
    is_of_several = False
    if slot is not None:
        words_of_subject = slot.subject.lower().split()
        is_of_several = language.has("several", words_of_subject)
    return Reading(
        text=text,
        words=language.stems_of(statement),
        slot=slot,
        value=filled.words,
        limit=filled.limit,
        is_affirmed=is_affirmed and not end_count,
        has_ended=end_count > 0,
        is_episode=has_happened and slot is None and not end_count,
        is_hedged=is_hedged,
        is_limited=language.has("limiting", words_of(statement)),
        is_one_of_several=is_of_several and not language.matches("change", plain),
    )


def _is_hedged(language: Language, clause: str) -> bool:
    """Return whether a clause is a plan, a condition or what others say.

    The month "May" in a date does not count.
    """
    dateless = language.patterns["date"].sub(" ", clause)
    return language.has("hedges", words_of(dateless))


def _read_slot(language: Language, statement: str, text: str) -> _FilledSlot:
    """Return the slot that the first matching form reads, `_NO_SLOT` if none matches.

    `statement` is the plain text without what says that it ended, `text` the original.
    """
    for form in language.forms:
        match = form.statement.fullmatch(statement)
        if match is not None:
            return _fill_slot(language, form, match.groupdict(), text)

    return _NO_SLOT


def _fill_slot(
    language: Language,
    form: SlotForm,
    parts: Mapping[str, str],
    text: str,
) -> _FilledSlot:
    """Return the slot that a form found in a statement, `_NO_SLOT` if it is in doubt.

    `parts` are the groups of the form's match: `who` or `of` (the subject), `rest` (the value and
    what follows it) and perhaps `noun` (what the value is of). `text` is the original statement.
    """
    has_noun = "noun" in parts
    if not has_noun and language.matches("dated", parts["rest"]):
        return _NO_SLOT

    rest, limit = _split_limit(language, parts["rest"], form.limits)
    value_match = form.value.fullmatch(rest)
    subject = _read_subject(language, parts.get("of") or parts["who"])
    if value_match is None or subject is None:
        return _NO_SLOT

    value = value_match["value"]
    groups = {**parts, **value_match.groupdict()}
    relation = form.relation.format(**groups).replace("favorite", "favourite")
    words = frozenset(language.stems_of(value))
    if not words or _is_unclear(language, subject, relation, value):
        return _NO_SLOT
    if not _fits_relation(language, relation, value, text):
        return _NO_SLOT
    if has_noun and not _identifies(language, relation, value, text):
        return _NO_SLOT

    slot = Slot(
        subject=_as_written(subject, text),
        relation=relation,
        object=_as_written(value, text),
    )
    return _FilledSlot(slot, words, limit)


def _split_limit(language: Language, rest: str, pattern_name: str) -> tuple[str, str]:
    """Return the value at the beginning of a text, and the limit that follows it, or "".

    "Acme on Sundays" is "Acme" and "on Sundays". `pattern_name` names the pattern of limits of the
    sentence's form, "" if it has none: then there is no limit. A tail such as "since 2020" is
    dropped in any case, and with the pattern `limit` also what begins at a "but" or a comma.
    """
    patterns = language.patterns
    rest = patterns["tail"].sub("", f"{rest} ").strip()
    if not pattern_name:
        return rest, ""
    if pattern_name == "limit":
        main_clause = patterns["but"].split(rest)[0]
        rest = main_clause.strip()

    match = patterns[pattern_name].search(rest)
    if match is None or match.start() == 0:
        return rest, ""
    value = rest[: match.start()]
    return value.strip(), match[0].strip()


def _read_subject(language: Language, who: str) -> str | None:
    """Return the subject that some words name: "" for the user, None if they name nobody."""
    words = _SUBJECT_WORD.findall(who.replace("'s ", " "))
    words = language.without(words, "own")
    for list_name in ("pronouns", "hedges", "no", "past"):
        if language.has(list_name, words):
            return None
    return " ".join(language.without(words, "self", "empty"))


def _is_unclear(language: Language, subject: str, relation: str, value: str) -> bool:
    """Return whether a value is two values or a guess, or its subject is several persons."""
    if language.matches("both", value):
        return True
    dateless = language.patterns["date"].sub("", value)
    if language.has("hedges", dateless.split()):
        return True
    # Two sisters have two names.
    return relation == "name" and language.has("several", subject.split())


def _fits_relation(language: Language, relation: str, value: str, text: str) -> bool:
    """Return whether a value may be what its relation needs: an employer, or a place to live in.

    Any value fits another relation. "the sales team" in "moved to the sales team" is no place, and
    "fun" in "work for fun" is no employer.
    """
    first_word, *other_words = value.split()
    if relation == "works at":
        return not language.has("no_employers", [first_word])
    if relation != "lives in":
        return True
    if language.has("no_places", [first_word]):
        return False

    has_article = language.has("own", [first_word])
    if not has_article:
        return True
    written_words = _as_written(value, text).split()
    is_named = len(written_words) > 1 and written_words[1][0].isupper()
    return is_named or language.has("places", other_words[:_MAX_PLACE_WORDS])


def _identifies(language: Language, noun: str, value: str, text: str) -> bool:
    """Return whether a value says which thing or how much `noun` is, not only what it is like.

    "4711" identifies a code, and "blue" does not. A person is identified by a name, and what is
    measured by a number or a day. The value of a noun such as "favourite colour" always fits.
    """
    if language.has("people", [noun]):
        return _as_written(value, text)[0].isupper()
    if language.has("measured", noun.split()[-1:]):
        if any(character.isdigit() for character in value):
            return True
        words = value.split()
        return language.has("weekdays", words) or language.has("months", words)

    if language.matches("adjectives", noun):
        return True
    return language.patterns["quality"].fullmatch(value) is None


def _as_written(words: str, text: str) -> str:
    """Return words in small letters with the capitals that a text gives them.

    The last place where they occur counts. Return them as they are if they do not occur.
    """
    lower = text.lower()
    start = lower.rfind(words)
    # Offsets differ if small letters are longer, as with a Turkish capital I.
    if start < 0 or len(text) != len(lower):
        return words
    return text[start : start + len(words)]


def is_number_of_name(text: str, number: str) -> bool:
    """Return whether a number in a text is part of a name, as in "step 2" or "Flight 3".

    A day of a month counts as one. Only the first place where the number occurs is looked at.
    """
    language = language_of(plain_text(text))
    marked = text[:MAX_READ].replace(number, "№", 1)
    return language.matches("named", marked)
