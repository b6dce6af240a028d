"""The programs whose memories can be imported, each with its reader."""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from simplemem.errors import Unavailable

if TYPE_CHECKING:
    from simplemem.imports.export import Item, Left


class Source(NamedTuple):
    """A program as people call it: what its file is, what its command says, where its notes go unless told, what reads
    it, and which paths of a folder or a zip are read."""

    name: str
    file: str
    about: str
    example: str
    folder: str
    module: str
    reader: str = "read"
    wanted: Sequence[str] = ("*",)

    def read(self, path: Path) -> Iterator[Item | Left]:
        """What is in its file or folder, one after the other."""
        from simplemem.imports.export import files

        if not path.exists():
            raise Unavailable(f"there is no {path}", hint=f"What is read is {self.file[0].lower()}{self.file[1:]}")
        module = importlib.import_module(f"simplemem.imports.{self.module}")
        with files(path, self.wanted) as every:
            yield from getattr(module, self.reader)(every)


def _sources() -> dict[str, Source]:
    with (Path(__file__).parent / "sources.toml").open("rb") as file:
        return {name: Source(name, **row) for name, row in tomllib.load(file).items()}


SOURCES = _sources()
