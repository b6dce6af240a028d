"""Undo of one change, or of all that somebody changed since a moment; and an earlier text put back in its place.
Nothing is merged: what somebody else has changed since is left as it is, and with it every operation it was part of."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Unpack

from simplemem.errors import AlreadyExists, Conflict, Invalid, NotFound
from simplemem.index.changes import is_called
from simplemem.memory import By, LeftAsIs, Restored, Undone, UndoneMany, UndoneNote
from simplemem.note.names import check_name, clean_reference, name_of, path_of
from simplemem.note.note import read_note
from simplemem.note.words import counted
from simplemem.store import history
from simplemem.store.core import Core, change_by
from simplemem.store.unseen import check_unseen_links, would_break_unseen_links
from simplemem.store.write import judge
from simplemem.vault.history import Version
from simplemem.vault.obsidian import Moves
from simplemem.vault.vault import Change, Wish, Written

_NOUNS = {
    "create": "creation",
    "update": "change",
    "delete": "deletion",
}  # a move and a restore are called so

_Step = tuple[
    Version, str | None, str | None
]  # a change of a path, with what it found and left there


def carry_out(
    core: Core, wishes: Sequence[Wish], change: Change
) -> tuple[list[Written], list[str]]:
    """Change some notes as one under the vault's lock, and index them: what was written, and what went wrong after."""
    written = core.vault.carry_out(wishes, change)
    paths = {path for wish in wishes for path in (wish.path, wish.target)}
    return written, core.indexed(paths, lambda: core.look_at(paths))


def undo(core: Core, version_or_name: str, **by: Unpack[By]) -> Undone:
    """Take back a change by its version, or by its name the last change of a memory that was not taken back yet."""
    core.must_be_writable()
    version = _change_to_undo(core, version_or_name)
    with core.vault.lock():
        steps = core.changes.step(version.group)
        _check_unseen_links(core, steps)
        asked, done = history.main_of(steps), "undid"
        main_path = (asked.path, asked.new_path)
        if former := undone_by(asked):
            asked, done = (
                history.main_of(core.changes.step(core.changes.find(former).group)),
                "redid",
            )
        reason = ": ".join(filter(None, (f"undoes {steps[0].id}", by.get("reason"))))
        try:
            written = core.vault.undo(version.id, change_by({**by, "reason": reason}, "undo"))
        except Conflict as error:
            raise _refusal(core, version, error) from error
        paths = {path for step in steps for path, _, _ in step.effects} | {
            each.path for each in written
        }
        core.indexed(paths, lambda: core.look_at(paths))
    main, more = (
        next((each for each in written if each.path in main_path), written[0]),
        len(steps) - 1,
    )
    to = f" to {name_of(asked.new_path)}" if asked.new_path else ""
    also = (
        f" and {counted(more, 'more change')} of the same step"
        if more and (asked.op == "undo" or not to)
        else ""
    )
    what = f"{done} the {_NOUNS.get(asked.op, asked.op)} of {name_of(asked.path)}{to}{also}"
    return Undone(name_of(main.path), main.sha256, main.version, what)


def _refusal(core: Core, version: Version, error: Conflict) -> Conflict:
    """Return the error for a note that is not as this change left it: what happened, and how to go on.

    If the note can be restored as it was before the change, `restore_at` says what to restore.
    """
    path: str = error.details["path"]
    name = name_of(path)
    facts = {**error.details, "version": version.id}
    if facts["current_sha256"] is None:
        return Conflict(error.message, hint=error.hint, **facts)

    steps = core.changes.step(version.group)
    step = next((step for step in steps if path in (step.path, step.new_path)), version)
    message = f"{name} has changed since {version.id}"
    if step.after is None:
        message = f"a note called {name} exists again"
        hint = "Move or delete that note first, or restore the old one under another name."
    elif _is_changed_since(core, path, version):
        hint = "Undo the later changes first."
    elif step.new_path is not None:
        hint = (
            "The note was edited outside simplemem. To move it back with that edit, move it again."
        )
    elif step.before is None:
        hint = "The note was edited outside simplemem. If you do not want to keep it, delete it."
    else:
        facts["restore_at"] = f"before {version.id}"
        restoring = f"restore the note as it was before {version.id}"
        hint = f"The note was edited outside simplemem. To take back that edit too, {restoring}."
    return Conflict(message, hint=hint, **facts)


