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
    """Return whether a note is in one of the folders whose notes belong to one user each."""
    return path.startswith(_FOLDERS)


def notes_of_users(store: EnhancedStore, paths: Iterable[str]) -> set[str]:
    """Return the paths of those notes that belong to one user each.

    A note outside the folders of users is read: it belongs to a user by its type or its `scope:`.
    A note that cannot be read counts as belonging to a user, so that it is not shown to others.
    """
    notes = set(paths)
    elsewhere = [path for path in notes if not is_in_a_folder_of_users(path)]
    shared = set()
    for read in store.extension.read(sorted(elsewhere)):
        if not _names_a_user(read.text):
            shared.add(read.path)
    return notes - shared


def _names_a_user(text: str) -> bool:
    """Return whether a note belongs to one user by its frontmatter."""
    from simplemem.note.note import read_note  # most servers start without it

    note = read_note(text.encode("utf-8", "surrogatepass"))
    note_type = (note.text_property("type") or "").casefold()
    return note_type in _TYPES or note.header.get("scope") is not None
