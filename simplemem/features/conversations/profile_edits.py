"""Changes of the profile's note: bullets are added, replaced, removed, or marked as disputed.

Each change returns the whole new text of the note. Every byte that it is not about stays. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from simplemem.features.changes import Change, StatedSubject, find_doubtful, subject_of
from simplemem.features.conversations.patterns import WORDS, content_words
from simplemem.features.conversations.profile import SECTIONS, Bullet, read_bullets
from simplemem.features.conversations.trait_reading import (
    Trait,
    has_fixed_form,
    noun_of,
    owner_of,
    severity_of,
)
from simplemem.features.facts.memory_type import memory_type_of
from simplemem.note.passages import add_line
from simplemem.note.properties import set_property
from simplemem.note.stems import stem
from simplemem.note.text_edits import Edit, apply_edits
from simplemem.note.words import STOP_WORDS, language_of

_IN_EVERY_TRAIT: Final = STOP_WORDS | WORDS["trait"]
_VALUE: Final = re.compile(
    r"\d[\d.,:]*|\b(?:english|german|french|spanish|italian|inglés|alemán|francés|español|castellano"
    r"|deutsch|englisch|französisch|spanisch|anglais|allemand|français|espagnol)\b"
)
_VALUE_PUNCTUATION: Final = ".,:"
_FIRST_PERSON: Final = re.compile(r"I\b|My\b")


def with_traits(text: str, traits: Iterable[Trait], at: datetime, link: str) -> str:
    """Return the text of the profile's note with what a turn says about the user.

    `at` is the time of the turn, `link` the target of a link to it, without brackets. A name is
    always replaced; bullets from a later day than the turn's are neither replaced nor removed.
    Every other byte stays.
    """
    day = _format_day(at)
    for trait in traits:
        if trait.section == "name":
            text = set_property(text, "name", trait.statement)
        elif trait.section == "gone":
            text = _without_bullets(text, trait.statement, day)
        else:
            text = _with_bullet(text, trait, at, link)
    return text


def with_disputes(
    text: str,
    changes: Mapping[str, Change],
    at: datetime,
    link: str,
    *,
    has_traits: bool,
) -> str:
    """Return the profile's note with marks on the bullets that a turn says have changed.

    `changes` has, by sentence of the turn, what it says has changed. `at` is the time of the turn,
    `link` the target of a link to it, without brackets. If no rule reads a trait in the turn
    (`has_traits` is false), the sentence is added to the section, so that a reader sees both. Every
    other byte stays.
    """
    day = _format_day(at)
    for sentence, change in changes.items():
        for section in SECTIONS:
            bullets = _find_disputed(text, section, change, day)
            edits = [_mark_as_disputed(bullet, day) for bullet in bullets]
            text = apply_edits(text, edits)
            if bullets and not has_traits:
                line = _format_bullet(sentence, f"since={day}", link)
                text = add_line(text, section, line)
    return text


def _with_bullet(text: str, trait: Trait, at: datetime, link: str) -> str:
    """Return a note with a bullet for a trait, unless it has a bullet that says the same.

    A preference replaces those that are about the same thing. If one of them is from a day after
    that of `at`, nothing is changed. Bullets to which the trait may give another value become
    disputed. `link` is the target of a link to the turn.
    """
    day = _format_day(at)
    section = trait.section
    statement = trait.statement
    bullets = read_bullets(text, section)
    if _is_stated_by(bullets, statement):
        return text

    replaced = list[Bullet]()
    if section == "Preferences" and has_fixed_form(statement):
        replaced = _find_same_noun(bullets, statement)
    if any(_is_from_later_day(bullet, day) for bullet in replaced):
        return text

    edits = [bullet.removal for bullet in replaced]
    remaining = [bullet for bullet in bullets if bullet not in replaced]
    doubtful = _find_other_values(remaining, statement, day)
    edits += [_mark_as_disputed(bullet, day) for bullet in doubtful]

    # The line is added behind the bullets, so their offsets stay.
    line = _format_bullet(statement, _marks_of(trait, at), link)
    new_text = add_line(text, section, line)
    return apply_edits(new_text, edits)


def _without_bullets(text: str, statement: str, day: str) -> str:
    """Return a note without the bullets that have all core words of a statement, in any section.

    The statement says what is no longer so, and may have the words in other forms. Without core
    words, it removes nothing. Bullets from later than `day` (such as 2026-11-20) stay.
    """
    if not _core_words(statement):
        return text

    removals = []
    for section in SECTIONS:
        for bullet in read_bullets(text, section):
            if _is_from_later_day(bullet, day):
                continue
            rule = bullet.content["text"]
            language = language_of(rule)
            if _core_stems(statement, language) <= _core_stems(rule, language):
                removals.append(bullet.removal)
    return apply_edits(text, removals)


def _format_day(at: datetime) -> str:
    """Return the day of a time as marks have it: local, such as 2026-11-20."""
    return f"{at.astimezone():%Y-%m-%d}"


def _format_bullet(statement: str, marks: str, link: str) -> str:
    """Return the line of a bullet, with marks and a link to the turn that states it."""
    return f"- {statement} %%{marks}%% [[{link}]]"


def _marks_of(trait: Trait, at: datetime) -> str:
    """Return the marks behind a bullet that is stated at a time: how strict, since and until when.

    A statement about somebody close to the user also has whose it is.
    """
    marks = []
    if trait.section == "Constraints":
        marks.append(f"severity={severity_of(trait.statement)}")
    marks.append(f"since={_format_day(at)}")

    memory_type = memory_type_of(trait.statement, at)
    end = memory_type.valid_to
    # The day of an episode is when something happened, so it ends no rule.
    if end is not None and memory_type.name == "fact" and end >= at:
        marks.append(f"until={end:%Y-%m-%d}")

    owner = owner_of(trait.statement)
    if owner:
        marks.append(f"about={owner}")
    return " ".join(marks)


def _mark_as_disputed(bullet: Bullet, day: str) -> Edit:
    """Return the edit that marks a bullet as disputed since a day, before its other marks.

    The mark is where `read_bullets` reads marks: a "%%" that the user wrote into the statement
    begins none.
    """
    mark = f"disputed={day}"
    if bullet.marks_start is not None:
        return bullet.marks_start, bullet.marks_start, f"{mark} "
    return bullet.statement_end, bullet.statement_end, f" %%{mark}%%"


def _is_from_later_day(bullet: Bullet, day: str) -> bool:
    """Return whether a bullet is from a day after `day`, so that an earlier turn leaves it."""
    return bullet.content["since"] > day


def _may_become_disputed(bullet: Bullet, day: str) -> bool:
    """Return whether a turn of a day may put a bullet in doubt.

    It may not if the bullet is disputed already, or is from a later day.
    """
    return "disputed" not in bullet.content and not _is_from_later_day(bullet, day)


def _is_stated_by(bullets: Iterable[Bullet], statement: str) -> bool:
    """Return whether one of the bullets says what a statement says, by their core words."""
    words = _core_words(statement)
    return any(_core_words(bullet.content["text"]) == words for bullet in bullets)


def _find_same_noun(bullets: Iterable[Bullet], statement: str) -> list[Bullet]:
    """Return the preferences in a fixed form that are about the same thing as a statement."""
    noun = noun_of(statement)
    same_noun = []
    for bullet in bullets:
        text = bullet.content["text"]
        if has_fixed_form(text) and noun_of(text) == noun:
            same_noun.append(bullet)
    return same_noun


def _find_other_values(bullets: Iterable[Bullet], statement: str, day: str) -> list[Bullet]:
    """Return the bullets that a statement of a day puts in doubt, as it may give another value.

    Both have a number or the name of a language, with a different one in each, and one of the other
    words in common. Left out are bullets that are disputed already, or are from a later day.
    """
    values = _values_in(statement)
    words = _content_of(statement)
    if not values:
        return []

    doubtful = []
    for bullet in bullets:
        text = bullet.content["text"]
        earlier_values = _values_in(text)
        has_other_value = bool(earlier_values) and earlier_values != values
        has_common_word = not words.isdisjoint(_content_of(text))
        if has_other_value and has_common_word and _may_become_disputed(bullet, day):
            doubtful.append(bullet)
    return doubtful


def _find_disputed(text: str, section: str, change: Change, day: str) -> list[Bullet]:
    """Return the bullets of a section that a change puts in doubt, in the order of the note.

    Left out are those that are disputed already, and those from a day after `day`. Returns [] if
    there are none.
    """
    candidates = []
    subjects = []
    for bullet in read_bullets(text, section):
        if _may_become_disputed(bullet, day):
            sentence = _as_sentence(bullet.content["text"])
            candidates.append(bullet)
            subjects.append(StatedSubject(subject_of(sentence), None))
    return [candidates[index] for index in find_doubtful(subjects, change)]


def _as_sentence(statement: str) -> str:
    """Return what a bullet says as the user would say it: "I am vegan" for "vegan".

    A statement that begins with "I" or "My" stays as it is.
    """
    if _FIRST_PERSON.match(statement):
        return statement
    return f"I am {statement}"


def _values_in(statement: str) -> frozenset[str]:
    """Return the numbers and names of languages in a statement, in small letters."""
    matches = _VALUE.findall(statement.lower())
    return frozenset(match.strip(_VALUE_PUNCTUATION) for match in matches)


def _content_of(statement: str) -> set[str]:
    """Return the content words of a statement that are no values, in small letters."""
    return set(content_words(statement)) - _values_in(statement)


def _core_words(statement: str) -> set[str]:
    """Return the words of a statement that tell it from others, in small letters.

    The set is empty if the statement has only stop words and words that every trait may have.
    """
    words = set(re.findall(r"\w+", statement.lower()))
    return words - _IN_EVERY_TRAIT


def _core_stems(statement: str, language: str) -> set[str]:
    """Return the stems of the core words of a statement; `language` is "" for English."""
    return {stem(word, language) for word in _core_words(statement)}
