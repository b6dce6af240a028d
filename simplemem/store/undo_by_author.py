"""Undo of everything that one client or person changed since a moment, as one operation.

Nothing is merged. If somebody else has changed a note since, the note is left as it is, and with it
every other note that was changed in the same operation: an operation is undone as a whole or not at
all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Unpack

from simplemem.errors import Conflict, Invalid, NotFound
from simplemem.index.changes import ChangeTable
from simplemem.models import AuthorArgs, LeftAsIs, UndoneMany, UndoneNote, is_called
from simplemem.note.names import name_of
from simplemem.obsidian.link_edits import Moves
from simplemem.store.earlier_texts import TEXT_NOT_KEPT, EarlierTexts
from simplemem.store.unseen import would_break_unseen_links
from simplemem.store.vault_index import NoteWriter, author_of_call
from simplemem.vault.source import NoteSource
from simplemem.vault.values import FileChange, Version

_MAX_CANDIDATES = 10  # authors that an error names


class _Effect(NamedTuple):
    """What one change did to one path: the hashes of both texts, None for no note."""

    version: Version
    old_sha256: str | None
    new_sha256: str | None


@dataclass(frozen=True)
class _ChangedPath:
    """A path that differs now from what it was before the author changed it.

    `effects` are those of the author's changes and of all later ones, the oldest first. `current`
    is the hash of the text that is there now, "" if it cannot be read, None if there is no note.
    """

    path: str
    effects: Sequence[_Effect]
    current: str | None

    @property
    def original(self) -> str | None:
        """The hash of the text before the author's first change; None if there was no note."""
        return self.effects[0].old_sha256

    @property
    def first_version(self) -> str:
        """The version of the author's first change."""
        return self.effects[0].version.id

    def groups_of(self, author: str) -> set[str]:
        """Return the operations in which the author changed this path."""
        versions = [effect.version for effect in self.effects]
        return {version.group for version in versions if is_called(version.who, author)}


_ChangedPaths = Mapping[str, _ChangedPath]


