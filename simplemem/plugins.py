"""Plug-ins: objects that other packages offer as entry points, loaded when they are used.

docs/plugins.md shows a package with one plug-in of each kind.

A package offers a plug-in under the group `simplemem.KIND`, for example `simplemem.profiles`. Entry
points are read only for a name that simplemem itself does not have, and to list all plug-ins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from simplemem.errors import Unavailable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

KINDS: Final = ("profiles", "importers")
"""What a package can add to simplemem."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """An entry point of an installed package: what it adds, under which name."""

    kind: str
    name: str
    package: str
    version: str
    target: str  # "module:attribute"

    def load(self) -> Any:
        """Import the module and return the object.

        Raises:
            Unavailable: The module raised, or it has no such attribute.
        """
        try:
            return _entry_points(self.kind)[self.name].load()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise Unavailable(
                f"the plug-in {self.name!r} of {self.package} cannot be loaded: {reason}",
                hint="Correct or uninstall the package. `simplemem plugins` lists the plug-ins.",
            ) from error


def plugins_of(kind: str) -> Mapping[str, Plugin]:
    """Return the plug-ins of a kind by name, sorted by name. None of them is imported."""
    return {name: _describe(kind, entry) for name, entry in _entry_points(kind).items()}


@cache
def _entry_points(kind: str) -> dict[str, EntryPoint]:
    """Return the entry points of a kind by name. Of several with one name, the first counts."""
    from importlib.metadata import entry_points

    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=f"simplemem.{kind}"):
        found.setdefault(entry.name, entry)
    return dict(sorted(found.items()))


def _describe(kind: str, entry: EntryPoint) -> Plugin:
    package, version = "", ""
    if entry.dist is not None:
        package = entry.dist.name
        version = entry.dist.version
    return Plugin(kind, entry.name, package, version, entry.value)
