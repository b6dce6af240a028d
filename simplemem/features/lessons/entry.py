"""A lesson as a note, `knowledge/<type>/<slug>.md`: the body is its content, `## Context` and `## Relations`.

A person may write one by hand and leave out any of this. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from simplemem.errors import Invalid
from simplemem.features.graph.page import Bond, bond_line, read_page, unspelled, with_lines
from simplemem.features.lessons import TYPES
from simplemem.features.note_type import NoteType
from simplemem.note.names import base_name, legal_name, name_of
from simplemem.note.note import Note, read_note
from simplemem.note.words import shorten, words_in_order

FOLDER: Final = "knowledge"
_MAX_SLUG_BYTES: Final = 60
_MAX_HEADLINE: Final = 120
# Fenced code and Obsidian comments.
_HIDDEN: Final = re.compile(
    r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)|%%.*?(?:%%|\Z)", re.MULTILINE | re.DOTALL
)
# Embeds, wikilinks, Markdown links, HTML tags and marks of emphasis.
_MARKUP: Final = re.compile(
    r"!\[\[[^\[\]]*\]\]|\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]|!?\[([^\[\]]*)\]\([^()\s]*\)"
    r"|</?[A-Za-z][^<>\n]*>|(\*\*|__|==)"
)
_LINK: Final = re.compile(r"\A\[\[([^\[\]|#]++)[^\[\]]*+\]\]\Z")


@dataclass(frozen=True, slots=True)
class KnowledgeEntry:
    """A lesson, or an ordinary note that is analyzed like one; the id of such a note is its name.

    `is_own` is false for an ordinary note.
    """

    id: str
    type: str
    content: str
    context: str
    confidence: float | None
    verified: bool
    tags: tuple[str, ...]
    created: str
    modified: str
    name: str
    path: str
    sha256: str
    relations: tuple[Bond, ...] = ()
    status: str = ""
    superseded_by: str = ""
    superseded_at: str = ""
    superseded_reason: str = ""
    is_own: bool = True

    @property
    def text(self) -> str:
        """The content and the context."""
        if not self.context:
            return self.content
        return f"{self.content}\n\n{self.context}"

    @property
    def headline(self) -> str:
        """The first line without Markdown, shortened; the name of the note if there is none."""
        for line in plain_text(self.content).split("\n"):
            headline = line.strip().lstrip("#>*-| ")
            if headline:
                return shorten(headline, _MAX_HEADLINE)
        return shorten(base_name(self.path), _MAX_HEADLINE)

    @property
    def is_superseded(self) -> bool:
        """Whether another entry replaced this one."""
        return self.status.casefold() == "superseded" or bool(self.superseded_by)


class _Section(NamedTuple):
    """Where a section begins, where its heading ends, and where it ends."""

    start: int
    heading_end: int
    end: int


def plain_text(text: str) -> str:
    """Return a text as a reader sees it: the words of links, and no code, comments, HTML or emphasis."""
    return _MARKUP.sub(lambda match: match[1] or match[2] or "", _HIDDEN.sub("", text))


# Reading


def read_entry(path: str, text: str, sha256: str = "") -> KnowledgeEntry:
    """Return the entry in a note. The content of an ordinary note is all of its body."""
    note = read_note(text.encode("utf-8", "surrogatepass"), sha256)
    type_property = note.text_property("type") or ""
    if LESSON.includes(path, type_property):
        return _read_lesson(note, path, text)

    top_folder, slash, _ = path.partition("/")
    folder_type = top_folder if slash else ""
    return _entry(
        note,
        path,
        type=type_property or folder_type or "note",
        content=note.content.strip(),
        context="",
        is_own=False,
    )


def _read_lesson(note: Note, path: str, text: str) -> KnowledgeEntry:
    """Return the entry in a note of our type."""
    content, context = _split_body(note)
    if not context:
        context = unspelled(note.text_property("context") or "")
    return _entry(
        note,
        path,
        type=note.text_property("knowledge_type") or _type_by_folder(path),
        content=content,
        context=context,
        relations=_read_relations(path, text),
    )


def _entry(note: Note, path: str, **fields: Any) -> KnowledgeEntry:
    """Return an entry with these fields, and with those that a lesson and an ordinary note share."""

    def text_property(key: str) -> str:
        return note.text_property(key) or ""

    name = name_of(path)
    return KnowledgeEntry(
        id=text_property("id") or name,
        confidence=_confidence(note),
        verified=note.header.get("verified") is True,
        tags=tuple(tag.name for tag in note.tags),
        created=text_property("created"),
        modified=text_property("modified") or text_property("created"),
        name=name,
        path=path,
        sha256=note.sha256,
        status=text_property("status"),
        superseded_by=_link_target(text_property("superseded_by")),
        superseded_at=text_property("superseded_at"),
        superseded_reason=text_property("superseded_reason"),
        **fields,
    )


def _type_by_folder(path: str) -> str:
    """Return the type that the folder of a lesson is named after; `insight` if it is none."""
    folder = path.rpartition("/")[0].rpartition("/")[2]
    type_ = folder.casefold().removesuffix("s")
    return type_ if type_ in TYPES else "insight"


def _confidence(note: Note) -> float | None:
    """Return the confidence of a note; None unless it is a number from 0 to 1."""
    value = note.header.get("confidence")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if not 0 <= value <= 1:
        return None
    return float(value)


def _link_target(value: str) -> str:
    """Return the target of a property that is one link, else its text."""
    return _LINK.sub(r"\1", value.strip()).strip()


def _read_relations(path: str, text: str) -> tuple[Bond, ...]:
    """Return the links in the section of relations, which are written like those of an entity."""
    page = read_page(path, text)
    start, end = page.sections.get("relations", (0, 0))
    relations = [bullet.says for bullet in page.bullets if start <= bullet.start < end]
    return tuple(relation for relation in relations if isinstance(relation, Bond) and relation.link)


LESSON: Final[NoteType[KnowledgeEntry]] = NoteType(
    FOLDER,
    "knowledge",
    read=lambda read: read_entry(read.path, read.text, read.sha256),
    sort_key=lambda entry: (entry.created, entry.path),
)


def _sections(note: Note) -> dict[str, _Section]:
    """Return the sections `context` and `relations` of a note, as far as it has them."""
    sections: dict[str, _Section] = {}
    headings = note.body.headings
    for position, heading in enumerate(headings):
        key = heading.text.strip().casefold()
        # A heading in a quotation does not begin with "##".
        is_ours = note.text.startswith("## ", heading.start)
        if key not in ("context", "relations") or not is_ours:
            continue
        end = len(note.text)
        for later in headings[position + 1 :]:
            if later.level <= 2:
                end = later.start
                break
        sections[key] = _Section(heading.start, heading.end, end)
    return sections


def _split_body(note: Note) -> tuple[str, str]:
    """Return the content and the context. What is in neither section belongs to the content."""
    sections = _sections(note)
    parts: list[str] = []
    position = note.header.body_start
    for section in sorted(sections.values()):
        parts.append(note.text[position : section.start].strip())
        position = max(position, section.end)
    parts.append(note.text[position:].strip())
    content = "\n\n".join(filter(None, parts))

    context = sections.get("context")
    if context is None:
        return content, ""
    return content, note.text[context.heading_end : context.end].strip()


# Writing


def render_body(content: str, context: str) -> str:
    """Return the body of a new entry. Raises Invalid if it leaves a code block or comment open."""
    body = f"{content}\n"
    if context:
        body += f"\n## Context\n\n{context}\n"

    text = f"---\n---\n{body}"
    if read_page("", text).opened < len(text):
        raise Invalid(
            "the content leaves a code block or comment open",
            hint="Close it, so that it does not include the text that follows.",
        )
    return body


def replace_body(text: str, content: str, context: str) -> str:
    """Return a note with another content and context; its frontmatter and its relations stay.

    Raises Invalid if the content leaves a code block or comment open.
    """
    note = read_note(text.encode("utf-8", "surrogatepass"), "")
    body = render_body(content, context)
    section = _sections(note).get("relations")
    if section is not None:
        body += f"\n{note.text[section.start : section.end].strip()}\n"

    newline = "\n"
    if "\r\n" in text:
        newline = "\r\n"
        body = body.replace("\r\n", "\n").replace("\n", newline)
    header = text[: note.header.body_start]
    if header:
        header += newline
    return header + body


def with_relation(text: str, words: str, target: str) -> str:
    """Return a note with one more relation to the note `target`, after its other relations."""
    line = bond_line(words, f"[[{target}]]", {})
    return with_lines(text, read_page("", text), "relations", [line])


def slug_of(content: str) -> str:
    """Return a file name from the words of the first line that has any."""
    words: list[str] = []
    for line in content.split("\n"):
        words = list(words_in_order(line))
        if words:
            break

    slug = "-".join(words or ["entry"])
    if len(slug.encode()) > _MAX_SLUG_BYTES:
        slug = slug.encode()[:_MAX_SLUG_BYTES].decode(errors="ignore")
        whole_words = slug.rpartition("-")[0]
        slug = whole_words or slug
    return legal_name(slug)
