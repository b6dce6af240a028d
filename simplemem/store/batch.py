"""Write several files as one change: all of them or none, with one undo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from simplemem.errors import Conflict
from simplemem.note.header import read_header
from simplemem.note.names import check_name, name_of
from simplemem.note.scopes import check_scope_is_own
from simplemem.settings.model import Settings
from simplemem.store.edits import check_text, encoded, now, stamp_modified
from simplemem.store.vault_index import IndexKeeper, NoteWriter
from simplemem.store.write import WriteIndexer
from simplemem.vault.source import NoteSource
from simplemem.vault.values import Author, FileChange, WriteResult, sha256

_MAX_RETRIES = 50  # while others change the same notes


class Draft(NamedTuple):
    """What a file is to become.

    `text` is the new content: a text for a note, bytes for another file, None to delete the file.
    `old_text` is the content that the draft was made from, None for a new file. If a note changes,
    it gets a new `modified`, unless its `old_text` is bytes or the draft has a time (`at`).
    """

    path: str
    text: str | bytes | None
    old_text: str | bytes | None = None
    at: float | None = None  # the modification time in seconds, if it is not now


class BatchResult(NamedTuple):
    """What was written: a result per file, the new texts of the notes by path, and warnings."""

    written: tuple[WriteResult, ...]
    texts: dict[str, str]
    warnings: tuple[str, ...]


class BatchWriter:
    """Writes drafts to the vault of a store. Guards no state of its own."""

    def __init__(
        self,
        vault: NoteSource,
        *,
        keeper: IndexKeeper,
        writer: NoteWriter,
        indexer: WriteIndexer,
        settings: Settings,
    ) -> None:
        self._vault = vault
        self._access = vault.access
        self._keeper = keeper
        self._writer = writer
        self._indexer = indexer
        self._settings = settings

    def write(self, make_drafts: Callable[[], Sequence[Draft]], author: Author) -> BatchResult:
        """Make drafts and write them as one operation while the vault is locked, and index them.

        If one of the files changed meanwhile, it is indexed and the drafts are made again, so
        `make_drafts` may be called often. It may raise Conflict itself, to be called again, and
        should have looked at the changed file before. Raises, with nothing written: Conflict if
        `make_drafts` returns the same object again, raises an equal Conflict twice in a row, or
        the files keep changing; NotFound or AlreadyExists if a file was deleted or created
        meanwhile; ReadOnly if the vault or a file may not be changed; Invalid or TooLong for a
        draft that is not allowed; and what else `make_drafts` raises.
        """
        last_drafts: Sequence[Draft] | None = None
        last_refusal: Conflict | None = None  # of `make_drafts`
        with self._writer.lock():
            for retries_left in range(_MAX_RETRIES, -1, -1):
                try:
                    drafts = make_drafts()
                except Conflict as refusal:
                    # Another refusal shows progress: if several notes changed, each comes once.
                    if not retries_left or _is_equal(refusal, last_refusal):
                        raise
                    last_refusal = refusal
                    continue

                try:
                    return self._write(drafts, author)
                except Conflict:
                    # The same drafts would end in the same way.
                    if not retries_left or drafts is last_drafts:
                        raise
                    last_drafts = drafts
                    last_refusal = None
                    self._keeper.look_at(draft.path for draft in drafts)
        raise AssertionError("unreachable")

    def _write(self, drafts: Sequence[Draft], author: Author) -> BatchResult:
        """Write drafts, index them, and return what was written.

        Raises Conflict, with nothing written, if a file is not as it was; and as `_check` does.
        """
        self._writer.check_writable()
        warnings = list[str]()
        changes = list[FileChange]()
        for draft in drafts:
            warnings += self._check(draft)
            changes.append(_file_change(draft))
        written = self._vault.carry_out(changes, author) if changes else []

        attachments = {draft.path for draft in drafts if isinstance(draft.text, bytes)}
        if attachments:  # before the notes, so that links to them are resolved
            warnings += self._keeper.index_written(attachments)

        texts = {}
        for change in changes:
            if change.data is not None and change.path not in attachments:
                texts[change.path] = change.data
        deleted = [change.path for change in changes if change.is_deletion]
        warnings += self._indexer.index(texts, written, deleted=deleted)

        decoded = {path: data.decode() for path, data in texts.items()}
        return BatchResult(tuple(written), decoded, tuple(warnings))

    def _check(self, draft: Draft) -> list[str]:
        """Return warnings about secrets in a draft.

        Raises Invalid for an illegal name, or if the draft puts its note into a scope that is
        hidden from this store; TooLong for a text that is too long.
        """
        name = name_of(draft.path)
        warnings = list[str]()
        if draft.old_text is None:
            check_name(name)
            warnings += check_text(self._settings, "", "", name)  # without a name: the name itself
        if not isinstance(draft.text, str):
            return warnings

        old_text = _decode(draft.old_text)
        if self._access.is_partial:
            old_properties = read_header(old_text).properties
            new_properties = read_header(draft.text).properties
            check_scope_is_own(draft.path, old_properties, new_properties, self._access.hides)
        warnings += check_text(self._settings, name, old_text, draft.text)
        return warnings


def _is_equal(error: Conflict, other: Conflict | None) -> bool:
    """Return whether two errors say the same, with the same hash of the note."""
    return other is not None and error.as_dict() == other.as_dict()


def _file_change(draft: Draft) -> FileChange:
    """Return the change of a file that makes it what a draft says.

    A note whose text changes gets a new `modified`, unless the draft has a time (`at`). Raises
    Invalid for a lone surrogate.
    """
    old_sha256 = None
    if draft.old_text is not None:
        old_sha256 = sha256(_encode(draft.old_text))
    if draft.text is None:
        return FileChange.update(draft.path, old_sha256 or "", None)

    text = draft.text
    has_changed = isinstance(draft.old_text, str) and text != draft.old_text
    if isinstance(text, str) and draft.at is None and has_changed:
        text = stamp_modified(text, now())
    change = FileChange.update(draft.path, old_sha256, _encode(text))
    return replace(change, at=draft.at)


def _encode(text: str | bytes) -> bytes:
    """Return the bytes of a text. Raises Invalid for a lone surrogate."""
    return text if isinstance(text, bytes) else encoded(text)


def _decode(text: str | bytes | None) -> str:
    """Return the text of a file; "" if there is none."""
    if isinstance(text, bytes):
        return text.decode("utf-8", "replace")
    return text or ""
