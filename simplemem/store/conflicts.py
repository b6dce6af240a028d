"""Two texts of one note: a change that lost a race, and a copy that a synchroniser left. Either is offered as a merge,
and only the merge that was shown is written: the same call accepts it, with `if_sha256` naming both: `BASE+CURRENT`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, Unpack

from simplemem.errors import Conflict, Invalid, NotFound, SimplememError, Unreadable
from simplemem.memory import By, ConflictCopy, ConflictMerge, ConflictMerged
from simplemem.note.diff import LONG_DIFF, WHAT_YOU_HAD, unified_diff
from simplemem.note.merge import Merged, merge
from simplemem.note.names import base_name, clean_reference, name_of
from simplemem.note.note import read_note
from simplemem.note.words import counted
from simplemem.store.core import Core, change_by
from simplemem.store.git_history import commits_of
from simplemem.store.undo import carry_out
from simplemem.store.write import Making, encoded, judge, stamp_modified
from simplemem.vault.disk import sha256
from simplemem.vault.vault import File, Wish

Keep = Literal["merge", "note", "copy", "marked"]
_MOST_VERSIONS = 200
_DIGITS = 12  # of each hash in an offer
_READ_AGAIN = "Read the note again, apply your change to its current text, and pass its sha256."


def settled(core: Core, file: File, making: Making, if_sha256: str) -> str | None:
    """The text that a change which names another text than the one that is there comes to. None when it was made
    already, by this very call whose answer was lost (durability.md F66); Conflict when it lost a race."""
    base_sha256, accepting, current = if_sha256.partition("+")
    kept, given_out = (
        core.vault.history.content,
        core.remembered,
    )  # by the beginning of a hash, and by all of it
    base = kept(base_sha256) or given_out(base_sha256)
    if accepting and base is None:
        message = f"the version of {name_of(file.path)} that your change is based on is no longer in the history"
        raise Conflict(message, current_sha256=file.sha256, hint=_READ_AGAIN)
    both = _merged(base, making, file.data)
    if accepting and file.sha256.startswith(current):
        if not making.whole:
            read_note(file.data).must_be_editable(name_of(file.path))
        if both is not None and both[1].clean:
            return both[1].text
    else:
        if making.whole and encoded(making.make(read_note(file.data))) == file.data:
            return None
        seen = kept(current) or given_out(current) if accepting else base
        made = _merged(base, making, seen) if seen is not None else None
        if seen is not None and made is not None and made[1].clean:
            if _is_but_for_its_time(made[1].text, file.data):
                return None
            _refuse_repeated(core, file, seen, made[1].text)
    raise _lost(core, file, base, both)


def _refuse_repeated(core: Core, file: File, seen: bytes, text: str) -> None:
    """Conflict, and nothing offered, when this very change was made already of what was `seen`, and others followed."""
    for version in core.changes.of(file.path, 20):  # a call is repeated soon, if at all
        if version.op not in ("update", "move"):
            break  # taken back, or another note since
        if version.before == sha256(seen) and version.before != version.after:
            made = core.vault.history.content(version.after or "")
            if made is not None and _is_but_for_its_time(text, made):
                message = f"{name_of(file.path)} already has this change, as version {version.id}, and later changes"
                diff, hint = (
                    unified_diff(made, file.data, WHAT_YOU_HAD),
                    "Read the note: there may be nothing left to do.",
                )
                raise Conflict(message, current_sha256=file.sha256, diff=diff, hint=hint)


def _merged(base: bytes | None, making: Making, now: bytes) -> tuple[str, Merged] | None:
    """What the change makes of its base, and that merged with what is there now; None if it does not fit."""
    if base is None:
        return None
    try:
        base.decode("utf-8"), now.decode("utf-8")
        ours = making.make(read_note(base))
    except (UnicodeDecodeError, SimplememError):
        return None
    merged = merge(
        read_note(base).text, ours, read_note(now).text, ("your change", "the note as it is now")
    )
    if making.again and not merged.clean:
        with suppress(SimplememError):
            merged = Merged(making.make(read_note(now)), 0)
    return ours, merged


def _lost(core: Core, file: File, base: bytes | None, both: tuple[str, Merged] | None) -> Conflict:
    """The failure that says what is there now and what the change would make of it. The texts it names are kept."""
    message = f"{name_of(file.path)} has changed since it was read"
    details: dict[str, Any] = {
        "current_sha256": file.sha256,
        "diff": unified_diff(base, file.data, WHAT_YOU_HAD),
    }
    if base is None or both is None:
        return Conflict(message, **details, hint=_READ_AGAIN)
    ours, merged = both
    judge(core.settings, name_of(file.path), base.decode("utf-8"), ours)
    ours_data, data = (text.encode("utf-8", "surrogatepass") for text in (ours, merged.text))
    for text in (base, file.data, ours_data):
        core.vault.keep_text(text)
    shown: dict[str, Any] = {
        "clean": merged.clean,
        "conflicts": merged.conflicts,
        "sha256": sha256(data),
    }
    shown["diff"] = unified_diff(file.data, data, ("the current text", "both changes merged"))
    shown |= (
        {"text": merged.text} if len(merged.text) <= 4_000 else {}
    )  # a long one is read instead
    details |= {"base_sha256": sha256(base), "ours_sha256": sha256(ours_data), "merged": shown}
    hint = (
        "Both changes touch the same lines. Apply yours to the current text, and pass its sha256."
    )
    if merged.clean:
        offer = details["accept"] = f"{sha256(base)[:_DIGITS]}+{file.sha256[:_DIGITS]}"
        hint = f'The changes do not overlap. Repeat the call with if_sha256="{offer}" to write the merge.'
    return Conflict(message, **details, hint=hint)


def _is_but_for_its_time(text: str, now: bytes) -> bool:
    """Whether a note is this text, but for the time that our write stamped on it."""
    modified = read_note(now).string("modified")
    with suppress(Invalid):
        return encoded(stamp_modified(text, modified) if modified else text) == now
    return False


def conflict_copies(core: Core) -> tuple[ConflictCopy, ...]:
    """The files that synchronisers and git left beside notes that were changed in two places."""
    return tuple(
        ConflictCopy(name_of(at), at, name_of(of), of, by)
        for at, of, by in core.index.conflict_copies()
    )


def conflict_merges(
    core: Core, name: str | None = None, *, together: bool = False
) -> tuple[ConflictMerge, ...]:
    """What a merge would make of the copy, or the copies of the note, that has this name; without one, of all copies.

    Each is of its copy alone. `together`, several copies of a note are merged one after the other: the text of each has
    what those before it added, and `merge_conflicts` writes them as one change.
    """
    copies = found = conflict_copies(core)
    if name is not None:
        wanted = clean_reference(name).removesuffix(".md")
        found = tuple(
            e for e in copies if wanted in (e.name, e.of, base_name(e.path), base_name(e.original))
        )
        if not found:
            message = f"no conflict copy called {name!r}, and no note of that name has one"
            candidates = [copy.name for copy in copies][:10]
            raise NotFound(
                message,
                hint="`simplemem conflicts` lists the conflict copies.",
                candidates=candidates,
            )
    if not together:
        return tuple(_preview(core, copy) for copy in found)
    merged: dict[str, str] = {}  # by note: its text with the copies before
    taken: set[tuple[str, str]] = (
        set()
    )  # each note, with the hash of each copy that was merged into it
    merges = []
    for copy in found:
        so_far = merged.get(copy.original)
        merge = _preview(core, copy, so_far)
        identity = (copy.original, merge.copy_sha256)
        if so_far is not None and identity in taken:
            merge = replace(merge, text=so_far, clean=True, conflicts=0, diff="")
        if merge.text is not None:
            merged[copy.original] = merge.text
            taken.add(identity)
        merges.append(merge)
    return tuple(merges)


def _preview(core: Core, copy: ConflictCopy, so_far: str | None = None) -> ConflictMerge:
    """What a merge would make of a copy and its note, or of a copy and what earlier merges made of its note."""
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
    ours = _decoded(note.data) if so_far is None else so_far
    merged = merge(base, ours, _decoded(other.data), sides)
    diff = unified_diff(
        ours.encode(), merged.text.encode(), (copy.original, "both changes merged"), LONG_DIFF
    )
    return ConflictMerge(copy, merged.text, where, merged.clean, merged.conflicts, diff, *hashes)


def _likely_base(core: Core, copy: ConflictCopy, note: File, other: File) -> tuple[str | None, str]:
    """The text that a note and a copy of it likely began as, the nearest to both, and which version that is."""
    named, states = dict[str, str](), [note.sha256]  # the newest first
    for version in core.changes.of(copy.original, _MOST_VERSIONS):
        for sha, said in (
            (version.after, f"version {version.id}"),
            (version.before, f"the version before {version.id}"),
        ):
            if sha is not None:
                named.setdefault(sha, said)
                states.append(sha)
    oldest, at = {sha: place for place, sha in enumerate(states)}, 0
    while at < len(states):  # what the note was made of; what was taken back is passed over
        if states[at] == other.sha256:
            return _decoded(other.data), named.get(other.sha256, "")  # nothing in the copy is new
        at = oldest[states[at]] + 1
    texts = [(core.vault.history.content(sha), where) for sha, where in named.items()]
    texts += [
        (each.after, f"commit {each.commit[:10]}")
        for each in commits_of(core, copy.original, _MOST_VERSIONS)
    ]
    (mine, yours), likely = (_decoded(note.data), _decoded(other.data)), []
    for age, (data, where) in enumerate(texts):
        if data is not None and data not in (note.data, other.data):
            text = _decoded(data)
            distance = _distance(text, mine) + _distance(text, yours)
            if distance < len(mine) + len(yours):  # else it would explain nothing
                likely.append((distance, -age, text, where))  # of equals the oldest
    return min(likely)[2:] if likely else (None, "")


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _distance(one: str, other: str) -> int:
    ours, theirs = Counter(one.split("\n")), Counter(other.split("\n"))
    return sum(
        (len(line) + 1) * count for line, count in ((ours | theirs) - (ours & theirs)).items()
    )


def merge_conflict(
    core: Core, merge: ConflictMerge, *, keep: Keep = "merge", **by: Unpack[By]
) -> ConflictMerged:
    """Write what was shown, or `keep` one text, or both "marked" where they differ; and put the copy into the trash."""
    return merge_conflicts(core, [merge], keep=keep, **by)[0]


def merge_conflicts(
    core: Core, merges: Sequence[ConflictMerge], *, keep: Keep = "merge", **by: Unpack[By]
) -> tuple[ConflictMerged, ...]:
    """Write what was shown for copies of one note that were merged `together`, and put all copies into the trash.

    It is one change, which one undo takes back. Nothing is written when one of the copies cannot be merged as `keep`
    says (Conflict, Unreadable), when the note or a copy has changed since (Conflict), or when `keep` is "copy" and the
    copies differ (Invalid).
    """
    core.must_be_writable()
    for planned in merges:
        _must_be_mergeable(planned, keep)
    copy, note_sha256 = merges[0].copy, merges[0].note_sha256
    data = _text_kept(core, merges, keep)
    warnings: list[str] = []
    if data is not None:
        before = _decoded(core.vault.read(copy.original).data)
        warnings = judge(core.settings, copy.of, before, _decoded(data))

    is_rewritten = data is not None and sha256(data) != note_sha256
    with core.vault.lock():
        wishes = [Wish.update(planned.copy.path, planned.copy_sha256, None) for planned in merges]
        if is_rewritten:
            wishes.insert(0, Wish.update(copy.original, note_sha256, data))
        elif (now := core.vault.read(copy.original).sha256) != note_sha256:
            raise Conflict(
                f"{copy.of!r} has changed since it was compared with its copy",
                current_sha256=now,
                hint="Compare the two again.",
            )
        written, _ = carry_out(core, wishes, change_by(by, "conflicts"))

    digest = (written[0].sha256 if is_rewritten else note_sha256) or ""
    done = []
    for planned in merges:
        is_new = is_rewritten and (keep == "copy" or planned.diff != "")
        done.append(
            ConflictMerged(
                copy.of, planned.copy.name, digest, written[0].version, is_new, tuple(warnings)
            )
        )
        warnings = []  # they are said once
    return tuple(done)


def _must_be_mergeable(merge: ConflictMerge, keep: Keep) -> None:
    """Conflict or Unreadable when a copy cannot be merged without a decision that `keep` does not make."""
    if keep in ("copy", "note"):
        return
    name = merge.copy.name
    if merge.text is None:
        hint = "Keep one of the two with --keep note or --keep copy, or fix it in an editor first."
        raise Unreadable(f"{name} cannot be merged: {merge.problem}", hint=hint)
    if keep == "merge" and not merge.clean:
        hint = "Pass --keep note or --keep copy to keep one text, or --keep both to mark the differences in the note."
        message = (
            f"{merge.copy.of} and its copy {name} differ in {counted(merge.conflicts, 'place')}"
        )
        raise Conflict(message, current_sha256=merge.note_sha256, diff=merge.diff, hint=hint)


def _text_kept(core: Core, merges: Sequence[ConflictMerge], keep: Keep) -> bytes | None:
    """What the note shall be; None where it stays as it is."""
    if keep == "note":
        return None
    if keep == "copy":
        if len({merge.copy_sha256 for merge in merges}) > 1:
            names = ", ".join(merge.copy.name for merge in merges)
            message = f"{merges[0].copy.of} has {len(merges)} copies that differ: {names}"
            raise Invalid(
                message,
                hint="Merge the copy to keep by its own name, then the others with --keep note.",
            )
        return core.vault.read(merges[0].copy.path).data
    text = merges[-1].text or ""
    return text.encode("utf-8", "surrogatepass")
