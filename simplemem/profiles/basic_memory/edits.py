"""The tools that write: notes are created, edited, moved and deleted by the store."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from simplemem.errors import AlreadyExists, Conflict, Invalid, NotFound
from simplemem.models import Filter, Moved
from simplemem.note.names import legal_name, name_of, path_of
from simplemem.note.note import read_note
from simplemem.note.properties import set_property
from simplemem.note.tag_requests import without_header
from simplemem.note.words import newline_of
from simplemem.profiles.basic_memory.adapter import basic_memory_tool
from simplemem.profiles.basic_memory.arguments import (
    DeleteNoteArguments,
    EditNoteArguments,
    MoveNoteArguments,
    WriteNoteArguments,
    as_list,
)
from simplemem.profiles.basic_memory.project import Project, Result, is_outside, said
from simplemem.store import Draft
from simplemem.tools.arguments import from_json
from simplemem.tools.session import without_offer
from simplemem.tools.tool import Data, Reply


def _with(text: str, properties: Mapping[str, Any]) -> str:
    for key, value in properties.items():
        text = set_property(text, key, value)
    return text


@basic_memory_tool("Write Note", writes=True, destructive=True, idempotent=False)
def write_note(project: Project, arguments: WriteNoteArguments) -> Reply[Result]:
    """Make a Markdown note in a directory ("/" is the root). Facts are `- [category] text #tag`, links `- relation [[Title]]`.
    A note that is there stays as it is, unless overwrite is true; expected_checksum then asks that it is the one you read."""
    if is_outside(arguments.directory):
        raise project.refused(
            "outside_directory",
            "SECURITY_VALIDATION_ERROR",
            title=arguments.title,
            action="created",
        )
    title = legal_name(re.sub(r'[<>:"|?*/\\]++', "-", arguments.title).strip("-"))
    path = path_of(
        name := "/".join(filter(None, (arguments.directory.removeprefix("./").strip("/"), title)))
    )
    content, block, _ = without_header(arguments.content, None)
    metadata = arguments.metadata or {}
    tags = as_list(
        from_json(arguments.tags or block.pop("tags", None) or metadata.get("tags") or [])
    )
    tags = [
        bare for each in tags for part in str(each).split(",") if (bare := part.strip().lstrip("#"))
    ]
    given = (
        metadata
        | {"type": arguments.note_type}
        | block
        | {"title": arguments.title}
        | ({"tags": tags} if tags else {})
    )
    new, did = {"permalink": project.address(path)} | given, "created"
    replaced = ""
    try:
        if arguments.overwrite and project.store.extension.exists(path):
            did, note, body = "updated", project.store.read(name), f"\n{content}" if content else ""
            replaced = project.replace(
                note,
                "stale",
                lambda text: _with(
                    text[: read_note(text.encode()).header.body_start] + body, given
                ),
            )
        else:
            project.session.record_whole_write(
                project.store.create(name, content, new, **project.caller)
            )
    except AlreadyExists:
        if project.store.extension.exists(path):
            facts = {
                "title": arguments.title,
                "permalink": new["permalink"],
                "file_path": path,
                "action": "conflict",
            }
            raise project.refused("exists", "NOTE_ALREADY_EXISTS", **facts) from None
        # Links that the new name would steal are qualified.
        project.session.record_whole_write(
            project.store.create(name, content, new, overwrite=True, **project.caller)
        )
    tagged = [{"type": "tags", "tags": ", ".join(tags)}] if tags else []
    row = project.row(project.store.read(name)) | {"action": did, "similar_notes": []}
    reply = project.reply("written", row | {"did": did.title(), "tagged": tagged})
    return _with_notice(reply, replaced) if replaced else reply


def _with_notice(reply: Reply[Result], notice: str) -> Reply[Result]:
    """Return an answer with a sentence that the contract does not have: below its text, or as `notice` in its JSON."""
    assert reply.value is not None
    result = reply.value["result"]
    if isinstance(result, dict):
        noted = result | {"notice": notice}
        return Reply(
            json.dumps(noted, ensure_ascii=False, separators=(",", ":"), default=str),
            {"result": noted},
        )
    text = f"{reply.text}\n\n{notice}"
    return Reply(text, {"result": text})


@basic_memory_tool("Edit Note", writes=True, destructive=True, idempotent=False)
def edit_note(project: Project, arguments: EditNoteArguments) -> Reply[Result]:
    """Change part of a note. append and prepend make it where there is none; find_replace wants find_text to stand as often as
    expected_replacements (1) says; the section operations want the heading as it is written. metadata sets properties too."""
    metadata = {
        key: each
        for key, each in (arguments.metadata or {}).items()
        if key.lower() not in ("title", "permalink")
    }
    for argument, among in (("find_text", "find_replace"), ("section", "section")):
        if among in arguments.operation and not getattr(arguments, argument):
            raise Invalid(f"{argument} parameter is required for {arguments.operation} operation")
    made = False
    try:
        note = project.rewrite(
            project.find(arguments.identifier),
            "edit_stale",
            lambda text: _with(_edited(project, arguments, text), metadata),
        )
    except NotFound:
        name = (
            arguments.identifier.removeprefix("memory://")
            .removeprefix(project.prefix)
            .removesuffix(".md")
            .strip("/")
        )
        missing = f"Entity not found: '{arguments.identifier}'"
        if is_outside(name):
            raise project.refused("outside_identifier", "SECURITY_VALIDATION_ERROR") from None
        if arguments.expected_checksum or arguments.operation not in ("append", "prepend"):
            gone = (
                ("edit_gone", "NOTE_REVISION_CONFLICT")
                if arguments.expected_checksum
                else ("edit_note_missing", missing)
            )
            raise project.refused(*gone) from None
        new = {
            "title": name.rpartition("/")[2],
            "type": "note",
            "permalink": project.address(name),
        } | metadata
        note, made = (
            project.store.read(
                project.store.create(name, arguments.content, new, **project.caller).name
            ),
            True,
        )
    facts = {"lines": arguments.content.count("\n") + 1, "section": arguments.section}
    facts = {
        "what": said("edit.made" if made else f"edit.{arguments.operation}", facts),
        "fileCreated": made,
    }
    facts |= {"did": "Created" if made else "Edited", "made": "fileCreated: true\n" if made else ""}
    return project.reply("edited", project.row(note) | facts)


def _edited(project: Project, arguments: Any, text: str) -> str:
    """A note's text after the edit that is asked for."""
    note, newline = read_note(text.encode()), newline_of(text)
    start, (content, find) = (
        note.content_start,
        (
            re.sub(r"\r?\n", newline, each or "")
            for each in (arguments.content, arguments.find_text)
        ),
    )
    if arguments.operation == "append":
        return text + ("" if not text or text.endswith("\n") else newline) + content
    if arguments.operation == "prepend":
        return text[:start] + content.rstrip("\r\n") + newline + text[start:]
    if arguments.operation == "find_replace":
        wanted = 1 if arguments.expected_replacements is None else arguments.expected_replacements
        if (
            text[start:].count(find) == wanted
        ):  # what the header says is not meant where the body alone fits
            return text[:start] + text[start:].replace(find, content)
        if (count := text.count(find)) == wanted:
            return text.replace(find, content)
        wrong = f"Expected {wanted} occurrences of '{find}', but found {count}"
        what = (
            ("edit_count", wrong)
            if count
            else ("edit_text_missing", f"Text to replace not found: '{find}'")
        )
        raise project.refused(*what, wanted=wanted, count=count)
    section = (
        arguments.section.strip()
        if arguments.section.lstrip().startswith("#")
        else f"## {arguments.section.strip()}"
    )
    headings = note.body.headings
    at = [k for k, each in enumerate(headings) if text[each.start : each.end].strip() == section]
    if len(at) != 1:
        many, none = (
            f"Multiple sections found with header '{section}'",
            f"Section '{section}' not found in document",
        )
        raise project.refused(
            *(("edit_section_twice", many) if at else ("edit_section_missing", none))
        )
    own, whole = headings[at[0]], arguments.replace_subsections is not False
    levels = ((each.start, each.level) for each in headings[at[0] + 1 :])
    stop = next((begin for begin, level in levels if not whole or level <= own.level), len(text))
    before, head, after, gap = (
        text[: own.start],
        text[own.start : own.end],
        text[own.end :],
        newline * 2,
    )
    if arguments.operation == "insert_before_section":
        return before.rstrip("\r\n") + gap + content.rstrip() + gap + head + after
    if arguments.operation == "insert_after_section":
        return before + head + newline + content.rstrip() + gap + after.lstrip("\r\n")
    first, _, rest = content.partition(newline)
    return (
        before
        + head
        + newline
        + (rest if first.strip() == section else content)
        + newline
        + text[stop:]
    )


