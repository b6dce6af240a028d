"""A kind of note above the store, such as an entity of the graph: where its notes lie, how one is read and rendered, and
how several are changed as one step. A `Shelf` holds all notes of a kind, read again when the index says that one
changed, whoever changed it. What no note holds is in a `StateLog`."""

from __future__ import annotations

import json
import re
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Self, TypeVar, cast

from simplemem.errors import Conflict, Invalid, SimplememError, TooLong, Unavailable, Unreadable
from simplemem.models import AuthorArgs
from simplemem.note.header import read_header
from simplemem.note.names import base_name, compare_key, name_of, parse_conflict_name
from simplemem.note.note import Note, read_note
from simplemem.note.properties import remove_property, set_property
from simplemem.note.words import well_formed
from simplemem.note.yaml_writer import render_header
from simplemem.store import BatchResult, Draft, ExtensionAPI, Mark, Read

if TYPE_CHECKING:
    from simplemem.providers.api import ChatModel
    from simplemem.store import EnhancedStore

M = TypeVar("M")
R = TypeVar("R")
Line = Mapping[str, Any]
_PATIENCE: Final = 0.25  # seconds


class NoteValue(Protocol):
    """What a note of a kind is read into. `is_own` is false for a note of another kind that was read all the same."""

    @property
    def path(self) -> str: ...

    @property
    def sha256(self) -> str: ...

    @property
    def is_own(self) -> bool: ...


T = TypeVar("T", bound=NoteValue)


@dataclass(frozen=True)
class Kind(Generic[T]):
    """A kind of note. `place` orders its notes. With `any_type` a note in the folder may say a type of the person's.
    Notes of the kinds in `also` are held as its own."""

    folder: str
    type: str
    read: Callable[[Read], T]
    place: Callable[[T], Any]
    any_type: bool = False
    also: tuple[Kind[Any], ...] = ()

    def holds(self, path: str, told: str | None) -> bool:
        """Whether a note is of this kind: its `type:` says so, or it lies in the folder and says none, or any."""
        is_in_folder = path.startswith(f"{self.folder}/") and (self.any_type or not told)
        is_own = is_in_folder or (told or "").casefold() == self.type
        return is_own or any(each.holds(path, told) for each in self.also)

    def opened(self, read: Read) -> tuple[Note, dict[str, Any]]:
        """A note, and what all that are read have. `problem` says why one cannot be changed, "" when it can."""
        note = read_note(read.text.encode("utf-8", "surrogatepass"), read.sha256)
        is_own, problem = (
            self.holds(read.path, note.text_property("type")),
            read.problem or note.problem or "",
        )
        return note, {
            "path": read.path,
            "sha256": read.sha256,
            "problem": problem,
            "is_own": is_own,
        }

    def render(self, properties: Mapping[str, Any], body: str, now: str) -> str:
        """The text of a new note: title, type and tags first, then its other properties, then the body."""
        every = {
            "title": None,
            "type": self.type,
            "tags": None,
            **properties,
            "created": now,
            "modified": now,
        }
        header = render_header(
            {key: value for key, value in every.items() if value not in (None, [])}
        )
        return header + (f"\n{body}" if body else "")


class ChangeSet:
    """The notes that one change touches, as they are and as they shall be."""

    def __init__(self, shelf: Shelf[Any]) -> None:
        self.extension = shelf.extension
        self._shelf = shelf
        self._before: dict[str, str | bytes] = {}
        self._after: dict[str, str | bytes | None] = {}

    def text(self, path: str) -> str:
        """The text of an item's note as this change has made it so far. Conflict when the shelf holds another."""
        if isinstance(text := self._after.get(path), str):
            return text
        read = next(iter(self.extension.read([path])), None)
        if read is None or read.sha256 != self._shelf.items[path].sha256:
            self.extension.look_at([path])
            self._shelf.take(
                [read] if read is not None else [], gone=[path] if read is None else []
            )
            raise Conflict(
                f"{name_of(path)} has changed since it was read",
                current_sha256=read and read.sha256,
            )
        broken = read_header(read.text).problem
        if problem := read.problem or (broken and broken.message):
            why = f"{name_of(path)} cannot be changed: {problem}"
            raise Unreadable(why, hint="Fix it in an editor, then try again.")
        self._before[path] = self._after[path] = read.text
        return read.text

    def put(self, path: str, text: str | bytes) -> None:
        """Give a note this text; one whose text was not asked for is new. Bytes are a file that is no note."""
        if isinstance(text, bytes):
            if (there := self.extension.bytes_of(path)) is not None:
                self._before[path] = there
        elif len(text.encode("utf-8", "replace")) > (most := self.extension.max_note_bytes):
            raise TooLong(
                f"{name_of(path)} would have more than {most:,} bytes",
                hint="Split it, then try again.",
            )
        self._after[path] = text

    def set(self, path: str, **properties: Any) -> None:
        """Give an item's note these properties; those without a value are taken out."""
        text = self.text(path)
        for key, value in properties.items():
            text = (
                remove_property(text, key)
                if value in (None, "")
                else set_property(text, key, value)
            )
        self.put(path, text)

    def has(self, path: str) -> bool:
        """Whether this change gives a file of that path something to hold."""
        return path in self._after

    def texts(self) -> dict[str, str]:
        """The notes that this change has touched, each with its text so far."""
        return {path: text for path, text in self._after.items() if isinstance(text, str)}

    def drop(self, path: str) -> None:
        """Put a note into the trash."""
        self.text(path)
        self._after[path] = None

    def drop_file(self, path: str) -> None:
        """Put a file into the trash that no item of the shelf is: an attachment, or a note of another kind.

        Nothing happens where there is no such file.
        """
        data = self.extension.bytes_of(path)
        if data is None:
            return
        self._before[path] = data
        self._after[path] = None

    def drafts(self) -> list[Draft]:
        """What is to be written."""
        drafts = [Draft(path, text, self._before.get(path)) for path, text in self._after.items()]
        return [each for each in drafts if each.text != each.old_text]


