"""`delete_note` and `move_note` of basic-memory, for a note or a whole directory.

Both raise Invalid, whose message is the whole answer, for a directory without notes. A move that is
refused for its destination is an answer, not an error, unless a note is there.
"""

from __future__ import annotations

from typing import Final

from simplemem.errors import AlreadyExists, Conflict, Invalid, NotFound
from simplemem.models import Filter, Memory
from simplemem.note.names import name_of, path_of
from simplemem.profiles.basic_memory import texts
from simplemem.profiles.basic_memory.adapter import basic_memory_tool
from simplemem.profiles.basic_memory.answers import (
    DeletedDirectory,
    DeletedNote,
    FailedDirectoryDelete,
    FailedMove,
    MovedDirectory,
    MovedNote,
)
from simplemem.profiles.basic_memory.arguments import DeleteNoteArguments, MoveNoteArguments
from simplemem.profiles.basic_memory.permalinks import is_outside
from simplemem.profiles.basic_memory.project import Project, Result
from simplemem.store import Draft
from simplemem.tools.session import without_offer
from simplemem.tools.tool import Reply

_EMPTY_DIRECTORY: Final = "Directory not found or empty: no files matched"


def _directory_of(identifier: str) -> str:
    """Return the path of a directory that a call names, without slashes and `memory://`."""
    return identifier.removeprefix("memory://").strip("/")


def _notes_below(project: Project, identifier: str) -> list[str]:
    """Return the names of all notes in a directory and its subdirectories, sorted.

    [] for the root of the project.
    """
    start = _directory_of(identifier) + "/"
    notes = project.store.extension.list_all(Filter(prefix=start))
    return [note.name for note in notes if note.path.startswith(start)]


# --- delete_note


@basic_memory_tool("Delete Note", writes=True, destructive=True, idempotent=False, deletes=True)
def delete_note(project: Project, arguments: DeleteNoteArguments) -> Reply[Result]:
    """Put a note, or with is_directory all notes of a directory, in the trash. The answer is
    false where there is no such note.
    """
    if arguments.is_directory:
        return _delete_directory(project, arguments)

    try:
        note = project.find(arguments.identifier)
        answer = DeletedNote.of(project.row(note), deleted=True)
        _delete(project, note)
    except NotFound:
        answer = DeletedNote(deleted=False)

    # The text format answers with a Boolean.
    if arguments.output_format == "text":
        return Reply(str(answer.deleted).lower(), {"result": answer.deleted})
    return project.reply("", answer)


def _delete(project: Project, note: Memory) -> None:
    """Move a note to the trash, and record in the session that it is gone.

    Raises Conflict if the client read another text of it in this session, ReadOnly, and NotFound if
    it was deleted meanwhile, unless with the text that the client read: then nothing happens.
    """
    expected = project.session.known_hash(note.path)
    try:
        deleted = project.store.delete(name_of(note.path), if_sha256=expected, **project.caller)
    except Conflict as error:
        hint = "Read it again with read_note. If it is still not needed, delete it."
        raise without_offer(error, hint) from None
    project.session.record_step(project.store, deleted.version)


def _delete_directory(project: Project, arguments: DeleteNoteArguments) -> Reply[Result]:
    """Move all notes of a directory to the trash in one step, and return the answer.

    Raises Invalid if it has none.
    """
    identifier = arguments.identifier
    paths = [path_of(name) for name in _notes_below(project, identifier)]
    if not paths:
        failed = FailedDirectoryDelete(
            deleted=False,
            identifier=identifier,
            total_files=0,
            successful_deletes=0,
            deleted_files=[],
            error=_EMPTY_DIRECTORY,
        )
        raise project.refused(texts.empty_deleted_directory(identifier, project.name), failed)

    extension = project.store.extension
    extension.change(
        lambda: [Draft(path, None, extension.bytes_of(path)) for path in paths], **project.caller
    )

    answer = DeletedDirectory(
        deleted=True,
        identifier=identifier,
        total_files=len(paths),
        successful_deletes=len(paths),
        deleted_files=paths,
    )
    return project.reply(texts.deleted_directory(identifier, paths, project.name), answer)


# --- move_note


