"""A memory gets another name, or goes to the trash; links to it are followed or counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Unpack

from simplemem.errors import AlreadyExists, Invalid, NotFound
from simplemem.index.notes import is_note
from simplemem.memory import By, Deleted, Moved
from simplemem.note.header import read_header
from simplemem.note.names import check_name, clean_reference, compare_key, name_of, path_of
from simplemem.note.scopes import check_move_keeps_scope
from simplemem.store.core import Core, change_by
from simplemem.store.unseen import check_unseen_links
from simplemem.store.write import indexed, judge, rewrites_for
from simplemem.vault.history import Version
from simplemem.vault.obsidian import Moves, resolve
from simplemem.vault.vault import Change, File, Wish, Written


def move(core: Core, name: str, new_name: str, **by: Unpack[By]) -> Moved:
    """Give a memory another name. Every link goes on meaning what it meant, in its own form."""
    core.must_be_writable()
    new = path_of(check_name(new_name))
    try:
        old = core.path_meant(name)
    except NotFound:
        if (done := _last_change(core, name, "move")) is not None and done.new_path == new:
            return Moved(name_of(new), new, name_of(done.path), done.after or "", (), done.id, ())
        raise
    return move_files(core, {old: new}, **by)[0]


def move_files(core: Core, new_paths: Mapping[str, str], **by: Unpack[By]) -> tuple[Moved, ...]:
    """Give files other paths as one change, all or none. Every link goes on meaning what it meant, in its own form.

    Raises AlreadyExists if a new path is taken. Raises ReadOnly if a rule forbids one of the changes, or if a link
    would break that this view cannot follow.
    """
    core.must_be_writable()
    for old, new in new_paths.items():
        check_name(name_of(new))
        if old == new:
            raise Invalid(f"{name_of(old)} already has this name")
        # Before anything is looked at, so that the answer is the same whatever lies in a place that is closed here.
        core.vault.access.check(old, asked=True)
        core.vault.access.check(new, asked=True)

    core.catch_up()  # a link saved a moment ago is to follow as well
    with core.vault.lock():
        return _move_in_lock(core, Moves(new_paths), change_by(by, "move"))


def _move_in_lock(core: Core, moves: Moves, change: Change) -> tuple[Moved, ...]:
    """Move files while the vault is locked."""
    files, warnings = dict[str, File](), list[str]()
    for old, new in moves.new_paths.items():
        _check_free(core, old, new)
        files[old] = core.vault.read(old)
        _check_scope(core, old, new, files[old].data)
        warnings += judge(core.settings, "", name_of(old), name_of(new))

    rewrites, stuck = rewrites_for(core, moves)
    own_texts = {
        wish.path: wish.data for wish in rewrites if wish.path in files and wish.data is not None
    }
    others = [wish for wish in rewrites if wish.path not in files]
    check_unseen_links(core.vault, moves, own_texts)

    wishes = [
        Wish("move", old, file.sha256, moves.after(old), own_texts.get(old))
        for old, file in files.items()
    ]
    written = core.vault.carry_out([*wishes, *others], change)[: len(wishes)]
    texts = {moves.after(old): own_texts.get(old, file.data) for old, file in files.items()}
    texts |= {wish.path: wish.data or b"" for wish in others}
    warnings += stuck + _index_moved(core, texts, written, moves)

    rewritten = [name_of(wish.path) for wish in others] + [
        name_of(moves.after(path)) for path in own_texts
    ]
    return tuple(
        Moved(
            name=name_of(result.path),
            path=result.path,
            previous_name=name_of(old),
            sha256=result.sha256 or file.sha256,
            rewritten=tuple(rewritten),
            version=result.version,
            warnings=tuple(warnings),
        )
        for (old, file), result in zip(files.items(), written, strict=True)
    )


def _check_free(core: Core, old: str, new: str) -> None:
    """Raise AlreadyExists if another note has the new name. A note may change the case of its own."""
    if compare_key(old) != compare_key(new) and core.entry(new) is not None:
        hint = "Choose another name, or move or delete that note first."
        raise AlreadyExists(
            f"a note called {name_of(new)} already exists", hint=hint, name=name_of(new)
        )


def _check_scope(core: Core, old: str, new: str, data: bytes) -> None:
    """Raise Invalid if a move would bring a note into the scope of somebody whose notes this view does not see."""
    if core.vault.access.is_partial:
        properties = read_header(data.decode("utf-8", "replace")).properties
        check_move_keeps_scope(old, new, properties, core.vault.access.hides)


def _index_moved(
    core: Core, texts: Mapping[str, bytes], written: Sequence[Written], moves: Moves
) -> list[str]:
    """Index what moved and the notes whose links followed, by their paths now. Returns warnings."""
    warnings = list[str]()
    attachments = {
        path
        for old, new in moves.new_paths.items()
        if not is_note(old) or not is_note(new)
        for path in (old, new)
    }
    if attachments:  # first: notes link to them
        warnings += core.indexed(attachments, lambda: core.look_at(attachments))
    notes = {path: data for path, data in texts.items() if path not in attachments}
    moved = {old: new for old, new in moves.new_paths.items() if new in notes}
    return warnings + indexed(core, notes, written, moved=moved)


def delete(core: Core, name: str, *, if_sha256: str | None = None, **by: Unpack[By]) -> Deleted:
    """Put a memory in the trash. Links to it stay as they are and lead nowhere; `undo` brings it back."""
    core.must_be_writable()
    try:
        path = core.path_meant(name)
    except NotFound:
        if (
            if_sha256
            and (done := _last_change(core, name, "delete")) is not None
            and done.before == if_sha256
        ):
            return Deleted(name_of(done.path), done.id, 0)
        raise
    with core.vault.lock():
        named, linking = core.index.files_named, core.index.links(path)
        left = lambda key: [each for each in named(key) if each != path]  # noqa: E731
        broken = sum(resolve(link.target, link.source, left).path is None for link in linking)
        written = core.vault.trash(path, if_sha256, change_by(by, "delete"))
        indexed(core, {}, [], gone=[path])
    return Deleted(name_of(path), written.version, broken)


def delete_all(core: Core, names: Iterable[str], **by: Unpack[By]) -> tuple[Deleted, ...]:
    """Put memories in the trash as one change, which one undo takes back.

    All names are looked up first: raises NotFound or Ambiguous, with nothing deleted, if one of them means no memory.
    Links among the memories are not counted as unresolved.
    """
    core.must_be_writable()
    paths = list(dict.fromkeys(core.path_meant(name) for name in names))
    if not paths:
        return ()
    with core.vault.lock():
        deleted = set(paths)

        def remaining(key: str) -> list[str]:
            return [path for path in core.index.files_named(key) if path not in deleted]

        unresolved = {}
        for path in paths:
            links = [link for link in core.index.links(path) if link.source not in deleted]
            unresolved[path] = sum(
                resolve(link.target, link.source, remaining).path is None for link in links
            )

        wishes = [Wish("delete", path, core.vault.read(path).sha256, gone=True) for path in paths]
        written = core.vault.carry_out(wishes, change_by(by, "delete"))
        indexed(core, {}, [], gone=paths)
    return tuple(
        Deleted(name_of(path), one.version, unresolved[path])
        for path, one in zip(paths, written, strict=True)
    )


def _last_change(core: Core, name: str, op: str) -> Version | None:
    """The last change of a memory that is not there, if it was this one: a call whose answer was lost is repeated."""
    versions = core.changes.of(path_of(clean_reference(name)), 1)
    return versions[0] if versions and versions[0].op == op else None
