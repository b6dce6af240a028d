"""Which note a file is a conflict copy of, from its name alone, as synchronisers and git spell them. Pure.

Where two devices changed a note at the same time, a synchroniser keeps both: one under the note's name, the other beside it
under a name like it. Some of these names nobody else gives; others ("Chapter 2") people give as well, and then the texts
decide (`are_akin`).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

from simplemem.note.header import read_header

COPY_REASON: Final = "a conflict copy made by "
_MOST_MARKS: Final = 5  # copies are copied in turn, but not for ever
_AKIN: Final = 0.75


@dataclass(frozen=True, slots=True)
class ConflictName:
    """What a name says: the path of the note it would be a copy of, who keeps such copies, and, where it stands there, the
    person or device and the date. Not `certain`: people give such names too."""

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
_CONFLICTED: Final = (
    "conflicted copy|conflict copy|in konflikt stehende kopie|konfliktkopie|copie en conflit|copia en conflicto|"
    "copia conflictiva|còpia en conflicte|copia in conflitto|cópia em conflito|конфликтующая копия|の競合コピー|冲突副本"
)
_PART: Final = r"[^()]*(?:\([^()]*\)[^()]*)?"  # a device may be called `MacBook Pro (2)`
# Who keeps copies under such a name, and whether nobody else gives it. The first that fits says it.
_SAID: Final = rf"(?P<said>(?i:{_PART}(?:{_CONFLICTED}){_PART}|SFConflict [^()]+))"
_CASE: Final = r"(?:Case|Selective Sync|Unicode Encoding|Whitespace) Conflict(?: \(?\d+\)?)?"
_MARKS: Final = tuple(
    (maker, certain, re.compile(pattern))
    for maker, certain, pattern in (
        ("Syncthing", True, r"(?P<stem>.+)\.sync-conflict-(?P<day>\d{8})-\d{6}(?:-(?P<by>[A-Z0-9]{5,8}))?"),
        ("Dropbox", True, rf"(?P<stem>.*\S) \({_SAID}\)(?:-\d+)?"),
        ("Dropbox", True, rf"(?P<stem>.*\S) \({_CASE}\)"),
        ("pCloud", True, r"(?P<stem>.*\S) (?:\(conflicted(?: \d+)?\)|\[conflicted(?: \d+)?\])"),
        ("ownCloud", True, r"(?P<stem>.+)_conflict-(?P<day>\d{8})-\d{6}"),
        ("git", True, r"(?P<stem>.+)[_.](?:BACKUP|BASE|LOCAL|REMOTE)[_.]\d+"),
        ("OneDrive", False, r"(?P<stem>.*\S)-(?P<by>(?:DESKTOP|LAPTOP|WIN)-[A-Z0-9]{4,})(?:-\d{1,2})?"),
        ("a synchroniser", False, r"(?P<stem>.*\S) \(\d{1,2}\)"),
        ("iCloud", False, r"(?P<stem>.*\S) (?:[2-9]|[1-9]\d)"),  # its first copy is the second
    )
)
_GIT: Final = re.compile(r"(?P<note>.+\.md)(?:~(?P<by>[^~]+)|\.orig)", re.IGNORECASE)
# Who keeps a copy `(Ada's conflicted copy 2026-01-01)` shows in how the date is written.
_DATE: Final = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)")
_OBSIDIAN: Final = re.compile(r"conflicted copy (?P<by>.*?) ?\d{12}", re.IGNORECASE)
_NEXTCLOUD: Final = re.compile(r"[^()]*\d{4}-\d\d-\d\d \d{6}")
_WHOSE: Final = re.compile(
    rf"(?P<before>.*?)(?:['’]?s)? ?(?:{_CONFLICTED})(?: (?:de|di|von) (?P<after>.*?))?", re.IGNORECASE
)


def conflict_name(path: str) -> ConflictName | None:
    """What a path says of itself, None for an ordinary one. A copy of a copy leads to the note they both began with."""
    found = _mark_of(path)
    for _ in range(_MOST_MARKS if found is not None else 0):
        assert found is not None
        further = _mark_of(found.original)
        if further is None or (found.certain and not further.certain):
            break
        found = replace(found if found.certain or not further.certain else further, original=further.original)
    return found


def _mark_of(path: str) -> ConflictName | None:
    """One mark taken off the end of a name."""
    folder, slash, name = path.rpartition("/")
    above, stem, ending = folder + slash, name[:-3], name[-3:]
    if ending.casefold() != ".md":
        left = _GIT.fullmatch(name)
        return None if left is None else ConflictName(above + left["note"], "git", certain=True, by=left["by"] or "")
    if not stem or not (stem[-1] in ")]" or stem[-1].isdigit() or stem[-1].isupper()):
        return None  # no mark ends otherwise
    for maker, certain, pattern in _MARKS:
        if found := pattern.fullmatch(stem):
            said = found.groupdict()
            by, when = said.get("by") or "", _day(said.get("day") or said.get("said") or "")
            if "said" in said:
                maker, by = _maker_and_device(found["said"])
            return ConflictName(f"{above}{found['stem']}{ending}", maker, certain, by.strip(), when)
    return None


def _maker_and_device(said: str) -> tuple[str, str]:
    if said.startswith("SFConflict "):
        return "Seafile", said.split()[1]
    if obsidian := _OBSIDIAN.fullmatch(said):
        return "Obsidian Sync", obsidian["by"]
    if _NEXTCLOUD.fullmatch(said):
        return "Nextcloud", ""
    whose = _WHOSE.fullmatch(_DATE.split(said, maxsplit=1)[0].strip())
    return "Dropbox", (whose["after"] or whose["before"] or "") if whose else ""


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
