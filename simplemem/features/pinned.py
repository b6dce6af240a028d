"""The constraints of a user and the pinned notes, in the form in which clients get them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simplemem.features.answers import PinnedNote

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore


def pinned_notes(store: EnhancedStore, scope: str | None) -> list[PinnedNote]:
    """Return what is relevant to every question of a user: constraints, then pinned notes.

    With None, it is that of all users. Raises a SimplememError such as Unavailable if the index
    cannot be brought up to date.
    """
    rows = []
    for pinned in store.extension.always_relevant(scope):
        kind = "constraint" if pinned.is_constraint else "pinned"
        rows.append(PinnedNote(name=pinned.name, kind=kind, text=pinned.text))
    return rows
