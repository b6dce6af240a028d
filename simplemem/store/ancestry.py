"""Which text a note and a conflict copy of it both began as, as far as the history knows.

A change of ours says what a text was made of, so ancestors are known back to where another program wrote. Where they meet,
the base is certain. A copy usually comes from another device and has no ancestors here: then it is likely the version from
which the least had to change to come to both. Versions between that one and either of the two would do as well by this
measure, so of equals the oldest is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from simplemem.errors import SimplememError
from simplemem.memory import ConflictCopy
from simplemem.note.copies import are_akin
from simplemem.store.core import Core
from simplemem.store.from_git import commits_of
from simplemem.vault.disk import sha256

_MOST_VERSIONS = 200
_AKIN = 0.4  # a base that has less in common with either than this would explain nothing


@dataclass(frozen=True, slots=True)
class Base:
    """The text both began as, and the version that it is. `certain`: changes of ours lead from it to both."""

    text: str
    where: str
    certain: bool


def find_base(core: Core, copy: ConflictCopy, note: bytes, other: bytes) -> Base | None:
    """The text that a note and a copy of it both began as; None where the history cannot tell."""
    parents: dict[str, str] = {}
    named: dict[str, str] = {}  # the versions of both, the newest first
    for path in (copy.original, copy.path):
        for version in core.changes.of(path, _MOST_VERSIONS):
            if version.after is not None:
                named.setdefault(version.after, f"version {version.id}")
            if version.before is not None:
                named.setdefault(version.before, f"the version before {version.id}")
                if version.after is not None and version.after != version.before:
                    parents.setdefault(version.after, version.before)
    mine, yours = sha256(note), sha256(other)
    my_line, your_line = _line(mine, parents), _line(yours, parents)
    common = next((text for text in my_line if text in your_line), None)
    content = core.vault.history.content
    if common is not None:
        data = {mine: note, yours: other}.get(common) or content(common)
        return _base(data, named.get(common, ""), certain=True)
    texts = [(content(hash_), where) for hash_, where in named.items() if hash_ not in (mine, yours)]
    kept = [(data, where) for data, where in texts if data is not None]
    if kept and texts[-1][0] is None:
        kept.pop()  # older versions were dropped, and the true one may be among those
    kept += [(data, where) for data, where in _committed(core, copy.original) if sha256(data) not in (mine, yours)]
    likely = [(data, where) for data, where in reversed(kept) if _is_akin(data, note) and _is_akin(data, other)]
    if not likely:
        return None
    data, where = min(likely, key=lambda each: _distance(each[0], note) + _distance(each[0], other))
    return _base(data, where, certain=False)


def _committed(core: Core, path: str) -> list[tuple[bytes, str]]:
    """The versions of a note in git, the newest first. That one commit came after another does not say that the later
    text was made of the earlier: a synchroniser may have brought it. So they are likely, never certain."""
    commits = commits_of(core, path, _MOST_VERSIONS)
    if not commits:
        return []
    from simplemem.vault.git import short, texts

    try:
        of = texts(core.root, [commit.after for commit in commits if commit.after is not None])
    except SimplememError:
        return []
    return [(of[commit.after], f"commit {short(commit.commit)}") for commit in commits if commit.after in of]


def _line(text: str, parents: Mapping[str, str]) -> list[str]:
    """A text and its ancestors, the nearest first."""
    found = [text]
    while (before := parents.get(found[-1])) is not None and before not in found:
        found.append(before)
    return found


def _is_akin(one: bytes, other: bytes) -> bool:
    return are_akin(one.decode("utf-8", "replace"), other.decode("utf-8", "replace"), share=_AKIN)


def _distance(one: bytes, other: bytes) -> int:
    ours, theirs = Counter(one.split(b"\n")), Counter(other.split(b"\n"))
    return sum((len(line) + 1) * count for line, count in ((ours - theirs) + (theirs - ours)).items())


def _base(data: bytes | None, where: str, *, certain: bool) -> Base | None:
    try:
        return None if data is None else Base(data.decode("utf-8"), where, certain)
    except UnicodeDecodeError:
        return None
