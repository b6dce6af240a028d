"""The profile of the user: the note `profiles/default.md`, with one bullet for each thing that the user said.

`traits` reads by rules what a message says about the user: a name, constraints, preferences, languages. Who deletes a
bullet makes simplemem forget it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import product
from typing import Final, NamedTuple

from simplemem.features.answers import Constraint
from simplemem.features.changes import Change, StatedSubject, find_doubtful, subject_of
from simplemem.features.conversations.facts import stated_sentences
from simplemem.features.conversations.patterns import PATTERNS, RULES, WORDS
from simplemem.features.conversations.topic import ConversationNote
from simplemem.features.note_type import NoteType
from simplemem.note.dates import format_moment, parse_moment
from simplemem.note.passages import add_line, section_span
from simplemem.note.properties import set_property
from simplemem.note.text_edits import apply_edits
from simplemem.note.words import STOP_WORDS
from simplemem.store import Read

Trait = tuple[str, str]
"""A section and what the user said; "name" with the name, or "gone" with what is no longer so."""

SECTIONS: Final = ("Constraints", "Preferences", "Identity")
_NOT_NAMES: Final = WORDS["no_name"]
_IN_EVERY_TRAIT: Final = STOP_WORDS | WORDS["trait"]
_BULLET: Final = re.compile(
    r"(?m)^[-*+] (?P<text>.*?)(?: %%(?P<marks>[^%\n]*)%%)?(?: \[\[[^\[\]\n]*\]\])*[ \t]*\r?$"
)


@dataclass(frozen=True)
class Profile(ConversationNote):
    """What the note says about the user; nothing if there is no note."""

    name: str = ""
    constraints: tuple[Constraint, ...] = ()
    preferences: Mapping[str, str] = field(default_factory=dict)
    identity: tuple[str, ...] = ()
    modified: str = ""


class _Bullet(NamedTuple):
    """A bullet of the profile, and where its line is."""

    start: int
    end: int
    content: Constraint

    @property
    def removal(self) -> tuple[int, int, str]:
        """The edit that removes it."""
        return self.start, self.end, ""


def traits(message: str) -> list[Trait]:
    """Return what a message says about the user, without moods, plans and other people."""
    found: dict[Trait, None] = {}
    for sentence, (section, rule) in product(stated_sentences(message), RULES["traits"]):
        for match in rule.finditer(sentence):
            text = " ".join(match["says"].split())
            if section == "name" and text.split()[0] in _NOT_NAMES:
                continue
            found[section, re.sub(r"\Aan? | any ?more\Z", "", text)] = None
    return list(found)


def severity_of(constraint: str) -> str:
    """Return how strict a constraint is by its own words."""
    return "strict" if PATTERNS["strict"].search(constraint) else "firm"


def read_profile(read: Read) -> Profile:
    """Return the profile that a note is, with the bullets that the user wrote."""
    note, fields = PROFILE.parse(read)
    constraints, preferences, identity = (
        _disputed_last([bullet.content for bullet in _read_bullets(read.text, section)])
        for section in SECTIONS
    )
    modified = parse_moment(note.text_property("modified") or "")
    return Profile(
        name=note.text_property("name") or "",
        constraints=tuple(constraints),
        preferences={noun_of(content["text"]): _display(content) for content in preferences},
        identity=tuple(_display(content) for content in identity),
        modified=format_moment(modified) if modified else "",
        text=note.text,
        **fields,
    )


PROFILE: Final[NoteType[Profile]] = NoteType(
    "profiles", "profile", read=read_profile, sort_key=lambda profile: profile.path
)


def _disputed_last(contents: Sequence[Constraint]) -> list[Constraint]:
    """Return bullets in their order, but the disputed ones behind all others."""
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
    return [
        _Bullet(match.start(), match.end() + 1, _read_content(match))
        for match in _BULLET.finditer(text, *span)
    ]


def _read_content(bullet: re.Match[str]) -> Constraint:
    """Return what a bullet says, with what its marks say."""
    marks = dict(re.findall(r"\b(severity|since|disputed)=(\S+)", bullet["marks"] or ""))
    content = Constraint(
        text=bullet["text"],
        severity=marks.get("severity", severity_of(bullet["text"])),
        since=marks.get("since", ""),
    )
    if "disputed" in marks:
        content["disputed"] = marks["disputed"]
    return content


def noun_of(statement: str) -> str:
    """Return what a preference is about: its last content word, before what it is preferred to."""
    head = re.split(r" (?:to|over|than|for|when|with) ", statement.lower())[0]
    words = re.findall(r"[^\W_][\w'’-]*", head)
    return next((word for word in reversed(words) if word not in STOP_WORDS), statement.lower())


def with_traits(text: str, found: Sequence[Trait], at: datetime, link: str) -> str:
    """Return the profile's note with what a turn says about the user. Every other byte stays.

    What the note has from a later turn is not replaced. `link` is the turn, without brackets.
    """
    since = f"{at.astimezone():%Y-%m-%d}"
    for section, statement in found:
        if section == "name":
            text = set_property(text, "name", statement)
        elif section == "gone":
            text = _without_bullets(text, statement, since)
        else:
            text = _with_bullet(text, section, statement, since, link)
    return text


def _without_bullets(text: str, statement: str, since: str) -> str:
    """Return a note without the earlier bullets that say what is no longer so."""
    words = _core_words(statement)
    if not words:
        return text
    bullets = [bullet for section in SECTIONS for bullet in _read_bullets(text, section)]
    removals = [
        bullet.removal
        for bullet in bullets
        if bullet.content["since"] <= since and words <= _core_words(bullet.content["text"])
    ]
    return apply_edits(text, removals)


def _with_bullet(text: str, section: str, statement: str, since: str, link: str) -> str:
    """Return a note with a bullet for a statement, unless it has one.

    A preference replaces the earlier one that is about the same.
    """
    bullets = _read_bullets(text, section)
    words = _core_words(statement)
    if any(_core_words(bullet.content["text"]) == words for bullet in bullets):
        return text

    replaced = list[_Bullet]()
    if section == "Preferences":
        noun = noun_of(statement)
        replaced = [bullet for bullet in bullets if noun_of(bullet.content["text"]) == noun]
    if any(bullet.content["since"] > since for bullet in replaced):
        return text

    severity = f"severity={severity_of(statement)} " if section == "Constraints" else ""
    line = f"- {statement} %%{severity}since={since}%% [[{link}]]"
    # The line is added behind the bullets, so their places stay.
    text = add_line(text, section, line)
    return apply_edits(text, [bullet.removal for bullet in replaced])


def with_disputes(
    text: str, changes: Mapping[str, Change], at: datetime, link: str, *, is_read: bool
) -> str:
    """Return the profile's note with marks on what a turn says has changed. Every other byte stays.

    `changes` are the sentences that say so. If no rule read a trait in the turn (`is_read`), the sentence itself is
    added to the section, so that both are shown.
    """
    since = f"{at.astimezone():%Y-%m-%d}"
    for sentence, change in changes.items():
        for section in SECTIONS:
            disputed = _find_disputed(text, section, change, since)
            text = apply_edits(
                text, [_mark_as_disputed(text, bullet, since) for bullet in disputed]
            )
            if disputed and not is_read:
                text = add_line(text, section, f"- {sentence} %%since={since}%% [[{link}]]")
    return text


def _find_disputed(text: str, section: str, change: Change, since: str) -> list[_Bullet]:
    """Return the earlier bullets of a section that a change disputes and that are not disputed yet."""
    earlier = [
        bullet
        for bullet in _read_bullets(text, section)
        if bullet.content["since"] <= since and "disputed" not in bullet.content
    ]
    subjects = [
        StatedSubject(subject_of(_as_sentence(bullet.content["text"])), None) for bullet in earlier
    ]
    return [earlier[index] for index in find_doubtful(subjects, change)]


def _as_sentence(statement: str) -> str:
    """Return what a bullet says as the user would say it."""
    return statement if re.match(r"I\b|My\b", statement) else f"I am {statement}"


def _mark_as_disputed(text: str, bullet: _Bullet, since: str) -> tuple[int, int, str]:
    """Return the edit that marks a bullet as disputed."""
    line = text[bullet.start : bullet.end]
    if "%%" in line:
        marked = re.sub(r"%%(?=[^%\n]*%%)", f"%%disputed={since} ", line, count=1)
    else:
        statement = line.rstrip()
        ending = line[len(statement) :]
        marked = f"{statement} %%disputed={since}%%{ending}"
    return bullet.start, bullet.end, marked


def _core_words(text: str) -> set[str]:
    """Return the words of a statement that tell it from others."""
    return {*re.findall(r"\w+", text.lower())} - _IN_EVERY_TRAIT
