"""One thing that was learned as a note, `knowledge/<type>/<slug>.md`: in its body what was learned, `## Context` and
`## Relations`. A person may write one by hand, with as little of this as they like. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from simplemem.errors import Invalid
from simplemem.features.graph.page import Bond, bond_line, read_page, unspelled, with_lines
from simplemem.features.lessons import TYPES
from simplemem.features.note_type import NoteType
from simplemem.note.names import base_name, legal_name, name_of
from simplemem.note.note import Note, read_note
from simplemem.note.words import shorten, words_in_order

FOLDER: Final = "knowledge"
_MOST_SLUG: Final = 60
_MOST_HEADLINE: Final = 120
_UNREAD: Final = re.compile(
    r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)|%%.*?(?:%%|\Z)", re.MULTILINE | re.DOTALL
)
_MARKUP: Final = re.compile(
    r"!\[\[[^\[\]]*\]\]|\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]|!?\[([^\[\]]*)\]\([^()\s]*\)|</?[A-Za-z][^<>\n]*>|(\*\*|__|==)"
)


@dataclass(frozen=True, slots=True)
class KnowledgeEntry:
    """One thing that was learned, or an ordinary note that is looked at in the same way: its id is its name."""

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
    ties: tuple[Bond, ...] = ()
    status: str = ""
    superseded_by: str = ""
    superseded_at: str = ""
    superseded_reason: str = ""
    is_own: bool = True

    @property
    def text(self) -> str:
        """What it says: content and context."""
        return f"{self.content}\n\n{self.context}" if self.context else self.content

    @property
    def headline(self) -> str:
        """Its first line without the marks of Markdown, cut where it is long."""
        lines = (line.strip().lstrip("#>*-| ") for line in plain(self.content).split("\n"))
        return shorten(next(filter(None, lines), base_name(self.path)), _MOST_HEADLINE)

    @property
    def is_superseded(self) -> bool:
        return self.status.casefold() == "superseded" or bool(self.superseded_by)


def plain(text: str) -> str:
    """A text as it is read: links are what they show; code, comments, HTML and marks of emphasis are gone."""
    return _MARKUP.sub(lambda found: found[1] or found[2] or "", _UNREAD.sub("", text))


def read_entry(path: str, text: str, sha256: str = "") -> KnowledgeEntry:
    """The entry that a note is. Of another kind of note all of the body is what it says."""
    note = read_note(text.encode("utf-8", "surrogatepass"), sha256)
    name, folder = name_of(path), path.rpartition("/")[0]

    def said(key: str) -> str:
        return note.text_property(key) or ""

    is_own = LEARNED.includes(path, said("type"))
    content, context, ties = note.content.strip(), "", tuple[Bond, ...]()
    if is_own:
        content, context = _parts(note)
        page = read_page(path, text)  # its relations are read as those of an entity
        begin, end = page.sections.get("relations", (0, 0))
        found = [each.says for each in page.bullets if begin <= each.start < end]
        ties = tuple(each for each in found if isinstance(each, Bond) and each.link)
    by_folder = folder.rpartition("/")[2].casefold().removesuffix("s")
    kind = said("knowledge_type") or (by_folder if by_folder in TYPES else "insight")
    sure = note.header.get("confidence")
    is_share = isinstance(sure, (int, float)) and not isinstance(sure, bool) and 0 <= sure <= 1
    return KnowledgeEntry(
        id=said("id") or name,
        type=kind if is_own else said("type") or folder.partition("/")[0] or "note",
        content=content,
        context=context or (unspelled(said("context")) if is_own else ""),
        confidence=float(sure) if is_share else None,
        verified=note.header.get("verified") is True,
        tags=tuple(tag.name for tag in note.tags),
        created=said("created"),
        modified=said("modified") or said("created"),
        name=name,
        path=path,
        sha256=sha256,
        ties=ties,
        status=said("status"),
        superseded_by=re.sub(
            r"\A\[\[([^\[\]|#]++)[^\[\]]*+\]\]\Z", r"\1", said("superseded_by").strip()
        ).strip(),
        superseded_at=said("superseded_at"),
        superseded_reason=said("superseded_reason"),
        is_own=is_own,
    )


LEARNED: Final[NoteType[KnowledgeEntry]] = NoteType(
    FOLDER,
    "knowledge",
    read=lambda read: read_entry(read.path, read.text, read.sha256),
    sort_key=lambda entry: (entry.created, entry.path),
)


def _sections(note: Note) -> dict[str, tuple[int, int, int]]:
    """Where `context` and `relations` begin, where their headings end, and where they end, as far as they are there."""
    sections, headings = dict[str, tuple[int, int, int]](), note.body.headings
    for number, heading in enumerate(headings):
        key = heading.text.strip().casefold()
        if key in ("context", "relations") and note.text.startswith(
            "## ", heading.start
        ):  # and not in a quotation
            end = next(
                (later.start for later in headings[number + 1 :] if later.level <= 2),
                len(note.text),
            )
            sections[key] = heading.start, heading.end, end
    return sections


def _parts(note: Note) -> tuple[str, str]:
    """What was learned, and its context. Whatever is in no section of ours belongs to what was learned."""
    sections = _sections(note)
    kept, at = [], note.header.body_start
    for start, _, end in sorted(sections.values()):
        kept.append(note.text[at:start].strip())
        at = max(at, end)
    _, begin, end = sections.get("context", (0, 0, 0))
    return "\n\n".join(filter(None, [*kept, note.text[at:].strip()])), note.text[begin:end].strip()


def body_of(content: str, context: str) -> str:
    """The body of a new entry."""
    body = f"{content}\n" + (f"\n## Context\n\n{context}\n" if context else "")
    if read_page("", text := f"---\n---\n{body}").opened < len(text):
        why = "the content leaves a code block or comment open"
        raise Invalid(why, hint="Close it, so that it does not include the text that follows.")
    return body


def reworded(text: str, content: str, context: str) -> str:
    """The note with another content and context. Its frontmatter and its relations stay.

    Invalid if the content leaves something open, such as a code block.
    """
    note = read_note(text.encode("utf-8", "surrogatepass"), "")
    start, _, end = _sections(note).get("relations", (0, 0, 0))
    relations = note.text[start:end].strip()
    body = body_of(content, context)
    if relations:
        body += f"\n{relations}\n"
    if "\r\n" in text:
        body = body.replace("\r\n", "\n").replace("\n", "\r\n")
    newline = "\r\n" if "\r\n" in text else "\n"
    return f"{text[: note.header.body_start]}{newline if note.header.body_start else ''}{body}"


def with_tie(text: str, relationship: str, link: str) -> str:
    """The note with a relation more, behind those it has."""
    return with_lines(
        text, read_page("", text), "relations", [bond_line(relationship, f"[[{link}]]", {})]
    )


def slug_of(content: str) -> str:
    """A file name from the first words of a text."""
    slug = "-".join(next(filter(None, map(words_in_order, content.split("\n"))), ["entry"]))
    if len(slug.encode()) > _MOST_SLUG:
        slug = slug.encode()[:_MOST_SLUG].decode(errors="ignore")
        slug = slug.rpartition("-")[0] or slug
    return legal_name(slug)
