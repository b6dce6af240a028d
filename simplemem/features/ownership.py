"""Which notes belong to one user: facts, documents, profiles, and those with a `scope:`.

A profile whose tools name a user in each call shows such a note only to calls that name its user.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_FOLDERS: Final = ("atoms/", "documents/", "profiles/")
_TYPES: Final = ("atom", "document", "profile")


def is_in_a_folder_of_users(path: str) -> bool:
    """Return whether a note is in a folder for the notes of users."""
    return path.startswith(_FOLDERS)


def notes_of_users(store: EnhancedStore, paths: Iterable[str]) -> set[str]:
    """Return the notes that belong to one user; one that cannot be read counts as one."""
    candidates = set(paths)
    elsewhere = sorted(path for path in candidates if not is_in_a_folder_of_users(path))
    shared = {read.path for read in store.extension.read(elsewhere) if not _names_a_user(read.text)}
    return candidates - shared


def _names_a_user(text: str) -> bool:
    from simplemem.note.note import read_note  # most servers start without it

    note = read_note(text.encode("utf-8", "surrogatepass"))
    note_type = (note.text_property("type") or "").casefold()
    return note_type in _TYPES or note.header.get("scope") is not None