class UndoByAuthor:
    """Undoes everything that somebody changed since a moment. Guards no state of its own."""

    def __init__(
        self,
        vault: NoteSource,
        changes: ChangeTable,
        *,
        texts: EarlierTexts,
        writer: NoteWriter,
    ) -> None:
        self._vault = vault
        self._access = vault.access
        self._changes = changes
        self._texts = texts
        self._writer = writer

    def undo_all(
        self,
        by: str,
        since: str,
        *,
        preview: bool = False,
        expected: str | None = None,
        **author_args: Unpack[AuthorArgs],
    ) -> UndoneMany:
        """Undo everything that somebody changed since a date or version, as one operation.

        `by` is the author whose changes are undone; `author_args` say who undoes them. A `preview`
        changes nothing. If its `plan` is passed as `expected`, the undo is made only if it would do
        what the preview showed; otherwise Conflict is raised. `left` of the result has the notes
        that could not be undone, with the reason, and the other notes of their operations. Raises
        NotFound if nobody of this name has changed anything since or there is no such version,
        Invalid if `by` or `since` is blank or `since` is no date, and ReadOnly.
        """
        _check_arguments(by, since)
        if preview:
            plan, _ = self._plan(by, since)
            return plan

        self._writer.check_writable()
        with self._writer.lock():
            plan, file_changes = self._plan(by, since)
            if expected is not None and plan.plan != expected:
                raise Conflict(
                    "the vault has changed since the preview",
                    current_sha256=None,
                    hint="Read the new preview, then repeat the call.",
                )
            if not file_changes:
                return plan

            reason = author_args.get("reason") or f"everything by {by} since {since}"
            author = author_of_call({**author_args, "reason": reason}, "undo")
            written, _ = self._writer.apply_changes(file_changes, author)
        return replace(plan, version=written[0].version)

    def _plan(self, by: str, since: str) -> tuple[UndoneMany, list[FileChange]]:
        """Return what would become of each note, and the writes that do it.

        Raises NotFound if the author has changed nothing since.
        """
        versions = self._versions_since(by, since)
        effects, all_moves = _changes_by(versions, by)
        changed = self._changed_paths(effects)
        moves = _moves_to_undo(all_moves, changed)
        reasons = self._reasons_to_leave(by, changed, moves)

        notes = []
        file_changes = []
        old_paths = set(moves.values())
        for path, change in changed.items():
            # A move changed two paths. It is undone by one write, at the new path.
            if path in reasons or path in old_paths:
                continue
            old_path = moves.get(path)
            target = changed[old_path or path].original
            notes.append(_undone_note(change, old_path, target))
            file_changes.append(self._undoing_write(change, old_path, target))

        paths_left = [path for path in changed if path in reasons]
        left = [LeftAsIs(name_of(path), reasons[path]) for path in paths_left]

        # All fields of the notes take part in the digest, by their repr.
        description = repr(notes).encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(description).hexdigest()[:16]
        plan = UndoneMany(by, since, "", tuple(notes), tuple(left), digest)
        return plan, file_changes

    def _versions_since(self, by: str, since: str) -> list[Version]:
        """Return the changes of everybody since a moment, the newest first.

        Raises NotFound if none of them is the author's.
        """
        start = self._texts.moment_of(since, start=True)
        versions = self._changes.recent(after=start.number)
        if any(is_called(version.who, by) and version.effects for version in versions):
            return versions

        authors = dict.fromkeys(version.who for version in versions if version.who)
        raise NotFound(
            f"{by} has changed nothing since {since}",
            candidates=list(authors)[:_MAX_CANDIDATES],
            hint="The history shows who changed what, and when.",
        )

    def _changed_paths(self, effects_by_path: Mapping[str, Sequence[_Effect]]) -> _ChangedPaths:
        """Return the paths that differ now from before the author's first change, sorted."""
        changed = {}
        for path in sorted(effects_by_path):
            file = self._texts.file_now(path)
            current = None if file is None else file.sha256
            change = _ChangedPath(path, effects_by_path[path], current)
            if change.current != change.original:
                changed[path] = change
        return changed

    def _reasons_to_leave(
        self,
        by: str,
        changed: _ChangedPaths,
        moves: Mapping[str, str],
    ) -> dict[str, str]:
        """Return why paths have to stay as they are, by path; the others can be undone.

        `moves` has the old path of each move to undo by its new one.
        """
        reasons = {}
        for path, change in changed.items():
            reason = self._reason_to_leave(by, change, is_moved=path in moves)
            if reason:
                reasons[path] = reason

        undone_moves = {new: old for new, old in moves.items() if new not in reasons}
        texts = self._texts_after_undo(undone_moves, changed)
        if would_break_unseen_links(self._vault, Moves(undone_moves), texts):
            for path in undone_moves:
                reasons[path] = "it would break a link from or to a hidden folder"

        return reasons | _reasons_by_operation(by, changed, reasons)

    def _reason_to_leave(self, by: str, change: _ChangedPath, *, is_moved: bool) -> str:
        """Return why a path has to stay, by its own history or by the rules; "" if it need not."""
        later = _later_change(by, change)
        if later:
            return later
        if change.original is not None and self._texts.text_of(change.original) is None:
            return TEXT_NOT_KEPT

        rules = self._access
        if rules.is_partial and self._is_changed_with_hidden_note(change):
            return "it was changed together with a hidden note"
        if not rules.may_change(change.path):
            return "it is read-only here"
        if rules.no_delete and change.original is None and not is_moved:
            return "deleting is not allowed here"
        return ""

    def _is_changed_with_hidden_note(self, change: _ChangedPath) -> bool:
        """Return whether one of the operations also changed a note that the access rules hide."""
        for effect in change.effects:
            group = effect.version.group
            visible = self._changes.step(group)
            complete = self._vault.history.log.group(group)
            if len(visible) < len(complete):
                return True
        return False

    def _texts_after_undo(
        self, moves: Mapping[str, str], changed: _ChangedPaths
    ) -> dict[str, bytes]:
        """Return the texts that moved notes get back, by their current paths, if they are kept."""
        texts = dict[str, bytes]()
        for new_path, old_path in moves.items():
            sha256 = changed[old_path].original
            if sha256 is None:
                continue
            text = self._texts.text_of(sha256)
            if text is not None:
                texts[new_path] = text
        return texts

    def _undoing_write(
        self,
        change: _ChangedPath,
        old_path: str | None,
        target: str | None,
    ) -> FileChange:
        """Return the write that gives a note the text `target`, at its old path if it has one."""
        text = None
        if target is not None and target != change.current:
            text = self._texts.text_of(target)
        return FileChange(
            "undo",
            change.path,
            old_sha256=change.current,
            new_path=old_path,
            data=text,
            is_deletion=target is None,
        )


