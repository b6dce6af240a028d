"""The two folders that deleted notes go to: our own trash, and the one of Obsidian."""

from __future__ import annotations

from simplemem.note.names import is_path
from simplemem.vault.folder.dir_handles import OWN_FOLDER

OWN_TRASH = f"{OWN_FOLDER}/trash"
OBSIDIAN_TRASH = ".trash"


def is_trash(path: str) -> bool:
    """Return whether a path is in one of the two trash folders."""
    for trash in (OWN_TRASH, OBSIDIAN_TRASH):
        prefix = f"{trash}/"
        if path.startswith(prefix) and is_path(path.removeprefix(prefix)):
            return True
    return False
