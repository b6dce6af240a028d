"""One thing that was learned, and how it is a note: `knowledge/<type>/<slug>.md`. Pure.

The header holds what machines ask for, the body what was learned, `## Context` where that was, `## Relations` what it has
to do with the others (capabilities.md §4.4). A person may write such a note by hand, with as little of this as they like.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from simplemem.errors import Invalid
from simplemem.kinds.graph import spelling
from simplemem.kinds.kind import Kind
from simplemem.note.names import base_name, legal_name, name_of
from simplemem.note.note import Note, read_note
from simplemem.note.tags import tag_names
from simplemem.note.words import well_formed, words_in_order

FOLDER: Final = "knowledge"
KIND: Final = "knowledge"
TYPES: Final = ("decision", "error", "solution", "pattern", "insight")
UNTOLD_TYPE: Final = "insight"  # of a note that does not say, and lies in no folder that does
SUPERSEDED: Final = "superseded"
MOST_CHARACTERS: Final = 10_000
_SECTIONS: Final = ("context", "relations")
_MOST_SLUG: Final = 60
_MOST_HEADLINE: Final = 120
_FENCED: Final = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_HIDDEN: Final = re.compile(r"%%.*?(?:%%|\Z)", re.DOTALL)
_MARKUP: Final = re.compile(
    r"!\[\[[^\[\]]*\]\]|\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]|!?\[([^\[\]]*)\]\([^()\s]*\)|</?[A-Za-z][^<>\n]*>|(\*\*|__|==)"
)
_BULLET: Final = re.compile(r"^[ \t]*+[-*+][ \t]([^\n]*)", re.MULTILINE)
_ODD_LINE_ENDS: Final = re.compile(r"\r\n?")
# What a text may have left open, and what closes it: else it would swallow the sections that follow.
_CLOSINGS: Final = ("", "\n```", "\n~~~", "\n-->", " -->", "\n$$", "\n%%", "\n````", "\n~~~~")


class EntryLink(NamedTuple):
    """A relation as it stands under `## Relations`: its words, and the link behind them."""

    relationship: str
    target: str


@dataclass(frozen=True, slots=True)
class KnowledgeEntry:
    """One thing that was learned. An ordinary note that is looked at in the same way has its name for an id, and no
    confidence."""

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
    ties: tuple[EntryLink, ...] = ()
    status: str = ""
    superseded_by: str = ""
    superseded_at: str = ""
    superseded_reason: str = ""
    problem: str = ""
    is_typed: bool = True  # whether its header says its type
    is_own: bool = True

    @property
    def text(self) -> str:
        """What it says: content and context."""
        return f"{self.content}\n\n{self.context}" if self.context else self.content

    @property
    def headline(self) -> str:
        """Its first line without the marks of Markdown, cut where it is long."""
        first = next((line for line in plain(self.content).split("\n") if line.strip(" \t\r#>*-|")), "")
        said = " ".join(first.strip().lstrip("#>*-| \t").split()) or base_name(self.path)
        return said if len(said) <= _MOST_HEADLINE else said[:_MOST_HEADLINE].rsplit(" ", 1)[0] + "…"

    @property
    def is_superseded(self) -> bool:
        return self.status.casefold() == SUPERSEDED or bool(self.superseded_by)


def plain(text: str) -> str:
    """A text as it is read: links are what they show; code blocks, comments, tags of HTML and marks of emphasis are
    gone."""
    return _MARKUP.sub(lambda found: found[1] or found[2] or "", _HIDDEN.sub("", _FENCED.sub("", text)))


# -- reading


def read_entry(path: str, text: str, sha256: str) -> KnowledgeEntry:
    """The entry that a note is."""
    note = read_note(text.encode("utf-8", "surrogatepass"), sha256)
    content, context, relations = _parts(note)
    told = note.string("context")
    name = name_of(path)
    return KnowledgeEntry(
        id=note.string("id") or name,
        type=_type_of(path, note),
        content=content,
        context=context or (spelling.read(told) if told else ""),
        confidence=_share(note.header.get("confidence")),
        verified=note.header.get("verified") is True,
        tags=tuple(tag_names(note.tags)),
        created=note.string("created") or "",
        modified=note.string("modified") or note.string("created") or "",
        name=name,
        path=path,
        sha256=sha256,
        ties=tuple(_ties(relations)),
        status=note.string("status") or "",
        superseded_by=_linked(note.string("superseded_by") or ""),
        superseded_at=note.string("superseded_at") or "",
        superseded_reason=note.string("superseded_reason") or "",
        problem=note.problem or "",
        is_typed=note.string("knowledge_type") is not None,
        is_own=LEARNED.holds(path, note.string("type")),
    )


LEARNED: Final[Kind[KnowledgeEntry]] = Kind(
    FOLDER,
    KIND,
    read=lambda read: read_entry(read.path, read.text, read.sha256),
    place=lambda entry: (entry.created, entry.path),
    twin=lambda entry: entry.id if entry.id != entry.name else None,
)


def entry_of_note(path: str, text: str, sha256: str, created: str, modified: str) -> KnowledgeEntry:
    """An ordinary note, to be looked at in the same way: all of its body is what it says."""
    note = read_note(text.encode("utf-8", "surrogatepass"), sha256)
    name = name_of(path)
    links = dict.fromkeys(link.target.split("#", 1)[0] for link in note.links if link.target)
    return KnowledgeEntry(
        id=name,
        type=note.string("type") or (path.split("/", 1)[0] if "/" in path else "note"),
        content=note.content.strip(),
        context="",
        confidence=_share(note.header.get("confidence")),
        verified=note.header.get("verified") is True,
        tags=tuple(tag_names(note.tags)),
        created=created,
        modified=modified,
        name=name,
        path=path,
        sha256=sha256,
        ties=tuple(EntryLink("links to", target) for target in links if target),
        status=note.string("status") or "",
        superseded_by=_linked(note.string("superseded_by") or ""),
        problem=note.problem or "",
        is_own=False,
    )


def _parts(note: Note) -> tuple[str, str, str]:
    """What was learned, its context and its relations: the last section of each name; whatever else stands there belongs to
    what was learned."""
    headings = note.body.headings
    spans: dict[str, tuple[int, int, int]] = {}
    for number, heading in enumerate(headings):
        key = heading.text.strip().casefold()
        if heading.level == 2 and key in _SECTIONS:
            end = next((later.start for later in headings[number + 1 :] if later.level <= 2), len(note.text))
            spans[key] = heading.start, heading.end, end
    kept, at = [], note.header.body_start
    for start, _, end in sorted(spans.values()):
        kept.append(note.text[at:start])
        at = max(at, end)
    kept.append(note.text[at:])
    said = {key: note.text[begin:end] for key, (_, begin, end) in spans.items()}
    content = "\n\n".join(part for each in kept if (part := each.strip()))
    return content, said.get("context", "").strip(), said.get("relations", "")


def _type_of(path: str, note: Note) -> str:
    told = note.string("knowledge_type")
    if told:
        return told
    folder = path.rsplit("/", 2)[-2].casefold() if "/" in path else ""
    return next((kind for kind in TYPES if folder in (kind, f"{kind}s")), UNTOLD_TYPE)


def _share(value: Any) -> float | None:
    """A confidence: a number from 0 to 1, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        return None
    return float(value)


