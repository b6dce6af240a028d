"""Which note a file is a conflict copy of, from its name alone, as synchronisers and git spell them. Pure.

Where two devices changed a note at the same time, a synchroniser keeps both: one under the note's name, the other beside
it under a name like it. Some of these names nobody else gives; others ("Chapter 2") people give as well, and then the
texts decide (`are_akin`).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from simplemem.note.header import read_header

COPY_REASON = "a conflict copy made by "
_MOST_MARKS = 5  # copies are copied in turn, but not for ever
_AKIN = 0.75


@dataclass(frozen=True, slots=True)
class ConflictName:
    """What a name says: the path of the note it would be a copy of, who keeps such copies, and, where it stands there,
    the person or device and the date. Not `certain`: people give such names too."""

    original: str
    maker: str
    certain: bool
    by: str = ""
    when: str = ""

    @property
    def reason(self) -> str:
        """Why it is left out of recall."""
        return COPY_REASON + self.maker


def is_copy_reason(hidden: str | None) -> bool:
    """Whether a note is left out of recall because it is a conflict copy."""
    return hidden is not None and hidden.startswith(COPY_REASON)


# Dropbox says it in the language of the computer; these are spellings seen in people's folders.
_CONFLICTED = (
    "conflicted copy|conflict copy|in konflikt stehende kopie|konfliktkopie|copie en conflit|copia en conflicto|"
    "copia conflictiva|còpia en conflicte|copia in conflitto|cópia em conflito|конфликтующая копия|の競合コピー|冲突副本"
)
_WORDS = r"[^()]*(?:\([^()]*\)[^()]*)?"  # a device may be called `MacBook Pro (2)`
_PARENTHESIS = re.compile(
    rf"(?P<stem>.*\S) \((?P<said>{_WORDS}(?:{_CONFLICTED}){_WORDS}|SFConflict [^()]+)\)(?:-\d+)?", re.IGNORECASE
)
_PLAIN_WORDS = re.compile(
    r"(?P<stem>.*\S) (?:\((?:(?:Case|Selective Sync|Unicode Encoding|Whitespace) Conflict(?: \(?\d+\)?)?)\)"
    r"|(?P<pcloud>\(conflicted(?: \d+)?\)|\[conflicted(?: \d+)?\]))"
)
_SYNCTHING = re.compile(r"(?P<stem>.+)\.sync-conflict-(?P<day>\d{8})-\d{6}(?:-(?P<by>[A-Z0-9]{5,8}))?")
_OWNCLOUD = re.compile(r"(?P<stem>.+)_conflict-(?P<day>\d{8})-\d{6}")
_MERGETOOL = re.compile(r"(?P<stem>.+)[_.](?:BACKUP|BASE|LOCAL|REMOTE)[_.]\d+")
_GIT = re.compile(r"(?P<note>.+\.md)(?:~(?P<by>[^~]+)|\.orig)", re.IGNORECASE)
_ONEDRIVE = re.compile(r"(?P<stem>.*\S)-(?P<by>(?:DESKTOP|LAPTOP|WIN)-[A-Z0-9]{4,})(?:-\d{1,2})?")
_NUMBERED = re.compile(r"(?P<stem>.*\S) \(\d{1,2}\)")
_ICLOUD = re.compile(r"(?P<stem>.*\S) (?:[2-9]|[1-9]\d)")  # its first copy is the second

_DATE = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)")
_OBSIDIAN = re.compile(r"conflicted copy (?P<by>.*?) ?(?P<day>\d{8})\d{4}", re.IGNORECASE)
_NEXTCLOUD = re.compile(r"[^()]*(?P<day>\d{4}-\d\d-\d\d) \d{6}")
_WHOSE = re.compile(rf"(?P<before>.*?)(?:['’]?s)? ?(?:{_CONFLICTED})(?: (?:de|di|von) (?P<after>.*?))?", re.IGNORECASE)


def conflict_name(path: str) -> ConflictName | None:
    """What a path says of itself, None for an ordinary one. A copy of a copy leads to the note they both began with."""
    found = _once(path)
    if found is None:
        return None
    for _ in range(_MOST_MARKS):
        further = _once(found.original)
        if further is None or (found.certain and not further.certain):
            break
        said = found if found.certain or not further.certain else further
        found = ConflictName(further.original, said.maker, said.certain, said.by, said.when)
    return found


def _once(path: str) -> ConflictName | None:
    """One mark taken off the end of a name."""
    folder, slash, name = path.rpartition("/")
    above = folder + slash
    if not name.casefold().endswith(".md"):
        left = _GIT.fullmatch(name)
        return None if left is None else ConflictName(above + left["note"], "git", certain=True, by=left["by"] or "")
    stem, ending = name[:-3], name[-3:]
    if not stem or not (stem[-1] in ")]" or stem[-1].isdigit() or stem[-1].isupper()):
        return None  # no mark ends otherwise

    def note(found: re.Match[str], maker: str, *, certain: bool = True, by: str = "", when: str = "") -> ConflictName:
        return ConflictName(f"{above}{found['stem']}{ending}", maker, certain, by.strip(), when)

    if found := _SYNCTHING.fullmatch(stem):
        return note(found, "Syncthing", by=found["by"] or "", when=_day(found["day"]))
    if found := _PARENTHESIS.fullmatch(stem):
        return _parenthesis(found, f"{above}{found['stem']}{ending}")
    if found := _PLAIN_WORDS.fullmatch(stem):
        return note(found, "pCloud" if found["pcloud"] else "Dropbox")
    if found := _OWNCLOUD.fullmatch(stem):
        return note(found, "ownCloud", when=_day(found["day"]))
    if found := _MERGETOOL.fullmatch(stem):
        return note(found, "git")
    if found := _ONEDRIVE.fullmatch(stem):
        return note(found, "OneDrive", certain=False, by=found["by"])
    if found := _NUMBERED.fullmatch(stem):
        return note(found, "a synchroniser", certain=False)
    if found := _ICLOUD.fullmatch(stem):
        return note(found, "iCloud", certain=False)
    return None


def _parenthesis(found: re.Match[str], original: str) -> ConflictName:
    """`(Ada's conflicted copy 2026-01-01)` and its kin: who keeps such a copy shows in how the date is written."""
    said = found["said"]
    when = _day(said)
    if said.startswith("SFConflict "):
        return ConflictName(original, "Seafile", certain=True, by=said.split()[1], when=when)
    if obsidian := _OBSIDIAN.fullmatch(said):
        return ConflictName(original, "Obsidian Sync", certain=True, by=obsidian["by"], when=_day(obsidian["day"]))
    if _NEXTCLOUD.fullmatch(said):
        return ConflictName(original, "Nextcloud", certain=True, when=when)
    plain = _DATE.split(said, maxsplit=1)[0].strip()
    whose = _WHOSE.fullmatch(plain)
    by = (whose["after"] or whose["before"] or "") if whose else ""
    return ConflictName(original, "Dropbox", certain=True, by=by.strip(), when=when)


def _day(text: str) -> str:
    found = _DATE.search(text)
    return "" if found is None else "-".join(found.groups())


def are_akin(one: str, other: str, share: float = _AKIN) -> bool:
    """Whether two texts are versions of one: of what stands in both bodies, three quarters stand in the other as well.
    Two empty ones are only two notes that nobody has written yet."""
    ours, theirs = _lines(one), _lines(other)
    total = _size(ours) + _size(theirs)
    return total > 0 and 2 * _size(ours & theirs) >= share * total


def _lines(text: str) -> Counter[str]:
    """The lines of a body. Headers are left out: notes of one template are not copies of each other."""
    body = text[read_header(text).body_start :]
    return Counter(line for each in body.split("\n") if (line := each.strip()))


def _size(lines: Counter[str]) -> int:
    return sum(len(line) * count for line, count in lines.items())
