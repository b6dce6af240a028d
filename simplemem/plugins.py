"""Plug-ins: objects that other packages offer as entry points, loaded when they are used.

docs/plugins.md shows a package with one plug-in of each kind.

A package offers a plug-in under the group `simplemem.KIND`, for example `simplemem.profiles`. Entry
points are read only for a name that simplemem itself does not have, and to list all plug-ins.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeGuard, TypeVar

from simplemem.errors import Invalid, SimplememError, Unavailable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
NamedT = TypeVar("NamedT", bound="Named")

KINDS: Final = ("profiles", "importers", "embedders", "rerankers")
"""What a package can add to simplemem."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """An entry point of an installed package: what it adds, under which name."""

    kind: str  # one of KINDS
    name: str
    package: str  # "" without metadata
    version: str  # "" without metadata
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


class Named(Protocol):
    """What a plug-in offers: an object with the name of its entry point."""

    @property
    def name(self) -> str:
        """The name under which it is found."""


def load_named(
    plugin: Plugin,
    is_expected: Callable[[object], TypeGuard[NamedT]],
    *,
    description: str,
    noun: str,
) -> NamedT:
    """Return the object of a plug-in, after checking its type and its name.

    `description` says in an error what is expected, as "a Profile"; `noun` is the word for it.

    Raises:
        Unavailable: The package cannot be loaded.
        Invalid: The object is not as expected, or has another name than the plug-in.
    """
    offered = plugin.load()
    if not is_expected(offered):
        raise Invalid(
            f"the plug-in {plugin.name!r} of {plugin.package} is not {description}",
            hint=f"{plugin.target} is a {type(offered).__name__}.",
        )
    if offered.name != plugin.name:
        raise Invalid(
            f"the plug-in {plugin.name!r} of {plugin.package} has a {noun} {offered.name!r}",
            hint=f"The entry point and the {noun} need the same name.",
        )
    return offered


def load_plugins(kind: str, load: Callable[[Plugin], T], *, built_in: Container[str]) -> list[T]:
    """Return what `load` makes of the plug-ins of a kind, sorted by their names.

    Leaves out plug-ins with a name in `built_in`, and those for which `load` raises, which are
    logged.
    """
    loaded = []
    for name, plugin in plugins_of(kind).items():
        if name in built_in:
            continue
        try:
            loaded.append(load(plugin))
        except SimplememError as error:
            import logging  # costs 5 ms, which `serve --help` does not pay

            logging.getLogger(f"simplemem.{kind}").warning("%s", error.message)
    return loaded


@cache
def _entry_points(kind: str) -> dict[str, EntryPoint]:
    """Return the entry points of a kind by name. Of several with one name, the first counts."""
    from importlib.metadata import entry_points

    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=f"simplemem.{kind}"):
        found.setdefault(entry.name, entry)
    return dict(sorted(found.items()))


def _describe(kind: str, entry: EntryPoint) -> Plugin:
    """Return an entry point as a plug-in. Without metadata, the package has no name or version."""
    package = ""
    version = ""
    if entry.dist is not None:
        package = entry.dist.name
        version = entry.dist.version
    return Plugin(kind, entry.name, package, version, entry.value)
