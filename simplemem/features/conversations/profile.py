"""The profile of the user: the note `profiles/default.md`, with one bullet per statement.

`read_traits` reads by rules what a message says about the user: a name, constraints, preferences,
languages. If the user deletes a bullet, simplemem forgets it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, NamedTuple

from simplemem.features.answers import Constraint
from simplemem.features.changes import Change, StatedSubject, find_doubtful, subject_of
from simplemem.features.conversations.patterns import WORDS, content_words
from simplemem.features.conversations.topic import ConversationNote
from simplemem.features.conversations.trait_rules import (
    TraitLanguage,
    english,
    languages_of_message,
    trait_languages,
)
from simplemem.features.facts.memory_type import memory_type_of
from simplemem.features.facts.reader import read_text
from simplemem.features.note_type import NoteType
from simplemem.note.dates import format_moment, parse_moment
from simplemem.note.passages import add_line, section_span
from simplemem.note.properties import set_property
from simplemem.note.stems import stem
from simplemem.note.text_edits import Edit, apply_edits
from simplemem.note.words import STOP_WORDS, language_of
from simplemem.store import Read

SECTIONS: Final = ("Constraints", "Preferences", "Identity")

_NOT_NAMES: Final = WORDS["no_name"]
_IN_EVERY_TRAIT: Final = STOP_WORDS | WORDS["trait"]
_BULLET: Final = re.compile(
    r"(?m)^[-*+] (?P<text>.*?)(?: %%(?P<marks>[^%\n]*)%%)?(?: \[\[[^\[\]\n]*\]\])*[ \t]*\r?$"
)
_MARK: Final = re.compile(r"\b(severity|since|until|about|disputed)=(\S+)")
_VALUE: Final = re.compile(
    r"\d[\d.,:]*|\b(?:english|german|french|spanish|italian|inglés|alemán|francés|español|castellano"
    r"|deutsch|englisch|französisch|spanisch|anglais|allemand|français|espagnol)\b"
)
_NO_END: Final = "9999-12-31"
_MAX_STATEMENT: Final = 300  # characters of a sentence that becomes a bullet
_NOT_IN_BULLET: Final = re.compile(r"%%+|\[\[|\]\]|\A[-*+>#\s]+")
_ARTICLE_OR_ANY_MORE: Final = re.compile(r"\Aan? | any ?more\Z")
_PREFERRED_TO: Final = re.compile(r" (?:to|over|than|for|when|with) ")


class Trait(NamedTuple):
    """Something that a message says about the user."""

    section: str  # or "name", or "gone" for what is no longer so
    statement: str


@dataclass(frozen=True)
class Profile(ConversationNote):
    """What the note says about the user; nothing if there is no note."""

    user_name: str = ""
    constraints: tuple[Constraint, ...] = ()
    preferences: Mapping[str, str] = field(default_factory=dict)  # by what they are about
    preference_ends: Mapping[str, str] = field(default_factory=dict)  # days, by the same
    identity: tuple[str, ...] = ()  # what the bullets of this section say
    modified: str = ""  # a time; "" if the note states none


class _Bullet(NamedTuple):
    """A bullet of the profile, and where its line is in the note."""

    start: int
    end: int
    statement_end: int
    marks_start: int | None  # behind the first "%%" of its marks; None if it has no marks
    content: Constraint

    @property
    def removal(self) -> Edit:
        """The edit that removes its line."""
        return self.start, self.end, ""


def read_traits(message: str) -> list[Trait]:
    """Return what a message says about the user or orders of the assistant, each trait once.

    Moods, plans, questions, suppositions and what it says of other people are left out.
    """
    languages = languages_of_message(message)
    reading = read_text(message)
    stated = frozenset(reading.stated)
    traits = dict[Trait, None]()
    for sentence in reading.sentences:
        if sentence in stated:
            worded = _read_worded(sentence, english())
        else:
            worded = []
        for trait in worded or _read_in_languages(sentence, languages):
            traits[trait] = None
    return list(traits)


def _read_in_languages(sentence: str, languages: Iterable[TraitLanguage]) -> list[Trait]:
    """Return the traits of a sentence by the first language whose rules read one."""
    for language in languages:
        traits = _read_in_language(sentence, language)
        if traits:
            return traits
    return []


def _read_worded(sentence: str, language: TraitLanguage) -> list[Trait]:
    """Return the traits that a sentence states in a fixed form of a language."""
    plain = sentence.replace("’", "'")
    traits = []
    for rule in language.wording_rules:
        for match in rule.pattern.finditer(plain):
            trait = _make_trait(rule.section, match["says"])
            if trait is not None:
                traits.append(trait)
    return traits


def _read_in_language(sentence: str, language: TraitLanguage) -> list[Trait]:
    """Return the traits of a sentence by the rules of the language of its message.

    A sentence without a fixed form is one trait as a whole if it has the signals of one.
    """
    plain = sentence.replace("’", "'")
    if language.states_no_rule(plain):
        return []
    if language is not english():
        worded = _read_worded(sentence, language)
        if worded:
            return worded

    section = language.section_of(plain)
    statement = _as_bullet(sentence)
    if not section or not statement:
        return []
    return [Trait(section, statement)]


def _as_bullet(sentence: str) -> str:
    """Return a sentence as the text of a bullet, without marks that a bullet has behind it.

    Returns "" if it is too long for a bullet.
    """
    statement = _NOT_IN_BULLET.sub(" ", sentence)
    statement = " ".join(statement.split()).strip(" ,;:–-").rstrip(".")
    return statement if len(statement) <= _MAX_STATEMENT else ""


def _make_trait(section: str, words: str) -> Trait | None:
    """Return the trait that the words of a match state.

    `section` is that of the rule which matched. Returns None if it is "name" and the words begin
    with one that is no name.
    """
    statement = " ".join(words.split())
    if section == "name" and statement.split()[0] in _NOT_NAMES:
        return None
    return Trait(section, _ARTICLE_OR_ANY_MORE.sub("", statement))


def severity_of(constraint: str) -> str:
    """Return "strict" if a constraint says "strictly", "allergic" or the like, else "firm"."""
    for language in trait_languages():
        if language.patterns["strict"].search(constraint):
            return "strict"
    return "firm"


def read_profile(read: Read) -> Profile:
    """Return the profile that a note states; bullets that the user wrote by hand count too.

    In each section, disputed bullets are behind the others; of several preferences about one thing,
    the last one counts. Never raises: `problem` says why a note cannot be changed.
    """
    note, fields = PROFILE.parse(read)
    constraints = _read_contents(read.text, "Constraints")
    identity = _read_contents(read.text, "Identity")

    preferences = {}
    preference_ends = {}
    for content in _read_contents(read.text, "Preferences"):
        key = noun_of(content["text"])
        if key in preferences and not _has_fixed_form(content["text"]):
            key = content["text"].lower()
        preferences[key] = _display(content)
        preference_ends[key] = content.get("until", _NO_END)

    modified = ""
    modified_at = parse_moment(note.text_property("modified") or "")
    if modified_at is not None:
        modified = format_moment(modified_at)

    return Profile(
        user_name=note.text_property("name") or "",
        constraints=tuple(constraints),
        preferences=preferences,
        preference_ends=preference_ends,
        identity=tuple(_display(content) for content in identity),
        modified=modified,
        text=note.text,
        **fields,
    )


PROFILE: Final[NoteType[Profile]] = NoteType(
    "profiles", "profile", read=read_profile, sort_key=lambda profile: profile.path
)


def _read_contents(text: str, section: str) -> list[Constraint]:
    """Return what the bullets of a section say, the disputed ones behind all others."""
    contents = [bullet.content for bullet in _read_bullets(text, section)]
    return sorted(contents, key=lambda content: "disputed" in content)


def _display(content: Constraint) -> str:
    """Return the text of a bullet, with a mark if it is disputed."""
    if "disputed" not in content:
        return content["text"]
    return f"{content['text']} (disputed since {content['disputed']})"


def _read_bullets(text: str, section: str) -> list[_Bullet]:
    """Return the bullets of a section, none if the note does not have it."""
    span = section_span(text, section)
    if span is None:
        return []

    bullets = []
    for match in _BULLET.finditer(text, *span):
        has_marks = match["marks"] is not None
        bullet = _Bullet(
            start=match.start(),
            end=match.end() + 1,  # with the line break
            statement_end=match.end("text"),
            marks_start=match.start("marks") if has_marks else None,
            content=_read_content(match),
        )
        bullets.append(bullet)
    return bullets


def _read_content(bullet: re.Match[str]) -> Constraint:
    """Return what a bullet says: its text, and the marks behind it or their defaults."""
    statement = bullet["text"]
    marks = dict(_MARK.findall(bullet["marks"] or ""))
    content = Constraint(
        text=statement,
        severity=marks.get("severity", severity_of(statement)),
        since=marks.get("since", ""),
    )
    if "until" in marks:
        content["until"] = marks["until"]
    if "about" in marks:
        content["about"] = marks["about"]
    if "disputed" in marks:
        content["disputed"] = marks["disputed"]
    return content


def noun_of(statement: str) -> str:
    """Return what a preference is about, in small letters: "tea" for "I prefer tea to coffee".

    That is the last word before "to" and the like that is no stop word; the whole statement if it
    has only stop words.
    """
    preferred = _PREFERRED_TO.split(statement.lower())[0]
    words: list[str] = re.findall(r"[^\W_][\w'’-]*", preferred)
    for word in reversed(words):
        if word not in STOP_WORDS:
            return word
    return statement.lower()


def _has_fixed_form(statement: str) -> bool:
    """Return whether a preference is in a fixed form, so that `noun_of` says what it is about."""
    plain = statement.replace("’", "'")
    for rule in english().wording_rules:
        if rule.section == "Preferences" and rule.pattern.search(plain):
            return True
    return False


def with_traits(text: str, traits: Iterable[Trait], at: datetime, link: str) -> str:
    """Return the text of the profile's note with what a turn says about the user.

    `at` is the time of the turn, `link` the target of a link to it, without brackets. A name is
    always replaced; bullets from a later day than the turn's are neither replaced nor removed.
    Every other byte stays.
    """
    since = _format_day(at)
    for trait in traits:
        if trait.section == "name":
            text = set_property(text, "name", trait.statement)
        elif trait.section == "gone":
            text = _without_bullets(text, trait.statement, since)
        else:
            text = _with_bullet(text, trait, at, link)
    return text


def _format_day(at: datetime) -> str:
    """Return the day of a time as marks have it: local, such as 2026-11-20."""
    return f"{at.astimezone():%Y-%m-%d}"


def _without_bullets(text: str, statement: str, since: str) -> str:
    """Return a note without the bullets that have all core words of a statement, in any section.

    The statement says what is no longer so, and may have the words in other forms. Without core
    words, it removes nothing. Bullets whose day is later than `since` (such as 2026-11-20) stay.
    """
    if not _core_words(statement):
        return text

    removals = []
    for section in SECTIONS:
        for bullet in _read_bullets(text, section):
            rule = bullet.content["text"]
            language = language_of(rule)
            is_later = bullet.content["since"] > since
            if not is_later and _core_stems(statement, language) <= _core_stems(rule, language):
                removals.append(bullet.removal)
    return apply_edits(text, removals)


def _marks_of(trait: Trait, since: str, at: datetime) -> str:
    """Return the marks behind a bullet that is stated at a time: how strict, since and until when.

    A statement about somebody close to the user also has whose it is. `since` is the day of `at`.
    """
    marks = [f"since={since}"]
    if trait.section == "Constraints":
        marks.insert(0, f"severity={severity_of(trait.statement)}")

    memory_type = memory_type_of(trait.statement, at)
    end = memory_type.valid_to
    # The day of an episode is when something happened, so it ends no rule.
    if end is not None and memory_type.name == "fact" and end >= at:
        marks.append(f"until={end:%Y-%m-%d}")
    owner = _owner_of(trait.statement)
    if owner:
        marks.append(f"about={owner}")
    return " ".join(marks)


def _owner_of(statement: str) -> str:
    """Return whose a statement is, as "daughter" for "my daughter is allergic"; "" for the user.

    Several words are joined by hyphens.
    """
    for language in trait_languages():
        owner = language.owner_of(statement)
        if owner:
            return "-".join(owner.split())
    return ""


def current_profile(profile: Profile, day: str) -> Profile:
    """Return a profile without the constraints and preferences that ended before a day.

    The day has the form 2026-11-20. The note keeps what has ended.
    """
    constraints = [
        constraint
        for constraint in profile.constraints
        if "until" not in constraint or constraint["until"] >= day
    ]
    preferences = {
        noun: text
        for noun, text in profile.preferences.items()
        if profile.preference_ends.get(noun, day) >= day
    }
    return replace(profile, constraints=tuple(constraints), preferences=preferences)


def _with_bullet(text: str, trait: Trait, at: datetime, link: str) -> str:
    """Return a note with a bullet for a trait, unless it has a bullet that says the same.

    A preference replaces those that are about the same thing. If one of them is from a day after
    that of `at`, nothing is changed. `link` is the target of a link to the turn.
    """
    since = _format_day(at)
    section = trait.section
    statement = trait.statement
    bullets = _read_bullets(text, section)
    words = _core_words(statement)
    for bullet in bullets:
        if _core_words(bullet.content["text"]) == words:
            return text

    replaced = []
    if section == "Preferences" and _has_fixed_form(statement):
        replaced = _find_same_noun(bullets, statement)
    if any(bullet.content["since"] > since for bullet in replaced):
        return text

    marks = _marks_of(trait, since, at)
    # The line is added behind the bullets, so their offsets stay.
    new_text = add_line(text, section, f"- {statement} %%{marks}%% [[{link}]]")
    edits = [bullet.removal for bullet in replaced]
    kept = [bullet for bullet in bullets if bullet not in replaced]
    for bullet in _find_other_values(kept, statement, since):
        edits += [_mark_as_disputed(bullet, since)]
    return apply_edits(new_text, edits)


def _find_same_noun(bullets: Iterable[_Bullet], statement: str) -> list[_Bullet]:
    """Return the preferences in a fixed form that are about the same thing as a statement."""
    noun = noun_of(statement)
    same_noun = []
    for bullet in bullets:
        text = bullet.content["text"]
        if _has_fixed_form(text) and noun_of(text) == noun:
            same_noun.append(bullet)
    return same_noun


def _find_other_values(bullets: Iterable[_Bullet], statement: str, since: str) -> list[_Bullet]:
    """Return the bullets that a statement puts in doubt, since it may give another value.

    Both have a number or the name of a language, with a different one in each, and one of the other
    words in common. Left out are bullets that are disputed already, or are from a day after
    `since`.
    """
    values = _values_in(statement)
    words = _content_of(statement)
    doubtful = []
    for bullet in bullets:
        content = bullet.content
        if content["since"] > since or "disputed" in content:
            continue
        other_values = _values_in(content["text"])
        differ = bool(values) and bool(other_values) and values != other_values
        if differ and words & _content_of(content["text"]):
            doubtful.append(bullet)
    return doubtful


def _values_in(statement: str) -> frozenset[str]:
    """Return the numbers and names of languages in a statement, in small letters."""
    found = _VALUE.findall(statement.lower())
    return frozenset(value.strip(".,:") for value in found)


def _content_of(statement: str) -> set[str]:
    """Return the content words of a statement that are no values, in small letters."""
    return set(content_words(statement)) - _values_in(statement)


def with_disputes(
    text: str, changes: Mapping[str, Change], at: datetime, link: str, *, has_traits: bool
) -> str:
    """Return the profile's note with marks on the bullets that a turn says have changed.

    `changes` has, by sentence of the turn, what it says has changed. `at` is the time of the turn,
    `link` the target of a link to it, without brackets. If no rule reads a trait in the turn
    (`has_traits` is false), the sentence is added to the section, so that a reader sees both. Every
    other byte stays.
    """
    since = _format_day(at)
    for sentence, change in changes.items():
        for section in SECTIONS:
            disputed = _find_disputed(text, section, change, since)
            marks = [_mark_as_disputed(bullet, since) for bullet in disputed]
            text = apply_edits(text, marks)
            if disputed and not has_traits:
                text = add_line(text, section, f"- {sentence} %%since={since}%% [[{link}]]")
    return text


def _find_disputed(text: str, section: str, change: Change, since: str) -> list[_Bullet]:
    """Return the bullets of a section that a change puts in doubt, in the order of the note.

    Left out are those that are disputed already, and those from a day after `since`. Returns [] if
    there are none.
    """
    candidates = []
    subjects = []
    for bullet in _read_bullets(text, section):
        is_later = bullet.content["since"] > since
        if not is_later and "disputed" not in bullet.content:
            subject = subject_of(_as_sentence(bullet.content["text"]))
            candidates.append(bullet)
            subjects.append(StatedSubject(subject, None))
    return [candidates[index] for index in find_doubtful(subjects, change)]


def _as_sentence(statement: str) -> str:
    """Return what a bullet says as the user would say it: "I am vegan" for "vegan".

    A statement that begins with "I" or "My" stays as it is.
    """
    if re.match(r"I\b|My\b", statement):
        return statement
    return f"I am {statement}"


def _mark_as_disputed(bullet: _Bullet, since: str) -> Edit:
    """Return the edit that marks a bullet as disputed since a day, before its other marks.

    The mark is where `_BULLET` reads marks: a "%%" that the user wrote into the statement begins
    none.
    """
    mark = f"disputed={since}"
    if bullet.marks_start is not None:
        return bullet.marks_start, bullet.marks_start, f"{mark} "
    return bullet.statement_end, bullet.statement_end, f" %%{mark}%%"


def _core_words(text: str) -> set[str]:
    """Return the words of a statement that tell it from others, in small letters.

    The set is empty if the statement has only stop words and words that every trait may have.
    """
    words = set(re.findall(r"\w+", text.lower()))
    return words - _IN_EVERY_TRAIT


def _core_stems(text: str, language: str) -> set[str]:
    """Return the stems of the core words of a statement; `language` is "" for English."""
    return {stem(word, language) for word in _core_words(text)}
