"""The sources of imports: other programs whose notes can be brought into a vault.

`sources.toml` describes each source; the modules of this package read them. `export` opens the
files of an export, and `plan` writes what a reader yields.
"""

from __future__ import annotations

import pkgutil
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from simplemem.errors import Unavailable
from simplemem.plugins import Plugin, load_named, load_plugins

if TYPE_CHECKING:
    from simplemem.importers.export import Item, Skipped


class Source(NamedTuple):
    """A program whose notes can be imported, and the text of its command.

    Attributes:
        name: The name of the command, such as `mem0`.
        about: The help of the command.
        example: A command line for the help.
        file: What the argument FILE is; "" for a command without it.
        folder: The folder of the vault for the notes, without `--into`.
        reader: The reader, as `module:function`; "" for a source whose command has its own. The
            function gets the files by path and yields items and what it skips.
        patterns: The paths of a folder or a zip that are read, as for `fnmatch`: `*/a.json`, also
            for a file `a.json` at the top.
    """

    name: str
    about: str
    example: str
    file: str = ""
    folder: str = ""
    reader: str = ""
    patterns: Sequence[str] = ("*",)

    def read(self, path: Path) -> Iterator[Item | Skipped]:
        """Yield the items of an export, and what is skipped with the reasons.

        The export is open while the items are read. Only for a source with a `reader`. The first
        item raises Unavailable if the path does not exist; any item may raise Unreadable for a
        broken export.
        """
        from simplemem.importers.export import open_export

        if not path.exists():
            raise Unavailable(
                f"no file or folder {path}",
                hint=f"Pass an existing path. Expected: {self.file}",
            )

        read_files = pkgutil.resolve_name(self.reader)
        with open_export(path, self.patterns) as files:
            yield from read_files(files)


_TABLE = (Path(__file__).parent / "sources.toml").read_text(encoding="utf-8")


def _built_in_source(name: str, row: dict[str, Any]) -> Source:
    """Return a source from its row of `sources.toml`, whose readers are in this package."""
    reader = row.get("reader", "")
    if reader:
        reader = f"simplemem.importers.{reader}"
    return Source(name, **{**row, "reader": reader})


SOURCES = {name: _built_in_source(name, row) for name, row in tomllib.loads(_TABLE).items()}
"""The sources of simplemem, by name."""


def plugin_sources() -> dict[str, Source]:
    """Return the sources of other packages, by name.

    A source with the name of one of ours is left out, and so is one that cannot be loaded, with a
    warning in the log.
    """
    sources = load_plugins("importers", load_source, built_in=SOURCES)
    return {source.name: source for source in sources}


def load_source(plugin: Plugin) -> Source:
    """Return the source of a plug-in.

    Raises:
        Unavailable: The package cannot be loaded.
        Invalid: The object that it offers is no `Source`, has no reader, or has another name than
            the plug-in.
    """
    return load_named(plugin, _is_source, description="a Source with a reader", noun="source")


def _is_source(offered: object) -> TypeGuard[Source]:
    """Return whether a plug-in offers a source that can be read."""
    return isinstance(offered, Source) and bool(offered.reader)
