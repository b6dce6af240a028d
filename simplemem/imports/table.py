"""The programs whose memories can be imported, each with its reader."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from simplemem.errors import Unavailable

if TYPE_CHECKING:
    from simplemem.imports.take import Item, Left


class Source(NamedTuple):
    """A program as people call it: what its file is, what its command says, and where its notes go unless told."""

    name: str
    file: str
    about: str
    example: str
    folder: str
    module: str

    def read(self, path: Path) -> Iterator[Item | Left]:
        """What is in its file or folder, one after the other."""
        if not path.exists():
            raise Unavailable(f"there is no {path}", hint=f"What is read is {self.file[0].lower()}{self.file[1:]}")
        found: Iterator[Item | Left] = importlib.import_module(f"simplemem.imports.{self.module}").read(path)
        return found


SOURCES = (
    Source(
        "markdown",
        "A folder of Markdown notes, with front matter or without.",
        """Bring a folder of Markdown notes in as they are, to the byte, with the files beside them.

        A note that is there already stays as it is; one that says something else is named and left out.""",
        "simplemem import markdown ~/old-notes --into archive",
        "",
        "markdown",
    ),
    Source(
        "mem0",
        "The JSON of mem0's `get_all`, or an export of OpenMemory (JSON or its zip).",
        """Bring what mem0 or OpenMemory remember in: a note for each memory, with its dates, user and categories.

        A memory is known again by its id, wherever its note lies now. One that changed there since is changed here,
        unless somebody edited the note.""",
        "simplemem import mem0 memories.json --dry-run",
        "mem0",
        "mem0",
    ),
)
