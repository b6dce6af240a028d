"""Merge two texts of one note: after a change that lost a race, or with a conflict copy.

A change lost a race if it is based on a text (`BASE`) that another writer has replaced since by
`CURRENT`. It is refused with Conflict, which shows a merge of both changes. To accept that merge,
the caller repeats the call with `if_sha256="BASE+CURRENT"`, the beginnings of both hashes. A
conflict copy is a file that a synchroniser or git left beside a note that was changed in two
places. Here too, the merge is shown first, and only the merge that was shown is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Unpack

from simplemem.errors import (
    Conflict,
    Hint,
    HintSentence,
    Invalid,
    NotFound,
    SimplememError,
    Unreadable,
)
from simplemem.index.changes import ChangeTable
from simplemem.index.service import IndexService
from simplemem.models import AuthorArgs, ConflictCopy, ConflictMerge, ConflictMerged
from simplemem.note.diff import LONG_DIFF, WHAT_YOU_HAD, unified_diff
from simplemem.note.line_merge import Merged
from simplemem.note.merge import merge
from simplemem.note.names import base_name, clean_reference, name_of
from simplemem.note.note import read_note
from simplemem.note.words import format_count
from simplemem.settings.model import Settings
from simplemem.store.edits import NoteEdit, check_text, encoded, stamp_modified
from simplemem.store.git_history import GitHistory
from simplemem.store.vault_index import NoteReader, NoteWriter, author_of_call
from simplemem.vault.source import NoteSource
from simplemem.vault.values import File, FileChange, Version, sha256

Keep = Literal["merge", "note", "copy", "marked"]
_MAX_VERSIONS = 200  # versions, and commits, searched for the text that a copy began as
# Latest changes of a note that may contain a repeated call's: it is repeated soon, if at all.
_MAX_LATER_CHANGES = 20
_MAX_TEXT_SHOWN = 4_000  # characters of a merged text in an error; a longer one is left out
_MAX_CANDIDATES = 10
_DIGITS = 12  # of each hash in `BASE+CURRENT`
_READ_AGAIN = "Read the note again, apply your change to its current text, and pass its sha256."


class _Attempt(NamedTuple):
    """What a change makes of its base: `own_text`.

    `merged` is the merge of `own_text` with another text of the same note.
    """

    own_text: str
    merged: Merged


class LostRaces:
    """Settles changes that were based on an earlier text of a note. Guards no state of its own."""

    def __init__(
        self,
        vault: NoteSource,
        changes: ChangeTable,
        reader: NoteReader,
        settings: Settings,
    ) -> None:
        self._vault = vault
        self._kept_texts = vault.history
        self._changes = changes
        self._reader = reader
        self._settings = settings

    def resolve(self, file: File, edit: NoteEdit, if_sha256: str) -> str | None:
        """Return the text to write for a change that is based on another text than the current one.

        It is the merge that `if_sha256` ("BASE+CURRENT") accepts. Returns None if the change was
        made already, by an earlier call like this one whose answer was lost. Otherwise raises
        Conflict, with a merge to accept if there is one; Invalid or TooLong if the changed text is
        not allowed; Unreadable if the note must not be rewritten.
        """
        base_sha256, plus, current_sha256 = if_sha256.partition("+")
        is_accepting = bool(plus)
        base = self._text_of(base_sha256)
        if is_accepting and base is None:
            name = name_of(file.path)
            raise Conflict(
                f"the version of {name} that your change is based on is no longer in the history",
                current_sha256=file.sha256,
                hint=_READ_AGAIN,
            )

        attempt = _try_change(base, edit, file.data)
        is_offer_current = is_accepting and file.sha256.startswith(current_sha256)
        if is_offer_current:
            if not edit.verbatim:
                read_note(file.data).check_editable(name_of(file.path))
            if attempt is not None and attempt.merged.is_clean:
                return attempt.merged.text
        else:
            # The text that an earlier call with this `if_sha256` would have replaced.
            previous = self._text_of(current_sha256) if is_accepting else base
            if self._is_made_already(file, edit, base, previous):
                return None
        raise self._conflict_with_merge(file, base, attempt)

    def _text_of(self, digest: str) -> bytes | None:
        """Return the text with this hash, from the history or the texts read last; else None.

        The beginning of a hash is enough if the history has the text.
        """
        return self._kept_texts.content(digest) or self._reader.remembered(digest)

    def _is_made_already(
        self,
        file: File,
        edit: NoteEdit,
        base: bytes | None,
        previous: bytes | None,
    ) -> bool:
        """Return whether an earlier call has made this change, and the note has not changed since.

        `base` is the text that the change is based on, `previous` the one that the earlier call
        would have replaced. Raises Conflict if the change was made and others followed.
        """
        if edit.verbatim and encoded(edit.apply(read_note(file.data))) == file.data:
            return True
        if previous is None:
            return False

        attempt = _try_change(base, edit, previous)
        if attempt is None or not attempt.merged.is_clean:
            return False
        if _equals_apart_from_modified(attempt.merged.text, file.data):
            return True
        self._check_not_among_later_changes(file, previous, attempt.merged.text)
        return False

    def _check_not_among_later_changes(self, file: File, previous: bytes, text: str) -> None:
        """Raise Conflict if a recent change of a note replaced the `previous` text by `text`.

        Other changes have followed that one, so the error offers no merge.
        """
        previous_sha256 = sha256(previous)
        for version in self._changes.of(file.path, _MAX_LATER_CHANGES):
            if version.op not in ("update", "move"):
                return  # the change was undone, or the path has another note since
            if version.before != previous_sha256 or version.before == version.after:
                continue
            result = self._kept_texts.content(version.after or "")
            if result is None or not _equals_apart_from_modified(text, result):
                continue

            name = name_of(file.path)
            raise Conflict(
                f"{name} already has this change, as version {version.id}, and later changes",
                current_sha256=file.sha256,
                diff=unified_diff(result, file.data, WHAT_YOU_HAD),
                hint="Read the note: there may be nothing left to do.",
            )

    def _conflict_with_merge(
        self, file: File, base: bytes | None, attempt: _Attempt | None
    ) -> Conflict:
        """Return the error for a change that lost a race, with a merge if there is an attempt.

        Stores the texts that the error names by their hashes in the history, so that a later call
        can refer to them. Raises Invalid or TooLong for a change that would not be allowed anyway.
        """
        message = f"{name_of(file.path)} has changed since it was read"
        details: dict[str, Any] = {
            "current_sha256": file.sha256,
            "diff": unified_diff(base, file.data, WHAT_YOU_HAD),
        }
        if base is None or attempt is None:
            return Conflict(message, **details, hint=_READ_AGAIN)

        name = name_of(file.path)
        base_text = base.decode("utf-8")
        check_text(self._settings, name, base_text, attempt.own_text)
        own_data = attempt.own_text.encode("utf-8", "surrogatepass")
        for text in (base, file.data, own_data):
            self._vault.store_text(text)

        details["base_sha256"] = sha256(base)
        details["ours_sha256"] = sha256(own_data)
        details["merged"] = _merge_details(file, attempt.merged)
        hint = (
            "Both changes touch the same lines."
            " Apply yours to the current text, and pass its sha256."
        )
        if attempt.merged.is_clean:
            base_digits = details["base_sha256"][:_DIGITS]
            current_digits = file.sha256[:_DIGITS]
            offer = f"{base_digits}+{current_digits}"
            details["accept"] = offer
            hint = Hint(
                "The changes do not overlap.",
                HintSentence(
                    "accept_merge",
                    f'Repeat the call with if_sha256="{offer}" to write the merge.',
                    argument="if_sha256",
                ),
            )
        return Conflict(message, **details, hint=hint)


def _try_change(base: bytes | None, edit: NoteEdit, current: bytes) -> _Attempt | None:
    """Return what a change makes of its base, and the merge of that with the text `current`.

    Returns None without a base, if the change cannot be applied to it, or if one of the texts is
    not UTF-8. If the merge is not clean and the change can be applied to any text (`rebasable`),
    `merged` is the change applied to `current`.
    """
    if base is None:
        return None
    try:
        base.decode("utf-8")
        current.decode("utf-8")
        own_text = edit.apply(read_note(base))
    except (UnicodeDecodeError, SimplememError):
        return None

    labels = ("your change", "the note as it is now")
    base_text = read_note(base).text
    current_text = read_note(current).text
    merged = merge(base_text, own_text, current_text, labels)
    if edit.rebasable and not merged.is_clean:
        with suppress(SimplememError):
            merged = Merged(edit.apply(read_note(current)), 0)
    return _Attempt(own_text, merged)


def _merge_details(file: File, merged: Merged) -> dict[str, object]:
    """Return the details of an error about a merge with the current text of a note, `file`.

    The merged text itself is left out if it is longer than 4,000 characters.
    """
    data = merged.text.encode("utf-8", "surrogatepass")
    details: dict[str, object] = {
        "clean": merged.is_clean,
        "conflicts": merged.conflicts,
        "sha256": sha256(data),
        "diff": unified_diff(file.data, data, ("the current text", "both changes merged")),
    }
    if len(merged.text) <= _MAX_TEXT_SHOWN:
        details["text"] = merged.text
    return details


def _equals_apart_from_modified(text: str, data: bytes) -> bool:
    """Return whether a file is this text with the `modified` that the file has.

    When simplemem writes a text, it sets `modified` to the time of the write.
    """
    modified = read_note(data).text_property("modified")
    with suppress(Invalid):
        stamped = stamp_modified(text, modified) if modified else text
        return encoded(stamped) == data
    return False


class ConflictCopies:
    """Merges the copies that synchronisers left beside notes. Guards no state of its own."""

    def __init__(
        self,
        vault: NoteSource,
        index: IndexService,
        changes: ChangeTable,
        *,
        commits: GitHistory,
        writer: NoteWriter,
        settings: Settings,
    ) -> None:
        self._vault = vault
        self._kept_texts = vault.history
        self._index = index
        self._changes = changes
        self._commits = commits
        self._writer = writer
        self._settings = settings

    def copies(self) -> tuple[ConflictCopy, ...]:
        """Return the files that synchronisers and git left beside notes changed in two places."""
        copies = []
        for path, original, maker in self._index.conflict_copies():
            name = name_of(path)
            note_name = name_of(original)
            copies.append(ConflictCopy(name, path, note_name, original, maker))
        return tuple(copies)

    def previews(
        self, name: str | None = None, *, in_sequence: bool = False
    ) -> tuple[ConflictMerge, ...]:
        """Return what a merge of each conflict copy into its note would make. Writes nothing.

        `name` is that of a copy or of a note with copies; None stands for all copies. Each copy is
        merged with the note as it is now. With `in_sequence`, each is merged with what the merges
        of the note's copies before it made, and `merge_all` can write all of them as one change. If
        a file cannot be read, `problem` of its merge says so. Raises NotFound if no copy or note
        with a copy is called `name`, and Invalid if that is no name.
        """
        copies = self.copies()
        if name is not None:
            copies = _copies_named(copies, name)
        if not in_sequence:
            return tuple(self._preview(copy) for copy in copies)

        texts = dict[str, str]()  # by the note's path: its text with the copies so far
        # The paths of notes, with the hashes of the copies that were merged into them.
        merged_copies = set[tuple[str, str]]()
        previews = []
        for copy in copies:
            text = texts.get(copy.original)
            preview = self._preview(copy, text)
            copy_key = (copy.original, preview.copy_sha256)
            if text is not None and copy_key in merged_copies:
                # Another copy with the same text was merged already: this one adds nothing.
                preview = replace(preview, text=text, clean=True, conflicts=0, diff="")
            if preview.text is not None:
                texts[copy.original] = preview.text
                merged_copies.add(copy_key)
            previews.append(preview)
        return tuple(previews)

    def _preview(self, copy: ConflictCopy, merged_text: str | None = None) -> ConflictMerge:
        """Return what a merge of a copy into its note would make.

        If one of the two cannot be read or merged, the result has a `problem`, and `text` is None.
        `merged_text` is what earlier merges made of the note; None if there were none.
        """
        try:
            note = self._vault.read(copy.original)
            other = self._vault.read(copy.path)
        except SimplememError as error:
            return _problem_preview(copy, error.message)

        problem = read_note(note.data).problem or read_note(other.data).problem
        if problem:
            paths = (copy.original, copy.path)
            difference = unified_diff(note.data, other.data, paths, LONG_DIFF)
            preview = _problem_preview(copy, problem)
            return replace(
                preview, diff=difference, note_sha256=note.sha256, copy_sha256=other.sha256
            )

        base, base_label = self._likely_base(copy, note, other)
        labels = (_file_name(copy.original), _file_name(copy.path))
        text = merged_text
        if text is None:
            text = _decoded(note.data)
        merged = merge(base, text, _decoded(other.data), labels)

        titles = (copy.original, "both changes merged")
        difference = unified_diff(text.encode(), merged.text.encode(), titles, LONG_DIFF)
        return ConflictMerge(
            copy=copy,
            text=merged.text,
            base=base_label,
            clean=merged.is_clean,
            conflicts=merged.conflicts,
            diff=difference,
            note_sha256=note.sha256,
            copy_sha256=other.sha256,
        )

    def _likely_base(self, copy: ConflictCopy, note: File, other: File) -> tuple[str | None, str]:
        """Return the text that a note and its copy were both likely made from, and its label.

        It is the copy's text if an earlier version of the note had it, else the earlier text of the
        note that differs least from both. The label is such as "version v12", or "" if it is not
        known. Returns None and "" if all earlier texts have too little in common with both.
        """
        versions = self._changes.of(copy.original, _MAX_VERSIONS)
        labels = _labels_of(versions)
        if _is_ancestor(other.sha256, note.sha256, versions):
            # The copy is an earlier text of the note, so a merge takes nothing from it.
            return _decoded(other.data), labels.get(other.sha256, "")

        note_text = _decoded(note.data)
        copy_text = _decoded(other.data)
        best: tuple[str | None, str] = (None, "")
        # A text that shares no line with either would explain nothing.
        least_distance = len(note_text) + len(copy_text) - 1
        for data, label in self._earlier_texts(copy.original, labels):
            if data is None or data in (note.data, other.data):
                continue
            text = _decoded(data)
            distance = _distance(text, note_text) + _distance(text, copy_text)
            if distance <= least_distance:  # of equally near texts, the last and oldest one
                least_distance = distance
                best = (text, label)
        return best

    def _earlier_texts(
        self, path: str, labels: Mapping[str, str]
    ) -> Iterator[tuple[bytes | None, str]]:
        """Yield the earlier texts of a note, each with its label; None for a lost text.

        `labels` are those of the texts in the change log, by hash. The texts of git commits follow.
        """
        for digest, label in labels.items():
            yield self._kept_texts.content(digest), label
        for commit in self._commits.commits_of(path, _MAX_VERSIONS):
            yield commit.new_text, f"commit {commit.commit[:10]}"

    def merge(
        self, merge: ConflictMerge, *, keep: Keep = "merge", **by: Unpack[AuthorArgs]
    ) -> ConflictMerged:
        """Write a merge that was shown, and put the copy into the trash: `merge_all` of one.

        `keep` and what it raises are those of `merge_all`.
        """
        return self.merge_all([merge], keep=keep, **by)[0]

    def merge_all(
        self, merges: Sequence[ConflictMerge], *, keep: Keep = "merge", **by: Unpack[AuthorArgs]
    ) -> tuple[ConflictMerged, ...]:
        """Write what was shown for copies of one note, and put the copies into the trash.

        `merges` must not be empty. Several copies must have been merged `in_sequence`. `keep` says
        which text the note gets: "merge" the merged one, "note" its own, "copy" that of the copy,
        and "marked" the merged one with both texts where they differ. It is one change, which one
        undo takes back. Returns one result per copy; the first has the warnings.

        Raises, with nothing written: Conflict or Unreadable if one of the copies cannot be merged
        as `keep` says; Conflict if the note or a copy has changed since, NotFound if it is gone;
        Invalid if `keep` is "copy" and the copies differ; Invalid or TooLong if the text is
        refused; and ReadOnly.
        """
        self._writer.check_writable()
        for planned in merges:
            _check_mergeable(planned, keep)

        copy = merges[0].copy
        note_sha256 = merges[0].note_sha256
        data = self._chosen_text(merges, keep)
        warnings: list[str] = []
        if data is not None:
            old_text = _decoded(self._vault.read(copy.original).data)
            warnings = check_text(self._settings, copy.of, old_text, _decoded(data))

        is_rewritten = data is not None and sha256(data) != note_sha256
        with self._writer.lock():
            file_changes = [
                FileChange.update(planned.copy.path, planned.copy_sha256, None)
                for planned in merges
            ]
            if is_rewritten:
                file_changes.insert(0, FileChange.update(copy.original, note_sha256, data))
            else:
                self._check_unchanged(copy, note_sha256)
            written, _ = self._writer.apply_changes(file_changes, author_of_call(by, "conflicts"))

        digest: str | None = note_sha256
        if is_rewritten:
            digest = written[0].sha256
        results = []
        for planned in merges:
            is_changed = is_rewritten and (keep == "copy" or planned.diff != "")
            result = ConflictMerged(
                name=copy.of,
                copy=planned.copy.name,
                sha256=digest or "",
                version=written[0].version,
                changed=is_changed,
                warnings=tuple(warnings),
            )
            results.append(result)
            warnings = []  # only the first result has them
        return tuple(results)

    def _check_unchanged(self, copy: ConflictCopy, note_sha256: str) -> None:
        """Raise Conflict if a note has changed since it was compared with its copy."""
        current_sha256 = self._vault.read(copy.original).sha256
        if current_sha256 != note_sha256:
            raise Conflict(
                f"{copy.of!r} has changed since it was compared with its copy",
                current_sha256=current_sha256,
                hint="Compare the two again.",
            )

    def _chosen_text(self, merges: Sequence[ConflictMerge], keep: Keep) -> bytes | None:
        """Return the text that `keep` chooses for the note; None if the note stays as it is.

        Raises Invalid if the text of the copy is chosen and there are several that differ.
        """
        if keep == "note":
            return None
        if keep != "copy":
            text = merges[-1].text or ""
            return text.encode("utf-8", "surrogatepass")

        if len({merge.copy_sha256 for merge in merges}) > 1:
            names = ", ".join(merge.copy.name for merge in merges)
            raise Invalid(
                f"{merges[0].copy.of} has {len(merges)} copies that differ: {names}",
                hint="Merge the copy to keep by its own name, then the others with --keep note.",
            )
        return self._vault.read(merges[0].copy.path).data


def _problem_preview(copy: ConflictCopy, problem: str) -> ConflictMerge:
    """Return the preview for a copy that cannot be merged because of a problem."""
    return ConflictMerge(
        copy=copy,
        text=None,
        base="",
        clean=False,
        conflicts=0,
        diff="",
        note_sha256="",
        copy_sha256="",
        problem=problem,
    )


def _copies_named(copies: Sequence[ConflictCopy], name: str) -> tuple[ConflictCopy, ...]:
    """Return the copies that have a name, or whose note has it. Raises NotFound if none has."""
    reference = clean_reference(name).removesuffix(".md")
    matches = []
    for copy in copies:
        copy_names = (copy.name, base_name(copy.path))
        note_names = (copy.of, base_name(copy.original))
        if reference in copy_names or reference in note_names:
            matches.append(copy)
    if matches:
        return tuple(matches)

    raise NotFound(
        f"no conflict copy called {name!r}, and no note of that name has one",
        hint="`simplemem conflicts` lists the conflict copies.",
        candidates=[copy.name for copy in copies][:_MAX_CANDIDATES],
    )


def _texts_named(versions: Sequence[Version]) -> Iterator[tuple[str, str]]:
    """Yield the hashes of the texts after and before each change, each with a label for users."""
    for version in versions:
        if version.after is not None:
            yield version.after, f"version {version.id}"
        if version.before is not None:
            yield version.before, f"the version before {version.id}"


def _labels_of(versions: Sequence[Version]) -> dict[str, str]:
    """Return the label of each text by its hash; the newest one if a note had a text twice."""
    labels = dict[str, str]()
    for digest, label in _texts_named(versions):
        labels.setdefault(digest, label)
    return labels


def _is_ancestor(digest: str, current: str, versions: Sequence[Version]) -> bool:
    """Return whether the current text of a note was made from the text with this hash.

    `versions` are the newest first. If the note had a text twice, the changes in between were
    undone: nothing of them is in the current text, so they are skipped.
    """
    states = [current]
    states.extend(state for state, _ in _texts_named(versions))
    # The highest index of each text, as later ones overwrite earlier ones.
    oldest_index = {state: index for index, state in enumerate(states)}
    index = 0
    while index < len(states):
        if states[index] == digest:
            return True
        index = oldest_index[states[index]] + 1
    return False


def _file_name(path: str) -> str:
    """Return the last part of a path."""
    return path.rpartition("/")[2]


def _decoded(data: bytes) -> str:
    """Return the text of a file; what is not UTF-8 is replaced."""
    return data.decode("utf-8", "replace")


def _distance(one: str, other: str) -> int:
    """Return how many characters are in lines that only one of two texts has."""
    one_lines = Counter(one.split("\n"))
    other_lines = Counter(other.split("\n"))
    differing = (one_lines | other_lines) - (one_lines & other_lines)
    distance = 0
    for line, count in differing.items():
        distance += (len(line) + 1) * count
    return distance


def _check_mergeable(merge: ConflictMerge, keep: Keep) -> None:
    """Raise Conflict or Unreadable if a merge cannot be written as `keep` says.

    Conflict if both texts changed the same places and `keep` is "merge"; Unreadable if the two
    cannot be merged and `keep` names neither of them.
    """
    if keep in ("copy", "note"):
        return

    name = merge.copy.name
    if merge.text is None:
        hint = "Keep one of the two with --keep note or --keep copy, or fix it in an editor first."
        raise Unreadable(f"{name} cannot be merged: {merge.problem}", hint=hint)
    if keep == "merge" and not merge.clean:
        places = format_count(merge.conflicts, "place")
        hint = (
            "Pass --keep note or --keep copy to keep one text, "
            "or --keep both to mark the differences in the note."
        )
        message = f"{merge.copy.of} and its copy {name} differ in {places}"
        raise Conflict(message, current_sha256=merge.note_sha256, diff=merge.diff, hint=hint)
