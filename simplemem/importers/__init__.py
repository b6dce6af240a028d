"""What other programs keep, brought into the vault: a table of them, a reader for each, and one way in for all."""

from __future__ import annotations

import pkgutil
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from simplemem.errors import Unavailable
from simplemem.plugins import Plugin, load_named, load_plugins

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
            yield from pkgutil.resolve_name(self.reader)(every)


_TABLE = (Path(__file__).parent / "sources.toml").read_text(encoding="utf-8")


def _built_in_source(name: str, row: dict[str, Any]) -> Source:
    """Return a source of the table, whose readers are in this package."""
    reader = row.get("reader", "")
    if reader:
        reader = f"simplemem.importers.{reader}"
    return Source(name, **{**row, "reader": reader})


SOURCES = {name: _built_in_source(name, row) for name, row in tomllib.loads(_TABLE).items()}


def plugin_sources() -> dict[str, Source]:
    """Return the sources that other packages offer, by name. One that cannot be loaded is left out."""
    sources = load_plugins("importers", load_source, built_in=SOURCES)
    return {source.name: source for source in sources}


def load_source(plugin: Plugin) -> Source:
    """Return the source of a plug-in.

    Raises:
        Unavailable: The package cannot be loaded.
        Invalid: What it offers is not a source of the plug-in's name with a reader.
    """
    return load_named(plugin, _is_source, description="a Source with a reader", noun="source")


def _is_source(offered: object) -> TypeGuard[Source]:
    """Return whether a plug-in offers a source that can be read."""
    return isinstance(offered, Source) and bool(offered.reader)
