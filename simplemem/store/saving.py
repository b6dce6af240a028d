"""After a write: what was written is indexed, still under the lock, and the outcome is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial

from simplemem.errors import Invalid
from simplemem.memory import Saved
from simplemem.note.names import name_of
from simplemem.note.note import Note, read_note
from simplemem.note.tags import tag_map, tag_names
from simplemem.store.core import Core
from simplemem.store.editing import stamp_modified
from simplemem.vault.vault import File, Rewrite, Written


def saved(
    core: Core, written: Written, data: bytes, *, rewrites: Sequence[Rewrite] = (), warnings: Sequence[str] = ()
) -> Saved:
    """One note that was written, and the notes whose links it made us qualify."""
    note = read_note(data, written.sha256)
    told = list(warnings)
    entry = written.entry
    if written.changed and entry is not None:
        if entry.size > core.settings.max_note_bytes:
            told.append("written, but too large to be indexed; index.max_note_mb says how large notes may be")
        told += core.indexed(written.path, lambda: core.rows.put_written(written.path, note, entry))
    index_rewrites(core, rewrites)
    name = name_of(written.path)
    if written.changed:
        core.tell({name, *(name_of(each.path) for each in rewrites)})
        core.fill_soon()
    told += [f"links in {each.path} were qualified: {name} has the same name" for each in rewrites]
    return _outcome(note, written, told)


def index_rewrites(core: Core, rewrites: Iterable[Rewrite]) -> None:
    """Notes whose links were written again in the same step."""
    for each in rewrites:
        entry = core.entry(each.path)
        if entry is not None:
            core.indexed(each.path, partial(core.rows.put_written, each.path, read_note(each.data), entry))


def saved_as_is(file: File) -> Saved:
    """Nothing was to be done: the note is what was wanted."""
    as_is = Written(file.path, file.sha256, file.sha256, "", file.entry, changed=False)
    return _outcome(read_note(file.data), as_is, ())


def _outcome(note: Note, written: Written, warnings: Iterable[str]) -> Saved:
    return Saved(
        name=name_of(written.path),
        path=written.path,
        sha256=written.sha256 or note.sha256,
        previous_sha256=written.previous_sha256,
        changed=written.changed,
        version=written.version,
        tags=tuple(tag_names(note.tags)),
        tag_map=tag_map(note.tags, note.header.properties),
        warnings=tuple(warnings),
    )


def encoded(text: str) -> bytes:
    """A note's text as its file holds it."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Invalid(
            f"the text holds a character that UTF-8 cannot carry (a lone surrogate at {error.start})",
            hint="Leave it out, or send it as a proper pair.",
        ) from error


def is_but_for_its_time(text: str, now: bytes) -> bool:
    """Whether a note is this text, but for the time that our write stamped on it."""
    modified = read_note(now).string("modified")
    return encoded(stamp_modified(text, modified) if modified else text) == now


def now() -> str:
    """The time as our notes have it: local, to the second."""
    return datetime.now().strftime("%Y-%m-%dT%H:%M:%S")  # noqa: DTZ005  (local, as notes are)