def _ties(relations: str) -> list[EntryLink]:
    found = []
    for bullet in _BULLET.finditer(relations):
        said, _ = spelling.split_attributes(bullet[1].strip())
        kind: str | None = None
        if said.startswith('"'):
            kind, end = spelling.literal_in(said)
            said = said[end:].lstrip() if kind is not None else said
        linked = spelling.link_in(said)
        if linked is not None:
            found.append(
                EntryLink(kind if kind is not None else linked[0] or "relates_to", spelling.target_of(linked[1]))
            )
    return found


def _linked(value: str) -> str:
    """The target of a property that is a link."""
    found = re.fullmatch(r"\[\[([^\[\]]+)\]\]", value.strip())
    return spelling.target_of(found[1]) if found else value.strip()


# -- writing


def properties_of(id_: str, kind: str, confidence: float, verified: bool, tags: Sequence[str]) -> dict[str, Any]:
    """The header of a new entry."""
    sure = int(confidence) if confidence in (0, 1) else confidence
    return {"tags": list(tags), "id": id_, "knowledge_type": kind, "confidence": sure, "verified": verified}


def body_of(content: str, context: str) -> tuple[str, str, dict[str, Any]]:
    """The body of a new entry that reads back as the same, what it then says (a code block left open is closed), and what
    must stand in the header because no section can hold it."""
    for closing in _CLOSINGS:
        said = content + closing
        for held, body in _bodies(said, context):
            read = _probed(body)
            if read[:2] == (said, "" if held else context) and _is_open(body):
                return body, said, {"context": spelling.spell(context)} if held else {}
    raise Invalid(
        "the content leaves something open that would swallow what follows it",
        hint="Close the code block, comment or formula in it.",
    )


