"""Undo of one change, and restoring an earlier text of a note.

Nothing is merged: if a note has changed since, the undo of the change is refused. The undo of all
that somebody changed is in `undo_by_author`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Unpack

from simplemem.errors import AlreadyExists, Conflict, Hint, HintSentence, Invalid, NotFound
from simplemem.index.changes import ChangeTable
from simplemem.models import AuthorArgs, Restored, Undone
from simplemem.note.diff import WHAT_YOU_HAD
from simplemem.note.names import check_name, clean_reference, name_of, path_of
from simplemem.note.note import read_note
from simplemem.note.words import format_count
from simplemem.obsidian.link_edits import Moves
from simplemem.settings.model import Settings
from simplemem.store.earlier_texts import EarlierTexts, is_version_id, nothing_there
from simplemem.store.edits import check_text
from simplemem.store.git_history import GitHistory
from simplemem.store.history import NoteHistory, main_change_of
from simplemem.store.unseen import check_unseen_links
from simplemem.store.vault_index import IndexKeeper, NoteReader, NoteWriter, author_of_call
from simplemem.vault.source import NoteSource
from simplemem.vault.values import File, FileChange, Version, WriteResult

# The latest operations in which `next_to_undo` looks; an older change is undone by its version.
_MAX_OPERATIONS = 1000
_NOUNS = {"create": "creation", "update": "change", "delete": "deletion"}
"""Nouns for operations whose name is none, such as "move"."""
_UNDOES = re.compile(r"undoes (?P<version>v[0-9]+)\b")

_Operations = Mapping[str, Sequence[Version]]
"""Operations by their group, the newest first, with their changes, also the newest first."""


class Undo:
    """Undoes single changes, and restores earlier texts. Guards no state of its own."""

    def __init__(
        self,
        vault: NoteSource,
        changes: ChangeTable,
        *,
        reader: NoteReader,
        texts: EarlierTexts,
        commits: GitHistory,
        history: NoteHistory,
        keeper: IndexKeeper,
        writer: NoteWriter,
        settings: Settings,
    ) -> None:
        self._vault = vault
        self._kept_texts = vault.history
        self._changes = changes
        self._reader = reader
        self._texts = texts
        self._commits = commits
        self._history = history
        self._keeper = keeper
        self._writer = writer
        self._settings = settings

    def undo(self, version_or_name: str, **by: Unpack[AuthorArgs]) -> Undone:
        """Undo a change by its version, or the last change of a note by the note's name.

        Other changes of the same operation, such as the links that a move rewrote, are undone too.
        For a note's name, undoes the last change that was not undone yet. An undo is itself a
        change, which can be undone (a redo). Raises Conflict if one of the notes has changed since,
        AlreadyExists if the former name of a moved note is in use, NotFound if there is no such
        change or a text is no longer kept, Ambiguous for a name of several notes, Invalid for a
        commit of git or a recovered text, and ReadOnly.
        """
        self._writer.check_writable()
        version = self._change_to_undo(version_or_name)

        with self._writer.lock():
            changes = self._changes.step(version.group)
            self._check_unseen_links(changes)
            description = self._describe_undo(changes)

            reason = f"undoes {changes[0].id}"
            if by.get("reason"):
                reason += f": {by['reason']}"
            author = author_of_call({**by, "reason": reason}, "undo")
            try:
                written = self._vault.undo(version.id, author)
            except Conflict as error:
                raise self._refusal(version, error) from error

            paths = {result.path for result in written}
            for change in changes:
                paths.update(path for path, _, _ in change.effects)
            self._keeper.index_written(paths)

        result = _main_result(written, main_change_of(changes))
        return Undone(name_of(result.path), result.sha256, result.version, description)

    def _describe_undo(self, changes: Sequence[Version]) -> str:
        """Return what undoing an operation does, such as "undid the move of Kite to craft/Kite"."""
        change = main_change_of(changes)
        undone_changes = self._changes_undone_by(changes)
        is_redo = bool(undone_changes) and undone_changes[0].op == "undo"
        if is_redo:
            action = "undid the redo of"
        elif undone_changes:
            change = main_change_of(undone_changes)
            action = f"redid the {_noun_of(change)} of"
        elif change.op == "undo":
            action = f"redid what {changes[0].id} undid:"
        else:
            action = f"undid the {_noun_of(change)} of"

        description = f"{action} {name_of(change.path)}"
        if change.new_path:
            description += f" to {name_of(change.new_path)}"

        # The links that a move rewrote are not mentioned.
        is_plain_move = change.new_path and change.op != "undo"
        if len(changes) > 1 and not is_plain_move:
            more_changes = format_count(len(changes) - 1, "more change")
            description += f" and {more_changes} of the same step"
        return description

    def _changes_undone_by(self, changes: Sequence[Version]) -> Sequence[Version]:
        """Return the changes that an operation undid; none if it is no undo of one operation.

        An undo of all changes by an author (`undo_by_author`) is none.
        """
        named = _version_named_in(changes[0])
        if not named:
            return ()
        try:
            version = self._changes.find(named)
            operation = self._changes.step(version.group)
        except NotFound:
            return ()

        if _reverts(changes, operation):
            return operation
        return ()

    def _refusal(self, version: Version, error: Conflict) -> Conflict:
        """Return the error for an undo that was refused because a note has changed since.

        `error` is what the vault raised. If the note can be restored as it was before the change,
        the detail `restore_at` is what to pass to `restore` as `at`.
        """
        path: str = error.details["path"]
        name = name_of(path)
        details = {**error.details, "version": version.id}
        if details.get("diff"):
            # In other errors, the difference is from what the caller had read. Here, it is from the
            # text that the change left.
            expected = f"the text after {version.id}"
            details["diff"] = details["diff"].replace(WHAT_YOU_HAD[0], expected, 1)
        if details["current_sha256"] is None:
            return Conflict(error.message, hint=error.hint, **details)

        # The change of the operation that was made to this note.
        changes = self._changes.step(version.group)
        change = next(
            (change for change in changes if path in (change.path, change.new_path)), version
        )

        message = f"{name} has changed since {version.id}"
        if change.after is None:
            message = f"a note called {name} exists again"
            hint = "Move or delete that note first, or restore the old one under another name."
        elif self._is_changed_since(path, version):
            hint = "Undo the later changes first."
        elif change.new_path is not None:
            hint = "The note was edited outside simplemem. "
            hint += "To move it back with that edit, move it again."
        elif change.before is None:
            hint = (
                "The note was edited outside simplemem. If you do not want to keep it, delete it."
            )
        else:
            details["restore_at"] = f"before {version.id}"
            restoring = f"restore the note as it was before {version.id}"
            hint = (
                f"The note was edited outside simplemem. To take back that edit too, {restoring}."
            )
        return Conflict(message, hint=hint, **details)

    def _is_changed_since(self, path: str, version: Version) -> bool:
        """Return whether the history has a later change of this path."""
        latest = next(iter(self._changes.of(path, 1)), None)
        return latest is not None and latest.group != version.group

    def _check_unseen_links(self, changes: Iterable[Version]) -> None:
        """Raise ReadOnly if undoing moves would break a link of a hidden note."""
        new_paths = dict[str, str]()
        texts = dict[str, bytes]()
        for change in changes:
            if change.new_path is None or change.before is None:
                continue

            new_paths[change.new_path] = change.path
            if change.before == change.after:
                continue
            text = self._kept_texts.read_text(change.before)
            if text is not None:
                texts[change.new_path] = text
        check_unseen_links(self._vault, Moves(new_paths), texts)

    def _change_to_undo(self, version_or_name: str) -> Version:
        """Return the change of this version, or the last change of a note that is not undone yet.

        A text in the form of a version that the log does not have may still name a note. Raises
        NotFound if there is no such change, and Invalid for a commit of git.
        """
        try:
            return self._changes.find(version_or_name)
        except NotFound as no_version:
            path = path_of(clean_reference(version_or_name))
            is_note = self._reader.entry(path) is not None
            if not is_note and self._commits.means_commit(version_or_name):
                raise Invalid(
                    f"{version_or_name} is a commit of git, which simplemem cannot undo",
                    hint="Restore a note as it was at that commit, or revert the commit with git.",
                ) from None
            if not is_note and is_version_id(version_or_name):
                no_version.hint = self._newest_version_hint()
                raise
        last_version = self.next_to_undo(version_or_name)
        return self._changes.find(last_version)

    def _newest_version_hint(self) -> str:
        """Return a hint that names the newest visible version, and where the others are listed."""
        newest = self._changes.recent(1)
        if not newest:
            return "The history is empty."
        return Hint(
            f"The newest version is {newest[0].id};",
            HintSentence("list_versions", "the history lists the latest."),
        )

    def next_to_undo(self, name: str | None = None, *, undone: bool = False) -> str:
        """Return the version to undo next; if `undone`, the version of the undo to redo next.

        It is the id of the first change of the operation. Considers the changes of one note or,
        without a name, the latest 1,000 operations of the whole vault. Undoes nothing. An undo can
        be redone only if nothing else was changed since. Raises NotFound if there is no such
        version or note, and Ambiguous for a name of several notes.
        """
        if name is None:
            versions = self._changes.recent(_MAX_OPERATIONS)
        else:
            path = self._history.path_with_a_past(name)
            versions = self._changes.of(path)
        operations = _operations_of(versions)

        if undone:
            group = _undo_to_redo(operations)
            message = "nothing to redo"
            hint = "The history has only changes made through simplemem."
        else:
            group = _operation_to_undo(operations)
            message = "nothing to undo"
            sentence = "Only changes made through simplemem can be undone."
            hint = Hint(HintSentence("undo_only_ours", sentence))
            if versions and versions[0].op == "undo":
                hint = f"The last change is already undone ({versions[0].id})."
        if group is not None:
            return group

        if name:
            message += f" in {name}"
        raise NotFound(message, hint=hint)

    def restore(
        self,
        name: str,
        *,
        at: str | None = None,
        new_name: str | None = None,
        **by: Unpack[AuthorArgs],
    ) -> Restored:
        """Write back the text that a note had at a version, date or commit.

        With `new_name`, the text becomes a note of that name. Without `at`, the note must be
        deleted, and gets the last text that it had. Raises AlreadyExists if another note has the
        name now, NotFound if the note did not exist then or its text is no longer kept, Ambiguous
        for a name of several notes, Invalid without `at` if the note exists, or for what is no
        date, Invalid or TooLong for an illegal new name, and ReadOnly. The result has a warning if
        the text of that time is uncertain.
        """
        self._writer.check_writable()
        path = self._history.path_with_a_past(name)

        with self._writer.lock():
            doubt = ""
            if at is None:
                at, doubt = self._last_moment(path, is_renamed=new_name is not None)
            then = self._texts.note_at(path, at, name=name)
            if then.data is None or then.sha256 is None:
                raise nothing_there(name_of(path), at, then)

            target = path
            if new_name is not None:
                target = path_of(check_name(new_name))
            current = self._reader.file(target)
            current_sha256 = None
            if current is not None:
                self._check_same_note(path, target, at, current)
                current_sha256 = current.sha256

            file_change = FileChange("restore", target, old_sha256=current_sha256, data=then.data)
            author = author_of_call(by, "restore")
            results, _ = self._writer.apply_changes([file_change], author)
            written = results[0]

        warnings = list[str]()
        doubt = doubt or then.doubt
        if doubt:
            warnings.append(f"not certain: {doubt}")
        if written.changed:
            old_text = "" if current is None else read_note(current.data).text
            new_text = read_note(then.data).text
            warnings += check_text(
                self._settings, name_of(target), old_text, new_text, is_new=False
            )
        return Restored(
            name=name_of(target),
            sha256=then.sha256,
            previous_sha256=written.previous_sha256,
            version=written.version,
            at=at,
            changed=written.changed,
            warnings=tuple(warnings),
        )

    def _last_moment(self, path: str, *, is_renamed: bool) -> tuple[str, str]:
        """Return the last moment at which a deleted note existed, and what is uncertain about it.

        The moment is a text for `EarlierTexts.note_at`, such as "before v12"; the second text is ""
        if nothing is uncertain. If another note has the path now, the deleted one can only be
        restored under another name (`is_renamed`). Raises Invalid if the path has a note, and none
        was deleted there or no other name was given.
        """
        if self._reader.entry(path) is not None:
            deletion = self._deletion_of_another(path) if is_renamed else None
            if deletion is None:
                sentence = "Pass `at`: a version of its history, or a date."
                raise Invalid(
                    f"{name_of(path)} already exists",
                    hint=Hint(HintSentence("pass_at", sentence)),
                )
            return f"before {deletion.id}", ""

        last = self._history.last_change(path)
        if last.after is None:
            return f"before {last.id}", ""
        return last.id, "it was deleted outside simplemem, perhaps after other changes"

    def _deletion_of_another(self, path: str) -> Version | None:
        """Return the change that deleted an earlier note at a path which another note has now.

        Returns None if no note was deleted there, or if the last one that was is there again,
        because its deletion was undone or it was restored.
        """
        arrival = None  # the change that put a note at the path after the deletion
        for version in self._changes.recent():
            is_deletion = version.after is None and version.before is not None
            if version.path == path and is_deletion:
                is_another = arrival is None or arrival.op in ("create", "move")
                return version if is_another else None

            is_created_there = version.path == path and version.before is None
            is_moved_there = version.new_path == path
            if (is_created_there or is_moved_there) and version.op != "recovered":
                arrival = version
        return None

    def _check_same_note(self, path: str, target: str, at: str, current: File) -> None:
        """Raise AlreadyExists if the file at the target is not the note to be restored."""
        hint = "Choose another name."
        if target == path:
            takeover = self._takeover_since(path, at, current.sha256)
            if takeover is None:
                return
            hint = f"It got this name in {takeover.id}. Restore the old note under another name."
        message = f"another note called {name_of(target)} exists"
        raise AlreadyExists(message, hint=hint, name=name_of(target))

    def _takeover_since(self, path: str, at: str, current_sha256: str) -> Version | None:
        """Return the change since `at` through which a path has another note now; else None.

        It is the change that created the other note; or, if another program put that note there,
        the change that moved or deleted the first one. `current_sha256` is the hash of the text
        that is at the path now. Returns None also if `at` is a commit of git.
        """
        lineage = self._changes.lineage(path)
        if not lineage or self._commits.means_commit(at):
            return None  # git knows names, and follows them by itself

        last = lineage[0]
        is_moved_away = (last.new_path or last.path) != path
        is_replaced = last.after is None and last.before != current_sha256
        if is_moved_away or is_replaced:
            return last

        first = lineage[-1]
        if first.op == "create" and self._texts.moment_of(at).number < first.number:
            return first
        return None


def _noun_of(change: Version) -> str:
    """Return the noun for the operation of a change, such as "creation" for "create"."""
    return _NOUNS.get(change.op, change.op)


def _version_named_in(change: Version) -> str:
    """Return the version that an undo names in its reason; "" if it names none or is no undo.

    The reason of an undo by author is free text, which may name any version. Callers therefore use
    `_reverts` to check that the version was undone.
    """
    if change.op != "undo":
        return ""
    match = _UNDOES.match(change.reason)
    if match is None:
        return ""
    return match["version"]


def _main_result(written: Sequence[WriteResult], main_change: Version) -> WriteResult:
    """Return the result for the note of the main change of an operation that was undone."""
    for result in written:
        if result.path in (main_change.path, main_change.new_path):
            return result
    return written[0]


def _reverts(undo: Iterable[Version], operation: Iterable[Version]) -> bool:
    """Return whether each change of an undo is the reverse of a change of an operation."""
    reversed_effects = set()
    for change in operation:
        for path, old_sha256, new_sha256 in change.effects:
            reversed_effects.add((path, new_sha256, old_sha256))

    return all(reversed_effects.issuperset(change.effects) for change in undo)


def _undone_operation(group: str, operations: _Operations) -> str | None:
    """Return the operation that the operation `group` undid; None if it is no undo of one.

    Operations are named by their groups: a group is the id of the operation's first change. Returns
    None also if the other operation is not among `operations`.
    """
    changes = operations[group]
    undone_group = _version_named_in(changes[0])
    if undone_group in operations and _reverts(changes, operations[undone_group]):
        return undone_group
    return None


def _operations_of(versions: Iterable[Version]) -> _Operations:
    """Return changes by their operation, without texts that were only found after a crash."""
    operations: dict[str, list[Version]] = {}
    for version in versions:
        if version.op != "recovered":
            operations.setdefault(version.group, []).append(version)
    return operations


def _operation_to_undo(operations: _Operations) -> str | None:
    """Return the newest operation in effect that is no undo; None if there is none.

    A redo is an undo too, so it is none of these, except for the redo of an undo by author. That
    one is returned, so that a single undo reverts all that it redid.
    """
    for group in _in_effect(operations):
        if operations[group][0].op != "undo" or _is_redo_by_author(group, operations):
            return group
    return None


def _is_redo_by_author(group: str, operations: _Operations) -> bool:
    """Return whether an operation took back an undo by author."""
    target = _undone_operation(group, operations)
    if target is None or operations[target][0].op != "undo":
        return False
    return _undone_operation(target, operations) is None


def _undo_to_redo(operations: _Operations) -> str | None:
    """Return the newest undo in effect; None if there is none, or something else changed since.

    A redo is the undo of an undo. It is skipped, and with it the undo that it took back.
    """
    for group in _in_effect(operations):
        newest = operations[group][0]
        if newest.op != "undo":
            return None
        target = _undone_operation(group, operations)
        is_redo = target is not None and operations[target][0].op == "undo"
        if not is_redo:
            return group
    return None


def _in_effect(operations: _Operations) -> Iterator[str]:
    """Yield the groups of operations that no later operation in effect undid, the newest first."""
    undone_groups = set[str]()
    # By path: the hash of the text that an undo by author restored. A path is removed when the
    # oldest change that this undo took back is reached.
    restored_texts = dict[str, str | None]()

    for group, changes in operations.items():
        if group in undone_groups or _is_undone_by_author(changes, restored_texts):
            continue
        yield group

        if changes[0].op != "undo":
            continue
        target = _undone_operation(group, operations)
        if target is not None:
            undone_groups.add(target)
            continue

        # An undo by author: it names no operation, so remember the texts that it restored.
        for change in changes:
            for path, _, new_sha256 in change.effects:
                restored_texts[path] = new_sha256


def find_undone(versions: Iterable[Version]) -> dict[str, str]:
    """Return the operations that are undone at present, each with the operation to undo for a redo.

    `versions` are changes, newest first, and operations are named by their groups. An operation
    that was undone together with everything by its author has "": it cannot be redone alone. Undos
    are absent.
    """
    operations = _operations_of(versions)
    in_effect = list(_in_effect(operations))

    undone = {}
    for group in operations.keys() - set(in_effect):
        if operations[group][0].op != "undo":
            undone[group] = ""
    for group in in_effect:
        target = _undone_operation(group, operations)
        if target in undone:
            undone[target] = group
    return undone


def _is_undone_by_author(changes: Iterable[Version], restored_texts: dict[str, str | None]) -> bool:
    """Return whether a later undo by author took an operation back; update `restored_texts`.

    The undo took back all changes of a path from its own time back to the one that started from the
    restored text. So the operation was taken back if one of its paths is in `restored_texts`. The
    paths whose restored text it started from are removed, because changes before it stand.
    """
    effects = [effect for change in changes for effect in change.effects]
    if not any(path in restored_texts for path, _, _ in effects):
        return False

    for path, old_sha256, _ in effects:
        if path in restored_texts and restored_texts[path] == old_sha256:
            del restored_texts[path]
    return True
