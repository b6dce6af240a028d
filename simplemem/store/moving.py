"""Moving and deleting one memory: the links of others go on meaning what they meant, or lead nowhere and say so."""

from __future__ import annotations

from collections.abc import Sequence

from simplemem.errors import AlreadyExists, Invalid, NotFound
from simplemem.index.links import StoredLink
from simplemem.memory import Deleted, Moved
from simplemem.note.names import check_name, clean_reference, compare_key, name_of, path_of
from simplemem.note.note import read_note
from simplemem.store.core import Core
from simplemem.store.following import rewrites_for
from simplemem.store.names import path_meant
from simplemem.store.saving import index_rewrites
from simplemem.store.secrecy import judge_name
from simplemem.vault import rewrite
from simplemem.vault.history import Version
from simplemem.vault.links import resolve
from simplemem.vault.vault import Change


def move(core: Core, name: str, new_name: str, change: Change) -> Moved:
    """Give a memory another name. Every link goes on meaning what it meant, in its own form."""
    core.must_be_writable()
    new = path_of(check_name(new_name))
    try:
        old = path_meant(core, name)
    except NotFound:
        if (done := _done_last(core, name, "move")) is not None and done.new_path == new:
            return Moved(name_of(new), new, name_of(done.path), done.after or "", (), done.id, ())
        raise
    if old == new:
        raise Invalid(f"{name_of(old)} already has this name")
    core.catch_up_lately()  # a link saved a moment ago is to follow as well
    with core.vault.lock():
        if compare_key(old) != compare_key(new) and core.entry(new) is not None:
            raise AlreadyExists(f"there is already a memory called {name_of(new)}", name=name_of(new))
        file = core.vault.read(old)
        told = judge_name(core.settings, name_of(new), name_of(old))
        rewrites, warnings = core.healing(lambda: rewrites_for(core, rewrite.Moved(old, new)))
        own = next((each for each in rewrites if each.path == old), None)
        others = [each for each in rewrites if each.path != old]
        written = core.vault.move(
            old,
            new,
            change,
            rewrites=others,
            data=None if own is None else own.data,
            expected_sha256=file.sha256,
        )
        note = read_note(file.data if own is None else own.data, written.sha256)
        entry = written.entry or core.entry(new)
        if entry is not None:
            there = entry
            warnings += core.indexed(new, lambda: core.rows.move(old, new, note, there))
        index_rewrites(core, others)
        changed = tuple(name_of(each.path) for each in others)
        core.tell({name_of(old), name_of(new), *changed})
        core.fill_soon()
    rewritten = changed if own is None else (*changed, name_of(new))
    sha256 = written.sha256 or file.sha256
    return Moved(name_of(new), new, name_of(old), sha256, rewritten, written.version, (*told, *warnings))


def delete(core: Core, name: str, if_sha256: str | None, change: Change) -> Deleted:
    """Put a memory in the trash. Links to it stay as they are and lead nowhere; undo brings it back."""
    core.must_be_writable()
    try:
        path = path_meant(core, name)
    except NotFound:
        done = _done_last(core, name, "delete") if if_sha256 else None
        if done is not None and done.before == if_sha256:
            return Deleted(name_of(done.path), done.id, 0)
        raise
    with core.vault.lock():
        linking = core.healing(lambda: core.index.links_to(path))
        written = core.vault.trash(path, if_sha256, change)
        core.indexed(path, lambda: core.rows.forget(path))
        core.tell({name_of(path)})
        left = core.healing(lambda: _leading_nowhere(core, linking))
    return Deleted(name_of(path), written.version, left)


def _done_last(core: Core, name: str, op: str) -> Version | None:
    """The last change of a memory that is not there, if it was this one: a call whose answer was lost is repeated."""
    versions = core.vault.history.versions(path_of(clean_reference(name)), 1)
    return versions[0] if versions and versions[0].op == op else None


def _leading_nowhere(core: Core, linking: Sequence[StoredLink]) -> int:
    named = core.index.named()
    return sum(1 for link in linking if resolve(link.target, link.source, named).path is None)