def _below(project: Project, arguments: Any) -> list[str]:
    """The notes of a directory."""
    start = arguments.identifier.removeprefix("memory://").strip("/") + "/"
    return [
        each.name
        for each in project.store.extension.list_all(Filter(prefix=start))
        if each.path.startswith(start)
    ]


def _all(names: list[str], moved: list[str]) -> Data:
    counts = dict.fromkeys(("total_files", "successful_deletes", "successful_moves"), len(names))
    files = {
        "files": [{"type": "file", "name": each} for each in moved],
        "deleted_files": moved,
        "errors": [],
    }
    return {
        **counts,
        **files,
        "failed_deletes": 0,
        "failed_moves": 0,
        "deleted": True,
        "moved": True,
    }


@basic_memory_tool("Delete Note", writes=True, destructive=True, idempotent=False, deletes=True)
def delete_note(project: Project, arguments: DeleteNoteArguments) -> Reply[Result]:
    """Put a note, or with is_directory all notes of a directory, in the trash. The answer is false where there is no such note."""
    if arguments.is_directory:
        if not (names := _below(project, arguments)):
            error = "Directory not found or empty: no files matched"
            raise project.refused("no_files_delete", error, **_all([], []) | {"deleted": False})
        paths, bytes_of = [path_of(name) for name in names], project.store.extension.bytes_of
        project.store.extension.change(
            lambda: [Draft(path, None, bytes_of(path)) for path in paths], **project.caller
        )
        return project.reply("directory_deleted", _all(names, paths))
    try:
        row = project.row(project.find(arguments.identifier)) | {"deleted": True}
        known = project.session.known_hash(row["file_path"])
        gone = project.store.delete(name_of(row["file_path"]), if_sha256=known, **project.caller)
        project.session.record_step(project.store, gone.version)
    except NotFound:
        row = {"deleted": False}
    except Conflict as error:
        raise without_offer(
            error, "Read it again with read_note. If it is still not needed, delete it."
        ) from None
    reply = project.reply("deleted", row)
    return (
        reply
        if arguments.output_format == "json"
        else Reply(str(row["deleted"]).lower(), {"result": row["deleted"]})
    )


