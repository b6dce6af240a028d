"""Conflict copies: which there are, what a merge would make of one, and the merge as one step that can be taken back.

A copy is merged with its note by the text that both began as, where the history knows it; without it, what only one of
them has is kept. The merge writes the note and puts the copy into the trash, in one change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple

from simplemem.errors import Conflict, Invalid, NotFound, SimplememError, Unreadable
from simplemem.index.sidecar import Sidecar
from simplemem.memory import ConflictCopy, ConflictMerge, ConflictMerged
from simplemem.note.diff import LONG_DIFF, unified_diff
from simplemem.note.header import read_header
from simplemem.note.merge import merge
from simplemem.note.names import are_akin, clean_reference, conflict_name, name_of, path_of
from simplemem.note.note import read_note
from simplemem.store.core import Core
from simplemem.store.history import committed_texts
from simplemem.store.write import judge
from simplemem.vault.disk import sha256
from simplemem.vault.vault import Change, File

Keep = Literal["merge", "note", "copy", "marked"]
_MOST_VERSIONS = 200
_AKIN = 0.4  # a base that has less in common with either than this would explain nothing
_SPELLINGS: tuple[Callable[[ConflictCopy], str], ...] = (
    lambda copy: copy.path,
    lambda copy: copy.name,
    lambda copy: copy.name.rsplit("/", 1)[-1],
    lambda copy: copy.original,
    lambda copy: copy.of,
    lambda copy: copy.of.rsplit("/", 1)[-1],
)
"""What a person may call a copy by, the narrowest first; by the name of its note all copies of that are meant."""


def conflict_copies(index: Sidecar) -> tuple[ConflictCopy, ...]:
    """Every conflict copy whose note is there, by path."""
    return tuple(_copy(path, original) for path, original in index.conflict_copies())


def _copy(path: str, original: str) -> ConflictCopy:
    name = conflict_name(path)
    assert name is not None
    return ConflictCopy(name_of(path), path, name_of(original), original, name.maker)


def copies_meant(core: Core, name: str) -> tuple[ConflictCopy, ...]:
    """The copy that has this name, or all those of the note that has it."""
    copies = conflict_copies(core.index)
    wanted = clean_reference(name)
    sought = {name.strip(), wanted, path_of(wanted)}
    for spell in _SPELLINGS:
        if found := tuple(copy for copy in copies if spell(copy) in sought):
            return found
    raise NotFound(
        f"there is no conflict copy called {name!r}, and none of a note of that name",
        hint="`simplemem conflicts` lists those there are.",
        candidates=[copy.name for copy in copies][:10],
    )


def previews(core: Core, copies: Sequence[ConflictCopy]) -> tuple[ConflictMerge, ...]:
    """What a merge would make of each. One that went meanwhile is left out, one that cannot be read says so."""
    found = []
    for copy in copies:
        try:
            found.append(_preview(core, copy))
        except NotFound:
            continue
        except SimplememError as error:
            found.append(ConflictMerge(copy, None, "", False, 0, False, "", "", "", 0, error.message))
    return tuple(found)


def _preview(core: Core, copy: ConflictCopy) -> ConflictMerge:
    note, other = core.vault.read(copy.original), core.vault.read(copy.path)
    links = len(core.index.links(copy.path))
    found = partial(ConflictMerge, copy, note_sha256=note.sha256, copy_sha256=other.sha256, links_to_copy=links)
    differs = unified_diff(note.data, other.data, (copy.original, copy.path), LONG_DIFF)
    if note.data == other.data:
        return found(text=_text(note), base="", clean=True, conflicts=0, removes=False, diff="")
    problem = _problem(note) or _problem(other)
    if problem:
        return found(text=None, base="", clean=False, conflicts=0, removes=False, diff=differs, problem=problem)
    base = _base_of(core, copy, note.data, other.data)
    sides = (copy.original.rsplit("/", 1)[-1], copy.path.rsplit("/", 1)[-1])
    merged = merge(base.text if base else None, _text(note), _text(other), sides)
    return found(
        text=merged.text,
        base=base.where if base else "",
        clean=merged.clean,
        conflicts=merged.conflicts,
        removes=base is not None and not base.certain and _removes(_text(note), merged.text),
        diff=unified_diff(note.data, merged.text.encode(), (copy.original, "both together"), LONG_DIFF),
    )


def carry_out(core: Core, found: ConflictMerge, keep: Keep, change: Change) -> ConflictMerged:
    """Write what was previewed, and put the copy into the trash: one change. Conflict when either has changed since."""
    core.must_be_writable()
    copy = found.copy
    data = _wanted(core, found, keep)
    told: list[str] = []
    if data is not None:
        before = core.vault.read(copy.original).data.decode("utf-8", "replace")
        told = judge(core.settings, copy.of, before, data.decode("utf-8", "replace"))
    with core.vault.lock():
        written = core.vault.absorb(copy.original, data, found.note_sha256, copy.path, found.copy_sha256, change)
        for path in (copy.original, copy.path):
            core.indexed({path}, partial(core.look_at, {path}))
        core.fill_soon()
    sha256 = written[0].sha256 if len(written) > 1 else found.note_sha256
    return ConflictMerged(
        copy.of, copy.name, sha256 or "", written[0].version, len(written) > 1, found.links_to_copy, tuple(told)
    )


def _wanted(core: Core, found: ConflictMerge, keep: Keep) -> bytes | None:
    """The bytes the note shall have; None where it stays as it is."""
    if keep == "note":
        return None
    if keep == "copy":
        return core.vault.read(found.copy.path).data
    if found.text is None:
        raise Unreadable(
            f"{found.copy.name} cannot be merged: {found.problem}",
            hint="Keep one of the two with --keep note or --keep copy, or mend it in an editor first.",
        )
    if keep == "merge" and not found.clean:
        raise Conflict(
            f"{found.copy.of} and its copy say different things in {found.conflicts} "
            f"place{'' if found.conflicts == 1 else 's'}",
            current_sha256=found.note_sha256,
            diff=found.diff,
            hint="Keep one of the two with --keep note or --keep copy, or both, marked in the note, with --keep both.",
        )
    if keep not in ("merge", "marked"):
        raise Invalid(f"unknown way to merge: {keep!r}", hint="Ways are: merge, note, copy, marked.")
    return found.text.encode("utf-8", "surrogatepass")


def _problem(file: File) -> str:
    return read_note(file.data).problem or ""


def _text(file: File) -> str:
    return file.data.decode("utf-8", "replace")


def _removes(note: str, merged: str) -> bool:
    """Whether a line of the note's body is not in the merge."""
    lines, left = (
        {line.strip() for line in text[read_header(text).body_start :].split("\n")} for text in (note, merged)
    )
    return not lines <= left


