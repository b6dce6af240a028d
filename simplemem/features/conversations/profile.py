"""The profile of the user: the note `profiles/default.md`, with one bullet per statement.

Here the note is read. `profile_edits.py` changes it, and `trait_reading.py` reads in messages what
it gets. If the user deletes a bullet, simplemem forgets it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from simplemem.features.answers import Constraint
from simplemem.features.conversations.topic import ConversationNote
from simplemem.features.conversations.trait_reading import has_fixed_form, noun_of, severity_of
from simplemem.features.note_type import NoteType
from simplemem.note.dates import format_moment, parse_moment
from simplemem.note.note import Note
from simplemem.note.passages import section_span
from simplemem.note.text_edits import Edit
from simplemem.store import Read

SECTIONS: Final = ("Constraints", "Preferences", "Identity")

_BULLET: Final = re.compile(
    r"(?m)^[-*+] (?P<text>.*?)(?: %%(?P<marks>[^%\n]*)%%)?(?: \[\[[^\[\]\n]*\]\])*[ \t]*\r?$"
)
_MARK: Final = re.compile(r"\b(severity|since|until|about|disputed)=(\S+)")
_NO_END: Final = "9999-12-31"


@dataclass(frozen=True)
class Profile(ConversationNote):
    """What the note says about the user; nothing if there is no note."""

    user_name: str = ""
    constraints: tuple[Constraint, ...] = ()
    preferences: Mapping[str, str] = field(default_factory=dict)  # by what they are about
    preference_ends: Mapping[str, str] = field(default_factory=dict)  # days, by the same
    identity: tuple[str, ...] = ()  # what the bullets of this section say
    modified: str = ""  # a time; "" if the note states none


class Bullet(NamedTuple):
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


class _Preferences(NamedTuple):
    """The preferences of a profile, by what they are about."""

    texts: dict[str, str]
    ends: dict[str, str]  # the last days on which they hold


def read_profile(read: Read) -> Profile:
    """Return the profile that a note states; bullets that the user wrote by hand count too.

    In each section, disputed bullets are behind the others; of several preferences about one thing,
    the last one counts. Never raises: `problem` says why a note cannot be changed.
    """
    note, fields = PROFILE.parse(read)
    constraints = _read_contents(read.text, "Constraints")
    preferences = _read_preferences(read.text)
    identity = [_display(content) for content in _read_contents(read.text, "Identity")]
    return Profile(
        user_name=note.text_property("name") or "",
        constraints=tuple(constraints),
        preferences=preferences.texts,
        preference_ends=preferences.ends,
        identity=tuple(identity),
        modified=_read_modified(note),
        text=note.text,
        **fields,
    )


PROFILE: Final[NoteType[Profile]] = NoteType(
    "profiles", "profile", read=read_profile, sort_key=lambda profile: profile.path
)


def current_profile(profile: Profile, day: str) -> Profile:
    """Return a profile without the constraints and preferences that ended before a day.

    The day has the form 2026-11-20. The note keeps what has ended.
    """
    constraints = [
        constraint for constraint in profile.constraints if constraint.get("until", _NO_END) >= day
    ]
    preferences = {
        noun: text
        for noun, text in profile.preferences.items()
        if profile.preference_ends.get(noun, _NO_END) >= day
    }
    return replace(profile, constraints=tuple(constraints), preferences=preferences)


def read_bullets(text: str, section: str) -> list[Bullet]:
    """Return the bullets of a section in their order, [] if the note does not have the section."""
    span = section_span(text, section)
    if span is None:
        return []

    bullets = []
    for match in _BULLET.finditer(text, *span):
        has_marks = match["marks"] is not None
        bullet = Bullet(
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


def _read_contents(text: str, section: str) -> list[Constraint]:
    """Return what the bullets of a section say, the disputed ones behind all others."""
    undisputed = []
    disputed = []
    for bullet in read_bullets(text, section):
        if "disputed" in bullet.content:
            disputed.append(bullet.content)
        else:
            undisputed.append(bullet.content)
    return undisputed + disputed


def _read_preferences(text: str) -> _Preferences:
    """Return the preferences of a note. Of several about one thing, the last one replaces others.

    One that has no fixed form replaces none, because what it is about is only guessed.
    """
    preferences = _Preferences({}, {})
    for content in _read_contents(text, "Preferences"):
        statement = content["text"]
        key = noun_of(statement)
        if key in preferences.texts and not has_fixed_form(statement):
            key = statement.lower()
        preferences.texts[key] = _display(content)
        preferences.ends[key] = content.get("until", _NO_END)
    return preferences


def _read_modified(note: Note) -> str:
    """Return when a note says that it was modified, as answers have it; "" if it says no time."""
    modified = parse_moment(note.text_property("modified") or "")
    if modified is None:
        return ""
    return format_moment(modified)


def _display(content: Constraint) -> str:
    """Return the text of a bullet, with a mark if it is disputed."""
    if "disputed" not in content:
        return content["text"]
    return f"{content['text']} (disputed since {content['disputed']})"
