"""Changes people and agents make of one memory: create, update, tag, move, delete. Each is made under the vault's lock,
written by the vault, indexed, and only then answered. A change that lost a race is settled in `races`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from simplemem.errors import AlreadyExists, Conflict, Invalid, NotFound, SimplememError
from simplemem.memory import Deleted, Moved, Saved
from simplemem.note.names import check_name, clean_reference, compare_key, name_of, path_of
from simplemem.note.note import Note, read_note
from simplemem.note.tags import change_tags as with_tags
from simplemem.note.tags import parse_tag_request, tag_map, tag_names
from simplemem.store.core import Core
from simplemem.store.edit import (
    Edit,
    Making,
    append_content,
    apply_edits,
    apply_metadata,
    encoded,
    judge,
    judge_name,
    new_text,
    replace_content,
    stamp_modified,
)
from simplemem.store.names import path_meant
from simplemem.vault.history import Version
from simplemem.vault.links import Named, name_key, resolve
from simplemem.vault.vault import Change, File, Wish, Written

_TRIES = 50  # a change that names no hash is applied again to what is there now, so often


def create(
    core: Core,
    name: str,
    content: str,
    metadata: Mapping[str, Any],
    change: Change,
    *,
    overwrite: bool,
    tags_as_map: bool,
) -> Saved:
    """Make a memory. A bare link that the new name would steal is qualified first, so that it keeps its meaning."""
    core.must_be_writable()
    clean = check_name(name)
    path = path_of(clean)
    text = new_text(clean, content, metadata, now(), tags_as_map=tags_as_map)
    data = encoded(text)
    with core.vault.lock():
        there = core.entry(path)
        if there is not None and overwrite:
            core.vault.access.check_gone(path, instead="Read it, and change it with update_memory.")
            old = core.vault.read(path)
            warnings = judge(core.settings, clean, read_note(old.data).text, text)
            return _saved(core, core.vault.replace(path, data, old.sha256, change), data, warnings)
        if there is not None:
            old = core.vault.read(path)
            stamped = read_note(old.data).string("modified")
            if stamped and encoded(new_text(clean, content, metadata, stamped)) == old.data:
                return _as_it_is(old)  # this very call, whose answer was lost
            raise AlreadyExists(
                f"there is already a memory called {clean}",
                hint="Use update_memory to change it, or pass overwrite=true; the old text stays in the history.",
                name=clean,
                current_sha256=old.sha256,
            )
        warnings = judge_name(core.settings, clean) + judge(core.settings, clean, "", text)
        rewrites, stuck = rewrites_for(core, None, path)
        written = core.vault.create(path, data, change, rewrites=rewrites)
        return _saved(core, written, data, [*warnings, *stuck], rewrites)


def update(
    core: Core,
    name: str,
    content: str | None,
    append: str | None,
    edits: Sequence[Edit | Mapping[str, str]] | None,
    metadata: Mapping[str, Any] | None,
    if_sha256: str | None,
    change: Change,
) -> Saved:
    """Change a memory's body (one of `content`, `append`, `edits`), its metadata, or both."""
    if sum(given is not None for given in (content, append, edits)) > 1:
        raise Invalid("give one of content, append and edits, not several")
    if content is None and append is None and not edits and not metadata:
        raise Invalid("nothing to change", hint="Give content, append, edits or metadata.")
    wanted = [edit if isinstance(edit, Edit) else Edit.of(edit) for edit in edits or ()]

    def changed(note: Note) -> str:
        text = note.text
        if content is not None:
            text = replace_content(note, content)
        elif append is not None:
            text = append_content(note, append)
        elif wanted:
            text = apply_edits(note, wanted)
        return apply_metadata(text, metadata) if metadata else text

    return _change(core, name, Making(changed, again=content is None and not metadata), if_sha256, change)


def change_tags(core: Core, name: str, tags: Any, if_sha256: str | None, change: Change) -> Saved:
    """Set tags, and take away those given as null, in the notation the note has."""
    changes = parse_tag_request(tags)
    if not changes:
        raise Invalid("no tag given", hint='Give tags as {"status": "done", "todo": null}.')
    return _change(core, name, Making(lambda note: with_tags(note.text, changes)), if_sha256, change)


