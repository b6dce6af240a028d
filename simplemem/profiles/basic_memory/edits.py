"""`write_note` and `edit_note` of basic-memory.

Both raise Invalid, whose message is the whole answer, if the note is not in the state that the
client expects, or outside the project. They raise Unreadable if its frontmatter cannot be parsed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from simplemem.errors import AlreadyExists, Invalid, NotFound
from simplemem.models import Memory
from simplemem.note.names import legal_name, path_of
from simplemem.note.note import read_note
from simplemem.note.properties import set_property
from simplemem.note.tag_requests import without_header
from simplemem.note.words import newline_of
from simplemem.profiles.basic_memory import texts
from simplemem.profiles.basic_memory.adapter import basic_memory_tool
from simplemem.profiles.basic_memory.answers import (
    Answer,
    EditedNote,
    ExistingNote,
    FailedEdit,
    FailedWrite,
    RefusedIdentifier,
    StaleEdit,
    StaleWrite,
    WrittenNote,
)
from simplemem.profiles.basic_memory.arguments import (
    EditNoteArguments,
    WriteNoteArguments,
    as_list,
)
from simplemem.profiles.basic_memory.permalinks import is_outside
from simplemem.profiles.basic_memory.project import Project, Result
from simplemem.tools.arguments import from_json
from simplemem.tools.tool import Reply

_REVISION_CONFLICT: Final = "NOTE_REVISION_CONFLICT"
_SECURITY_ERROR: Final = "SECURITY_VALIDATION_ERROR"
_FORBIDDEN_IN_TITLE: Final = re.compile(r'[<>:"|?*/\\]++')


# --- write_note


@dataclass(frozen=True)
class NewNote:
    """The note that a call of `write_note` describes.

    Attributes:
        name: Its name: the directory and the title, made legal.
        path: The path of its file.
        content: Its text without frontmatter.
        properties: Its properties, with the title and the tags, and with a permalink only if the
            content has one.
        tags: Its tags, without #.
    """

    name: str
    path: str
    content: str
    properties: Mapping[str, Any]
    tags: list[str]


@basic_memory_tool("Write Note", writes=True, destructive=True, idempotent=False)
def write_note(project: Project, arguments: WriteNoteArguments) -> Reply[Result]:
    """Make a Markdown note in a directory ("/" is the root). Facts are `- [category] text
    #tag`, links `- relation [[Title]]`. A note that is there stays as it is, unless overwrite
    is true; expected_checksum then asks that it is the one you read.
    """
    if is_outside(arguments.directory):
        answer = FailedWrite(title=arguments.title, action="created", error=_SECURITY_ERROR)
        raise project.refused(texts.refused_directory(arguments.directory), answer)

    new_note = _read_new_note(arguments)
    may_replace = bool(arguments.overwrite)
    is_update = may_replace and project.store.extension.exists(new_note.path)
    replaced = ""
    if is_update:
        replaced = _replace_note(project, arguments, new_note)
    else:
        _create_note(project, arguments, new_note)

    verb = "Updated" if is_update else "Created"
    note = project.store.read(new_note.name)
    row = project.row(note)
    answer_text = texts.written_note(row, project.name, verb, new_note.tags)
    written = WrittenNote.of(row, action=verb.lower(), similar_notes=[])
    return project.reply(answer_text, written, notice=replaced)


def _read_new_note(arguments: WriteNoteArguments) -> NewNote:
    """Return the note that a call describes; nothing is written.

    Frontmatter at the start of its content takes precedence over `metadata` and `note_type`, but
    not over `title` and `tags`.
    """
    title = legal_name(_FORBIDDEN_IN_TITLE.sub("-", arguments.title).strip("-"))
    directory = arguments.directory.removeprefix("./").strip("/")
    name = title
    if directory:
        name = f"{directory}/{title}"

    content, content_properties, _ = without_header(arguments.content, None)
    metadata = arguments.metadata or {}
    sent_tags = arguments.tags or content_properties.pop("tags", None) or metadata.get("tags")
    tags = _read_tags(sent_tags or [])

    properties = metadata | {"type": arguments.note_type} | content_properties
    properties["title"] = arguments.title
    if tags:
        properties["tags"] = tags
    return NewNote(name, path_of(name), content, properties, tags)


def _read_tags(value: object) -> list[str]:
    """Return the tags of a list or of a text with commas or JSON, without their #."""
    tags: list[str] = []
    for item in as_list(from_json(value)):
        for part in str(item).split(","):
            tag = part.strip().lstrip("#")
            if tag:
                tags.append(tag)
    return tags