def _check_arguments(by: str, since: str) -> None:
    """Raise Invalid if the author or the moment is blank."""
    if not by.strip():
        missing = "a client, as `by`"
    elif not since.strip():
        missing = "a date or version, as `since`"
    else:
        return
    raise Invalid(
        f"an undo of several changes needs {missing}",
        hint="The history shows who changed what, and when.",
    )


def _changes_by(
    versions: Sequence[Version], by: str
) -> tuple[dict[str, list[_Effect]], dict[str, str]]:
    """Return what somebody changed, by path, and their moves, from new path to old path.

    `versions` are the changes of everybody, newest first. For each path, the result has the effects
    of the author's first change and of all later ones, oldest first. A path that is again as it was
    before that change is left out.
    """
    changed: dict[str, list[_Effect]] = {}
    # The paths that are as they were before the author's change, because it was taken back. If a
    # text of these effects returns, the path is changed again.
    taken_back: dict[str, list[_Effect]] = {}
    moves: dict[str, str] = {}  # where a note is now -> where it was

    for version in reversed(versions):
        is_theirs = is_called(version.who, by)
        for path, old_sha256, new_sha256 in version.effects:
            if not is_theirs and path not in changed:
                earlier_texts = [effect.new_sha256 for effect in taken_back.get(path, ())]
                if new_sha256 not in earlier_texts:
                    continue
                changed[path] = taken_back.pop(path)  # somebody redid the author's change

            effects = changed.setdefault(path, [])
            effects.append(_Effect(version, old_sha256, new_sha256))
            if new_sha256 == effects[0].old_sha256:
                # The note is as it was: a later change starts from here.
                taken_back[path] = changed.pop(path)

        if is_theirs and version.new_path is not None:
            moves[version.new_path] = moves.pop(version.path, version.path)
    return changed, moves


def _moves_to_undo(moves: Mapping[str, str], changed: _ChangedPaths) -> dict[str, str]:
    """Return those of the moves, new path to old path, that can be undone by moving back.

    These are moves to a path that had no note before, from a path that has none now.
    """
    to_undo = {}
    for new_path, old_path in moves.items():
        if new_path not in changed or old_path not in changed:
            continue
        if changed[new_path].original is None and changed[old_path].current is None:
            to_undo[new_path] = old_path
    return to_undo


def _reasons_by_operation(
    by: str, changed: _ChangedPaths, left: Mapping[str, str]
) -> dict[str, str]:
    """Return why further paths have to stay: they share an operation with a path that is left.

    Goes on until no path that is undone shares an operation with one that is not.
    """
    groups = {path: change.groups_of(by) for path, change in changed.items()}
    undone = [path for path in changed if path not in left]
    reasons = {}

    # Paths that are left, and whose operations were not looked at yet.
    pending = [path for path in changed if path in left]
    while pending:
        left_path = pending.pop()
        for path in undone:
            shared_groups = groups[path] & groups[left_path]
            if path in reasons or not shared_groups:
                continue

            version = min(shared_groups)  # a group is the version of its first change
            left_name = name_of(left_path)
            reasons[path] = (
                f"{version} changed it together with {left_name}, which is left as it is"
            )
            pending.append(path)
    return reasons


def _later_change(by: str, change: _ChangedPath) -> str:
    """Return who else has changed a path since the author did, as a reason; "" if nobody."""
    for effect in change.effects:
        version = effect.version
        if not is_called(version.who, by):
            return f"{version.who or 'another client'} changed it later ({version.id})"

    # The text that each change left must be the one that the next change replaced, or the current.
    texts_left = [effect.new_sha256 for effect in change.effects]
    texts_replaced = [effect.old_sha256 for effect in change.effects[1:]]
    if texts_left != [*texts_replaced, change.current]:
        return "it was changed later outside simplemem"
    return ""


def _undone_note(change: _ChangedPath, old_path: str | None, target: str | None) -> UndoneNote:
    """Return what becomes of a note that gets the text with the hash `target`; None deletes it."""
    if old_path is not None:
        outcome = "moved back"
    elif target is None:
        outcome = "deleted"
    elif change.current:
        outcome = "changed back"
    else:
        outcome = "brought back"
    return UndoneNote(
        name=name_of(change.path),
        new_name=None if old_path is None else name_of(old_path),
        becomes=outcome,
        since=change.first_version,
        before=change.current,
        sha256=target,
    )
