"""Writes what a reader yields into the vault: first a plan is made, then it is written as one step.

One undo reverts an import. A note that was imported before is recognised by its `source` property,
wherever it is now. Files without one are recognised by their path.
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
from simplemem.importers.export import SOURCE, Item, Skipped
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

_MAX_BYTES = 1_000_000_000  # that one import writes
_MAX_ENDING = 20  # characters of a file name after the dot
_LINK = re.compile(r"(?<=\]\()([^()\s]++(?:\([^()\s]*+\)[^()\s]*+)*+)(?=\))")


class Plan(Value):
    """What an import would write. Nothing of it is written yet.

    Attributes:
        kind: The name of the source, such as `mem0`.
        file: The export, as the user named it.
        folder: The folder in the vault; "" for the vault itself.
        drafts: The files to write, new ones and changed ones.
        new: How many files are new.
        changed: How many notes change. Their texts in the export have changed since the last
            import, and nobody has edited them.
        unchanged: How many notes and files stay as they are.
        skipped: What is not imported, with the reasons.
    """

    kind: str
    file: str
    folder: str
    drafts: tuple[Draft, ...]
    new: int
    changed: int
    unchanged: int
    skipped: tuple[Skipped, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as JSON, as `--json` prints it, with paths in place of drafts.

        The keys are those of the attributes, except `there` (`unchanged`), `notes` (the paths) and
        `left_out` (`skipped`, each with `where` and `why`).
        """
        skipped = [{"where": part.origin, "why": part.reason} for part in self.skipped]
        return {
            "kind": self.kind,
            "file": self.file,
            "folder": self.folder,
            "new": self.new,
            "changed": self.changed,
            "there": self.unchanged,
            "notes": [draft.path for draft in self.drafts],
            "left_out": skipped,
        }


def make_plan(
    store: EnhancedStore, kind: str, file: str, folder: str, items: Iterable[Item | Skipped]
) -> Plan:
    """Return a plan for what a reader yields. New files go below `folder` ("": the vault itself).

    Nothing is written, but the index is completed first. `kind` and `file` name the source and the
    export. Raises NotFound if the reader yields nothing, Invalid for a folder that no note can be
    in, and the errors of the reader: Unavailable if the export does not exist, and Unreadable.
    """
    folder = folder.strip("/")
    if folder:
        check_name(folder)
    store.extension.catch_up()

    planner = _Planner(store, folder)
    for item in items:
        if isinstance(item, Skipped):
            planner.skipped.append(item)
        else:
            planner.place(item)

    drafts = planner.drafts()
    if not (drafts or planner.unchanged or planner.skipped):
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
        unchanged=planner.unchanged,
        skipped=tuple(planner.skipped),
    )


def apply_plan(store: EnhancedStore, plan: Plan, **by: Unpack[AuthorArgs]) -> BatchResult:
    """Write a plan as one step, all or nothing, and return what was written.

    `by` says who imports; the tool is "import" and the reason names the file if it does not say so.
    Raises Conflict if a note has changed since the plan was made, ReadOnly if the vault may not be
    changed, and Unavailable if the disk is full or the vault locked.
    """
    name = plan.file.replace("\\", "/").rstrip("/").rpartition("/")[2]
    by = {"tool": "import", "reason": f"import of {name} ({plan.kind})", **by}
    return store.extension.change(lambda: plan.drafts, **by)


