"""How what a reader found comes into the vault: a plan is shown first, then all of it is written as one step, which one
undo takes back. What is there is known by its `source` property, wherever it lies now; without one, by its place."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, count
from posixpath import dirname, join, normpath, relpath, splitext
from typing import Any, Unpack
from urllib.parse import quote, unquote

from simplemem.errors import Invalid, NotFound, SimplememError
from simplemem.importers.export import SOURCE, Item, Left
from simplemem.models import AuthorArgs, Value
from simplemem.note.dates import now
from simplemem.note.names import (
    MAX_NAME_CHARACTERS,
    MAX_SEGMENT_BYTES,
    check_name,
    compare_key,
    legal_name,
    name_of,
)
from simplemem.note.properties import remove_property
from simplemem.store import BatchResult, Draft, EnhancedStore

_MOST_BYTES = 1_000_000_000  # that are written at once
_MOST_ENDING = 20  # characters of a file's name behind the dot
_LINK = re.compile(r"(?<=\]\()([^()\s]++(?:\([^()\s]*+\)[^()\s]*+)*+)(?=\))")


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
        return {
            "kind": self.kind,
            "file": self.file,
            "folder": self.folder,
            **counts,
            "notes": notes,
            "left_out": left,
        }


def plan(
    store: EnhancedStore, kind: str, file: str, folder: str, found: Iterable[Item | Left]
) -> Plan:
    """What would become of what a reader found, below a folder ("" for the vault itself)."""
    if folder := folder.strip("/"):
        check_name(folder)
    store.extension.catch_up()
    planner = _Planner(store, folder)
    for each in found:
        if isinstance(each, Left):
            planner.left.append(each)
        else:
            planner.place(each)
    drafts = planner.drafts()
    if not (drafts or planner.there or planner.left):
        raise NotFound(
            f"nothing to import was found in {file}",
            hint="`simplemem import --help` lists what can be imported.",
        )
    counts = len(planner.new), len(drafts) - len(planner.new), planner.there
    return Plan(kind, file, folder, tuple(drafts), *counts, tuple(planner.left))


def apply_plan(store: EnhancedStore, planned: Plan, **by: Unpack[AuthorArgs]) -> BatchResult:
    """Carry a plan out, all or nothing. Conflict where a note was changed since it was made."""
    name = planned.file.replace("\\", "/").rstrip("/").rpartition("/")[2]
    by = {"tool": "import", "reason": f"import of {name} ({planned.kind})", **by}
    return store.extension.change(lambda: planned.drafts, **by)


class _Planner:
    """First where everything lands, then what the notes say there, with links led to each other."""

    def __init__(self, store: EnhancedStore, folder: str) -> None:
        self.store, self.extension, self.folder = store, store.extension, folder
        self.left: list[Left] = []
        self.new: dict[str, Item] = {}  # by their paths, as the next
        self._again: dict[str, Item] = {}
        self.there = self._bytes = 0
        self._landed: dict[str, str] = {}  # by where it was
        self._sources = set[str]()
        self._known = self.extension.with_property(SOURCE)
        self._numbers = defaultdict[str, int](
            lambda: 2
        )  # that are free, by the paths that many would have
        self._places = dict[str, str]()  # what lies there; "" for a folder
        for path in self.extension.files():
            self._settle(path)

    def _settle(self, path: str) -> None:
        key = compare_key(path)
        self._places |= {key: path} | dict.fromkeys(_above(key), "")

    @contextmanager
    def _or_left(self, item: Item) -> Iterator[None]:
        try:
            yield
        except SimplememError as refused:
            self.left.append(Left(item.where, refused.message))

    def place(self, item: Item) -> None:
        """Find the place of an item: that of the note that was made of it before, or a new one."""
        with self._or_left(item):
            if item.source and item.source in self._sources:
                raise Invalid("an earlier record has the same id")
            self._sources.add(item.source)
            data = item.data.encode() if isinstance(item.data, str) else item.data
            if item.path.lower().endswith(".md"):
                if len(data) > self.extension.max_note_bytes:
                    raise Invalid("it is larger than index.max_note_mb")
                if self.store.settings.write.secrets == "refuse":
                    self.extension.check_text(
                        name_of(item.path), "", data.decode("utf-8", "replace")
                    )
            if path := self._known.get(item.source, "") if item.source else "":
                self._again[path] = item
            else:
                path = f"{self.folder}/{item.path}" if self.folder else item.path
                path = self._free(item, data, _legal(path))
            self._landed[item.where] = path

    def _free(self, item: Item, data: bytes, wanted: str) -> str:
        """A path that nothing has, with a number in its name if need be; or one where the same lies already."""
        stem, ending = splitext(wanted)
        numbers = count(self._numbers[wanted] if item.source else 2)
        for number in chain([1], numbers if item.source or item.is_linked else ()):
            path = f"{stem} {number}{ending}" if number > 1 else wanted
            if (key := compare_key(path)) not in self._places:
                self._numbers[wanted] = number + 1
                break
            if not item.source and self.extension.bytes_of(there := self._places[key]) == item.data:
                self.there += 1
                return there
        else:
            raise Invalid(f"{name_of(wanted)} already exists with a different text")
        check_name(name_of(path))
        if file := next(filter(None, map(self._places.get, _above(key))), ""):
            raise Invalid(f"{file} is a file in the vault, not a folder")
        if self._bytes + len(data) > _MOST_BYTES:
            raise Invalid(
                f"one import writes at most {_MOST_BYTES // 1_000_000_000} GB; import again for the rest"
            )
        self._bytes += len(data)
        self._settle(path)
        self.new[path] = item
        return path

    def drafts(self) -> list[Draft]:
        """What is to be written: new notes, and those whose record says something else now."""
        drafts = [Draft(path, self._led(item, path), at=item.at) for path, item in self.new.items()]
        for path, text, sha256, _ in self.extension.read(self._again):
            item = self._again[path]
            with self._or_left(item):
                if (now_said := self._said_now(item, path, text, sha256)) == text:
                    self.there += 1
                else:
                    drafts.append(Draft(path, now_said, text, item.at or now().timestamp()))
        return drafts

    def _said_now(self, item: Item, path: str, text: str, sha256: str) -> str:
        """What a note shall say that was made of an item before. Invalid where somebody edited it and that changed too."""
        if item.grown is not None:
            return item.grown(text)
        if _undated(wanted := str(self._led(item, path))) == _undated(text):
            return text
        ours = [
            each.sha256
            for each in self.store.history(name_of(path), limit=1000)
            if each.tool == "import"
        ]
        if sha256 in ours[:1]:
            return wanted
        if hashlib.sha256(wanted.encode()).hexdigest() not in ours:
            raise Invalid(f"{name_of(path)} has been edited since it was imported")
        return text

    def _led(self, item: Item, path: str) -> str | bytes:
        """What an item holds at a path, its relative links led to where the other items are."""
        here = dirname(path)

        def led(link: re.Match[str]) -> str:
            plain, mark, heading = link[0].partition("#")
            there = self._landed.get(normpath(join(dirname(item.where), target := unquote(plain))))
            if there is None or normpath(join(here, target)) == there:
                return link[0]
            return quote(relpath(f"/{there}", f"/{here}")) + mark + heading

        return item.data if isinstance(item.data, bytes) else _LINK.sub(led, item.data)


def _undated(text: str) -> str:
    """A note's text without its dates, which files and our own writes change."""
    return remove_property(remove_property(text, "modified"), "created")


def _above(path: str) -> Iterator[str]:
    """The folders that a path lies in."""
    while path := dirname(path):
        yield path


def _legal(path: str) -> str:
    """A path every part of which is a name that files may have everywhere, each shorter if all of it is too long."""
    stem, ending = splitext(path) if len(splitext(path)[1]) <= _MOST_ENDING else (path, "")
    parts = [legal_name(part) for part in stem.split("/") if part]
    most = MAX_NAME_CHARACTERS - 2 * _MOST_ENDING
    room = (
        MAX_SEGMENT_BYTES - 2 * _MOST_ENDING
        if len("/".join(parts)) <= most
        else max(most // len(parts) - 1, 1)
    )
    parts = [part.encode()[:room].decode("utf-8", "ignore").rstrip(". ") for part in parts]
    return "/".join(parts) + (f".{legal_name(ending[1:])}" if ending else "")
