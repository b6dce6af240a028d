"""What the checks look at, each part read once and only when a check asks for it; and what a check gives back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from simplemem.errors import SimplememError
from simplemem.index.links import StoredLink
from simplemem.index.notes import Known
from simplemem.index.reconcile import Progress
from simplemem.memory import Finding
from simplemem.note.copies import is_copy_reason
from simplemem.note.note import read_note
from simplemem.note.properties import without_repeated
from simplemem.store.core import Core
from simplemem.vault.log import Version
from simplemem.vault.vault import Entry, File


@dataclass(frozen=True, slots=True)
class Point:
    """A link that leads nowhere is written again to lead to `path`. `was` is the path it had meant, "" when it never
    was one: then the reader goes on seeing what stands there."""

    source: str
    target: str
    path: str
    was: str = ""


@dataclass(frozen=True, slots=True)
class DropRepeated:
    """A key that stands twice in a header with one value is left there once."""

    path: str


@dataclass(frozen=True, slots=True)
class Rename:
    """A note or file gets another name, and the links to it follow."""

    path: str
    new_path: str


@dataclass(frozen=True, slots=True)
class Discard:
    """A file goes to the trash."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class MakeIndexAnew:
    """The index is rebuilt. No note is touched."""


Remedy = Point | DropRepeated | Rename | Discard | MakeIndexAnew


@dataclass(frozen=True, slots=True)
class Noticed:
    """A finding, and what would mend it: None where only a person can."""

    finding: Finding
    remedy: Remedy | None = None


Check = Callable[["Case"], Iterator[Noticed]]


class Case:
    """One vault under examination."""

    def __init__(self, core: Core, progress: Progress | None, only: frozenset[str]) -> None:
        self.core = core
        self.vault = core.vault
        self.index = core.index
        self.settings = core.settings
        self.progress = progress
        self.only = only  # the checks that were asked for

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """Every file of the vault, by its path."""
        return {entry.path: entry for entry in self.vault.scan()}

    @cached_property
    def links(self) -> list[StoredLink]:
        """Every link of every note, with what it means."""
        return self.core.healing(self.index.all_links)

    @cached_property
    def links_to(self) -> Counter[str]:
        """How many links lead to each file."""
        return Counter(link.path for link in self.links if link.path is not None)

    @cached_property
    def known(self) -> dict[str, Known]:
        """What the index knows of every note without reading it."""
        return self.core.healing(self.index.all_known)

    @cached_property
    def copies(self) -> frozenset[str]:
        """The conflict copies among the notes: what they say, their note says as well."""
        return frozenset(path for path, known in self.known.items() if is_copy_reason(known.hidden))

    @cached_property
    def changes(self) -> list[Version]:
        """Everything the history's log knows, oldest first."""
        return self.core.changes.recent()[::-1]

    @cached_property
    def problems(self) -> dict[str, str]:
        """The notes that must not be rewritten, and why."""
        found = self.core.healing(self.index.counts)["problems"]
        return {row["path"]: row["problem"] for row in found}

    @cached_property
    def mendable_headers(self) -> frozenset[str]:
        """The notes whose header would be read if a key that stands twice with one value stood there once."""
        return frozenset(path for path in self.problems if self._is_only_repeated(path))

    def _is_only_repeated(self, path: str) -> bool:
        file = self.read(path)
        try:
            return file is not None and without_repeated(read_note(file.data).text) != ""
        except SimplememError:
            return False

    def asks_for(self, check: str) -> bool:
        """Whether a check is one of those that run."""
        return not self.only or check in self.only

    def read(self, path: str) -> File | None:
        """A file as it is now, None when it cannot be read: another check tells of that."""
        try:
            return self.vault.read(path)
        except (SimplememError, OSError):
            return None

    def tell(self, stage: str, done: int, total: int) -> None:
        """Say how far a long check has come."""
        if self.progress is not None:
            self.progress(stage, done, total)
