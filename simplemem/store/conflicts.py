"""Conflict copies: which there are, what a merge would make of one, and the merge as one step that can be taken back.

A copy is merged with its note by the text that both likely began as, where the history or git knows one; without it, what
only one of them has is kept. The merge writes the note and puts the copy into the trash, in one change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from simplemem.errors import Conflict, Invalid, NotFound, SimplememError, Unreadable
from simplemem.index.sidecar import Sidecar
from simplemem.memory import ConflictCopy, ConflictMerge, ConflictMerged
from simplemem.note.diff import LONG_DIFF, unified_diff
from simplemem.note.header import read_header
from simplemem.note.merge import merge
from simplemem.note.names import are_akin, clean_reference, conflict_name, name_of
from simplemem.note.note import read_note
from simplemem.store.core import Core
from simplemem.store.repository import commits_of
from simplemem.store.write import judge
from simplemem.vault.disk import sha256
from simplemem.vault.vault import Change, Wish

Keep = Literal["merge", "note", "copy", "marked"]
_MOST_VERSIONS = 200
_AKIN = 0.4  # a base that has less in common with either than this would explain nothing


def conflict_copies(index: Sidecar) -> tuple[ConflictCopy, ...]:
    """Every conflict copy whose note is there, by path."""
    named = [(path, original, conflict_name(path)) for path, original in index.conflict_copies()]
    return tuple(
        ConflictCopy(name_of(path), path, name_of(original), original, name.maker)
        for path, original, name in named
        if name
    )


def copies_meant(core: Core, name: str) -> tuple[ConflictCopy, ...]:
    """The copy that has this name, or all those of the note that has it."""
    copies, wanted = conflict_copies(core.index), clean_reference(name).removesuffix(".md")
    for names in [copy.name for copy in copies], [copy.of for copy in copies]:
        pairs = zip(copies, names, strict=True)
        if found := tuple(copy for copy, full in pairs if wanted in (full, full.rsplit("/", 1)[-1])):
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
            found.append(ConflictMerge(copy, None, "", False, 0, False, "", "", "", error.message))
    return tuple(found)


def _preview(core: Core, copy: ConflictCopy) -> ConflictMerge:
    note, other = core.vault.read(copy.original), core.vault.read(copy.path)
    hashes = (note.sha256, other.sha256)
    if problem := read_note(note.data).problem or read_note(other.data).problem:
        differs = unified_diff(note.data, other.data, (copy.original, copy.path), LONG_DIFF)
        return ConflictMerge(copy, None, "", False, 0, False, differs, *hashes, problem)
    mine, yours = (file.data.decode("utf-8", "replace") for file in (note, other))
    base, where = _likely_base(core, copy, note.data, other.data)
    sides = (copy.original.rsplit("/", 1)[-1], copy.path.rsplit("/", 1)[-1])
    merged = merge(base, mine, yours, sides)
    diff = unified_diff(note.data, merged.text.encode(), (copy.original, "both together"), LONG_DIFF)
    removes = base is not None and not _body_lines(mine) <= _body_lines(merged.text)
    return ConflictMerge(copy, merged.text, where, merged.clean, merged.conflicts, removes, diff, *hashes)


def _body_lines(text: str) -> set[str]:
    return {line.strip() for line in text[read_header(text).body_start :].split("\n")}


def carry_out(core: Core, found: ConflictMerge, keep: Keep, change: Change) -> ConflictMerged:
    """Write what was previewed, and put the copy into the trash: one change. Conflict when either has changed since."""
    core.must_be_writable()
    copy, told = found.copy, list[str]()
    data = _wanted(core, found, keep)
    if data is not None:
        before = core.vault.read(copy.original).data.decode("utf-8", "replace")
        told = judge(core.settings, copy.of, before, data.decode("utf-8", "replace"))
    paths = {copy.original, copy.path}
    with core.vault.lock():
        wishes = [Wish("delete", copy.path, before=found.copy_sha256, gone=True)]
        if data is not None and sha256(data) != found.note_sha256:
            wishes.insert(0, Wish.update(copy.original, found.note_sha256, data))
        elif (now := core.vault.read(copy.original).sha256) != found.note_sha256:
            raise Conflict(f"{copy.of!r} has changed since.", current_sha256=now, hint="Look at both again.")
        written = core.vault.carry_out(wishes, change)
        core.indexed(paths, lambda: core.look_at(paths))
        core.fill_soon()
    digest = written[0].sha256 if len(written) > 1 else found.note_sha256
    return ConflictMerged(copy.of, copy.name, digest or "", written[0].version, len(written) > 1, tuple(told))


def _wanted(core: Core, found: ConflictMerge, keep: Keep) -> bytes | None:
    """The bytes the note shall have; None where it stays as it is."""
    if keep == "note":
        return None
    if keep == "copy":
        return core.vault.read(found.copy.path).data
    if found.text is None:
        hint = "Keep one of the two with --keep note or --keep copy, or mend it in an editor first."
        raise Unreadable(f"{found.copy.name} cannot be merged: {found.problem}", hint=hint)
    if keep == "merge" and not found.clean:
        hint = "Keep one of the two with --keep note or --keep copy, or both, marked in the note, with --keep both."
        message = f"{found.copy.of} and its copy say different things in {found.conflicts} places"
        raise Conflict(message, current_sha256=found.note_sha256, diff=found.diff, hint=hint)
    if keep not in ("merge", "marked"):
        raise Invalid(f"unknown way to merge: {keep!r}", hint="Ways are: merge, note, copy, marked.")
    return found.text.encode("utf-8", "surrogatepass")


def _likely_base(core: Core, copy: ConflictCopy, note: bytes, other: bytes) -> tuple[str | None, str]:
    """The text that a note and a copy of it likely began as, and which it is: the version, of our history or of git's, from
    which the least had to change to come to both; of equals the oldest. None where none comes near.

    The copy usually comes from another device and has no history here.
    """
    named: dict[str, str] = {}  # the newest first
    states = [sha256(note)]
    for version in core.changes.of(copy.original, _MOST_VERSIONS):
        for sha, said in (version.after, f"version {version.id}"), (version.before, f"the version before {version.id}"):
            if sha is not None:
                named.setdefault(sha, said)
                states.append(sha)
    oldest, at = {sha: number for number, sha in enumerate(states)}, 0
    while at < len(states):  # what the note was made of; what was taken back is passed over
        if states[at] == sha256(other):  # an earlier version: nothing in it is new
            return other.decode("utf-8", "replace"), named.get(states[at], "")
        at = oldest[states[at]] + 1
    texts = [(core.vault.history.content(sha), where) for sha, where in named.items()]
    if texts and texts[-1][0] is None:  # the true one may be among those that were dropped
        texts = [each for each in texts if each[0] is not None][:-1]
    texts += [(each.after, f"commit {each.commit[:10]}") for each in commits_of(core, copy.original, _MOST_VERSIONS)]
    likely = [
        (_distance(data, note) + _distance(data, other), number, data.decode("utf-8", "replace"), said)
        for number, (data, said) in enumerate(reversed(texts))
        if data is not None and data not in (note, other) and _is_akin(data, note) and _is_akin(data, other)
    ]
    return min(likely)[2:] if likely else (None, "")


def _is_akin(one: bytes, other: bytes) -> bool:
    return are_akin(one.decode("utf-8", "replace"), other.decode("utf-8", "replace"), _AKIN)


def _distance(one: bytes, other: bytes) -> int:
    ours, theirs = Counter(one.split(b"\n")), Counter(other.split(b"\n"))
    return sum((len(line) + 1) * count for line, count in ((ours - theirs) + (theirs - ours)).items())
