"""A kind of note above the store: where its notes lie, how one is read, and how several are changed as one step.

An entity of the graph, an entry of what was learned: each is an ordinary note with a `type:`. A kind says how such a note
is read into a value; `Shelf` (shelf.py) holds the values of a whole vault, `StateLog` (state_log.py) what no note holds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypedDict, TypeVar
from weakref import WeakKeyDictionary

from simplemem.errors import Conflict, Unreadable
from simplemem.note.header import read_header
from simplemem.note.names import name_of
from simplemem.note.properties import render_header
from simplemem.store import Bench, Carried, Draft, Read

if TYPE_CHECKING:
    from simplemem.kinds.shelf import Shelf
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
S = TypeVar("S", bound="ChangeSet")
R = TypeVar("R")
M = TypeVar("M")


class By(TypedDict, total=False):
    """Who makes a change, with which tool, and why: it stands in the history."""

    who: str
    tool: str
    reason: str


@dataclass(frozen=True)
class Kind(Generic[T]):
    """A kind of note. `place` orders its notes. Notes with the property `having` are of it too, wherever they lie.
    `twin` is what a conflict copy has in common with its original, None for a note that cannot tell."""

    folder: str
    type: str
    read: Callable[[Read], T]
    place: Callable[[T], Any]
    twin: Callable[[T], Hashable | None]
    having: str = ""

    def holds(self, path: str, told: str | None) -> bool:
        """Whether a note is of this kind: its `type:` says so, or it lies in the folder and says no other."""
        return told.casefold() == self.type if told else path.startswith(f"{self.folder}/")

    def render(self, properties: Mapping[str, Any], body: str, now: str) -> str:
        """The text of a new note: title, type and tags first, then its other properties, then the body."""
        header = {"title": properties.get("title"), "type": self.type, "tags": properties.get("tags")}
        header = {key: value for key, value in header.items() if value}
        header |= {key: value for key, value in properties.items() if key not in ("title", "tags")}
        return render_header(header | {"created": now, "modified": now}) + (f"\n{body}" if body else "")


class NoteGone(Conflict):
    """A note that a change is about has gone from the disk, and the index does not know or not believe it yet."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{name_of(path)} comes and goes", current_sha256=None)
        self.path = path


class ChangeSet:
    """The notes that one change touches: as they are now, and as they shall be."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._before: dict[str, str | None] = {}
        self._after: dict[str, str | None] = {}

    def find(self, path: str) -> str | None:
        """The text of a note as this change has made it so far, None when there is no such note."""
        if path not in self._after:
            read = next(iter(self.bench.read([path])), None)
            if read is not None and (problem := read.problem or _problem(read.text)):
                raise Unreadable(
                    f"{name_of(path)} cannot be changed: {problem}",
                    hint="It is read as it is. Mend it in an editor, then try again.",
                )
            self._before[path] = self._after[path] = None if read is None else read.text
        return self._after[path]

    def text(self, path: str) -> str:
        """The text of a note that must be there."""
        text = self.find(path)
        if text is None:
            raise NoteGone(path)
        return text

    def put(self, path: str, text: str) -> None:
        """Give a note this text; one that was not read before is new."""
        self._before.setdefault(path, None)
        self._after[path] = text

    def drop(self, path: str) -> None:
        """Put a note into the trash."""
        if self.find(path) is not None:
            self._after[path] = None

    def drafts(self) -> list[Draft]:
        """What is to be written."""
        return [
            Draft(path, text, self._before[path]) for path, text in self._after.items() if text != self._before[path]
        ]


def change(
    shelves: Sequence[Shelf[Any]],
    make: Callable[[], S],
    draft: Callable[[S], R],
    by: By,
) -> tuple[R, Carried]:
    """Draft on what the vault holds now and write it as one step with one undo. Somebody who saves one of the notes
    meanwhile makes it be drafted again. Returns what the draft returned, and what was written."""
    bench = shelves[0].bench
    answers: list[R] = []
    drafts: list[Draft] = []
    again: set[str] = set()  # notes that made the last try fail

    def attempt() -> list[Draft]:
        nonlocal again, drafts
        again |= {each.path for each in drafts}
        for shelf in shelves:
            if again:
                shelf.look_again(again)
            shelf.refresh()
        step, again, drafts = make(), set(), []
        try:
            answers.append(draft(step))
            drafts = step.drafts()
        except NoteGone as gone:
            again = {gone.path}
            raise
        return drafts

    bench.catch_up()
    with ExitStack() as held:
        for shelf in shelves:
            held.enter_context(shelf.lock)
        carried = bench.change(attempt, who=by.get("who", ""), tool=by.get("tool", ""), reason=by.get("reason", ""))
        for shelf in shelves:
            shelf.take_written(drafts, carried)
    return answers[-1], carried


def _problem(text: str) -> str:
    header = read_header(text)
    return header.problem.message if header.problem is not None else ""


_MADE: Final[WeakKeyDictionary[Any, dict[Any, Any]]] = WeakKeyDictionary()
_MAKING: Final = threading.Lock()


def one_of(store: EnhancedStore, make: Callable[[EnhancedStore], M]) -> M:
    """What there is one of for each store, for all who ask: made when it is first asked for, let go with the store."""
    with _MAKING:
        made: dict[Any, Any] = _MADE.setdefault(store, {})
        if make not in made:
            made[make] = make(store)
        found: M = made[make]
        return found
