"""A kind of note above the store: where its notes lie, and how one is read into a value and rendered.

An entity of the graph, an entry of what was learned: each is an ordinary note with a `type:`. `Shelf` (shelf.py) holds the
values of a whole vault and changes several notes as one step, `StateLog` (state_log.py) keeps what no note holds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypedDict, TypeVar

from simplemem.note.properties import render_header
from simplemem.store import Read

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore


class NoteValue(Protocol):
    """What a note of a kind is read into. `is_own` is false for a note of another kind that was read all the same."""

    @property
    def path(self) -> str: ...

    @property
    def sha256(self) -> str: ...

    @property
    def is_own(self) -> bool: ...


T = TypeVar("T", bound=NoteValue)
M = TypeVar("M")
_MAKING: Final = threading.Lock()


class By(TypedDict, total=False):
    """Who makes a change, with which tool, and why: it stands in the history."""

    who: str
    tool: str
    reason: str


@dataclass(frozen=True)
class Kind(Generic[T]):
    """A kind of note. `place` orders its notes. `twin` is what a conflict copy has in common with its original, None for a
    note that cannot tell."""

    folder: str
    type: str
    read: Callable[[Read], T]
    place: Callable[[T], Any]
    twin: Callable[[T], Hashable | None]

    def holds(self, path: str, told: str | None) -> bool:
        """Whether a note is of this kind: its `type:` says so, or it lies in the folder and says no other."""
        return told.casefold() == self.type if told else path.startswith(f"{self.folder}/")

    def render(self, properties: Mapping[str, Any], body: str, now: str) -> str:
        """The text of a new note: title, type and tags first, then its other properties, then the body."""
        first = {"title": properties.get("title"), "type": self.type, "tags": properties.get("tags")}
        header = {key: value for key, value in first.items() if value}
        header |= {key: value for key, value in properties.items() if key not in first}
        return render_header(header | {"created": now, "modified": now}) + (f"\n{body}" if body else "")


def one_of(store: EnhancedStore, make: Callable[[EnhancedStore], M]) -> M:
    """What there is one of for each store, for all who ask: made when it is first asked for."""
    made = store.bench.made
    with _MAKING:
        if make not in made:
            made[make] = make(store)
        found: M = made[make]
        return found
