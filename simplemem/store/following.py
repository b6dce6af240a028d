"""Links that follow: when a name comes or goes, notes are written again so that each link goes on meaning what it meant."""

from __future__ import annotations

from collections.abc import Sequence

from simplemem.errors import SimplememError
from simplemem.note.names import name_of
from simplemem.note.note import read_note
from simplemem.store.core import Core
from simplemem.store.saving import encoded
from simplemem.vault import rewrite
from simplemem.vault.links import Named, name_key
from simplemem.vault.vault import Rewrite


def rewrites_for(core: Core, moved: rewrite.Moved) -> tuple[list[Rewrite], list[str]]:
    """The notes whose links must be written again so that the move changes no link's meaning, and what is to be said of
    those that cannot be."""
    before = core.index.named()
    after = _named_after(before, moved)
    touched = [path for path in (moved.old, moved.new) if path is not None]
    sources = core.index.sources_that_could_mean(touched)
    if moved.old is not None and moved.old not in sources:
        sources.append(moved.old)
    found: list[Rewrite] = []
    warnings: list[str] = []
    for path in sources:
        try:
            file = core.vault.read(path)
        except SimplememError:
            continue
        note = read_note(file.data)
        text = rewrite.rewrite_links(note, path, moved, before, after, core.conventions.link_format)
        if text == note.text:
            continue
        if note.problem is not None:
            warnings.append(f"{name_of(path)} has a link that should follow, but cannot be changed: {note.problem}")
            continue
        found.append(Rewrite(path, file.sha256, encoded(text)))
    return found, warnings


def _named_after(before: Named, moved: rewrite.Moved) -> Named:
    """Which files have a name once the move is done."""

    def named(key: str) -> Sequence[str]:
        found = [path for path in before(key) if path != moved.old]
        if name_key(moved.new) == key and moved.new not in found:
            found.append(moved.new)
        return sorted(found)

    return named
