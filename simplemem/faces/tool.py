"""What a tool is: a name, arguments, a promise about its answer, and the function that does it. Nothing
here knows the protocol.

A toolset is a tuple of these in a module of its own; `toolsets.py` chooses among them, `server/` shows
them to clients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from simplemem.faces.arguments import Arguments
from simplemem.faces.schema import or_an_error

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer twice over: Markdown for whoever is shown text, the same facts as JSON for whoever is
    shown those."""

    text: str
    data: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool: the memory it is about, and who asks (the client's name and version, for the
    history)."""

    store: EnhancedStore
    who: str
    tool: str


A = TypeVar("A", bound=Arguments)


@dataclass(frozen=True)
class Tool(Generic[A]):
    """One tool. `writes` also means that it runs alone, and is finished once begun."""

    name: str
    title: str
    description: str
    arguments: type[A]
    run: Callable[[Call, A], Reply]
    output: dict[str, Any] | None = None
    writes: bool = False
    destructive: bool = False
    idempotent: bool = True
    deletes: bool = False
    """That it is for deleting and nothing else: not offered where nothing may be deleted."""
    failure: str = ""
    """How the text of a failure begins where another server's words are expected, in place of its code."""

    @cached_property
    def input(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, as short as it can be said."""
        return self.arguments.short_schema()

    def listing(self) -> dict[str, Any]:
        """The tool as `tools/list` shows it. All four hints are given: the protocol's defaults assume the
        worst."""
        shown = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input,
            "annotations": {
                "readOnlyHint": not self.writes,
                "destructiveHint": self.destructive,
                "idempotentHint": self.idempotent,
                "openWorldHint": False,
            },
        }
        return shown | {"outputSchema": or_an_error(self.output)} if self.output else shown