S = TypeVar("S", bound=ChangeSet)


class Shelf(Generic[T]):
    """The items of a vault. Whoever looks at them does so while `reading`."""

    def __init__(self, extension: ExtensionAPI, kind: Kind[T]) -> None:
        self.extension = extension
        self.kind = kind
        self.lock = threading.RLock()
        self.items: dict[str, T] = {}
        self.outside_changes = 0  # grows when a person or another process changes an item
        self._order: list[T] | None = None
        self.mark: Mark | None = None  # up to where changes were taken in
        self._notes: set[str] = set()  # the paths of all notes, of this kind or not
        self._unsettled: tuple[set[str], set[str]] = set(), set()  # what `settle` failed at

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the shelf, with all that was saved up to now."""
        self.extension.catch_up()
        with self.lock:
            self.refresh()
            yield

    def in_order(self) -> list[T]:
        """All items, in the order of their kind."""
        if self._order is None:
            self._order = sorted(self.items.values(), key=self.kind.place)
        return self._order

    def change(
        self,
        draft: Callable[[S], R],
        by: AuthorArgs,
        make: Callable[[Any], S] = ChangeSet,  # type: ignore[assignment]
    ) -> tuple[R, BatchResult]:
        """Write a draft on what the vault holds now as one step, again when a note is saved meanwhile; both answers."""
        answers: list[R] = []
        drafts: list[Draft] = []

        def attempt() -> list[Draft]:
            self.refresh()
            step = make(self)
            answers[:] = [draft(step)]
            drafts[:] = step.drafts()
            return list(drafts)  # a new one each time: the same one would not be tried again

        self.extension.catch_up()
        with self.lock:
            carried = self.extension.change(attempt, **by)
            shas = {each.path: each.sha256 or "" for each in carried.written}
            written = [Read(path, text, shas[path], "") for path, text in carried.texts.items()]
            gone = [each.path for each in drafts if each.text is None]
            came = [
                each.path
                for each in drafts
                if each.old_text is None and not isinstance(each.text, bytes)
            ]
            with suppress(
                Unavailable
            ):  # it is written: what follows from it is settled with the next change noticed
                self.take(written, gone=gone, came=came)
        return answers[0], carried

    def refresh(self) -> None:
        """Read what changed since this was last asked."""
        noticed = self.extension.since(self.mark)
        if noticed.mark == self.mark:
            return
        changed = {each.path: each for each in noticed.notes}
        came, gone = changed.keys() - self._notes, set[str]()
        if len(self._notes) + len(came) != noticed.count:
            gone = self._notes - (changed.keys() if noticed.whole else self.extension.indexed())
        names = {path: parse_conflict_name(path) for path, note in changed.items() if note.is_copy}
        copies = {
            path for path, name in names.items() if name is not None and name.certain
        }  # "Plan 2" may be a note
        wanted = [
            path
            for path, note in changed.items()
            if path not in copies
            and (
                self.items[path].sha256 != note.sha256
                if path in self.items
                else self.kind.holds(path, note.type)
            )
        ]
        if self.mark is not None and (wanted or gone & self.items.keys()):
            self.outside_changes += 1
        self.take(self.extension.read(sorted(wanted)), gone=gone | copies, came=came | copies)
        self.mark = noticed.mark  # whatever failed before this is noticed again

    def take(
        self, read: Iterable[Read], *, gone: Collection[str] = (), came: Collection[str] = ()
    ) -> None:
        """Take in notes as they are now, and which came and went of any kind: those may change what a link means."""
        changed = set(gone)
        for path in gone:
            self.forget(path)
        for item in map(self.kind.read, read):
            changed.add(item.path)
            if item.is_own or self.is_needed(item.path):
                self.place(item)
            else:
                self.forget(item.path)
        self._notes -= set(gone)
        self._notes |= set(came)
        self._unsettled = changed | self._unsettled[0], {*gone, *came} | self._unsettled[1]
        self.settle(*self._unsettled)
        self._unsettled = set(), set()

    def is_needed(self, path: str) -> bool:  # noqa: ARG002
        """Whether a note of another kind is held all the same."""
        return False

    def settle(self, changed: Collection[str], files: Collection[str]) -> None:
        """Items `changed`, and `files` of any kind came or went: work out what follows from that."""

    def place(self, item: T) -> None:
        """Hold what a note was read into."""
        self.items[item.path] = item
        self._order = None

    def forget(self, path: str) -> None:
        """Hold a note no longer."""
        self.items.pop(path, None)
        self._order = None


class Keeper:
    """What keeps a kind of note in one store, whoever holds which may let it go. May be used from several threads."""

    def __init__(self, store: EnhancedStore) -> None:
        self._store = weakref.ref(store)
        self.extension, self.settings = store.extension, store.settings

    @property
    def store(self) -> EnhancedStore:
        store = self._store()
        assert store is not None
        return store

    @property
    def chat(self) -> ChatModel | None:
        """The model that the settings name, one for all who ask; None when they name none."""
        llm, made = self.settings.llm, self.extension.services
        if "chat" not in made and llm.provider != "none" and llm.model.strip():
            from simplemem.providers.chat import ServiceChatModel

            about = (
                llm.provider,
                llm.model,
                llm.url,
                llm.api_key,
                llm.timeout_seconds,
                llm.max_calls_per_hour,
            )
            made.setdefault("chat", ServiceChatModel(*about))
        return cast("ChatModel | None", made.get("chat"))

    @classmethod
    def of(cls, store: EnhancedStore) -> Self:
        """The one of this store."""
        made: dict[Any, Self] = store.extension.services
        return made.get(cls) or made.setdefault(cls, cls(store))

    def free(self, step: ChangeSet, name: str, *, between: str, ending: str = ".md") -> str:
        """The path of a new note of this name, or with a number behind it."""
        numbers = (f"{between}{number}" if number > 1 else "" for number in range(1, 100_000))
        paths = (f"{name}{number}{ending}" for number in numbers)
        return next(path for path in paths if not (step.has(path) or self._is_taken(path)))

    def _is_taken(self, path: str) -> bool:
        others = self.extension.files_called(path.rpartition("/")[2])
        return compare_key(path) in map(compare_key, others) or self.extension.exists(path)

    def link_text(self, path: str, block: str = "") -> str:
        """A link to a note, or to a block of it, by the note's bare name where that is unique."""
        name = base_name(path)
        others = [each for each in self.extension.files_called(f"{name}.md") if each != path]
        return f"[[{path.removesuffix('.md') if others else name}{block and f'#^{block}'}]]"


