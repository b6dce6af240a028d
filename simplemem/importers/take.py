"""Writes what a reader found into the vault: first a plan is made, then all of it is written as one step.

One undo reverts an import. A note that was imported before is recognised by its `source` property, wherever it is now.
Files without one are recognised by their path.
"""

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

_MOST_BYTES = 1_000_000_000  # that one import writes
_MOST_ENDING = 20  # characters of a file name after the dot
_LINK = re.compile(r"(?<=\]\()([^()\s]++(?:\([^()\s]*+\)[^()\s]*+)*+)(?=\))")


class Plan(Value):
    """What an import would write. Nothing of it is written yet."""

    kind: str
    file: str
    folder: str
    drafts: tuple[Draft, ...]
    new: int
    changed: int  # notes with another text in the export, which nobody has edited since
    there: int  # notes and files that stay as they are
    left: tuple[Left, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "file": self.file,
            "folder": self.folder,
            "new": self.new,
            "changed": self.changed,
            "there": self.there,
            "notes": [draft.path for draft in self.drafts],
            "left_out": [skipped._asdict() for skipped in self.left],
        }


def plan(
    store: EnhancedStore, kind: str, file: str, folder: str, found: Iterable[Item | Left]
) -> Plan:
    """Return a plan for what a reader found, below a folder ("" for the vault itself).

    Raises NotFound if the reader found nothing, Invalid for a folder that no note can be in.
    """
    folder = folder.strip("/")
    if folder:
        check_name(folder)
    store.extension.catch_up()

    planner = _Planner(store, folder)
    for item in found:
        if isinstance(item, Left):
            planner.left.append(item)
        else:
            planner.place(item)
    drafts = planner.drafts()
    if not (drafts or planner.there or planner.left):
        raise NotFound(
            f"nothing to import was found in {file}",
            hint="`simplemem import --help` lists what can be imported.",
        )
    return Plan(
        kind,
        file,
        folder,
        drafts=tuple(drafts),
        new=len(planner.new),
        changed=len(drafts) - len(planner.new),
        there=planner.there,
        left=tuple(planner.left),
    )


def apply_plan(store: EnhancedStore, planned: Plan, **by: Unpack[AuthorArgs]) -> BatchResult:
    """Write a plan, all or nothing. Raises Conflict if a note has changed since the plan was made."""
    name = planned.file.replace("\\", "/").rstrip("/").rpartition("/")[2]
    by = {"tool": "import", "reason": f"import of {name} ({planned.kind})", **by}
    return store.extension.change(lambda: planned.drafts, **by)