def _moved(project: Project, name: str, new_name: str) -> Moved:
    moved = project.store.move(name, new_name, **project.caller)
    project.session.record_step(project.store, moved.version)
    return moved


@basic_memory_tool("Move Note", writes=True, idempotent=False)
def move_note(project: Project, arguments: MoveNoteArguments) -> Reply[Result]:
    """Move a note to destination_path (archive/Note.md) or, under its own name, into destination_folder; with is_directory a whole
    directory. Links to it follow."""
    to, folder, file = (
        arguments.destination_path,
        arguments.destination_folder,
        arguments.destination_path.rpartition("/")[2],
    )
    facts = {"source": arguments.identifier, "destination": to or folder or None}
    wrong = {
        ("move_folder", "INVALID_PARAMETERS"): arguments.is_directory and folder,
        ("move_twice", "INVALID_PARAMETERS"): to and folder,
        ("move_nowhere", "MISSING_DESTINATION"): not to and folder is None,
        ("move_outside", "SECURITY_VALIDATION_ERROR"): is_outside(to or folder or "")
        or to.startswith("/"),
        ("move_extension", "FILE_EXTENSION_REQUIRED"): to
        and not arguments.is_directory
        and "." not in file,
        ("move_other_extension", "FILE_EXTENSION_MISMATCH"): to
        and not arguments.is_directory
        and not file.endswith(".md"),
    }
    if why := next((why for why, is_so in wrong.items() if is_so), None):
        return project.reply(why[0], facts | {"moved": False, "error": why[1]})
    if arguments.is_directory:
        if not (names := _below(project, arguments)):
            raise project.refused(
                "no_files_move", "Directory not found or empty: no files matched", **facts
            )
        old = len(arguments.identifier.removeprefix("memory://").strip("/"))
        new_paths = {path_of(name): path_of(to.strip("/") + name[old:]) for name in names}
        moved = project.store.extension.move(new_paths, **project.caller)
        project.session.record_step(project.store, moved[0].version)
        return project.reply("directory_moved", facts | _all(names, [note.path for note in moved]))
    try:
        note = project.find(arguments.identifier)
        facts["destination"] = path = (
            to or f"{(folder or '').strip('/')}/{note.path.rpartition('/')[2]}".lstrip("/")
        )
        if path == note.path:
            return project.reply("move_same", facts | {"moved": False, "error": "SAME_PATH"})
        moved_to = _moved(project, note.name, name_of(path))
    except NotFound:
        raise project.refused(
            "move_missing", f"Entity not found: '{arguments.identifier}'", **facts
        ) from None
    except AlreadyExists:
        raise project.refused("move_taken", "Note already exists", **facts) from None
    return project.reply(
        "moved", project.row(project.store.read(moved_to.name)) | facts | {"moved": True}
    )