# -- the text that both began as


class _Base(NamedTuple):
    """The text both began as, and the version that it is. `certain`: changes of ours lead from it to both."""

    text: str
    where: str
    certain: bool


def _base_of(core: Core, copy: ConflictCopy, note: bytes, other: bytes) -> _Base | None:
    """The text that a note and a copy of it both began as; None where the history cannot tell.

    A change of ours says what a text was made of, so where the ancestors of both meet, the base is certain. A copy usually
    comes from another device and has none here: then it is likely the version, of our history or of git's, from which the
    least had to change to come to both; of equals the oldest.
    """
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
    content = core.vault.history.content
    theirs = _ancestors(yours, parents)
    common = next((text for text in _ancestors(mine, parents) if text in theirs), None)
    if common is not None:
        return _base({mine: note, yours: other}.get(common) or content(common), named.get(common, ""), certain=True)
    texts = [(content(text), where) for text, where in named.items() if text not in (mine, yours)]
    kept = [(data, where) for data, where in texts if data is not None]
    if kept and texts[-1][0] is None:
        kept.pop()  # older versions were dropped, and the true one may be among those
    kept += [
        (data, f"commit {commit.commit[:10]}")
        for commit, data in committed_texts(core, copy.original, _MOST_VERSIONS)
        if sha256(data) not in (mine, yours)
    ]
    likely = [(data, where) for data, where in reversed(kept) if _is_akin(data, note) and _is_akin(data, other)]
    if not likely:
        return None
    data, where = min(likely, key=lambda each: _distance(each[0], note) + _distance(each[0], other))
    return _base(data, where, certain=False)


def _ancestors(text: str, parents: dict[str, str]) -> list[str]:
    """A text and what it was made of, the nearest first."""
    found = [text]
    while (before := parents.get(found[-1])) is not None and before not in found:
        found.append(before)
    return found


def _is_akin(one: bytes, other: bytes) -> bool:
    return are_akin(one.decode("utf-8", "replace"), other.decode("utf-8", "replace"), _AKIN)


def _distance(one: bytes, other: bytes) -> int:
    ours, theirs = Counter(one.split(b"\n")), Counter(other.split(b"\n"))
    return sum((len(line) + 1) * count for line, count in ((ours - theirs) + (theirs - ours)).items())


def _base(data: bytes | None, where: str, *, certain: bool) -> _Base | None:
    try:
        return None if data is None else _Base(data.decode("utf-8"), where, certain)
    except UnicodeDecodeError:
        return None