@basic_memory_tool("Move Note", writes=True, idempotent=False)
def move_note(project: Project, arguments: MoveNoteArguments) -> Reply[Result]:
    """Move a note to destination_path (archive/Note.md) or, under its own name, into
    destination_folder; with is_directory a whole directory. Links to it follow.
    """
    wrong_destination = _check_destination(arguments)
    if wrong_destination is not None:
        error, text = wrong_destination
        return project.reply(text, _failed_move(arguments, error))
    if arguments.is_directory:
        return _move_directory(project, arguments)

    note = _find_source(project, arguments)
    destination = _destination_path(arguments, note)
    if destination == note.path:
        text = texts.same_destination(arguments.identifier)
        return project.reply(text, _failed_move(arguments, "SAME_PATH", destination))

    try:
        moved = project.store.move(note.name, name_of(destination), **project.caller)
    except NotFound:
        raise _missing_source(project, arguments, destination) from None
    except AlreadyExists:
        text = texts.destination_exists(arguments.identifier, destination)
        failed = _failed_move(arguments, "Note already exists", destination)
        raise project.refused(text, failed) from None
    project.session.record_step(project.store, moved.version)

    row = project.row(project.store.read(moved.name))
    answer = MovedNote.of(row, moved=True, source=arguments.identifier, destination=destination)
    text = texts.moved_note(arguments.identifier, destination, row["permalink"], project.name)
    return project.reply(text, answer)


def _check_destination(arguments: MoveNoteArguments) -> tuple[str, str] | None:
    """Return the error code and the text for a refused destination, None for a good one.

    The vault is not read: whether the destination is taken is not checked.
    """
    path = arguments.destination_path
    folder = arguments.destination_folder
    destination = _named_destination(arguments)

    if arguments.is_directory and folder:
        return "INVALID_PARAMETERS", texts.FOLDER_FOR_DIRECTORY
    if path and folder:
        return "INVALID_PARAMETERS", texts.TWO_DESTINATIONS
    if not path and folder is None:
        return "MISSING_DESTINATION", texts.MISSING_DESTINATION
    if is_outside(destination or "") or path.startswith("/"):
        return "SECURITY_VALIDATION_ERROR", texts.refused_destination(destination)

    if path and not arguments.is_directory:
        return _check_file_name(path)
    return None


def _check_file_name(path: str) -> tuple[str, str] | None:
    """Return the error code and the text if the path of a note does not end in `.md`, else None."""
    file_name = path.rpartition("/")[2]
    if "." not in file_name:
        return "FILE_EXTENSION_REQUIRED", texts.missing_extension(path)
    if not file_name.endswith(".md"):
        return "FILE_EXTENSION_MISMATCH", texts.other_extension(path)
    return None


def _named_destination(arguments: MoveNoteArguments) -> str | None:
    """Return the destination as the call names it; None if it names none."""
    return arguments.destination_path or arguments.destination_folder or None


def _failed_move(
    arguments: MoveNoteArguments, error: str, destination: str | None = None
) -> FailedMove:
    """Return the answer of a move that moved nothing; `error` is its code or reason.

    Without a `destination`, it has the one that the call names.
    """
    return FailedMove(
        moved=False,
        source=arguments.identifier,
        destination=destination or _named_destination(arguments),
        error=error,
    )


def _find_source(project: Project, arguments: MoveNoteArguments) -> Memory:
    """Return the note to move.

    Raises Invalid if there is none, and Ambiguous if several notes have the title.
    """
    try:
        return project.find(arguments.identifier)
    except NotFound:
        raise _missing_source(project, arguments) from None


def _missing_source(
    project: Project, arguments: MoveNoteArguments, destination: str | None = None
) -> Invalid:
    """Return the error for a note to move that does not exist. It is not raised."""
    error = f"Entity not found: '{arguments.identifier}'"
    text = texts.move_of_missing_note(arguments.identifier)
    return project.refused(text, _failed_move(arguments, error, destination))


def _destination_path(arguments: MoveNoteArguments, note: Memory) -> str:
    """Return the path that a note gets: `destination_path`, or its file name in the folder.

    The folder is `destination_folder`; "" is the root of the project.
    """
    if arguments.destination_path:
        return arguments.destination_path
    folder = (arguments.destination_folder or "").strip("/")
    file_name = note.path.rpartition("/")[2]
    return f"{folder}/{file_name}".lstrip("/")


def _move_directory(project: Project, arguments: MoveNoteArguments) -> Reply[Result]:
    """Move all notes of a directory in one step, and return the answer.

    Raises Invalid if it has none, AlreadyExists if a new path is taken, and ReadOnly.
    """
    source = arguments.identifier
    names = _notes_below(project, source)
    if not names:
        text = texts.empty_source_directory(source, project.name)
        raise project.refused(text, _failed_move(arguments, _EMPTY_DIRECTORY))

    old_prefix = _directory_of(source)
    new_prefix = arguments.destination_path.strip("/")
    new_paths = {
        path_of(name): path_of(new_prefix + name.removeprefix(old_prefix)) for name in names
    }
    moved_notes = project.store.extension.move(new_paths, **project.caller)
    project.session.record_step(project.store, moved_notes[0].version)

    destination = _named_destination(arguments)
    answer = MovedDirectory(
        moved=True,
        source=source,
        destination=destination,
        total_files=len(names),
        successful_moves=len(names),
    )
    paths = [note.path for note in moved_notes]
    return project.reply(texts.moved_directory(source, destination, paths, project.name), answer)
