"""Changes of one memory: create, update, tag, move, delete. Every byte outside a change stays as it was. It is made
under the vault's lock, written, indexed, and only then answered; a lost race is settled in `conflicts`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Unpack

from simplemem.errors import AlreadyExists, Conflict, Invalid, NotFound, SimplememError
from simplemem.memory import By, Deleted, Moved, Saved
from simplemem.note.names import check_name, clean_reference, compare_key, name_of, path_of
from simplemem.note.note import Note, read_note, tag_map, tag_names
from simplemem.note.tags import change_tags as with_tags
from simplemem.note.tags import parse_tag_request
from simplemem.store import edit
from simplemem.store.core import Core, change_by
from simplemem.vault.history import Version
from simplemem.vault.links import Move, name_key, resolve, rewrite_links
from simplemem.vault.vault import Change, File, Wish, Written

_TRIES = 50  # a change that names no hash is applied again to what is there now, so often


class Making(NamedTuple):
    """What a change makes of a note: `again` of any text, as an append can; `whole` is the text itself, unstamped."""

    make: Callable[[Note], str]
    again: bool = False
    whole: bool = False


def create(
    core: Core,
    name: str,
    content: str,
    metadata: Mapping[str, Any] | None = None,
    *,
    overwrite: bool = False,
    tags_as_map: bool = False,
    **by: Unpack[By],
) -> Saved:
    """Make a memory. A bare link that the new name would steal is qualified first, so that it keeps its meaning."""
    core.must_be_writable()
    clean, change = check_name(name), change_by(by, "create")
    path = path_of(clean)
    text = edit.new_text(content, metadata or {}, edit.now(), tags_as_map=tags_as_map)
    data = edit.encoded(text)
    with core.vault.lock():
        old = core.vault.read(path) if core.entry(path) is not None else None
        if old is not None and overwrite:
            core.vault.access.check_gone(path, instead="Read it, and change it with update_memory.")
            warnings = edit.judge(core.settings, clean, read_note(old.data).text, text)
            return _saved(core, core.vault.replace(path, data, old.sha256, change), data, warnings)
        if old is not None:
            stamped = read_note(old.data).string("modified")
            if stamped and edit.encoded(edit.new_text(content, metadata or {}, stamped)) == old.data:
                return _unchanged(core, old)  # this very call, whose answer was lost
            hint = "Use update_memory to change it, or pass overwrite=true; the old text stays in the history."
            message = f"there is already a memory called {clean}"
            raise AlreadyExists(message, hint=hint, name=clean, current_sha256=old.sha256)
        warnings = edit.judge(core.settings, "", "", clean) + edit.judge(core.settings, clean, "", text)
        rewrites, stuck = rewrites_for(core, None, path)
        written = core.vault.create(path, data, change, rewrites=rewrites)
        return _saved(core, written, data, [*warnings, *stuck], rewrites)


def update(
    core: Core,
    name: str,
    *,
    content: str | None = None,
    append: str | None = None,
    edits: Sequence[Mapping[str, str]] | None = None,
    metadata: Mapping[str, Any] | None = None,
    if_sha256: str | None = None,
    **by: Unpack[By],
) -> Saved:
    """Change a memory's body (one of `content`, `append`, `edits`), its metadata, or both."""
    if sum(given is not None for given in (content, append, edits)) > 1:
        raise Invalid("give one of content, append and edits, not several")
    if content is None and append is None and not edits and not metadata:
        raise Invalid("nothing to change", hint="Give content, append, edits or metadata.")

    def changed(note: Note) -> str:
        text = note.text
        if content is not None:
            text = edit.replace_content(note, content)
        elif append is not None:
            text = edit.append_content(note, append)
        elif edits:
            text = edit.apply_edits(note, edits)
        return edit.apply_metadata(text, metadata) if metadata else text

    making = Making(changed, again=content is None and not metadata)
    return _carry_out(core, name, making, if_sha256, change_by(by, "update"))


def write_text(core: Core, name: str, text: str, *, if_sha256: str, **by: Unpack[By]) -> Saved:
    """Put a whole file in place, header included, byte for byte: what a person made in an editor."""
    return _carry_out(core, name, Making(lambda _: text, whole=True), if_sha256, change_by(by, "edit"))


def change_tags(core: Core, name: str, tags: Any, *, if_sha256: str | None = None, **by: Unpack[By]) -> Saved:
    """Set tags, and take away those given as null, in the notation the note has."""
    changes = parse_tag_request(tags)
    if not changes:
        raise Invalid("no tag given", hint='Give tags as {"status": "done", "todo": null}.')
    making = Making(lambda note: with_tags(note.text, changes))
    return _carry_out(core, name, making, if_sha256, change_by(by, "tag"))