def _bodies(content: str, context: str) -> list[tuple[bool, str]]:
    """The ways a body may be written, the plainest first; True where the context is not in it."""
    both = f"{content}\n\n## Context\n\n{context}\n"
    gap = "\n" if context else ""
    return [
        *([(False, f"{content}\n")] if not context else []),
        *([(False, both)] if context else []),
        (False, f"{both}{gap}## Relations\n"),
        (True, f"{content}\n\n## Context\n\n## Relations\n"),
    ]


def _is_open(body: str) -> bool:
    """Whether what is added at the end will be a section of its own."""
    ties = _ties(_probed(f"{body}\n## Relations\n\n- probes [[it]]\n")[2])
    return bool(ties) and ties[-1] == EntryLink("probes", "it")


def _probed(body: str) -> tuple[str, str, str]:
    """How a body will be read below its header."""
    return _parts(read_note(f"---\ntype: {KIND}\n---\n\n{body}".encode("utf-8", "surrogatepass")))


def with_tie(text: str, relationship: str, link: str) -> str:
    """The note with a relation more, behind those it has."""
    note = read_note(text.encode("utf-8", "surrogatepass"))
    newline = "\r\n" if "\r\n" in text else "\n"
    line = f"- {spelling.spell_type(relationship)} [[{link}]]"
    headings = note.body.headings
    last = None
    for number, heading in enumerate(headings):
        if heading.level == 2 and heading.text.strip().casefold() == "relations":
            last = number
    if last is None:
        gap = "" if text.endswith(newline * 2) else newline if text.endswith("\n") else newline * 2
        return f"{text}{gap}## Relations{newline}{newline}{line}{newline}"
    end = next((later.start for later in headings[last + 1 :] if later.level <= 2), len(text))
    section = text[headings[last].end : end]
    said = section.rstrip()
    before = text[: headings[last].end] + said
    after = text[end:]
    first = "" if _BULLET.search(said) else newline
    return f"{before}{newline}{first}{line}{newline}{newline if after else ''}{after}"


def clean_text(text: str, what: str) -> str:
    """A text as it is kept: without blanks around it, its lines ended in one way. Angle brackets stay (SI-35: taking them
    out destroys code); what is too long is refused and never cut."""
    clean = _ODD_LINE_ENDS.sub("\n", text).strip()
    if "\0" in clean or clean != well_formed(clean):
        raise Invalid(f"the {what} holds a character that no note can carry", hint="Leave out NUL and half characters.")
    return clean


def slug_of(content: str) -> str:
    """A file name from the first words of a text."""
    words = words_in_order(next((line for line in content.split("\n") if words_in_order(line)), ""))
    slug = ""
    for word in words:
        longer = f"{slug}-{word}" if slug else word[:_MOST_SLUG]
        if len(longer.encode()) > _MOST_SLUG:
            break
        slug = longer
    return legal_name(slug or "entry")
