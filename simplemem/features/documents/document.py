"""A document: the note `documents/<user>/<title>.md` with a text and where that came from."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from simplemem.errors import Invalid
from simplemem.features.facts.fact import parse_time
from simplemem.features.note_type import NoteType
from simplemem.features.text import clean_text
from simplemem.note.header import read_header
from simplemem.note.names import base_name, legal_name
from simplemem.note.note import read_note
from simplemem.note.passages import cut_passages
from simplemem.note.properties import remove_property, set_property
from simplemem.note.scopes import check_scope, folder_of, scope_of
from simplemem.store import Read
from simplemem.store import now as local_now

_MAX_TEXT: Final = 1_000_000  # characters, as are the next three
_MAX_TITLE: Final = 200
_MAX_TITLE_FROM_TEXT: Final = 80
_MAX_NAME: Final = 100
_PASSAGE_ID: Final = re.compile(r"(?P<document>.+):\d+")  # behind the colon: its first line
# Properties of a note that are texts, which are also the names of fields of `Document`.
_PROPERTIES: Final = (
    "id",
    "title",
    "content_type",
    "status",
    "error",
    "source_url",
    "fetched",
    "content_hash",
    "original",
)


@dataclass(frozen=True)
class OriginalFile:
    """The file that a document was converted from, which is kept beside its note."""

    ending: str  # of its name, with the dot
    data: bytes


@dataclass(frozen=True, eq=False)
class Document:
    """A document as its note states it; a new one also has what its note will be made of."""

    path: str  # this and the next two are "" for a document that has no note yet
    sha256: str
    id: str
    title: str
    scope: str
    content_type: str = "text"  # or "pdf", "url", "conversation"
    status: str = "done"  # "extracting" until its facts have been extracted
    error: str = ""  # why the model did not extract its facts
    source_url: str = ""  # "" if it is not from the web
    fetched: str = ""  # when it was fetched from there
    added_at: datetime | None = None  # when its note was changed last, or its address was fetched
    content_hash: str = ""  # of the text; "" if a person wrote the note
    original: str = ""  # a link to the original file, with its brackets
    problem: str = ""  # why its note cannot be changed; "" if it can
    is_own: bool = True  # whether its note is of the type of documents

    # Of a new document only:
    text: str = ""
    has_distinct_title: bool = True
    """False if others may have the title: the beginning of a text, or what a file calls itself."""
    original_file: OriginalFile | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)  # what the client adds to these

    def is_named_by(self, id_: str) -> bool:
        """Return whether an id is that of the document or of one of its passages."""
        if id_ == self.id:
            return True
        passage = _PASSAGE_ID.fullmatch(id_)
        return passage is not None and passage["document"] == self.id

    def render(self, current_text: str = "") -> str:
        """Return the text of a note for the document, with its `text` as the body.

        With the `current_text` of its note, the properties of that note which the document does not
        have stay. Without it, the note is a new one. The client's `properties` never replace those
        of simplemem.
        """
        fields: dict[str, Any] = {}
        for key in (*_PROPERTIES, "scope"):
            fields[key] = getattr(self, key) or None

        reserved = {*fields, "type", "created", "modified"}
        properties: dict[str, Any] = {}
        for key, value in self.properties.items():
            is_reserved = key.casefold() in reserved
            if not is_reserved:
                properties[key] = value
        properties |= fields
        if not current_text:
            return DOCUMENT.render(properties, f"{self.text}\n", local_now())

        text = current_text
        for key, value in properties.items():
            if value is None:
                text = remove_property(text, key)
            else:
                text = set_property(text, key, value)
        header = text[: read_header(text).body_start]
        return f"{header}\n{self.text}\n"

    def stem_for_note(self) -> str:
        """Return the path, without its ending, for a new note. Another note may have it."""
        name = legal_name(self.title[:_MAX_NAME].strip())
        return f"{DOCUMENT.folder}/{folder_of(self.scope)}/{name}"


def read_document(read: Read) -> Document:
    """Return the document that a note states. Raise nothing: what is missing has its default.

    The name of the note stands for a missing id or title.
    """
    note = read_note(read.text.encode("utf-8", "surrogatepass"), read.sha256)
    name = base_name(read.path)
    fields: dict[str, Any] = {"id": name, "title": name}
    for key in _PROPERTIES:
        value = note.text_property(key)
        if value:
            fields[key] = value

    changed = note.text_property("modified") or note.text_property("created") or ""
    return Document(
        read.path,
        read.sha256,
        scope=scope_of(read.path, note.text_property("scope")),
        added_at=parse_time(fields.get("fetched", "")) or parse_time(changed),
        problem=read.problem or note.problem or "",
        is_own=DOCUMENT.includes(read.path, note.text_property("type")),
        **fields,
    )


DOCUMENT: Final[NoteType[Document]] = NoteType(
    "documents", "document", read=read_document, sort_key=lambda document: document.path
)


def new_document(text: str, title: str, scope: str, content_type: str, **fields: Any) -> Document:
    """Return a document that has no note yet, from texts of a client.

    The beginning of the text stands for a missing title. `fields` are further fields of `Document`.
    Raise Invalid if the text contains no word, a text has a character that a note cannot contain,
    or the scope is not valid. Raise TooLong if the text has more than a million characters, or the
    title more than 200.
    """
    text = clean_text(text, "content", _MAX_TEXT, "Split it, then try again.").strip()
    if not re.search(r"\w", text):
        raise Invalid("the content contains no word", hint="Give a text that contains a word.")

    title = clean_text(title, "title", _MAX_TITLE, "Give a shorter one.")
    title = " ".join(title.split())
    begins_with_heading = re.match(r"#{1,6}\s", text) is not None
    return Document(
        path="",
        sha256="",
        id="",
        title=title or title_from_text(text),
        scope=check_scope(scope),
        content_type=content_type,
        content_hash=hashlib.sha256(text.encode()).hexdigest(),
        text=text,
        has_distinct_title=bool(title) or begins_with_heading,
        **fields,
    )


def title_from_text(text: str) -> str:
    """Return up to 80 characters of the first line of a text, without the marks of a heading."""
    first_line = text.lstrip("# ").split("\n")[0]
    title = " ".join(first_line.split())
    return title[:_MAX_TITLE_FROM_TEXT].rstrip()


def count_passages(text: str) -> int:
    """Return the number of passages that the index makes of a text."""
    return len(cut_passages(text, read_note(text.encode()).body))