def _is_changed_since(core: Core, path: str, version: Version) -> bool:
    """Return whether the history has a later change of this path."""
    latest = next(iter(core.changes.of(path, 1)), None)
    return latest is not None and latest.group != version.group


def _check_unseen_links(core: Core, steps: Sequence[Version]) -> None:
    """Raise ReadOnly if to take back the moves among these changes would break a link that this view cannot follow."""
    new_paths, texts = dict[str, str](), dict[str, bytes]()
    for step in steps:
        if step.new_path is None or step.before is None:
            continue
        new_paths[step.new_path] = step.path
        text = core.vault.history.kept(step.before) if step.before != step.after else None
        if text is not None:
            texts[step.new_path] = text
    check_unseen_links(core.vault, Moves(new_paths), texts)


def _change_to_undo(core: Core, version_or_name: str) -> Version:
    """Return the change of this id, or the last one of the memory of this name that was not taken back yet."""
    try:
        return core.changes.find(version_or_name)
    except NotFound as no_version:
        if core.entry(path_of(clean_reference(version_or_name))) is None:
            if history.means_commit(core, version_or_name):
                hint = "Restore a note as it was at that commit, or revert the commit with git."
                message = f"{version_or_name} is a commit of git, which simplemem cannot undo"
                raise Invalid(message, hint=hint) from None
            if history.is_version_id(version_or_name):
                no_version.hint = _versions_there_are(core)
                raise
    return core.changes.find(last_step(core, version_or_name))


def _versions_there_are(core: Core) -> str:
    """Say which version is the newest that may be seen, and where the others are listed."""
    newest = core.changes.recent(1)
    if not newest:
        return "The history is empty."
    return f"The newest version is {newest[0].id}; memory_history lists the latest."


def undone_by(version: Version) -> str:
    """The version that this change is the undo of; "" for any other change."""
    found = re.match(r"undoes (v[0-9]+)\b", version.reason) if version.op == "undo" else None
    return found[1] if found else ""


def last_step(core: Core, name: str | None = None, *, undone: bool = False) -> str:
    """Return the version to undo next, of one note or of all; if `undone`, the undo to take back next.

    Raises NotFound if there is none. Only an undo since which nothing else changed can be taken back.
    """
    path = None if name is None else history.path_with_a_past(core, name)
    found = core.changes.recent(1000) if path is None else core.changes.of(path)
    steps: dict[str, list[Version]] = {}  # newest first
    for version in found:
        if version.op != "recovered":
            steps.setdefault(version.group, []).append(version)
    undos = {group for group, versions in steps.items() if versions[0].op == "undo"}

    taken_back = set[str]()
    goals: dict[
        str, str | None
    ] = {}  # the texts that an undo by author brought back, until their change is reached
    for group, versions in steps.items():
        if group in taken_back or _leads_from(versions, goals):
            continue
        target = undone_by(versions[0])
        is_redo = target in undos
        if undone == (group in undos) and not is_redo:
            return group
        if group not in undos:
            break
        if target:
            taken_back.add(target)
        else:
            goals |= {path: after for version in versions for path, _, after in version.effects}
    message = f"nothing to {'redo' if undone else 'undo'}{f' in {name}' if name else ''}"
    hint = "Only changes made through simplemem can be undone."
    if undone:
        hint = "The history has only changes made through simplemem."
    raise NotFound(message, hint=hint)


def _leads_from(versions: Sequence[Version], goals: dict[str, str | None]) -> bool:
    """Return whether an undo by author took these changes back; remove the goals that they started from."""
    effects = [effect for version in versions for effect in version.effects]
    if not any(path in goals for path, _, _ in effects):
        return False
    for path, before, _ in effects:
        if path in goals and goals[path] == before:
            del goals[path]
    return True


