"""Which memory a call is about, and what became of one that is no longer there: a deletion or a move that is sent again,
its answer lost, names a memory that has no such name now, unless another has it for a title: that was never meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simplemem.errors import NotFound
from simplemem.note.names import clean_reference, compare_key

if TYPE_CHECKING:
    from simplemem.memory import HistoryEntry
    from simplemem.store import EnhancedStore

_REMEMBERED = 200  # changes looked through for a memory that had the name


def resolved(store: EnhancedStore, name: str) -> str:
    """The memory of that name, title or alias. NotFound says what became of it."""
    try:
        return store.resolve(name)
    except NotFound:
        if (gone := what_became_of(store, name)) is None:
            raise
        raise _gone(gone, "" if gone.new_name else f'undo_change(version="{gone.version}") brings it back.') from None


def to_change(store: EnhancedStore, name: str) -> str:
    """The memory to be changed. NotFound says what became of it, though another may have the name for a title."""
    found = resolved(store, name)
    if not _is_called(found, name) and (gone := what_became_of(store, name)):
        raise _gone(gone, f"{found} has that title or alias. Give its name if it is meant.", found)
    return found


def _gone(gone: HistoryEntry, hint: str, *others: str) -> NotFound:
    became = f"is now {gone.new_name}" if gone.new_name else "was deleted"
    candidates = [*filter(None, [gone.new_name]), *others]
    return NotFound(f"{gone.name} {became} (version {gone.version}).", hint=hint, candidates=candidates)


def what_became_of(store: EnhancedStore, name: str) -> HistoryEntry | None:
    """The change that moved or deleted the memory of that name, if we know of one."""
    last = next((each for each in store.history(limit=_REMEMBERED) if _is_called(each.name, name)), None)
    return last if last is not None and (last.new_name or last.sha256 is None) else None


def whole_hash(store: EnhancedStore, name: str, sha256: str | None) -> str | None:
    """The hash a caller means by its first digits; as given when that is not what the note has."""
    if sha256 is None or len(sha256) == 64 or "+" in sha256:
        return sha256
    now = store.read(name).sha256
    return now if now.startswith(sha256) else sha256


def _is_called(name: str, wanted: str) -> bool:
    """By its whole name, or by the last part of it."""
    return compare_key(clean_reference(wanted)) in (compare_key(name), compare_key(name.rsplit("/", 1)[-1]))