class _Planner:
    """Makes a plan: `place` chooses a path for each item, then `drafts` renders all of them.

    Guards which paths are taken, by existing files and by items, and where each item goes, so that
    links between items lead there.
    """

    def __init__(self, store: EnhancedStore, folder: str) -> None:
        self.store = store
        self.extension = store.extension
        self.folder = folder
        self.left: list[Left] = []
        self.new: dict[str, Item] = {}  # by path
        self.there = 0
        self._imported_before: dict[str, Item] = {}  # by path
        self._bytes = 0
        self._path_by_origin: dict[str, str] = {}
        self._sources: set[str] = set()
        self._path_by_source = self.extension.with_property(SOURCE)
        # By path: the first number that may be free, for an item whose path is taken.
        self._next_numbers: dict[str, int] = defaultdict(lambda: 2)
        self._taken: dict[str, str] = {}  # the path by its comparison key; "" for a folder
        for path in self.extension.files():
            self._take_path(path)

    def _take_path(self, path: str) -> None:
        """Record that a path and its folders are taken."""
        key = compare_key(path)
        self._taken[key] = path
        for folder in _folders_above(key):
            self._taken[folder] = ""

    @contextmanager
    def _skipping_errors(self, item: Item) -> Iterator[None]:
        """Leave an item out, with the reason, if the block raises one of our errors."""
        try:
            yield
        except SimplememError as error:
            self.left.append(Left(item.where, error.message))

    def place(self, item: Item) -> None:
        """Choose the path of an item: that of the note that was made of it before, or a new one."""
        with self._skipping_errors(item):
            if item.source and item.source in self._sources:
                raise Invalid("an earlier record has the same id")
            self._sources.add(item.source)

            data = item.data.encode() if isinstance(item.data, str) else item.data
            if item.path.lower().endswith(".md"):
                self._check_note(item, data)

            path = self._path_by_source.get(item.source, "") if item.source else ""
            if path:
                self._imported_before[path] = item
            else:
                wanted = f"{self.folder}/{item.path}" if self.folder else item.path
                path = self._new_path(item, data, _legal_path(wanted))
            self._path_by_origin[item.where] = path

    def _check_note(self, item: Item, data: bytes) -> None:
        """Raise an error if a note is too large, or contains a secret that settings refuse."""
        if len(data) > self.extension.max_note_bytes:
            raise Invalid("it is larger than index.max_note_mb")
        if self.store.settings.write.secrets == "refuse":
            self.extension.check_text(name_of(item.path), "", data.decode("utf-8", "replace"))

    def _new_path(self, item: Item, data: bytes, wanted: str) -> str:
        """Return a free path for an item, or the path of a file with the same data.

        Raises Invalid if there is none, or if the import would write too many bytes.
        """
        path, is_there = self._find_path(item, wanted)
        if is_there:
            self.there += 1
            return path

        check_name(name_of(path))
        for folder in _folders_above(compare_key(path)):
            if self._taken.get(folder):
                raise Invalid(f"{self._taken[folder]} is a file in the vault, not a folder")
        if self._bytes + len(data) > _MOST_BYTES:
            raise Invalid(
                f"one import writes at most {_MOST_BYTES // 1_000_000_000} GB; import again for the rest"
            )
        self._bytes += len(data)
        self._take_path(path)
        self.new[path] = item
        return path

    def _find_path(self, item: Item, wanted: str) -> tuple[str, bool]:
        """Return the wanted path, or one with a number, and whether a file there has the same data.

        Only an item with a source, or one whose links can be changed, may get a number. Raises
        Invalid if another item has the wanted path.
        """
        stem, ending = splitext(wanted)
        first_number = self._next_numbers[wanted] if item.source else 2
        numbers = count(first_number) if item.source or item.is_linked else ()
        for number in chain([1], numbers):
            path = f"{stem} {number}{ending}" if number > 1 else wanted
            taken_by = self._taken.get(compare_key(path))
            if taken_by is None:
                self._next_numbers[wanted] = number + 1
                return path, False
            if not item.source and self.extension.bytes_of(taken_by) == item.data:
                return taken_by, True
        raise Invalid(f"{name_of(wanted)} already exists with a different text")

    def drafts(self) -> list[Draft]:
        """Return what is to be written: new files, and notes whose record has another text now."""
        drafts = [
            Draft(path, self._render(item, path), at=item.at) for path, item in self.new.items()
        ]
        for path, text, sha256, _ in self.extension.read(self._imported_before):
            item = self._imported_before[path]
            with self._skipping_errors(item):
                new_text = self._updated_text(item, path, text, sha256)
                if new_text == text:
                    self.there += 1
                else:
                    drafts.append(Draft(path, new_text, text, item.at or now().timestamp()))
        return drafts

    def _updated_text(self, item: Item, path: str, text: str, sha256: str) -> str:
        """Return the text that a note of an earlier import gets; the same text if nothing changed.

        Raises Invalid if both the record and the note have changed since.
        """
        if item.grown is not None:
            return item.grown(text)
        new_text = str(self._render(item, path))
        if _without_dates(new_text) == _without_dates(text):
            return text

        versions = self.store.history(name_of(path), limit=1000)
        imported_hashes = [version.sha256 for version in versions if version.tool == "import"]
        is_unedited = sha256 in imported_hashes[:1]
        if is_unedited:
            return new_text
        is_record_unchanged = hashlib.sha256(new_text.encode()).hexdigest() in imported_hashes
        if not is_record_unchanged:
            raise Invalid(f"{name_of(path)} has been edited since it was imported")
        return text

    def _render(self, item: Item, path: str) -> str | bytes:
        """Return the data of an item at a path, with relative links that lead to the other items."""
        if isinstance(item.data, bytes):
            return item.data
        return _LINK.sub(lambda match: self._redirect(match, item, path), item.data)

    def _redirect(self, link: re.Match[str], item: Item, path: str) -> str:
        """Return a link that leads to the new path of its target; unchanged if it does already."""
        address, mark, heading = link[0].partition("#")
        target = unquote(address)
        new_path = self._path_by_origin.get(normpath(join(dirname(item.where), target)))
        folder = dirname(path)
        if new_path is None or normpath(join(folder, target)) == new_path:
            return link[0]
        return quote(relpath(f"/{new_path}", f"/{folder}")) + mark + heading


def _without_dates(text: str) -> str:
    """Return a note without its dates, which files and our own writes change."""
    return remove_property(remove_property(text, "modified"), "created")


def _folders_above(path: str) -> Iterator[str]:
    """Yield the folders of a path, the innermost first."""
    folder = dirname(path)
    while folder:
        yield folder
        folder = dirname(folder)


def _legal_path(path: str) -> str:
    """Return a path whose parts are legal names on every system, shortened if it is too long."""
    stem, ending = splitext(path)
    if len(ending) > _MOST_ENDING:
        stem, ending = path, ""
    parts = [legal_name(part) for part in stem.split("/") if part]

    max_characters = MAX_NAME_CHARACTERS - 2 * _MOST_ENDING
    max_part_bytes = MAX_SEGMENT_BYTES - 2 * _MOST_ENDING
    if len("/".join(parts)) > max_characters:
        max_part_bytes = max(max_characters // len(parts) - 1, 1)
    parts = [
        part.encode()[:max_part_bytes].decode("utf-8", "ignore").rstrip(". ") for part in parts
    ]
    legal_path = "/".join(parts)
    if ending:
        legal_path += f".{legal_name(ending[1:])}"
    return legal_path