def _carry_out(core: Core, name: str, making: Making, if_sha256: str | None, change: Change) -> Saved:
    """Read, change, replace; again from the start when somebody else was faster."""
    core.must_be_writable()
    path = core.path_meant(name)
    for tries_left in range(_TRIES, -1, -1):
        file = core.vault.read(path)
        note = read_note(file.data, file.sha256)
        if if_sha256 is None or if_sha256 == file.sha256:
            if not making.whole:
                note.must_be_editable(name_of(path))
            text = making.make(note)
        else:
            from simplemem.store.conflicts import settled

            if (merged := settled(core, file, making, if_sha256)) is None:
                return _unchanged(core, file)
            text = merged
        warnings = edit.judge(core.settings, name_of(path), note.text, text)
        data = edit.encoded(edit.stamp_modified(text, edit.now()) if text != note.text and not making.whole else text)
        with core.vault.lock():
            try:
                return _saved(core, core.vault.replace(path, data, file.sha256, change), data, warnings)
            except Conflict:
                if not tries_left or core.entry(path) is None:
                    raise
    raise AssertionError("unreachable")


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
    core.catch_up()  # a link saved a moment ago is to follow as well
    with core.vault.lock():
        if compare_key(old) != compare_key(new) and core.entry(new) is not None:
            raise AlreadyExists(f"there is already a memory called {name_of(new)}", name=name_of(new))
        file = core.vault.read(old)
        warnings = edit.judge(core.settings, "", name_of(old), name_of(new))
        rewrites, stuck = rewrites_for(core, old, new)
        own = next((each.data for each in rewrites if each.path == old), None)
        others = [each for each in rewrites if each.path != old]
        change = change_by(by, "move")
        written = core.vault.move(old, new, change, rewrites=others, data=own, expected_sha256=file.sha256)
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
        done = _last_change(core, name, "delete") if if_sha256 else None
        if done is not None and done.before == if_sha256:
            return Deleted(name_of(done.path), done.id, 0)
        raise
    with core.vault.lock():
        linking = core.index.links(path)
        written = core.vault.trash(path, if_sha256, change_by(by, "delete"))
        indexed(core, {}, [], gone=[path])
        named = core.index.files_named
        broken = sum(1 for link in linking if resolve(link.target, link.source, named).path is None)
    return Deleted(name_of(path), written.version, broken)


def _last_change(core: Core, name: str, op: str) -> Version | None:
    """The last change of a memory that is not there, if it was this one: a call whose answer was lost is repeated."""
    versions = core.changes.of(path_of(clean_reference(name)), 1)
    return versions[0] if versions and versions[0].op == op else None


def rewrites_for(core: Core, old: str | None, new: str) -> tuple[list[Wish], list[str]]:
    """The notes whose links must be written again so that a new name changes no link's meaning; and what cannot be."""
    before = core.index.files_named

    def after(key: str) -> Sequence[str]:
        files = {path for path in before(key) if path != old}
        return sorted(files | {new} if name_key(new) == key else files)

    sources = core.index.sources_that_could_mean([new] if old is None else [old, new])
    rewrites: list[Wish] = []
    warnings: list[str] = []
    for path in dict.fromkeys([*sources, *([] if old is None else [old])]):
        try:
            file = core.vault.read(path)
        except SimplememError:
            continue
        note = read_note(file.data)
        text = rewrite_links(note, path, Move(old, new), before, after, core.conventions.link_format)
        if text != note.text and note.problem is not None:
            warnings.append(f"{name_of(path)} has a link that should follow, but cannot be changed: {note.problem}")
        elif text != note.text:
            rewrites.append(Wish.update(path, file.sha256, edit.encoded(text)))
    return rewrites, warnings


# -- what was written is indexed, still under the lock


def indexed(
    core: Core,
    texts: Mapping[str, bytes],
    written: Iterable[Written],
    *,
    gone: Sequence[str] = (),
    moved: tuple[str, str] | None = None,
) -> list[str]:
    """Index notes that were written as `written` has them, or went, and tell who listens; with what is to be said."""
    warnings: list[str] = []
    entries = {each.entry.path: each.entry for each in written if each.entry is not None}
    notes = []
    for path, data in texts.items():
        entry = entries.get(path) or core.entry(path)
        if entry is not None:
            notes.append((path, read_note(data), entry))
            if entry.size > core.rows.max_note_bytes:
                warnings.append("written, but too large to be indexed; index.max_note_mb says how large notes may be")
    changed = {*texts, *gone, *(moved or ())}
    if changed:
        warnings += core.indexed(changed, lambda: core.rows.put(notes, gone=gone, moved=moved))
    return warnings


def _saved(core: Core, written: Written, data: bytes, warnings: Sequence[str], rewrites: Sequence[Wish] = ()) -> Saved:
    """One note that was written, and the notes whose links it made us qualify."""
    name, note, more = name_of(written.path), read_note(data, written.sha256), []
    if written.changed:
        more = indexed(core, {written.path: data, **{each.path: each.data or b"" for each in rewrites}}, [written])
    more += [f"links in {each.path} were qualified: {name} has the same name" for each in rewrites]
    return Saved(
        name, written.path, note.sha256, written.previous_sha256, written.changed, written.version,
        tuple(tag_names(note.tags)), tag_map(note.tags, note.header.properties), (*warnings, *more),
    )  # fmt: skip


def _unchanged(core: Core, file: File) -> Saved:
    return _saved(core, Written(file.path, file.sha256, file.sha256, "", file.entry, changed=False), file.data, ())