def _create_note(project: Project, arguments: WriteNoteArguments, new_note: NewNote) -> None:
    """Create a note, and record in the session that the client knows it.

    Links in other notes that would lead to it are rewritten, so that they keep their targets. A
    repeated call changes nothing. Raises Invalid if another note has its path, TooLong if it is too
    long, and ReadOnly.
    """
    permalink = project.address(new_note.path)
    properties = {"permalink": permalink, **new_note.properties}
    try:
        created = project.store.create(
            new_note.name, new_note.content, properties, **project.caller
        )
    except AlreadyExists:
        if project.store.extension.exists(new_note.path):
            raise _already_exists(project, arguments, new_note) from None
        # The name is free, but existing links would lead to the new note: the store qualifies them.
        created = project.store.create(
            new_note.name, new_note.content, properties, overwrite=True, **project.caller
        )
    project.session.record_whole_write(created)


def _already_exists(project: Project, arguments: WriteNoteArguments, new_note: NewNote) -> Invalid:
    """Return, and do not raise, the error for a note that exists and is not to be overwritten."""
    default_permalink = project.address(new_note.path)
    permalink = str(new_note.properties.get("permalink", default_permalink))
    answer = ExistingNote(
        title=arguments.title,
        permalink=permalink,
        file_path=new_note.path,
        action="conflict",
        error="NOTE_ALREADY_EXISTS",
    )
    text = texts.existing_note(arguments.title, permalink, project.name)
    return project.refused(text, answer)


def _replace_note(project: Project, arguments: WriteNoteArguments, new_note: NewNote) -> str:
    """Replace the content of a note, and set its new properties; its other properties stay.

    Returns a sentence on what was replaced if the client had not read it, else "". Raises Invalid
    if the note has another text than the client expects or has read, and Unreadable if its
    frontmatter cannot be parsed.
    """
    body = f"\n{new_note.content}" if new_note.content else ""

    def replace_content(text: str) -> str:
        """Return the new text of the note."""
        header = text[: read_note(text.encode()).header.body_start]
        return _with_properties(header + body, new_note.properties)

    def stale(current: Memory) -> Invalid:
        """Return the error for a note that has another checksum than the client expects."""
        row = project.row(current)
        text = texts.stale_write(row["title"], row["file_path"], current.sha256, project.name)
        answer = StaleWrite.of(
            row,
            checksum=None,
            action="conflict",
            error=_REVISION_CONFLICT,
            current_checksum=current.sha256,
        )
        return project.refused(text, answer)

    return project.replace(
        project.store.read(new_note.name),
        replace_content,
        expected=arguments.expected_checksum,
        on_conflict=stale,
    )


def _with_properties(text: str, properties: Mapping[str, Any]) -> str:
    """Return the text of a note with these properties set.

    Raises Invalid for a key or value that frontmatter cannot contain, and Unreadable if the
    frontmatter cannot be changed.
    """
    for key, value in properties.items():
        text = set_property(text, key, value)
    return text


# --- edit_note


@basic_memory_tool("Edit Note", writes=True, destructive=True, idempotent=False)
def edit_note(project: Project, arguments: EditNoteArguments) -> Reply[Result]:
    """Change part of a note. append and prepend make it where there is none; find_replace wants
    find_text to stand as often as expected_replacements (1) says; the section operations want
    the heading as it is written. metadata sets properties too.
    """
    _check_required(arguments)
    created = False
    try:
        note = _edit_existing(project, arguments)
    except NotFound:
        note = _create_missing(project, arguments)
        created = True

    row = project.row(note)
    text = texts.edited_note(row, project.name, arguments, created=created)
    answer = EditedNote.of(row, operation=arguments.operation, file_created=created)
    return project.reply(text, answer)


