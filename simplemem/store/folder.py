"""What `.simplemem/` in a vault contains. Only the index can be made again from the notes; the rest exists once."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from simplemem.models import OwnFile
from simplemem.store.core import Core
from simplemem.vault.folder.dir_handles import OWN_FOLDER

# What a person would lose with each file or folder, in the order in which they are named.
_CONTENTS: Final = {
    "history": "the log of changes and the earlier texts of notes",
    "trash": "deleted notes",
    "drafts": "texts that `simplemem edit` could not save",
    "state": "counters that are kept outside the notes",
    "imports.jsonl": "a record of imports, so that nothing is imported twice",
    "exports": "exported lessons",
    "config.toml": "the settings of this vault",
    "eval.json": "questions for `simplemem eval`",
}


def own_files(core: Core) -> tuple[OwnFile, ...]:
    """What is in `.simplemem/` of the vault: the index first, if it is there, and what cannot be made again."""
    folder = core.root / OWN_FOLDER
    found = []
    index = Path(core.index.path)
    if (
        not core.settings.index.engine
        and index.is_file()
        and index.resolve().parent == folder.resolve()
    ):
        found.append(OwnFile(f"{OWN_FOLDER}/{index.name}", "the index", can_be_rebuilt=True))
    for name, holds in _CONTENTS.items():
        is_in_repository = core.vault.is_branch and name == "history"
        if (folder / name).exists() and not is_in_repository:
            found.append(OwnFile(f"{OWN_FOLDER}/{name}", holds, can_be_rebuilt=False))
    return tuple(found)
