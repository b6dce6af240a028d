"""What a feature declares about its type of note: folder, type, and how a note is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from simplemem.note.note import Note, read_note
from simplemem.note.yaml_writer import render_header
from simplemem.store import Read


class NoteValue(Protocol):
    """What a feature reads one of its notes into."""

    @property
    def path(self) -> str:
        """The path of the note in the vault."""
        ...

    @property
    def sha256(self) -> str:
        """The hash of the note's bytes, by which a change of the note is noticed."""
        ...

    @property
    def is_own(self) -> bool:
        """Whether the note is of the feature's type; some features read other notes too."""
        ...


T = TypeVar("T", bound=NoteValue)


@dataclass(frozen=True)
class NoteType(Generic[T]):
    """A type of note that a feature keeps, such as an entity of the graph."""

    folder: str  # in which a note without a `type:` is of this type
    type: str
    read: Callable[[Read], T]  # returns the value of a note
    sort_key: Callable[[T], Any]  # what the values of a collection are ordered by
    accepts_any_type: bool = False  # a note in the folder may have a `type:` of the user's own
    related: tuple[NoteType[Any], ...] = ()  # types whose notes are kept in the same collection

    def includes(self, path: str, declared_type: str | None) -> bool:
        """Return whether a note with this path and `type:` is of this type or a related one.

        A note is of the type that it declares. One that declares none is of the type of its folder.
        """
        if (declared_type or "").casefold() == self.type:
            return True

        is_in_folder = path.startswith(f"{self.folder}/")
        if is_in_folder and (self.accepts_any_type or not declared_type):
            return True

        return any(related.includes(path, declared_type) for related in self.related)

    def parse(self, read: Read) -> tuple[Note, dict[str, Any]]:
        """Return the parsed note, and the fields that the values of all types have.

        They are `path`, `sha256`, `is_own` (whether the note is of this type) and `problem`: why
        the note cannot be changed, or "". A note that cannot be parsed has a problem. Raises
        nothing.
        """
        note = read_note(read.text.encode("utf-8", "surrogatepass"), read.sha256)
        fields = {
            "path": read.path,
            "sha256": read.sha256,
            "problem": read.problem or note.problem or "",
            "is_own": self.includes(read.path, note.text_property("type")),
        }
        return note, fields

    def render(self, properties: Mapping[str, Any], body: str, now: str) -> str:
        """Return the text of a new note: title, type, tags, the other properties, dates, body.

        Properties that are None or [] are left out. Nothing is written.
        """
        header: dict[str, Any] = {"title": None, "type": self.type, "tags": None}
        header |= properties
        header |= {"created": now, "modified": now}
        with_values = {key: value for key, value in header.items() if value not in (None, [])}

        text = render_header(with_values)
        if body:
            text += f"\n{body}"
        return text