def _check_required(arguments: EditNoteArguments) -> None:
    """Raise Invalid if the operation of a call lacks the argument that it needs."""
    missing = ""
    if arguments.operation == "find_replace" and not arguments.find_text:
        missing = "find_text"
    if "section" in arguments.operation and not arguments.section:
        missing = "section"
    if missing:
        raise Invalid(f"{missing} parameter is required for {arguments.operation} operation")


def _properties_to_set(arguments: EditNoteArguments) -> dict[str, Any]:
    """Return the properties that a call sets; the title and the permalink of a note stay."""
    metadata = arguments.metadata or {}
    return {
        key: value for key, value in metadata.items() if key.lower() not in ("title", "permalink")
    }


def _edit_existing(project: Project, arguments: EditNoteArguments) -> Memory:
    """Edit the note of a call, and return the changed note.

    Raises NotFound if there is none, Ambiguous if several notes have the title, Invalid if the
    edit is not possible or the note has another checksum than expected, and Unreadable if its
    frontmatter cannot be parsed.
    """
    properties = _properties_to_set(arguments)

    def edit(text: str) -> str:
        """Return the edited text with the properties of the call."""
        return _with_properties(_edited_text(project, arguments, text), properties)

    def stale(current: Memory) -> Invalid:
        """Return the error for a note that has another checksum than the client expects."""
        answer = StaleEdit.of(
            project.row(current),
            checksum=None,
            operation=arguments.operation,
            file_created=False,
            error=_REVISION_CONFLICT,
            current_checksum=current.sha256,
        )
        return project.refused(texts.stale_edit(arguments.identifier, current.sha256), answer)

    return project.rewrite(
        project.find(arguments.identifier),
        edit,
        expected=arguments.expected_checksum,
        on_conflict=stale,
    )


def _create_missing(project: Project, arguments: EditNoteArguments) -> Memory:
    """Create the note that `append` or `prepend` names, and return it.

    Raises Invalid for other operations, for a name outside the project, and if the client expects
    a checksum.
    """
    identifier = arguments.identifier
    path = identifier.removeprefix("memory://").removeprefix(project.prefix)
    name = path.removesuffix(".md").strip("/")

    if is_outside(name):
        refused = RefusedIdentifier(content=arguments.content, error=_SECURITY_ERROR)
        raise project.refused(texts.refused_identifier(identifier), refused) from None
    if arguments.expected_checksum:
        text = texts.edit_of_deleted_note(identifier)
        raise _failed_edit(project, arguments, text, _REVISION_CONFLICT) from None
    if arguments.operation not in ("append", "prepend"):
        text = texts.edit_of_missing_note(identifier, project.name)
        error = f"Entity not found: '{identifier}'"
        raise _failed_edit(project, arguments, text, error) from None

    properties = {
        "title": name.rpartition("/")[2],
        "type": "note",
        "permalink": project.address(name),
        **_properties_to_set(arguments),
    }
    created = project.store.create(name, arguments.content, properties, **project.caller)
    return project.store.read(created.name)


def _failed_edit(project: Project, arguments: EditNoteArguments, text: str, error: str) -> Invalid:
    """Return, and do not raise, the error for an edit that changed nothing.

    `text` is its text for the text format, and `error` its reason for JSON.
    """
    answer: Answer = FailedEdit(operation=arguments.operation, file_created=False, error=error)
    return project.refused(text, answer)


def _edited_text(project: Project, arguments: EditNoteArguments, text: str) -> str:
    """Return the text of a note after the operation of a call.

    Line ends in the call become those of the note. Raises Invalid if the text does not contain what
    is to be replaced, or the section, exactly as often as expected.
    """
    newline = newline_of(text)
    content = re.sub(r"\r?\n", newline, arguments.content)
    if arguments.operation == "append":
        return _appended(text, content, newline)
    if arguments.operation == "prepend":
        start = read_note(text.encode()).content_start
        first_lines = content.rstrip("\r\n") + newline
        return text[:start] + first_lines + text[start:]
    if arguments.operation == "find_replace":
        find = re.sub(r"\r?\n", newline, arguments.find_text or "")
        return _replaced(project, arguments, text, find, content)

    section = _find_section(project, arguments, text)
    return _with_section_edit(arguments, text, section, content)


