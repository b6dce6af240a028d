"""Which texts of the past are kept, by their hashes: a look at names, so that nobody asks for thousands that are gone."""

from __future__ import annotations

from simplemem.vault.paths import SIDECAR, Beneath

_HISTORY = f"{SIDECAR}/history"


def hashes_kept(here: Beneath) -> set[str]:
    """The hashes of all texts in the history. That a text is whole is for whoever reads it to see."""
    found = {name.rpartition("-")[2] for name in _names(here, f"{_HISTORY}/displaced")}
    for drawer in _names(here, f"{_HISTORY}/objects"):
        found.update(_names(here, f"{_HISTORY}/objects/{drawer}"))
    return found


def _names(here: Beneath, folder: str) -> list[str]:
    try:
        return here.folder(tuple(folder.split("/"))).names()
    except (FileNotFoundError, NotADirectoryError):
        return []
