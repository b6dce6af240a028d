"""What `.simplemem/` in a vault contains. Only the index can be rebuilt from the notes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from simplemem.models import OwnFile
from simplemem.vault.folder.dir_handles import OWN_FOLDER
from simplemem.vault.source import NoteSource

# What a user would lose with each file or folder, in the order in which they are listed.
_CONTENTS: Final = {
    "history": "the log of changes and the earlier texts of notes",
    "trash": "deleted notes",
    "drafts": "texts that `simplemem edit` could not save",
    "state": "counters and reviews that are kept outside the notes",
    "imports.jsonl": "a record of imports, so that nothing is imported twice",
    "exports": "exported lessons",
    "config.toml": "the settings of this vault",
    "eval.json": "questions for `simplemem eval`",
}


def own_files(root: Path, vault: NoteSource, index_path: Path | None) -> tuple[OwnFile, ...]:
    """Return what in `.simplemem/` of a vault matters to a user, the index first.

    Lock files and the journal are left out. `index_path` is the file of the index; None if the
    index is in another engine.
    """
    folder = root / OWN_FOLDER
    files = []
    if index_path is not None and _is_file_in(index_path, folder):
        path = f"{OWN_FOLDER}/{index_path.name}"
        files.append(OwnFile(path, "the index", can_be_rebuilt=True))

    for name, content in _CONTENTS.items():
        is_in_repository = name == "history" and vault.history.can_be_rebuilt
        if (folder / name).exists() and not is_in_repository:
            files.append(OwnFile(f"{OWN_FOLDER}/{name}", content, can_be_rebuilt=False))
    return tuple(files)


def _is_file_in(path: Path, folder: Path) -> bool:
    """Return whether a path is a file directly in a folder, by their real paths."""
    return path.is_file() and path.resolve().parent == folder.resolve()
