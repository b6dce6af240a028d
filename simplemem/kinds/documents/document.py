"""A document is the note `documents/<scope>/<title>.md`: what was ingested as Markdown, with where it came from, and its
original beside it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from simplemem.kinds.atoms.atom import folder_of, link_in, scope_of
from simplemem.kinds.kind import Kind
from simplemem.note.header import read_header
from simplemem.note.names import base_name, legal_name
from simplemem.note.properties import remove_property, set_property
from simplemem.store import Read

_MOST_NAME: Final = 100  # characters


@dataclass(frozen=True, eq=False)
class Document:
    """A document as its note has it."""

    path: str
    sha256: str
    id: str
    title: str
    scope: str
    content_type: str = "text"
    status: str = "done"
    error: str = ""
    source_url: str = ""
    fetched: str = ""
    content_hash: str = ""
    original: str = ""  # the text between the brackets
    text: str = ""
    problem: str = ""
    is_own: bool = True


_WORDS: Final = ("id", "title", "content_type", "status", "error", "source_url", "fetched", "content_hash", "original")


def read_document(read: Read) -> Document:
    """The document that a note is, without its text."""
    note, where = DOCUMENT.opened(read)
    name = base_name(read.path)
    told = {key: said for key in _WORDS if (said := note.string(key))}
    told |= {"original": link_in(told["original"])} if "original" in told else {}
    scope = scope_of(note.string("scope"), read.path)
    return Document(**({"id": name, "title": name, "scope": scope} | told | where))


def text_in(note: str) -> str:
    """The text of a document, of its whole note."""
    return note[read_header(note).body_start :].strip()


DOCUMENT: Final[Kind[Document]] = Kind("documents", "document", read=read_document, place=lambda each: each.path)


def place_of(scope: str, title: str) -> str:
    """Where a document's note lies, without its ending."""
    return f"{DOCUMENT.folder}/{folder_of(scope)}/{legal_name(title[:_MOST_NAME].strip())}"


def note_of(document: Document, before: str, more: Mapping[str, Any], now: str) -> str:
    """The note of a document: a new one with more properties, or what was there before with what the document says."""
    told: dict[str, Any] = {key: getattr(document, key) or None for key in _WORDS} | {"scope": document.scope}
    told["original"] = f"[[{document.original}]]" if document.original else None
    if not before:
        return DOCUMENT.render(dict(more) | told, f"{document.text}\n", now)
    for key, value in told.items():
        before = remove_property(before, key) if value is None else set_property(before, key, value)
    return f"{before[: read_header(before).body_start]}\n{document.text}\n"
