"""What a person says of themselves, by rules: a name, constraints, preferences, languages; and the profile as the note
`profiles/default.md`, a bullet a statement. Taking a bullet out forgets it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import product
from typing import Any, Final

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

Trait = tuple[
    str, str
]  # what a person said, behind its section, or "name", or "gone" for what is taken back
SECTIONS: Final = ("Constraints", "Preferences", "Identity")
_NO_NAMES, _IN_EVERY_TRAIT = WORDS["no_name"], STOP_WORDS | WORDS["trait"]
_BULLET: Final = re.compile(
    r"(?m)^[-*+] (?P<text>.*?)(?: %%(?P<marks>[^%\n]*)%%)?(?: \[\[[^\[\]\n]*\]\])*[ \t]*\r?$"
)


@dataclass(frozen=True)
class Profile(ConversationNote):
    """The person, as the note has it; without one, nothing is known."""

    name: str = ""
    constraints: tuple[Constraint, ...] = ()
    preferences: Mapping[str, str] = field(default_factory=dict)
    identity: tuple[str, ...] = ()
    modified: str = ""


def traits(message: str) -> list[Trait]:
    """What a user's message says of the user; moods, plans and other people are nothing."""
    found: dict[Trait, None] = {}
    for sentence, (section, rule) in product(stated_sentences(message), RULES["traits"]):
        for match in rule.finditer(sentence):
            text = " ".join(match["says"].split())
            if section != "name" or text.split()[0] not in _NO_NAMES:
                found[section, re.sub(r"\Aan? | any ?more\Z", "", text)] = None
    return list(found)


def severity_of(constraint: str) -> str:
    """How strict a constraint is by its own words."""
    return "strict" if PATTERNS["strict"].search(constraint) else "firm"


def read_profile(read: Read) -> Profile:
    """The profile that a note is; bullets a person wrote count like ours."""
    note, where = PROFILE.parse(read)
    constraints, preferences, identity = (
        [said for _, said in _bullets(read.text, section)] for section in SECTIONS
    )
    return Profile(
        name=note.text_property("name") or "",
        constraints=tuple(_disputed_last(constraints)),
        preferences={noun_of(each["text"]): _shown(each) for each in _disputed_last(preferences)},
        identity=tuple(_shown(each) for each in _disputed_last(identity)),
        modified=format_moment(at)
        if (at := parse_moment(note.text_property("modified") or ""))
        else "",
        text=note.text,
        **where,
    )


def _disputed_last(bullets: Sequence[Constraint]) -> list[Constraint]:
    """Return bullets in their order, but those that a later one puts in doubt behind all others."""
    return sorted(bullets, key=lambda bullet: "disputed" in bullet)


def _shown(bullet: Constraint) -> str:
    """Return what a bullet says, with a mark where it is in doubt."""
    return (
        f"{bullet['text']} (disputed since {bullet['disputed']})"
        if "disputed" in bullet
        else bullet["text"]
    )


PROFILE: Final[NoteType[Profile]] = NoteType(
    "profiles", "profile", read=read_profile, sort_key=lambda profile: profile.path
)


def _bullets(text: str, section: str) -> list[tuple[tuple[int, int, str], Constraint]]:
    """The bullets of a section: the edit that takes one out, and what it says."""
    found = list[tuple[tuple[int, int, str], Constraint]]()
    for bullet in _BULLET.finditer(text, *(section_span(text, section) or (0, 0))):
        marks = dict(re.findall(r"\b(severity|since|disputed)=(\S+)", bullet["marks"] or ""))
        said: Any = {
            "text": bullet["text"],
            "severity": severity_of(bullet["text"]),
            "since": "",
            **marks,
        }
        found.append(((bullet.start(), bullet.end() + 1, ""), said))
    return found


def noun_of(statement: str) -> str:
    """What a preference is about: its last word that says something, before what it is preferred to."""
    words = re.findall(
        r"[^\W_][\w'’-]*", re.split(r" (?:to|over|than|for|when|with) ", statement.lower())[0]
    )
    return next((word for word in reversed(words) if word not in STOP_WORDS), statement.lower())


def with_traits(text: str, found: Sequence[Trait], at: datetime, link: str) -> str:
    """The profile's note with what was said, unless it says something later of that. Every other byte stays."""
    since = f"{at.astimezone():%Y-%m-%d}"
    for section, said in found:
        core, there = _core(said), _bullets(text, section)
        if section == "name":
            text = set_property(text, "name", said)
        elif section == "gone":
            every = [bullet for each in SECTIONS for bullet in _bullets(text, each)]
            gone = [
                cut
                for cut, each in every
                if each["since"] <= since and core and core <= _core(each["text"])
            ]
            text = apply_edits(text, gone)
        elif all(_core(each["text"]) != core for _, each in there):
            # Of preferences, one of a kind: the line before it goes.
            alike = [
                each
                for each in there
                if section == "Preferences" and noun_of(each[1]["text"]) == noun_of(said)
            ]
            if all(each["since"] <= since for _, each in alike):
                marks = f"severity={severity_of(said)} " if section == "Constraints" else ""
                text = add_line(text, section, f"- {said} %%{marks}since={since}%% [[{link}]]")
                text = apply_edits(text, [cut for cut, _ in alike])
    return text


def with_disputes(
    text: str, changes: Mapping[str, Change], at: datetime, link: str, *, is_read: bool
) -> str:
    """Return the profile's note with marks on what a turn says has changed. Every other byte stays.

    `changes` are the sentences that say so. Where the turn states no trait that was read, the sentence itself is kept
    in the section, so that both are shown.
    """
    since = f"{at.astimezone():%Y-%m-%d}"
    for sentence, change in changes.items():
        for section in SECTIONS:
            bullets = [each for each in _bullets(text, section) if each[1]["since"] <= since]
            bullets = [each for each in bullets if "disputed" not in each[1]]
            subjects = [
                StatedSubject(subject_of(_as_sentence(bullet["text"])), None)
                for _, bullet in bullets
            ]
            doubtful = find_doubtful(subjects, change)
            text = apply_edits(
                text, [_with_mark(text, bullets[index][0], since) for index in doubtful]
            )
            if doubtful and not is_read:
                text = add_line(text, section, f"- {sentence} %%since={since}%% [[{link}]]")
    return text


def _as_sentence(statement: str) -> str:
    """Return what a bullet says as the person would say it."""
    return statement if re.match(r"I\b|My\b", statement) else f"I am {statement}"


def _with_mark(text: str, cut: tuple[int, int, str], since: str) -> tuple[int, int, str]:
    """Return the edit that marks the bullet at a place of a note as disputed."""
    start, end, _ = cut
    line = text[start:end]
    if "%%" in line:
        marked = re.sub(r"%%(?=[^%\n]*%%)", f"%%disputed={since} ", line, count=1)
    else:
        statement, ending = line.rstrip(), line[len(line.rstrip()) :]
        marked = f"{statement} %%disputed={since}%%{ending}"
    return start, end, marked


def _core(text: str) -> set[str]:
    """The words of a statement that make it what it is."""
    return {*re.findall(r"\w+", text.lower())} - _IN_EVERY_TRAIT