class _Planner:
    """Makes a plan: `place` chooses a path for each item, then `drafts` renders all of them.

    Guards which paths are taken, by existing files and by items, and where each item goes, so that
    links between items lead there.

    Attributes:
        skipped: What is not imported, so far.
        new: The items that become new files, by path.
        unchanged: How many notes and files stay as they are, so far.
    """

    def __init__(self, store: EnhancedStore, folder: str) -> None:
        """Read which paths and which sources the vault has. The items go into `folder`."""
        self.store = store
        self.extension = store.extension
        self.folder = folder
        self.skipped: list[Skipped] = []
        self.new: dict[str, Item] = {}  # by path
        self.unchanged = 0
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
        """Skip an item, with the reason, if the block raises an error of simplemem."""
        try:
            yield
        except SimplememError as error:
            self.skipped.append(Skipped(item.origin, error.message))

    def place(self, item: Item) -> None:
        """Choose the path of an item: that of the note of an earlier import, or a new one.

        An item that cannot be imported is added to `skipped`; no SimplememError is raised for it.
        """
        with self._skipping_errors(item):
            if item.source and item.source in self._sources:
                raise Invalid("an earlier record has the same id")
            self._sources.add(item.source)

            data = item.data
            if isinstance(data, str):
                data = data.encode()
            if item.path.lower().endswith(".md"):
                self._check_note(item, data)

            path = ""
            if item.source:
                path = self._path_by_source.get(item.source, "")
            if path:
                self._imported_before[path] = item
            else:
                path = self._new_path(item, data)
            self._path_by_origin[item.origin] = path

    def _check_note(self, item: Item, data: bytes) -> None:
        """Raise Invalid if a note may not be written.

        It is too large for the vault, or contains a secret while the settings refuse secrets.
        """
        if len(data) > self.extension.max_note_bytes:
            raise Invalid("it is larger than index.max_note_mb")
        if self.store.settings.write.secrets == "refuse":
            self.extension.check_text(name_of(item.path), "", data.decode("utf-8", "replace"))

    def _new_path(self, item: Item, data: bytes) -> str:
        """Return a free path for an item, or the path of a file with the same data.

        An item with a free path is recorded as new, and the path as taken. A file with the same
        data is counted as unchanged. Raises Invalid if there is no free path, or if the import
        would write too many bytes.
        """
        preferred = item.path
        if self.folder:
            preferred = f"{self.folder}/{item.path}"
        path, has_same_data = self._find_path(item, _legal_path(preferred))
        if has_same_data:
            self.unchanged += 1
            return path

        check_name(name_of(path))
        for folder in _folders_above(compare_key(path)):
            file = self._taken.get(folder)
            if file:
                raise Invalid(f"{file} is a file in the vault, not a folder")

        if self._bytes + len(data) > _MAX_BYTES:
            limit = f"{_MAX_BYTES // 1_000_000_000} GB"
            raise Invalid(f"one import writes at most {limit}; import again for the rest")
        self._bytes += len(data)
        self._take_path(path)
        self.new[path] = item
        return path

    def _find_path(self, item: Item, preferred: str) -> tuple[str, bool]:
        """Return a path for an item, and whether a file there has the same data.

        It is the preferred path, or that path with a number. Only an item with a source, or one
        with `is_linked`, may get a number. Raises Invalid if another item would need one.
        """
        stem, ending = splitext(preferred)
        numbers: Iterable[int] = ()
        if item.source:
            numbers = count(self._next_numbers[preferred])
        elif item.is_linked:
            numbers = count(2)

        for number in chain([1], numbers):
            path = preferred
            if number > 1:
                path = f"{stem} {number}{ending}"
            taken_path = self._taken.get(compare_key(path))
            if taken_path is None:
                self._next_numbers[preferred] = number + 1
                return path, False
            if not item.source and self.extension.bytes_of(taken_path) == item.data:
                return taken_path, True
        raise Invalid(f"{name_of(preferred)} already exists with a different text")

    def drafts(self) -> list[Draft]:
        """Return the files to write: new ones, and notes whose record has another text now.

        Call it once, after all items were placed. Notes that stay as they are are counted in
        `unchanged`, and those that cannot be changed are added to `skipped`.
        """
        drafts = []
        for path, item in self.new.items():
            drafts.append(Draft(path, self._render(item, path), at=item.modified_at))

        for path, text, sha256, _ in self.extension.read(self._imported_before):
            item = self._imported_before[path]
            with self._skipping_errors(item):
                new_text = self._updated_text(item, path, text, sha256)
                if new_text == text:
                    self.unchanged += 1
                else:
                    modified_at = item.modified_at or now().timestamp()
                    drafts.append(Draft(path, new_text, text, modified_at))
        return drafts

    def _updated_text(self, item: Item, path: str, text: str, sha256: str) -> str:
        """Return the new text of a note of an earlier import; the same text if nothing changed.

        `text` and `sha256` are those of the note now. Changed dates alone are no change. Raises
        Invalid if both the record and the note have changed since, and the errors of the item's
        `update`, such as Unreadable.
        """
        if item.update is not None:
            return item.update(text)

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
        """Return the data of an item at a path.

        Relative links to other items are changed in a text; bytes stay as they are.
        """
        if isinstance(item.data, bytes):
            return item.data
        return _LINK.sub(lambda match: self._redirect(match, item, path), item.data)

    def _redirect(self, link: re.Match[str], item: Item, path: str) -> str:
        """Return the address of a link in an item, relative to the item's new path.

        `link` is a match of `_LINK`, and a heading in it is kept. The address stays as it is if its
        target is no item, or if it leads there already.
        """
        address, mark, heading = link[0].partition("#")
        target = unquote(address)
        old_folder = dirname(item.origin)
        old_path = normpath(join(old_folder, target))
        new_path = self._path_by_origin.get(old_path)
        if new_path is None:
            return link[0]

        new_folder = dirname(path)
        if normpath(join(new_folder, target)) == new_path:
            return link[0]
        new_address = quote(relpath(f"/{new_path}", f"/{new_folder}"))
        return f"{new_address}{mark}{heading}"


def _without_dates(text: str) -> str:
    """Return a note without the properties `modified` and `created`.

    Files and our own writes change them. Raises Unreadable if the frontmatter cannot be changed.
    """
    return remove_property(remove_property(text, "modified"), "created")


def _folders_above(path: str) -> Iterator[str]:
    """Yield the paths of the folders of a path, the innermost first; none for a path without."""
    folder = dirname(path)
    while folder:
        yield folder
        folder = dirname(folder)


def _legal_path(path: str) -> str:
    """Return a path whose parts are legal names on every system, shortened if it is too long.

    An ending of up to 20 characters stays, and room is left for a number before it.
    """
    stem, ending = splitext(path)
    if len(ending) > _MAX_ENDING:
        stem = path
        ending = ""
    names = [legal_name(part) for part in stem.split("/") if part]

    max_characters = MAX_NAME_CHARACTERS - 2 * _MAX_ENDING
    max_part_bytes = MAX_SEGMENT_BYTES - 2 * _MAX_ENDING
    if len("/".join(names)) > max_characters:
        max_part_bytes = max(max_characters // len(names) - 1, 1)

    parts = []
    for name in names:
        part = name.encode()[:max_part_bytes].decode("utf-8", "ignore")
        parts.append(part.rstrip(". "))
    legal_path = "/".join(parts)
    if ending:
        legal_path += f".{legal_name(ending[1:])}"
    return legal_path
