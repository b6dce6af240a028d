"""What other programs keep, brought into the vault: a table of them, a reader for each, and one way in for all."""

from __future__ import annotations

import pkgutil
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from simplemem.errors import Unavailable

if TYPE_CHECKING:
    from simplemem.importers.export import Item, Left


class Source(NamedTuple):
    """A program as people call it: what its file is, what its command says, where its notes go unless told, what reads
    it, and which paths of a folder or a zip are read."""

    name: str
    about: str
    example: str
    file: str = ""
    folder: str = ""
    reader: str = ""
    wanted: Sequence[str] = ("*",)

    def read(self, path: Path) -> Iterator[Item | Left]:
        """What is in its file or folder, one after the other."""
        from simplemem.importers.export import files

        if not path.exists():
            raise Unavailable(
                f"no file or folder {path}", hint=f"Pass an existing path. Expected: {self.file}"
            )
        with files(path, self.wanted) as every:
            yield from pkgutil.resolve_name(f"simplemem.importers.{self.reader}")(every)


_TABLE = (Path(__file__).parent / "sources.toml").read_text(encoding="utf-8")
SOURCES = {name: Source(name, **row) for name, row in tomllib.loads(_TABLE).items()}