def restore(
    core: Core, name: str, *, at: str | None = None, new_name: str | None = None, **by: Unpack[By]
) -> Restored:
    """Bring a memory's text of a version or date back; of a deleted one, its last. With `new_name` it stands beside."""
    core.must_be_writable()
    path = history.path_with_a_past(core, name)
    with core.vault.lock():
        doubt, since = "", at
        if since is None and new_name is not None and core.entry(path) is not None:
            deletion = _deletion_of_another(core, path)
            since = None if deletion is None else f"before {deletion.id}"
        if since is None:
            if core.entry(path) is not None:
                hint = "Pass `at`: a version of its history, or a date."
                raise Invalid(f"{name_of(path)} already exists", hint=hint)
            last = history.last_change(core, path)
            since = f"before {last.id}" if last.after is None else last.id
            doubt = (
                ""
                if last.after is None
                else "it was deleted outside simplemem, perhaps after other changes"
            )
        then = history.note_at(core, path, since, name=name)
        if then.data is None or then.sha256 is None:
            raise history.nothing_there(name_of(path), since, then)
        target = path if new_name is None else path_of(check_name(new_name))
        now = core.file(target)
        other = (
            _taken_since(core, path, since, now.sha256)
            if now is not None and target == path
            else None
        )
        if now is not None and (target != path or other is not None):
            hint = (
                f"It got this name in {other.id}. Restore the old note under another name."
                if other
                else ""
            )
            message = f"another note called {name_of(target)} exists"
            raise AlreadyExists(message, hint=hint or "Choose another name.", name=name_of(target))
        wish = Wish("restore", target, before=now.sha256 if now else None, data=then.data)
        written = carry_out(core, [wish], change_by(by, "restore"))[0][0]
    said = [f"not certain: {doubt or then.doubt}"] if doubt or then.doubt else []
    if written.changed:
        before = read_note(now.data).text if now is not None else ""
        said += judge(core.settings, name_of(target), before, read_note(then.data).text, anew=False)
    outcome = (written.previous_sha256, written.version, since, written.changed, tuple(said))
    return Restored(name_of(target), then.sha256, *outcome)


def _deletion_of_another(core: Core, path: str) -> Version | None:
    """The change that deleted a note whose name another note has now; None if the note there is the only one."""
    comer = None  # the change that put a note at the path after the deletion
    for version in core.changes.recent():
        if version.path == path and version.after is None and version.before is not None:
            is_another = comer is None or comer.op in ("create", "move")
            return version if is_another else None
        is_put_there = version.new_path == path or (version.path == path and version.before is None)
        if is_put_there and version.op != "recovered":
            comer = version
    return None


def _taken_since(core: Core, path: str, at: str, now: str) -> Version | None:
    """The change since a moment with which this name went to another memory, or got free for another program's file."""
    lineage = core.changes.lineage(path)
    if not lineage or history.means_commit(core, at):
        return None  # git tells of names, and follows them by itself
    last, first = lineage[0], lineage[-1]
    if (last.new_path or last.path) != path or (last.after is None and last.before != now):
        return last
    return (
        first
        if first.op == "create" and history.moment_of(core, at).number < first.number
        else None
    )


def undo_all(
    core: Core,
    by: str,
    since: str,
    *,
    preview: bool = False,
    expected: str | None = None,
    **change: Unpack[By],
) -> UndoneMany:
    """Take back everything that somebody changed since a date or version, as one change that can itself be undone. A
    `preview` changes nothing; given its `plan` as `expected`, it is done only if it is still what was shown."""
    if not by.strip() or not since.strip():
        missing = "a client, as `by`" if not by.strip() else "a date or version, as `since`"
        raise Invalid(
            f"an undo of several changes needs {missing}",
            hint="The history shows who changed what, and when.",
        )
    if preview:
        return _plan(core, by, since)[0]
    core.must_be_writable()
    with core.vault.lock():
        shown, wishes = _plan(core, by, since)
        if expected is not None and shown.plan != expected:
            message, hint = (
                "the vault has changed since the preview",
                "Read the new preview, then repeat the call.",
            )
            raise Conflict(message, current_sha256=None, hint=hint)
        if not wishes:
            return shown
        reason = change.get("reason") or f"everything by {by} since {since}"
        written, _ = carry_out(core, wishes, change_by({**change, "reason": reason}, "undo"))
    return replace(shown, version=written[0].version)


