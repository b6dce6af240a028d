"""What a person says of themselves, by rules: a name, constraints, preferences, languages; and the profile as the note
`profiles/default.md`, a bullet a statement. Taking a bullet out forgets it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple, TypedDict

from simplemem.kinds.kind import Kind
from simplemem.kinds.talk.block import Kept, kept, moment_of, stamp
from simplemem.kinds.talk.cues import PATTERNS, rules, words
from simplemem.kinds.talk.facts import span_of, stated, with_line
from simplemem.note.properties import set_property, spliced
from simplemem.note.words import STOP_WORDS
from simplemem.store import Read

SECTIONS: Final = ("Constraints", "Preferences", "Identity")
_RULES: Final = rules("traits")
_NO_NAMES: Final = words("no_name")
_IN_EVERY_TRAIT: Final = STOP_WORDS | words("trait")
_BULLET: Final = re.compile(r"(?m)^[-*+] (?P<text>.*?)(?: %%(?P<marks>[^%\n]*)%%)?(?: \[\[[^\[\]\n]*\]\])*[ \t]*\r?$")


class Trait(NamedTuple):
    """Something a person said of themselves."""

    section: str  # one of the sections, "name", or "gone" for what is taken back
    text: str


class Constraint(TypedDict):
    """What holds whatever is asked."""

    text: str
    severity: str
    since: str


@dataclass(frozen=True)
class Profile(Kept):
    """The person, as the note has it; without one, nothing is known."""

    name: str = ""
    constraints: tuple[Constraint, ...] = ()
    preferences: Mapping[str, str] = field(default_factory=dict)
    identity: tuple[str, ...] = ()
    modified: str = ""


def traits(message: str) -> list[Trait]:
    """What a user's message says of the user; moods, plans and other people are nothing."""
    found: dict[Trait, None] = {}
    for sentence in stated(message):
        for section, rule in _RULES:
            for match in rule.finditer(sentence):
                text = " ".join(match["says"].split())
                if section != "name" or text.split()[0] not in _NO_NAMES:
                    found[Trait(section, re.sub(r"\Aan? | any ?more\Z", "", text))] = None
    return list(found)


def severity_of(constraint: str) -> str:
    """How strict a constraint is by its own words."""
    return "strict" if PATTERNS["strict"].search(constraint) else "firm"


def read_profile(read: Read) -> Profile:
    """The profile that a note is; bullets a person wrote count like ours."""
    note, where = kept(read, PROFILE)
    constraints, preferences, identity = (map(_said, _bullets(read.text, section)) for section in SECTIONS)
    return Profile(
        name=note.string("name") or "",
        constraints=tuple(constraints),
        preferences={noun_of(each["text"]): each["text"] for each in preferences},
        identity=tuple(each["text"] for each in identity),
        modified=stamp(at) if (at := moment_of(note.string("modified") or "")) else "",
        **where,
    )


PROFILE: Final[Kind[Profile]] = Kind("profiles", "profile", read=read_profile, place=lambda profile: profile.path)


def _said(bullet: re.Match[str]) -> Constraint:
    marks = dict(re.findall(r"\b(severity|since)=(\S+)", bullet["marks"] or ""))
    return {"text": bullet["text"], "severity": severity_of(bullet["text"]), "since": "", **marks}


def _bullets(text: str, section: str) -> list[re.Match[str]]:
    return list(_BULLET.finditer(text, *(span_of(text, section) or (0, 0))))


def noun_of(statement: str) -> str:
    """What a preference is about: its last word that says something, before what it is preferred to."""
    words = re.findall(r"[^\W_][\w'’-]*", re.split(r" (?:to|over|than|for|when|with) ", statement.lower())[0])
    return next((word for word in reversed(words) if word not in STOP_WORDS), statement.lower())


def with_traits(text: str, found: Sequence[Trait], at: datetime, link: str) -> str:
    """The profile's note with what was said, unless it says something later of that. Every other byte stays."""
    since = f"{at.astimezone():%Y-%m-%d}"

    def is_later(bullet: re.Match[str]) -> bool:
        return _said(bullet)["since"] > since

    for section, said in found:
        core, gone, there = _core(said), list[re.Match[str]](), _bullets(text, section)
        if section == "name":
            text = set_property(text, "name", said)
        elif section == "gone":
            every = (bullet for each in SECTIONS for bullet in _bullets(text, each) if not is_later(bullet))
            gone = [bullet for bullet in every if core and core <= _core(bullet["text"])]
        elif all(_core(bullet["text"]) != core for bullet in there):
            if section == "Preferences":  # one of a kind: the line before it goes
                gone = [each for each in there if noun_of(each["text"]) == noun_of(said)]
            if any(map(is_later, gone)):
                continue
            marks = f"severity={severity_of(said)} " if section == "Constraints" else ""
            text = with_line(text, section, f"- {said} %%{marks}since={since}%% [[{link}]]")
        text = spliced(text, [(each.start(), each.end() + 1, "") for each in gone])
    return text


def _core(text: str) -> set[str]:
    """The words of a statement that make it what it is."""
    return {*re.findall(r"\w+", text.lower())} - _IN_EVERY_TRAIT