def write_text(core: Core, name: str, text: str, if_sha256: str, change: Change) -> Saved:
    """Put a whole file in place, header included, byte for byte."""
    return _change(core, name, Making(lambda _: text, whole=True), if_sha256, change)


def _change(core: Core, name: str, making: Making, if_sha256: str | None, change: Change) -> Saved:
    """Read, change, replace; again from the start when somebody else was faster."""
    core.must_be_writable()
    path = path_meant(core, name)
    for tries_left in range(_TRIES, -1, -1):
        file = core.vault.read(path)
        if if_sha256 is None or if_sha256 == file.sha256:
            note = read_note(file.data, file.sha256)
            if not making.whole:
                note.must_be_editable(name_of(path))
            text = making.make(note)
        elif (settled := _settled(core, file, making, if_sha256)) is None:
            return _as_it_is(file)
        else:
            note, text = settled
        warnings = judge(core.settings, name_of(path), note.text, text) if text != note.text else []
        data = encoded(stamp_modified(text, now()) if text != note.text and not making.whole else text)
        with core.vault.lock():
            try:
                return _saved(core, core.vault.replace(path, data, file.sha256, change), data, warnings)
            except Conflict:
                if not tries_left or core.entry(path) is None:
                    raise
    raise AssertionError("unreachable")


def _settled(core: Core, file: File, making: Making, if_sha256: str) -> tuple[Note, str] | None:
    """What is to be written on a note that is not what the caller has read. None when nothing is left to do."""
    from simplemem.store.races import settled

    text = settled(core, file, making, if_sha256)
    return None if text is None else (read_note(file.data, file.sha256), text)


# -- moving and deleting


def move(core: Core, name: str, new_name: str, change: Change) -> Moved:
    """Give a memory another name. Every link goes on meaning what it meant, in its own form."""
    core.must_be_writable()
    new = path_of(check_name(new_name))
    try:
        old = path_meant(core, name)
    except NotFound:
        if (done := _last_change(core, name, "move")) is not None and done.new_path == new:
            return Moved(name_of(new), new, name_of(done.path), done.after or "", (), done.id, ())
        raise
    if old == new:
        raise Invalid(f"{name_of(old)} already has this name")
    core.catch_up()  # a link saved a moment ago is to follow as well
    with core.vault.lock():
        if compare_key(old) != compare_key(new) and core.entry(new) is not None:
            raise AlreadyExists(f"there is already a memory called {name_of(new)}", name=name_of(new))
        file = core.vault.read(old)
        warnings = judge_name(core.settings, name_of(new), name_of(old))
        rewrites, stuck = rewrites_for(core, old, new)
        own = next((each for each in rewrites if each.path == old), None)
        others = [each for each in rewrites if each.path != old]
        data = file.data if own is None else own.data
        written = core.vault.move(
            old, new, change, rewrites=others, data=None if own is None else data, expected_sha256=file.sha256
        )
        warnings += stuck + indexed(
            core, {new: data or b"", **{each.path: each.data or b"" for each in others}}, [written], moved=(old, new)
        )
    rewritten = [name_of(each.path) for each in others] + ([name_of(new)] if own is not None else [])
    sha256 = written.sha256 or file.sha256
    return Moved(name_of(new), new, name_of(old), sha256, tuple(rewritten), written.version, tuple(warnings))


def delete(core: Core, name: str, if_sha256: str | None, change: Change) -> Deleted:
    """Put a memory in the trash. Links to it stay as they are and are broken; undo brings it back."""
    core.must_be_writable()
    try:
        path = path_meant(core, name)
    except NotFound:
        done = _last_change(core, name, "delete") if if_sha256 else None
        if done is not None and done.before == if_sha256:
            return Deleted(name_of(done.path), done.id, 0)
        raise
    with core.vault.lock():
        linking = core.index.links_to(path)
        written = core.vault.trash(path, if_sha256, change)
        indexed(core, {}, [], gone=[path])
        named = core.index.named()
        broken = sum(1 for link in linking if resolve(link.target, link.source, named).path is None)
    return Deleted(name_of(path), written.version, broken)