def _with_section_edit(
    arguments: EditNoteArguments, text: str, section: Section, content: str
) -> str:
    """Return a text with `content` before or after a heading, or in place of what is below it.

    The operation of the call says which. After a heading means directly below its line. If the
    content replaces what is below the heading and begins with the heading, this is not repeated.
    """
    newline = newline_of(text)
    empty_line = newline * 2
    text_before = text[: section.start]
    heading = text[section.start : section.heading_end]
    text_below = text[section.heading_end :]

    paragraph = content.rstrip() + empty_line
    if arguments.operation == "insert_before_section":
        start = text_before.rstrip("\r\n") + empty_line
        return start + paragraph + heading + text_below
    if arguments.operation == "insert_after_section":
        rest = text_below.lstrip("\r\n")
        return text_before + heading + newline + paragraph + rest

    # The content may begin with the heading itself, which is not repeated.
    body = content
    first_line, _, rest = content.partition(newline)
    if first_line.strip() == section.title:
        body = rest
    next_section = text[section.end :]
    return text_before + heading + newline + body + newline + next_section


def _appended(text: str, content: str, newline: str) -> str:
    """Return a text with content at its end, on a line of its own."""
    if text and not text.endswith("\n"):
        text += newline
    return text + content


def _replaced(
    project: Project, arguments: EditNoteArguments, text: str, find: str, content: str
) -> str:
    """Return a text with `content` in place of each occurrence of `find`.

    Raises Invalid if there are not as many occurrences as the call expects, which is 1 by default.
    If the body alone has that many, occurrences in the frontmatter stay.
    """
    expected = arguments.expected_replacements
    if expected is None:
        expected = 1

    start = read_note(text.encode()).content_start
    if text[start:].count(find) == expected:
        return text[:start] + text[start:].replace(find, content)
    count = text.count(find)
    if count == expected:
        return text.replace(find, content)

    find_text = arguments.find_text or ""
    if count == 0:
        message = texts.text_to_replace_missing(arguments.identifier, project.name, find_text)
        error = f"Text to replace not found: '{find}'"
        raise _failed_edit(project, arguments, message, error)
    message = texts.wrong_replacement_count(find_text, expected, count)
    error = f"Expected {expected} occurrences of '{find}', but found {count}"
    raise _failed_edit(project, arguments, message, error)


@dataclass(frozen=True)
class Section:
    """A section of a note, with offsets in the text of the note.

    Attributes:
        title: Its heading with the number signs, such as `## Tasks`.
        start: Where the heading begins.
        heading_end: Where the line of the heading ends.
        end: Where the text below the heading ends.
    """

    title: str
    start: int
    heading_end: int
    end: int


def _find_section(project: Project, arguments: EditNoteArguments, text: str) -> Section:
    """Return the section with the heading that the call names; of level 2 if it names no level.

    It ends at the next heading of its level or above, or with `replace_subsections` false at the
    next heading of any level. Raises Invalid if there is none, or several.
    """
    title = (arguments.section or "").strip()
    if not title.startswith("#"):
        title = f"## {title}"

    headings = read_note(text.encode()).body.headings
    matches = []
    for number, heading in enumerate(headings):
        heading_text = text[heading.start : heading.end]
        is_match = heading_text.strip() == title
        if is_match:
            matches.append(number)
    if not matches:
        error = f"Section '{title}' not found in document"
        message = texts.missing_section(arguments.identifier, project.name, error)
        raise _failed_edit(project, arguments, message, error)
    if len(matches) > 1:
        error = f"Multiple sections found with header '{title}'"
        message = texts.duplicate_section(arguments.identifier)
        raise _failed_edit(project, arguments, message, error)

    heading = headings[matches[0]]
    includes_subsections = arguments.replace_subsections is not False
    end = len(text)
    for following in headings[matches[0] + 1 :]:
        if not includes_subsections or following.level <= heading.level:
            end = following.start
            break
    return Section(title, heading.start, heading.end, end)
