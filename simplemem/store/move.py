"""A memory gets another name, or goes to the trash; links to it are followed or counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from simplemem.errors import AlreadyExists, Invalid, NotFound
from simplemem.memory import By, Deleted, Moved
from simplemem.note.names import check_name, clean_reference, compare_key, name_of, path_of
from simplemem.store.core import Core, change_by
from simplemem.store.unseen import check_unseen_links
from simplemem.store.write import indexed, judge, rewrites_for
from simplemem.vault.history import Version
from simplemem.vault.obsidian import Move, resolve
from simplemem.vault.vault import Wish


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
    if old == new:
        raise Invalid(f"{name_of(old)} already has this name")
    check_unseen_links(core.vault, Move(old, new))
    core.catch_up()  # a link saved a moment ago is to follow as well
    with core.vault.lock():
        if compare_key(old) != compare_key(new) and core.entry(new) is not None:
            hint = "Choose another name, or move or delete that memory first."
            raise AlreadyExists(f"there is already a memory called {name_of(new)}", hint=hint, name=name_of(new))
        file = core.vault.read(old)
        warnings = judge(core.settings, "", name_of(old), name_of(new))
        rewrites, stuck = rewrites_for(core, old, new)
        own = next((each.data for each in rewrites if each.path == old), None)
        others = [each for each in rewrites if each.path != old]
        wish = Wish("move", old, file.sha256, new, own)
        written = core.vault.carry_out([wish, *others], change_by(by, "move"))[0]
        texts = {new: file.data if own is None else own, **{each.path: each.data or b"" for each in others}}
        warnings += stuck + indexed(core, texts, [written], moved=(old, new))
    rewritten = [name_of(each.path) for each in others] + ([name_of(new)] if own is not None else [])
    sha256 = written.sha256 or file.sha256
    return Moved(name_of(new), new, name_of(old), sha256, tuple(rewritten), written.version, tuple(warnings))


def delete(core: Core, name: str, *, if_sha256: str | None = None, **by: Unpack[By]) -> Deleted:
    """Put a memory in the trash. Links to it stay as they are and lead nowhere; `undo` brings it back."""
    core.must_be_writable()
    try:
        path = core.path_meant(name)
    except NotFound:
        if if_sha256 and (done := _last_change(core, name, "delete")) is not None and done.before == if_sha256:
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
            unresolved[path] = sum(resolve(link.target, link.source, remaining).path is None for link in links)

        wishes = [Wish("delete", path, core.vault.read(path).sha256, gone=True) for path in paths]
        written = core.vault.carry_out(wishes, change_by(by, "delete"))
        indexed(core, {}, [], gone=paths)
    return tuple(
        Deleted(name_of(path), one.version, unresolved[path]) for path, one in zip(paths, written, strict=True)
    )


def _last_change(core: Core, name: str, op: str) -> Version | None:
    """The last change of a memory that is not there, if it was this one: a call whose answer was lost is repeated."""
    versions = core.changes.of(path_of(clean_reference(name)), 1)
    return versions[0] if versions and versions[0].op == op else None
