"""Which note a tool reads or changes, and which of its texts a caller means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from simplemem.errors import NotFound
from simplemem.note.names import is_named

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_HASH_LENGTH: Final = 64


def resolved(store: EnhancedStore, name: str) -> str:
    """Return the name of the note with this name, title or alias.

    Raises NotFound, which says what happened to the note, Ambiguous if several notes are meant, and
    Invalid for an illegal name.
    """
    return store.resolve(name)


def to_change(store: EnhancedStore, name: str) -> str:
    """Return the name of the note to change, by its name, title or alias.

    Raises:
        NotFound: There is no such note. Or a note had this name and was moved or deleted, although
            another note has it as title or alias.
        Ambiguous: Several notes are meant.
        Invalid: The name is illegal.
    """
    found = store.resolve(name)
    if is_named(found, name):
        return found
    former = store.extension.find_former_note(name)
    if former is None or (former.current_name is None and not former.is_deleted):
        return found

    error = former.error()
    candidates = [found]
    if former.current_name is not None:
        candidates.insert(0, former.current_name)
    hint = f"{found} has this title or alias. To change it, pass {found} as the name."
    raise NotFound(error.message, hint=hint, candidates=candidates)


def whole_hash(store: EnhancedStore, name: str, sha256: str | None) -> str | None:
    """Return the current hash of a note if it begins with `sha256`, otherwise `sha256`.

    None, a whole hash, and one with a plus are returned unchanged, without reading the note. Raises
    NotFound if the note is gone.
    """
    if sha256 is None or len(sha256) == _HASH_LENGTH or "+" in sha256:
        return sha256
    current_hash = store.read(name).sha256
    return current_hash if current_hash.startswith(sha256) else sha256
