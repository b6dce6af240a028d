"""The model of a lesson: how it is read from a note, and the text of its note.

A lesson is the note `knowledge/<type>/<slug>.md`. The body of the note is the content, followed by
the sections `## Context` and `## Relations`. A user may write one by hand and omit any part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from simplemem.errors import Invalid
from simplemem.features.graph.bullets import RelationLine, format_relation
from simplemem.features.graph.literals import parse_text
from simplemem.features.graph.page import read_page
from simplemem.features.graph.page_edits import add_items
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
class Lesson:
    """A lesson, or an ordinary note that is analyzed like one.

    `is_own` is false for an ordinary note. The id of such a note is its name, and its content is
    all of its body.
    """

    id: str
    type: str  # one of TYPES; of an ordinary note, its type or the first folder of its path
    content: str
    context: str  # where, when and why; "" if it has none
    confidence: float | None  # from 0 to 1; None if the note states none
    verified: bool
    tags: tuple[str, ...]
    created: str  # an ISO time, as the note states it; "" if it states none
    modified: str
    name: str
    path: str
    sha256: str
    relations: tuple[RelationLine, ...] = ()
    status: str = ""  # "superseded", or ""
    superseded_by: str = ""  # the target of a link to the lesson that replaced it
    superseded_at: str = ""
    superseded_reason: str = ""
    is_own: bool = True

    @property
    def text(self) -> str:
        """The content, and the context below it if there is one."""
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
        """Whether another lesson replaced this one."""
        return self.status.casefold() == "superseded" or bool(self.superseded_by)


class _Section(NamedTuple):
    """Where a section begins, where its heading ends, and where it ends, as character offsets."""

    start: int
    heading_end: int
    end: int


def plain_text(text: str) -> str:
    """Return a text as a reader sees it.

    Links are replaced with their words. Code, comments, HTML and marks of emphasis are removed.
    """
    without_hidden = _HIDDEN.sub("", text)
    return _MARKUP.sub(_visible_words, without_hidden)


def _visible_words(markup: re.Match[str]) -> str:
    """Return the words that a reader sees in place of a match of `_MARKUP`; "" for none."""
    wikilink_words = markup[1]
    link_words = markup[2]
    return wikilink_words or link_words or ""


# Reading


def read_lesson(path: str, text: str, sha256: str = "") -> Lesson:
    """Return the lesson in the text of a note.

    A note of another type gives a lesson with `is_own` false. Never raises: a part that is missing
    or cannot be read is empty. Without `sha256`, the hash is computed.
    """
    note = read_note(text.encode("utf-8", "surrogatepass"), sha256)
    declared_type = _text_property(note, "type")
    is_own = LESSON.includes(path, declared_type)

    context = ""
    relations: tuple[RelationLine, ...] = ()
    if is_own:
        lesson_type = _text_property(note, "knowledge_type") or _type_by_folder(path)
        content, context = _split_body(note)
        if not context:
            context = parse_text(_text_property(note, "context"))
        relations = _read_relations(path, text)
    else:
        lesson_type = declared_type or _top_folder(path) or "note"
        content = note.content.strip()

    name = name_of(path)
    created = _text_property(note, "created")
    return Lesson(
        id=_text_property(note, "id") or name,
        type=lesson_type,
        content=content,
        context=context,
        confidence=_read_confidence(note),
        verified=note.header.get("verified") is True,
        tags=tuple(tag.name for tag in note.tags),
        created=created,
        modified=_text_property(note, "modified") or created,
        name=name,
        path=path,
        sha256=note.sha256,
        relations=relations,
        status=_text_property(note, "status"),
        superseded_by=_link_target(_text_property(note, "superseded_by")),
        superseded_at=_text_property(note, "superseded_at"),
        superseded_reason=_text_property(note, "superseded_reason"),
        is_own=is_own,
    )


def _text_property(note: Note, key: str) -> str:
    """Return the value of a property of a note as text; "" if the note does not have it."""
    return note.text_property(key) or ""


def _top_folder(path: str) -> str:
    """Return the first folder of a path; "" for a note at the top of the vault."""
    folder, slash, _ = path.partition("/")
    return folder if slash else ""


def _type_by_folder(path: str) -> str:
    """Return the type that the folder of a lesson is named after; `insight` if it is none."""
    folder = path.rpartition("/")[0].rpartition("/")[2]
    type_name = folder.casefold().removesuffix("s")
    return type_name if type_name in TYPES else "insight"


def _read_confidence(note: Note) -> float | None:
    """Return the confidence of a note; None unless it is a number from 0 to 1."""
    value = note.header.get("confidence")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if not 0 <= value <= 1:
        return None
    return float(value)


def _link_target(value: str) -> str:
    """Return the target of a value that is one link in brackets, else the value itself."""
    return _LINK.sub(r"\1", value.strip()).strip()


def _read_relations(path: str, text: str) -> tuple[RelationLine, ...]:
    """Return the links in the section of relations, which are written like those of an entity."""
    page = read_page(path, text)
    start, end = page.sections.get("relations", (0, 0))

    relations: list[RelationLine] = []
    for bullet in page.bullets:
        is_in_section = start <= bullet.start < end
        if is_in_section and isinstance(bullet.content, RelationLine) and bullet.content.link:
            relations.append(bullet.content)
    return tuple(relations)


LESSON: Final[NoteType[Lesson]] = NoteType(
    FOLDER,
    "knowledge",
    read=lambda read: read_lesson(read.path, read.text, read.sha256),
    sort_key=lambda lesson: (lesson.created, lesson.path),
)


def _find_sections(note: Note) -> dict[str, _Section]:
    """Return the sections `context` and `relations` of a note by these names.

    A section that the note does not have is absent.
    """
    sections: dict[str, _Section] = {}
    headings = note.body.headings
    for position, heading in enumerate(headings):
        key = heading.text.strip().casefold()
        # A heading in a quotation does not begin with "##".
        is_top_level = note.text.startswith("## ", heading.start)
        if key not in ("context", "relations") or not is_top_level:
            continue

        end = len(note.text)
        for later in headings[position + 1 :]:
            if later.level <= 2:
                end = later.start
                break
        sections[key] = _Section(heading.start, heading.end, end)
    return sections


def _split_body(note: Note) -> tuple[str, str]:
    """Return the content and the context of a note, in this order; each is "" without one.

    Text outside the sections of context and relations belongs to the content.
    """
    sections = _find_sections(note)
    parts: list[str] = []
    position = note.header.body_start
    for section in sorted(sections.values()):
        parts.append(note.text[position : section.start].strip())
        position = max(position, section.end)
    parts.append(note.text[position:].strip())
    content = "\n\n".join(part for part in parts if part)

    context_section = sections.get("context")
    if context_section is None:
        return content, ""
    context = note.text[context_section.heading_end : context_section.end]
    return content, context.strip()


# Writing


def render_body(content: str, context: str) -> str:
    """Return the body of a new lesson: the content, and a section with the context.

    Without a context there is no section. Raises Invalid if it leaves a code block or comment open.
    """
    body = f"{content}\n"
    if context:
        body += f"\n## Context\n\n{context}\n"

    text = f"---\n---\n{body}"
    if read_page("", text).readable_end < len(text):
        raise Invalid(
            "the content leaves a code block or comment open",
            hint="Close it, so that it does not include the text that follows.",
        )
    return body


def replace_body(text: str, content: str, context: str) -> str:
    """Return the text of a note with another content and context instead of its body.

    The frontmatter, the section of relations and the kind of line endings stay; other text of the
    body does not. Without a context there is no section for it. Raises Invalid if the content or
    the context leaves a code block or comment open.
    """
    note = read_note(text.encode("utf-8", "surrogatepass"), "")
    body = render_body(content, context)
    relations = _find_sections(note).get("relations")
    if relations is not None:
        section_text = note.text[relations.start : relations.end].strip()
        body += f"\n{section_text}\n"

    newline = "\n"
    if "\r\n" in text:
        newline = "\r\n"
        body = body.replace("\r\n", "\n").replace("\n", newline)
    header = text[: note.header.body_start]
    if header:
        header += newline
    return header + body


def with_relation(
    text: str, relation_type: str, target: str, attributes: Mapping[str, str] | None = None
) -> str:
    """Return the text of a note with one more relation, to the note named `target`, at the end."""
    line = format_relation(relation_type, f"[[{target}]]", attributes or {})
    page = read_page("", text)
    return add_items(text, page, "relations", [line])


def slug_of(content: str) -> str:
    """Return a legal file name without ending: the words of the first line that has any.

    It has up to 60 bytes. It is "entry" if no line has a word.
    """
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
