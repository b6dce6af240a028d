"""How what a reader found comes into the vault: a plan is shown first, then all of it is written as one step, which one
undo takes back. What is there is known by its `source` property, wherever it lies now; without one, by its place."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import chain
from typing import Any, NamedTuple, Unpack

from simplemem.errors import NotFound
from simplemem.kinds.kind import clean_text
from simplemem.memory import By, Value
from simplemem.note.clock import moment_of
from simplemem.note.names import compare_key, legal_name, name_of
from simplemem.note.properties import remove_property, render_header
from simplemem.note.tags import tags_for_new_note
from simplemem.store import Carried, Draft, EnhancedStore

_TITLE = 60  # characters
SOURCE = "source"  # the property that says where a note comes from: `mem0:8f1c`


class Item(NamedTuple):
    """A note or another file to be made: where it stands in what is read, its path below the folder, what it holds, by
    which `source` it is known again, and when it was changed last, in seconds."""

    where: str
    path: str
    data: str | bytes
    source: str = ""
    at: float | None = None


class Left(NamedTuple):
    """Something that is left out, and why."""

    where: str
    why: str


class Plan(Value):
    """What an import would do. Nothing of it is written yet."""

    kind: str
    file: str
    folder: str
    drafts: tuple[Draft, ...]
    new: int
    changed: int  # there, and another text since; nobody edited them meanwhile
    there: int
    left: tuple[Left, ...]

    def as_dict(self) -> dict[str, Any]:
        counts = {"new": self.new, "changed": self.changed, "there": self.there}
        notes = [each.path for each in self.drafts]
        left = [each._asdict() for each in self.left]
        return {"kind": self.kind, "file": self.file, "folder": self.folder, **counts, "notes": notes, "left_out": left}


def note(where: str, path: str, body: str, source: str = "", **properties: Any) -> Item:
    """A note with a header of these properties; those without a value are left out."""
    tags, more = tags_for_new_note(properties.pop("tags", None) or [])
    properties |= {"tags": tags, **more}
    told = {key: value for key, value in {**properties, SOURCE: source}.items() if value not in (None, "", [])}
    text = f"{render_header(told)}\n{body.strip(chr(10))}\n" if body.strip() else render_header(told)
    at = moment_of(str(told.get("modified") or told.get("created") or ""))
    return Item(where, path, clean_text(text, "text", len(text), ""), source, at.timestamp() if at else None)


def title_of(text: str) -> str:
    """What a text without a title is called: how it begins."""
    return text.strip().split("\n")[0].lstrip("# ")[:_TITLE].strip()


def wall_time(said: Any) -> str | None:
    """A time as notes have it, on the wall here: of a text in ISO 8601, or of seconds since 1970."""
    if isinstance(said, (int, float)) and 0 < said < 32_503_680_000:  # the year 3000
        said = datetime.fromtimestamp(said, UTC).isoformat()
    at = moment_of(said) if isinstance(said, str) else None
    return at.astimezone().strftime("%Y-%m-%dT%H:%M:%S") if at else None


def plan(store: EnhancedStore, kind: str, file: str, folder: str, found: Iterable[Item | Left]) -> Plan:
    """What would become of what a reader found, below a folder ("" for the vault itself)."""
    store.bench.catch_up()
    planner = _Planner(store, folder.strip("/"))
    for each in found:
        planner.take(each)
    if not (planner.drafts or planner.there or planner.left):
        raise NotFound(f"nothing to import was found in {file}", hint="`simplemem import --help` says what is read.")
    counts = planner.new, len(planner.drafts) - planner.new, planner.there
    return Plan(kind, file, planner.folder, tuple(planner.drafts), *counts, tuple(planner.left))


def take(store: EnhancedStore, planned: Plan, **by: Unpack[By]) -> Carried:
    """Carry a plan out, all or nothing. Conflict where a note was changed since it was made."""
    name = planned.file.replace("\\", "/").rstrip("/").rpartition("/")[2]
    by = {"tool": "import", "reason": f"import of {name} ({planned.kind})", **by}
    return store.bench.change(lambda: planned.drafts, **by)


class _Planner:
    def __init__(self, store: EnhancedStore, folder: str) -> None:
        self.store, self.folder = store, folder
        self.drafts: list[Draft] = []
        self.left: list[Left] = []
        self.new = self.there = 0
        self._known = store.bench.with_property(SOURCE)
        self._places = {compare_key(path) for path in store.bench.files()}

    def take(self, item: Item | Left) -> None:
        """Plan one of them."""
        if isinstance(item, Left):
            self.left.append(item)
            return
        path = _legal(f"{self.folder}/{item.path}" if self.folder else item.path)
        if len(_bytes(item.data)) > self.store.bench.max_note_bytes and path.endswith(".md"):
            self.left.append(Left(item.where, "it is larger than a note may be"))
        elif item.source in self._known:
            self._again(item, self._known[item.source])
        elif not item.source and compare_key(path) in self._places:
            self._at(item, path)
        else:
            self._make(item, path)

    def _make(self, item: Item, path: str) -> None:
        """A new file, with a number behind its name where another has it."""
        stem, dot, ending = path.rpartition(".")
        numbered = (f"{stem} {number}{dot}{ending}" for number in range(2, 100_000))
        path = next(each for each in chain([path], numbered) if compare_key(each) not in self._places)
        self._places.add(compare_key(path))
        if item.source:
            self._known[item.source] = path
        self.drafts.append(Draft(path, item.data, at=item.at))
        self.new += 1

    def _at(self, item: Item, path: str) -> None:
        """One that is known by its place: the same bytes are there, or something else is."""
        if self.store.bench.bytes_of(path) == _bytes(item.data):
            self.there += 1
        else:
            self.left.append(Left(item.where, f"{name_of(path)} is there already and says something else"))

    def _again(self, item: Item, path: str) -> None:
        """One that came before: written again if it says something else now and nobody edited it."""
        read = next(iter(self.store.bench.read([path])), None)
        if read is None or _undated(read.text) == _undated(str(item.data)):
            self.there += 1
            return
        last = next(iter(self.store.history(name_of(path), limit=1)), None)
        if last is not None and last.tool == "import" and last.sha256 == read.sha256:
            self.drafts.append(Draft(path, item.data, read.text))
        else:
            self.left.append(Left(item.where, f"{name_of(path)} was edited since it was imported"))


def _undated(text: str) -> str:
    """A note's text without what every write of ours changes."""
    return remove_property(text, "modified")


def _legal(path: str) -> str:
    """A path every part of which is a name that files may have everywhere."""
    *folders, name = path.split("/")
    stem, dot, ending = name.rpartition(".")
    return "/".join([*map(legal_name, filter(None, folders)), f"{legal_name(stem or name)}{dot}{ending}"])


def _bytes(data: str | bytes) -> bytes:
    return data if isinstance(data, bytes) else data.encode()
