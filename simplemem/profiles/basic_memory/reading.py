"""`read_note` of basic-memory: a note, some of its lines, or notes like the one that is missing.

A missing note, or a name outside the project, is an answer, not an error. The session records that
the client read the note, unless only its checksum was returned. Raises Invalid for a range of lines
that the note does not have, and Ambiguous if several notes have the title.
"""

from __future__ import annotations

import re
from typing import Final

from simplemem.errors import Invalid, NotFound
from simplemem.models import Memory
from simplemem.profiles.basic_memory import texts
from simplemem.profiles.basic_memory.adapter import basic_memory_tool
from simplemem.profiles.basic_memory.answers import (
    MissingNote,
    MissingNoteWithRelated,
    NoteAnswer,
    NoteLines,
    NoteMetadata,
    ReadNote,
    RefusedIdentifier,
)
from simplemem.profiles.basic_memory.arguments import MAX_HITS, ReadNoteArguments, page_slice
from simplemem.profiles.basic_memory.permalinks import is_outside, slug
from simplemem.profiles.basic_memory.project import Project, Result
from simplemem.tools.render import index_line
from simplemem.tools.tool import Data, Reply

_SEPARATOR: Final = re.compile(r"[/_-]")


@basic_memory_tool("Read Note")
def read_note(project: Project, arguments: ReadNoteArguments) -> Reply[Result]:
    """Read a note by its title, permalink, path or memory:// address; all of it, the lines from
    start_line to end_line, or with include_content=false its checksum alone. Where none is
    called so, the nearest are named.
    """
    identifier = arguments.identifier
    if identifier.startswith("/") or is_outside(identifier):
        refused = RefusedIdentifier(error="SECURITY_VALIDATION_ERROR")
        return project.reply(texts.refused_identifier(identifier), refused)

    try:
        note = project.find(identifier)
    except NotFound:
        return _answer_missing(project, arguments)

    row = project.row(note)
    if not arguments.include_content:
        return project.reply(texts.note_metadata(row), NoteMetadata.of(row))

    project.session.record_read(note)
    if arguments.start_line is not None or arguments.end_line is not None:
        return _answer_lines(project, arguments, note)

    content = note.text if arguments.include_frontmatter else note.content
    return project.reply(note.text, ReadNote.of(row, content=content))


def _answer_missing(project: Project, arguments: ReadNoteArguments) -> Reply[Result]:
    """Return the answer for a note that does not exist, with similar notes.

    These are a page of the notes that a search finds by the words of the identifier; none if no
    note contains the words. A notice says if the index is incomplete.
    """
    identifier = arguments.identifier
    page = page_slice(arguments)
    words = _SEPARATOR.sub(" ", slug(identifier))
    limit = min(MAX_HITS, page.stop)
    found = project.store.search(words, mode="text", limit=limit)

    rows: list[Data] = []
    if not found.only_nearest:
        for hit in found.hits[page]:
            note = project.store.read(hit.name)
            rows.append(project.row(note))

    notice = index_line(found.index)
    text = texts.missing_note(identifier, project.name, rows, index_is_complete=not notice)
    missing = MissingNote(error="NOTE_NOT_FOUND", message=f"Note not found: {identifier}")
    if rows:
        related = [NoteAnswer.of(row) for row in rows]
        missing = MissingNoteWithRelated.of(missing.as_data(), related_results=related)
    return project.reply(text, missing, notice)


def _answer_lines(project: Project, arguments: ReadNoteArguments, note: Memory) -> Reply[Result]:
    """Return a range of a note's lines, counted from 1 with its frontmatter, and the next range.

    An end past the last line means the last line. Raises Invalid for a range that ends before it
    starts, or that starts past the end.
    """
    lines = note.text.splitlines()
    total = len(lines)
    first = arguments.start_line or 1
    if arguments.end_line and arguments.end_line < first:
        raise Invalid(f"end_line must be >= start_line, got {arguments.end_line}")
    if first > total:
        raise Invalid(f"start_line {first} is past the end of the document ({total} lines)")

    last = min(arguments.end_line or total, total)
    has_more = last < total
    next_range = None
    if has_more:
        next_range = (last + 1, min(2 * last - first + 1, total))

    page = lines[first - 1 : last]
    answer = NoteLines.of(
        project.row(note),
        content="\n".join(page),
        frontmatter=None,
        start_line=first,
        end_line=last,
        total_lines=total,
        has_more=has_more,
        next_start_line=next_range[0] if next_range else None,
        next_end_line=next_range[1] if next_range else None,
    )
    return project.reply(texts.note_lines(page, first, total, next_range), answer)
