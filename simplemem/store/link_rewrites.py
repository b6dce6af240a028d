"""Find the links that have to be rewritten so that they keep their targets when files move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from simplemem.errors import SimplememError
from simplemem.index.notes import is_note
from simplemem.index.service import IndexService
from simplemem.note.names import name_of, path_of
from simplemem.note.note import read_note
from simplemem.obsidian.link_edits import Moves, rewrite_links
from simplemem.obsidian.settings import name_key
from simplemem.store.edits import encoded
from simplemem.store.vault_index import ObsidianSettingsCache
from simplemem.vault.source import NoteSource
from simplemem.vault.values import FileChange


class LinkRewrites(NamedTuple):
    """The changes of notes that keep their links' targets, and warnings.

    Each change names its note by the path before the moves. There is a warning for each note that
    has such a link and cannot be changed.
    """

    changes: list[FileChange]
    warnings: list[str]


class LinkRewriter:
    """Finds the links that moves and new files would lead elsewhere. Guards no state of its own."""

    def __init__(
        self, vault: NoteSource, index: IndexService, obsidian: ObsidianSettingsCache
    ) -> None:
        self._vault = vault
        self._access = vault.access
        self._index = index
        self._obsidian = obsidian

    def rewrites_for(self, moves: Moves) -> LinkRewrites:
        """Return the changes that keep every link's target through moves and new files.

        Reads the notes that may have such links, and skips those that cannot be read. Writes
        nothing.
        """
        files_before = self._index.files_named
        files_after = self.named_after(moves)
        link_format = self._obsidian.current.link_format
        is_unseen = self._unseen_test()

        rewrites = LinkRewrites([], [])
        sources = [*self._index.sources_that_could_mean(moves.paths()), *moves.new_paths]
        for path in dict.fromkeys(sources):
            if not is_note(path):
                continue
            try:
                file = self._vault.read(path)
            except SimplememError:  # it is gone, or cannot be read
                continue

            note = read_note(file.data)
            text = rewrite_links(
                note, path, moves, files_before, files_after, link_format, is_unseen=is_unseen
            )
            if text == note.text:
                continue
            if note.problem is None:
                change = FileChange.update(path, file.sha256, encoded(text))
                rewrites.changes.append(change)
            else:
                rewrites.warnings.append(
                    f"a link in {name_of(path)} should be updated,"
                    f" but the note cannot be changed: {note.problem}"
                )
        return rewrites

    def _unseen_test(self) -> Callable[[str], bool]:
        """Return a function that says whether the access rules hide a path, also without `.md`."""
        hides = self._access.hides
        return lambda path: hides(path) or hides(path_of(name_of(path)))

    def named_after(self, moves: Moves) -> Callable[[str], Sequence[str]]:
        """Return a function that returns the files that have a name after the moves, sorted.

        It takes a result of `name_key`.
        """
        arriving = dict[str, set[str]]()
        for path in (*moves.new_paths.values(), *moves.created):
            arriving.setdefault(name_key(path), set()).add(path)

        def files_named(key: str) -> Sequence[str]:
            """Return the files that have a name after the moves, sorted, by its `name_key`."""
            files = {path for path in self._index.files_named(key) if path not in moves.new_paths}
            return sorted(files | arriving.get(key, set()))

        return files_named
