"""How what a reader found comes into the vault: a plan is shown first, then all of it is written as one step, which one
undo takes back. What is there is known by its `source` property, wherever it lies now; without one, by its place."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain, count
from posixpath import dirname, join, normpath, relpath
from typing import Any, NamedTuple, Unpack
from urllib.parse import quote, unquote

from simplemem.errors import Invalid, NotFound, SimplememError
from simplemem.kinds.kind import clean_text
from simplemem.memory import By, Value
from simplemem.note.clock import moment_of, now
from simplemem.note.names import MOST_NAME_CHARACTERS, MOST_SEGMENT_BYTES, check_name, compare_key, legal_name, name_of
from simplemem.note.properties import remove_property, render_header
from simplemem.note.tags import nearest_tag
from simplemem.store import Carried, Draft, EnhancedStore

_TITLE = 60  # characters
_MOST_BYTES = 1_000_000_000  # that are written at once
_MOST_ENDING = 20  # characters of a file's name behind the dot
_LINK = re.compile(r"(?<=\]\()([^()\s]++(?:\([^()\s]*+\)[^()\s]*+)*+)(?=\))")
SOURCE = "source"  # the property that says where a note comes from: `mem0:8f1c`


class Item(NamedTuple):
    """A note or another file to be made: where it stands in what is read, its path below the folder, what it holds, by
    which `source` it is known again, and when it was changed last, in seconds. One that `is_linked` may get another
    name: links to it, relative to where notes stood, are led to where it lands. `grown` makes of the note, as it is
    here now, what it shall be; without it, one that somebody edited stays as it is."""

    where: str
    path: str
    data: str | bytes
    source: str = ""
    at: float | None = None
    is_linked: bool = False
    grown: Callable[[str], str] | None = None


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


def note(where: str, path: str, body: str, source: str, properties: Mapping[str, Any]) -> Item | Left:
    """A note with a header of these properties; those without a value are left out."""
    told = {f"original {key}" if key.lower() == SOURCE else key: value for key, value in properties.items()}
    tags = list(dict.fromkeys(nearest_tag(each) for each in told.get("tags") or () if each.strip()))
    told |= {"tags": tags, SOURCE: source}
    told = {key: value for key, value in told.items() if value not in (None, "", [])}
    try:
        text = render_header(told) + (f"\n{body.strip(chr(10))}\n" if body.strip() else "")
        text = clean_text(text, "text", len(text), "")
    except (SimplememError, UnicodeError) as refused:
        return Left(where, str(refused))
    at = moment_of(str(told.get("modified") or told.get("created") or ""))
    return Item(where, path, text, source, at.timestamp() if at else None)


def title_of(text: str) -> str:
    """What a text without a title is called: how it begins."""
    lines = (line.lstrip("# \t").strip() for line in text.split("\n"))
    return legal_name(next(filter(None, lines), "")[:_TITLE])


def moment(said: Any) -> datetime | None:
    """The moment that a text in ISO 8601 says, or a number of seconds since 1970."""
    if isinstance(said, (int, float)) and 0 < said < 32_503_680_000:  # the year 3000
        return datetime.fromtimestamp(said, UTC)
    at = moment_of(said) if isinstance(said, str) else None
    return at if at and 1 < at.year < 9999 else None


def wall_time(said: Any) -> str | None:
    """A time as notes have it, on the wall here."""
    at = moment(said)
    return at.astimezone().strftime("%Y-%m-%dT%H:%M:%S") if at else None


def plan(store: EnhancedStore, kind: str, file: str, folder: str, found: Iterable[Item | Left]) -> Plan:
    """What would become of what a reader found, below a folder ("" for the vault itself)."""
    if folder := folder.strip("/"):
        check_name(folder)
    store.bench.catch_up()
    planner = _Planner(store, folder)
    for each in found:
        planner.place(each)
    drafts = planner.drafts()
    if not (drafts or planner.there or planner.left):
        raise NotFound(f"nothing to import was found in {file}", hint="`simplemem import --help` says what is read.")
    counts = len(planner.new), len(drafts) - len(planner.new), planner.there
    return Plan(kind, file, folder, tuple(drafts), *counts, tuple(planner.left))


def take(store: EnhancedStore, planned: Plan, **by: Unpack[By]) -> Carried:
    """Carry a plan out, all or nothing. Conflict where a note was changed since it was made."""
    name = planned.file.replace("\\", "/").rstrip("/").rpartition("/")[2]
    by = {"tool": "import", "reason": f"import of {name} ({planned.kind})", **by}
    return store.bench.change(lambda: planned.drafts, **by)


class _Planner:
    """First where everything lands, then what the notes say there, with links led to each other."""

    def __init__(self, store: EnhancedStore, folder: str) -> None:
        self.store, self.folder = store, folder
        self.left: list[Left] = []
        self.new: list[tuple[Item, str]] = []
        self.there = self._bytes = 0
        self._again: list[tuple[Item, str]] = []
        self._landed: dict[str, str] = {}  # by where it was
        self._seen = set[str]()  # sources
        self._known = store.bench.with_property(SOURCE)
        self._numbers = defaultdict[str, int](lambda: 2)  # that are free, by the paths that many would have
        self._places = dict[str, str]()  # what lies there; "" for a folder
        for path in store.bench.files():
            self._settle(path)

    def place(self, item: Item | Left) -> None:
        """Find the place of one of them."""
        try:
            if isinstance(item, Item):
                self._landed[item.where] = self._place(item)
            else:
                self.left.append(item)
        except SimplememError as refused:
            self.left.append(Left(item.where, refused.message))

    def _place(self, item: Item) -> str:
        if item.source and item.source in self._seen:
            raise Invalid("a record above it has the same id")
        self._seen.add(item.source)
        size, most = len(bytes_of(item.data)), self.store.bench.max_note_bytes
        if size > most and item.path.lower().endswith(".md"):
            raise Invalid("it is larger than a note may be")
        if self.store.settings.write.secrets == "refuse" and item.path.lower().endswith(".md"):
            self.store.bench.judge(name_of(item.path), "", bytes_of(item.data).decode("utf-8", "replace"))
        if path := self._known.get(item.source, "") if item.source else "":
            self._again.append((item, path))
            return path
        path = f"{self.folder}/{item.path}" if self.folder else item.path
        path, is_there = self._free(item, _legal(path, shortened=bool(item.source or item.is_linked)))
        if is_there:
            self.there += 1
            return path
        check_name(name_of(path))
        if file := next(filter(None, map(self._places.get, _above(compare_key(path)))), ""):
            raise Invalid(f"{file} is a file there, and no folder")
        if self._bytes + size > _MOST_BYTES:
            raise Invalid(f"more than {_MOST_BYTES // 1_000_000_000} GB came before it; import again for the rest")
        self._bytes += size
        self._settle(path)
        self.new.append((item, path))
        return path

    def _settle(self, path: str) -> None:
        key = compare_key(path)
        self._places |= {key: path} | dict.fromkeys(_above(key), "")

    def _free(self, item: Item, path: str) -> tuple[str, bool]:
        """A path that nothing has, with a number in its name if need be; or one where the same lies already."""
        stem, dot, ending = path.rpartition(".") if "." in path.rpartition("/")[2] else (path, "", "")
        numbers = count(self._numbers[path] if item.source else 2)
        for number in chain([1], numbers if item.source or item.is_linked else ()):
            each = f"{stem} {number}{dot}{ending}" if number > 1 else path
            if (key := compare_key(each)) not in self._places:
                self._numbers[path] = number + 1
                return each, False
            if not item.source and self.store.bench.bytes_of(self._places[key]) == item.data:
                return self._places[key], True
        raise Invalid(f"{name_of(path)} is there already and says something else")

    def drafts(self) -> list[Draft]:
        """What is to be written."""
        made = (Draft(path, _led(item, path, self._landed), at=item.at) for item, path in self.new)
        again = (self._compared(item, path, str(_led(item, path, self._landed))) for item, path in self._again)
        return [each for each in chain(made, again) if each is not None]

    def _compared(self, item: Item, path: str, text: str) -> Draft | None:
        """A note that came before: written again if its record says something else now and nobody edited it."""
        read = next(iter(self.store.bench.read([path])), None)
        try:
            if read is not None and item.grown is not None and (text := item.grown(read.text)) != read.text:
                return Draft(path, text, read.text, item.at)
        except SimplememError as refused:
            self.left.append(Left(item.where, refused.message))
            return None
        if read is not None and item.grown is None and _undated(read.text) != _undated(text):
            ours = [each.sha256 for each in self.store.history(name_of(path), limit=1000) if each.tool == "import"]
            if read.sha256 in ours[:1]:
                return Draft(path, text, read.text, item.at or now().timestamp())
            if hashlib.sha256(text.encode()).hexdigest() not in ours:
                self.left.append(Left(item.where, f"{name_of(path)} was edited since it was imported"))
                return None
        self.there += 1
        return None


def _led(item: Item, path: str, landed: Mapping[str, str]) -> str | bytes:
    """What an item holds, its relative links led to where the other items are, as it lies at a path itself."""
    here = dirname(path)

    def led(link: re.Match[str]) -> str:
        plain, mark, heading = link[0].partition("#")
        there = landed.get(normpath(join(dirname(item.where), target := unquote(plain))))
        if there is None or normpath(join(here, target)) == there:
            return link[0]
        return quote(relpath(f"/{there}", f"/{here}")) + mark + heading

    return item.data if isinstance(item.data, bytes) else _LINK.sub(led, item.data)


def _undated(text: str) -> str:
    """A note's text without its dates, which files and our own writes change."""
    return remove_property(remove_property(text, "modified"), "created")


def _above(path: str) -> Iterator[str]:
    """The folders that a path lies in."""
    while path := path.rpartition("/")[0]:
        yield path


def _legal(path: str, *, shortened: bool) -> str:
    """A path every part of which is a name that files may have everywhere; `shortened` if it is too long."""
    *folders, name = path.split("/")
    stem, dot, ending = name.rpartition(".")
    if not stem or len(ending) > _MOST_ENDING:
        stem, dot, ending = name, "", ""
    stem = legal_name(stem).encode()[: MOST_SEGMENT_BYTES - 2 * _MOST_ENDING].decode("utf-8", "ignore").rstrip(". ")
    parts = [*map(legal_name, filter(None, folders)), stem]
    if shortened and len("/".join(parts)) > (most := MOST_NAME_CHARACTERS - 2 * _MOST_ENDING):
        parts = [part[: max(most // len(parts) - 1, 1)].strip() for part in parts]
    return "/".join(parts) + (f"{dot}{legal_name(ending)}" if dot else "")


def bytes_of(data: str | bytes) -> bytes:
    """What an item holds, as it lies on the disk."""
    return data if isinstance(data, bytes) else data.encode()