class StateLog(Generic[M]):
    """What no note holds (counters, what was imported): lines of JSON under `.simplemem/`, only ever added, by several
    processes. `fold` takes one into the state. Where nothing can be written, nothing is added."""

    def __init__(
        self,
        extension: ExtensionAPI,
        name: str,
        empty: Callable[[], M],
        fold: Callable[[M, Line], None],
    ) -> None:
        self._extension = extension
        self._file = extension.side_file(name)
        self._empty, self._fold = empty, fold
        self._guard = threading.RLock()
        self._state = empty()

    def state(self) -> M:
        """What all lines make, those of other processes too."""
        with self._guard:
            lines, is_another = self._file.follow()
            if is_another:
                self._state = self._empty()
            for line in lines.split(b"\n"):
                with suppress(ValueError, RecursionError):
                    if isinstance(said := json.loads(line), dict):
                        self._fold(self._state, said)
            return copy(self._state)

    def add(self, line: Line) -> None:
        """Add a line; it is lost where others have the log for long."""
        if not self._extension.read_only:
            with (
                self._guard,
                suppress(OSError, SimplememError),
                self._file.locked(_PATIENCE) as has_turn,
            ):
                if has_turn:
                    self._file.append(_encoded(line))

    @contextmanager
    def held(self, patience: float) -> Iterator[Callable[[Line], None]]:
        """Hold the log: whoever else wants to add to it waits. Yields what adds a line and has it on the disk."""
        self._extension.must_be_writable()
        with self._guard, self._file.locked(patience) as has_turn:
            if not has_turn:
                raise Unavailable(
                    "another process is still working on this vault",
                    hint="Try again when it is done.",
                )
            self._file.append(
                b""
            )  # whatever is in the way of writing is found before anything is done
            yield lambda line: self._file.append(_encoded(line), sync=True)


def _encoded(line: Line) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def clean_text(text: str, what: str, most: int, hint: str) -> str:
    """A text that a client gave, with its lines ended in one way. Invalid and TooLong say what a note cannot carry."""
    clean = re.sub(r"\r\n?", "\n", text)
    if "\0" in clean or clean != well_formed(clean):
        raise Invalid(
            f"the {what} contains a character that a note cannot contain",
            hint="Leave out NUL and lone surrogates.",
        )
    if len(clean) > most:
        raise TooLong(f"the {what} has {len(clean):,} characters; the limit is {most:,}", hint=hint)
    return clean
