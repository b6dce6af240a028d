"""Conflict copies: which there are, what a merge would make of one, and the merge as one step that can be taken back.

Nothing that only one of the two says is lost, unless the text that both began as shows that the other removed it."""

from __future__ import annotations

from collections import Counter
from typing import Literal, Unpack

from simplemem.errors import Conflict, NotFound, SimplememError, Unreadable
from simplemem.memory import By, ConflictCopy, ConflictMerge, ConflictMerged
from simplemem.note.diff import LONG_DIFF, unified_diff
from simplemem.note.merge import merge
from simplemem.note.names import are_akin, base_name, clean_reference, conflict_name, name_of
from simplemem.note.note import read_note
from simplemem.note.words import counted
from simplemem.store.core import Core, change_by
from simplemem.store.edit import judge
from simplemem.store.history import commits_of
from simplemem.store.undo import carry_out
from simplemem.vault.disk import sha256
from simplemem.vault.vault import File, Wish

Keep = Literal["merge", "note", "copy", "marked"]
_MOST_VERSIONS = 200
_AKIN = 0.4  # a base that has less in common with either than this would explain nothing


def conflict_copies(core: Core) -> tuple[ConflictCopy, ...]:
    """The files that synchronisers and git left beside notes that were changed in two places."""
    return tuple(
        ConflictCopy(name_of(path), path, name_of(original), original, name.maker)
        for path, original in core.index.conflict_copies()
        if (name := conflict_name(path)) is not None
    )


def conflict_merges(core: Core, name: str | None = None) -> tuple[ConflictMerge, ...]:
    """What a merge would make of the copy of this name, or of all copies of the note of this name; without one, of all
    there are. Writes nothing."""
    copies = found = conflict_copies(core)
    if name is not None:
        wanted = clean_reference(name).removesuffix(".md")
        found = tuple(
            each for each in copies if wanted in (each.name, each.of, base_name(each.path), base_name(each.original))
        )
        if not found:
            message = f"there is no conflict copy called {name!r}, and none of a note of that name"
            candidates = [copy.name for copy in copies][:10]
            raise NotFound(message, hint="`simplemem conflicts` lists those there are.", candidates=candidates)
    return tuple(_preview(core, copy) for copy in found)


def _preview(core: Core, copy: ConflictCopy) -> ConflictMerge:
    try:
        note, other = core.vault.read(copy.original), core.vault.read(copy.path)
    except SimplememError as error:
        return ConflictMerge(copy, None, "", False, 0, "", "", "", error.message)
    hashes = (note.sha256, other.sha256)
    if problem := read_note(note.data).problem or read_note(other.data).problem:
        differs = unified_diff(note.data, other.data, (copy.original, copy.path), LONG_DIFF)
        return ConflictMerge(copy, None, "", False, 0, differs, *hashes, problem)
    base, where = _likely_base(core, copy, note, other)
    sides = (copy.original.rsplit("/", 1)[-1], copy.path.rsplit("/", 1)[-1])
    merged = merge(base, _decoded(note.data), _decoded(other.data), sides)
    diff = unified_diff(note.data, merged.text.encode(), (copy.original, "both together"), LONG_DIFF)
    return ConflictMerge(copy, merged.text, where, merged.clean, merged.conflicts, diff, *hashes)


def _likely_base(core: Core, copy: ConflictCopy, note: File, other: File) -> tuple[str | None, str]:
    """The text that a note and a copy of it likely began as, and which version of our history or git's it is: that from
    which the least had to change to come to both, of equals the oldest. None where none comes near."""
    named, states = dict[str, str](), [note.sha256]  # the newest first
    for version in core.changes.of(copy.original, _MOST_VERSIONS):
        for sha, said in (version.after, f"version {version.id}"), (version.before, f"the version before {version.id}"):
            if sha is not None:
                named.setdefault(sha, said)
                states.append(sha)
    oldest, at = {sha: place for place, sha in enumerate(states)}, 0
    while at < len(states):  # what the note was made of; what was taken back is passed over
        if states[at] == other.sha256:
            return _decoded(other.data), named.get(other.sha256, "")  # nothing in the copy is new
        at = oldest[states[at]] + 1
    texts = [(core.vault.history.content(sha), where) for sha, where in named.items()]
    texts += [(each.after, f"commit {each.commit[:10]}") for each in commits_of(core, copy.original, _MOST_VERSIONS)]
    sides, likely = (_decoded(note.data), _decoded(other.data)), []
    for age, (data, where) in enumerate(texts):
        if data is not None and data not in (note.data, other.data):
            text = _decoded(data)
            if all(are_akin(text, side, _AKIN) for side in sides):
                likely.append((sum(_distance(text, side) for side in sides), -age, text, where))
    return min(likely)[2:] if likely else (None, "")


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _distance(one: str, other: str) -> int:
    ours, theirs = Counter(one.split("\n")), Counter(other.split("\n"))
    return sum((len(line) + 1) * count for line, count in ((ours | theirs) - (ours & theirs)).items())


def merge_conflict(core: Core, merge: ConflictMerge, *, keep: Keep = "merge", **by: Unpack[By]) -> ConflictMerged:
    """Write what `conflict_merges` has shown, or `keep` one of the two, or both "marked" where they differ; and put the
    copy into the trash, as one change: a Conflict when either has changed since."""
    core.must_be_writable()
    copy, told, data = merge.copy, list[str](), None
    if keep == "copy":
        data = core.vault.read(copy.path).data
    elif keep != "note":
        if merge.text is None:
            hint = "Keep one of the two with --keep note or --keep copy, or mend it in an editor first."
            raise Unreadable(f"{copy.name} cannot be merged: {merge.problem}", hint=hint)
        if keep == "merge" and not merge.clean:
            hint = "Keep one of the two with --keep note or --keep copy, or both, marked in the note, with --keep both."
            message = f"{copy.of} and its copy say different things in {counted(merge.conflicts, 'place')}"
            raise Conflict(message, current_sha256=merge.note_sha256, diff=merge.diff, hint=hint)
        data = merge.text.encode("utf-8", "surrogatepass")
    if data is not None:
        told = judge(core.settings, copy.of, _decoded(core.vault.read(copy.original).data), _decoded(data))
    with core.vault.lock():
        wishes = [Wish("delete", copy.path, before=merge.copy_sha256, gone=True)]
        if data is not None and sha256(data) != merge.note_sha256:
            wishes.insert(0, Wish.update(copy.original, merge.note_sha256, data))
        elif (now := core.vault.read(copy.original).sha256) != merge.note_sha256:
            raise Conflict(f"{copy.of!r} has changed since.", current_sha256=now, hint="Look at both again.")
        written, _ = carry_out(core, wishes, change_by(by, "conflicts"))
    digest = written[0].sha256 if len(written) > 1 else merge.note_sha256
    return ConflictMerged(copy.of, copy.name, digest or "", written[0].version, len(written) > 1, tuple(told))