def _last_change(core: Core, name: str, op: str) -> Version | None:
    """The last change of a memory that is not there, if it was this one: a call whose answer was lost is repeated."""
    versions = core.changes.of(path_of(clean_reference(name)), 1)
    return versions[0] if versions and versions[0].op == op else None


def rewrites_for(core: Core, old: str | None, new: str) -> tuple[list[Wish], list[str]]:
    """The notes whose links must be written again so that a name that comes, or moves from an old one, changes no link's
    meaning; and what is to be said of those that cannot be."""
    before = core.index.named()
    touched = [path for path in (old, new) if path is not None]
    sources = core.index.sources_that_could_mean(touched)
    if old is not None and old not in sources:
        sources.append(old)
    if not sources:
        return [], []
    from simplemem.vault.rewrite import Move, rewrite_links

    rewrites: list[Wish] = []
    warnings: list[str] = []
    for path in sources:
        try:
            file = core.vault.read(path)
        except SimplememError:
            continue
        note = read_note(file.data)
        text = rewrite_links(
            note, path, Move(old, new), before, _named_after(before, old, new), core.conventions.link_format
        )
        if text == note.text:
            continue
        if note.problem is not None:
            warnings.append(f"{name_of(path)} has a link that should follow, but cannot be changed: {note.problem}")
            continue
        rewrites.append(Wish.update(path, file.sha256, encoded(text)))
    return rewrites, warnings


def _named_after(before: Named, old: str | None, new: str) -> Named:
    """Which files have a name once the move is done."""

    def named(key: str) -> Sequence[str]:
        files = [path for path in before(key) if path != old]
        if name_key(new) == key and new not in files:
            files.append(new)
        return sorted(files)

    return named


# -- what was written is indexed, still under the lock


def indexed(
    core: Core,
    texts: Mapping[str, bytes],
    written: Iterable[Written],
    *,
    gone: Iterable[str] = (),
    moved: tuple[str, str] | None = None,
) -> list[str]:
    """Index notes that were just written, or went, and tell who listens. Returns what is to be said of them. `written` has
    the files as they were put, which somebody may have changed since."""
    warnings: list[str] = []
    entries = {each.entry.path: each.entry for each in written if each.entry is not None}
    notes = []
    for path, data in texts.items():
        entry = entries.get(path) or core.entry(path)
        if entry is not None:
            notes.append((path, read_note(data), entry))
            if entry.size > core.rows.max_note_bytes:
                warnings.append("written, but too large to be indexed; index.max_note_mb says how large notes may be")
    gone = list(gone)
    changed = {*texts, *gone, *(moved or ())}
    if changed:
        warnings += core.indexed(changed, lambda: core.rows.put(notes, gone=gone, moved=moved))
        core.tell(name_of(path) for path in changed)
        core.fill_soon()
    return warnings


def _saved(core: Core, written: Written, data: bytes, warnings: Sequence[str], rewrites: Sequence[Wish] = ()) -> Saved:
    """One note that was written, and the notes whose links it made us qualify."""
    name, more = name_of(written.path), []
    if written.changed:
        more = indexed(core, {written.path: data, **{each.path: each.data or b"" for each in rewrites}}, [written])
    more += [f"links in {each.path} were qualified: {name} has the same name" for each in rewrites]
    return _outcome(read_note(data, written.sha256), written, (*warnings, *more))


def _as_it_is(file: File) -> Saved:
    """Nothing was to be done: the note is what was wanted."""
    written = Written(file.path, file.sha256, file.sha256, "", file.entry, changed=False)
    return _outcome(read_note(file.data), written, ())


def _outcome(note: Note, written: Written, warnings: tuple[str, ...]) -> Saved:
    return Saved(
        name=name_of(written.path),
        path=written.path,
        sha256=written.sha256 or note.sha256,
        previous_sha256=written.previous_sha256,
        changed=written.changed,
        version=written.version,
        tags=tuple(tag_names(note.tags)),
        tag_map=tag_map(note.tags, note.header.properties),
        warnings=warnings,
    )


def now() -> str:
    """The time as our notes have it: local, to the second."""
    return datetime.now().strftime("%Y-%m-%dT%H:%M:%S")  # noqa: DTZ005  (local, as notes are)
