"""What the checks look at, each thing read once and only when a check asks for it; and what a check gives back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from simplemem.errors import SimplememError
from simplemem.index.links import StoredLink
from simplemem.index.notes import Known
from simplemem.index.reconcile import Progress
from simplemem.memory import Finding
from simplemem.store.core import Core
from simplemem.vault.vault import Entry, File


@dataclass(frozen=True, slots=True)
class Point:
    """A link that leads nowhere is written again to lead to `path`. `was` is the path it had meant, "" when it never was
    one: then the reader goes on seeing what stands there."""

    source: str
    target: str
    path: str
    was: str = ""


@dataclass(frozen=True, slots=True)
class Discard:
    """A file goes to the trash."""

    source: str
    why: str


@dataclass(frozen=True, slots=True)
class MakeIndexAnew:
    """The index is rebuilt. No note is touched."""


Remedy = Point | Discard | MakeIndexAnew


@dataclass(frozen=True, slots=True)
class Noticed:
    """A finding, and what would mend it: None where only a person can."""

    finding: Finding
    remedy: Remedy | None = None


def warning(check: str, path: str, message: str, hint: str = "", line: int = 0) -> Noticed:
    return Noticed(Finding(check, "warning", path, message, hint, line))


def remark(check: str, path: str, message: str, hint: str = "") -> Noticed:
    return Noticed(Finding(check, "note", path, message, hint))


class Case:
    """One vault under examination."""

    def __init__(self, core: Core, progress: Progress | None, only: frozenset[str]) -> None:
        self.core = core
        self.vault = core.vault
        self.index = core.index
        self.settings = core.settings
        self.only = only  # the checks that were asked for
        self._progress = progress

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """Every file of the vault, by its path."""
        return {entry.path: entry for entry in self.vault.scan()}

    @cached_property
    def links(self) -> list[StoredLink]:
        """Every link of every note, with what it means."""
        return self.index.all_links()

    @cached_property
    def linked(self) -> Counter[str]:
        """How many links lead to each file."""
        return Counter(link.path for link in self.links if link.path is not None)

    @cached_property
    def known(self) -> dict[str, Known]:
        """What the index knows of every note without reading it."""
        return self.index.all_known()

    @cached_property
    def copies(self) -> frozenset[str]:
        """The conflict copies among the notes: what they say, their note says as well."""
        return frozenset(path for path, known in self.known.items() if known.is_copy)

    @cached_property
    def problems(self) -> dict[str, str]:
        """The notes that must not be rewritten, and why."""
        return {row["path"]: row["problem"] for row in self.index.counts()["problems"]}

    def may_be_written(self, path: str) -> bool:
        """Whether a note has a header that can be read."""
        return path not in self.problems

    def read(self, path: str) -> File | None:
        """A file as it is now, None when it cannot be read: another check tells of that."""
        try:
            return self.vault.read(path)
        except (SimplememError, OSError):
            return None

    def small_files(self, stage: str, endings: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
        """The files with such names that are no larger than a note may be, read one after the other."""
        paths = [path for path in self.entries if path.casefold().endswith(endings)]
        for done, path in enumerate(paths):
            if done % 250 == 0:
                self.tell(stage, done, len(paths))
            small = self.entries[path].size <= self.settings.max_note_bytes
            if small and (file := self.read(path)) is not None:
                yield path, file.data

    def tell(self, stage: str, done: int, total: int) -> None:
        """Say how far a long check has come."""
        if self._progress is not None:
            self._progress(stage, done, total)