def _plan(core: Core, by: str, since: str) -> tuple[UndoneMany, list[Wish]]:
    """What would become of each note, and the wishes that do it."""
    lines = core.changes.recent(after=history.moment_of(core, since, start=True).number)
    if not any(is_called(version.who, by) and version.effects for version in lines):
        names = dict.fromkeys(version.who for version in lines if version.who)
        hint = "The history shows who changed what, and when."
        raise NotFound(
            f"{by} has changed nothing since {since}", candidates=list(names)[:10], hint=hint
        )
    chains, moves = _changes_by(lines, by)
    files = {path: history.file_now(core, path) for path in sorted(chains)}
    now = {path: None if file is None else file.sha256 for path, file in files.items()}
    then = {
        path: chains[path][0][1] for path in now if now[path] != chains[path][0][1]
    }  # what is to be there again
    moved = {
        new: old
        for new, old in moves.items()
        if new in then and old in then and then[new] is now[old] is None
    }
    groups = {
        path: {version.group for version, _, _ in chains[path] if is_called(version.who, by)}
        for path in then
    }
    whys = {
        path: _why_left(core, by, path, chains[path], now[path], path in moved) for path in then
    }
    moving = {new: old for new, old in moved.items() if not whys[new]}
    if would_break_unseen_links(core.vault, Moves(moving), _texts_then(core, moving, then)):
        whys |= dict.fromkeys(moving, "it would break a link from or to a hidden folder")
    todo = [path for path, why in whys.items() if why]
    while todo:  # what shares an operation with something that is left is left too
        other = todo.pop()
        for path in then:
            if not whys[path] and (shared := groups[path] & groups[other]):
                whys[path] = (
                    f"{min(shared)} changed it together with {name_of(other)}, which is left as it is"
                )
                todo.append(path)
    notes, wishes = [], []
    for path in then:
        if whys[path] or path in moved.values():
            continue
        old = moved.get(path)
        sha = then[old or path]
        done = (
            "moved back"
            if old
            else "deleted"
            if sha is None
            else "changed back"
            if now[path]
            else "brought back"
        )
        notes.append(
            UndoneNote(
                name_of(path), old and name_of(old), done, chains[path][0][0].id, now[path], sha
            )
        )
        text = None if sha is None or sha == now[path] else history.text_of(core, sha)
        wishes.append(
            Wish("undo", path, before=now[path], new_path=old, data=text, gone=sha is None)
        )
    left = tuple(LeftAsIs(name_of(path), why) for path, why in whys.items() if why)
    digest = hashlib.sha256(repr(notes).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return UndoneMany(by, since, "", tuple(notes), left, digest), wishes


def _changes_by(lines: Sequence[Version], by: str) -> tuple[dict[str, list[_Step]], dict[str, str]]:
    """Return per path what somebody changed, with all later changes, and where the notes they moved were before.

    `lines` has the newest change first. A path that is again as it was before their change is left out.
    """
    chains: dict[str, list[_Step]] = {}
    taken_back: dict[str, list[_Step]] = {}
    moves: dict[str, str] = {}  # where a note is now -> where it was

    for version in reversed(lines):
        is_theirs = is_called(version.who, by)
        for path, before, after in version.effects:
            if not is_theirs and path not in chains:
                if not any(after == text for _, _, text in taken_back.get(path, ())):
                    continue
                chains[path] = taken_back.pop(path)  # somebody brought their change back

            chain = chains.setdefault(path, [])
            chain.append((version, before, after))
            if after == chain[0][1]:
                taken_back[path] = chains.pop(
                    path
                )  # the note is as it was: a later change starts from here

        if is_theirs and version.new_path is not None:
            moves[version.new_path] = moves.pop(version.path, version.path)
    return chains, moves


def _texts_then(
    core: Core, moving: Mapping[str, str], then: Mapping[str, str | None]
) -> dict[str, bytes]:
    """Return the texts that notes get that move back, by their paths now. One that is not kept is absent."""
    texts = dict[str, bytes]()
    for new, old in moving.items():
        sha256 = then[old]
        text = None if sha256 is None else history.text_of(core, sha256)
        if text is not None:
            texts[new] = text
    return texts


def _why_left(
    core: Core, by: str, path: str, chain: Sequence[_Step], now: str | None, moves: bool
) -> str:
    """Why a path is left as it is, "" when it is not: somebody else has changed it since, or the rules forbid it."""
    rules, log, then = core.vault.access, core.vault.history.log, chain[0][1]
    other = next((version for version, _, _ in chain if not is_called(version.who, by)), None)
    if other is not None:
        return f"{other.who or 'another client'} changed it later ({other.id})"
    if [after for _, _, after in chain] != [*(before for _, before, _ in chain[1:]), now]:
        return "it was changed later outside simplemem"
    if then is not None and history.text_of(core, then) is None:
        return history.GONE
    is_hidden = (
        len(core.changes.step(each.group)) < len(log.group(each.group)) for each, _, _ in chain
    )
    if rules.is_partial and any(is_hidden):
        return "it was changed together with a hidden note"
    if not rules.may_change(path):
        return "it is read-only here"
    return "deleting is not allowed here" if rules.no_delete and then is None and not moves else ""
