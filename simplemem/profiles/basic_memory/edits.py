"""What basic-memory's tools are, and those that write: notes are made, edited, moved and deleted by the store."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from types import SimpleNamespace
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field

from simplemem.errors import AlreadyExists, Conflict, Invalid, NotFound, SimplememError
from simplemem.models import Filter, Moved
from simplemem.note.names import legal_name, name_of, path_of
from simplemem.note.note import read_note
from simplemem.note.properties import set_property
from simplemem.note.tag_requests import without_header
from simplemem.note.words import newline_of
from simplemem.profiles.basic_memory.project import (
    CONTRACT,
    MOST,
    Project,
    Result,
    is_outside,
    said,
)
from simplemem.store import Draft, EnhancedStore
from simplemem.tools.arguments import Object, Words, also, from_json
from simplemem.tools.session import Session, without_offer
from simplemem.tools.tool import Caller, Data, Manner, Reply, Tool

_COUNT: Final = Annotated[int, Field(ge=1)]
_EDIT = Literal[
    "append",
    "prepend",
    "find_replace",
    "replace_section",
    "insert_before_section",
    "insert_after_section",
]
_ARGUMENTS: Final[dict[str, Any]] = {
    "text": str, "text?": str | None, "int": int, "int?": int | None, "number?": float | None, "bool": bool,
    "bool?": bool | None, "object?": Object | None, "words?": Words | None, "tags?": list[str] | str | None,
    "types": str | list[str], "depth?": str | int | None, "form": Literal["text", "json"], "operation": _EDIT,
    "sort?": Literal["title_asc", "title_desc", "updated_asc", "updated_desc"] | None, "line?": _COUNT | None,
    "page": _COUNT, "size": Annotated[int, Field(ge=1, le=MOST)],
}  # fmt: skip


class _Theirs(Manner):
    """Schemas with `null` and without titles, answers wrapped as `result`, failures in words alone."""

    def listing(self, tool: Tool) -> Data:
        schema: Data = tool.model.model_json_schema()
        bare = {
            key: {k: v for k, v in each.items() if k != "title"}
            for key, each in schema["properties"].items()
        }
        given = {k: v for k, v in schema.items() if k in ("type", "required")} | {
            "additionalProperties": False
        }
        output = (tool.output or {}) | {"x-fastmcp-wrap-result": True}
        return super().listing(tool) | {
            "inputSchema": given | {"properties": bare},
            "outputSchema": output,
        }

    def failed(self, error: SimplememError) -> tuple[str, Data | None]:
        return super().failed(error)[0] if error.hint or error.details else error.message, None


class _Tool(Tool):
    """A tool as the contract has it: its arguments come as one."""

    def __call__(
        self,
        store: EnhancedStore,
        caller: Caller,
        arguments: BaseModel,
        session: Session | None = None,
    ) -> Reply[Result]:
        asked = SimpleNamespace(
            tool=self.name, **{name: getattr(arguments, name) for name in self.arguments}
        )
        return self.run(Project(store, caller, asked, session or Session()), asked)

    @cached_property
    def arguments(self) -> dict[str, tuple[Any, Any]]:
        found = dict[str, tuple[Any, Any]]()
        for word in CONTRACT["tools"][self.name]["arguments"].split():
            names, _, kind = word.partition(":")
            (first, *others), (kind, _, default) = names.split("|"), kind.partition("=")
            value = json.loads(default) if default else None if kind.endswith("?") else ...
            found[first] = Annotated[_ARGUMENTS[kind], also(first, *others)], value
        return found


def face_tool(run: Callable[[Project, Any], Reply[Result]]) -> Tool:
    more = {
        key: each for key, each in CONTRACT["tools"][run.__name__].items() if key != "arguments"
    }
    return _Tool(
        run, run.__name__, description=" ".join(more.pop("about").split()), manner=_Theirs(), **more
    )


def several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _with(text: str, properties: Mapping[str, Any]) -> str:
    for key, value in properties.items():
        text = set_property(text, key, value)
    return text


@face_tool
def write_note(vault: Project, a: Any) -> Reply[Result]:
    if is_outside(a.directory):
        raise vault.refused(
            "outside_directory", "SECURITY_VALIDATION_ERROR", title=a.title, action="created"
        )
    title = legal_name(re.sub(r'[<>:"|?*/\\]++', "-", a.title).strip("-"))
    path = path_of(
        name := "/".join(filter(None, (a.directory.removeprefix("./").strip("/"), title)))
    )
    content, block, _ = without_header(a.content, None)
    metadata = a.metadata or {}
    tags = several(from_json(a.tags or block.pop("tags", None) or metadata.get("tags") or []))
    tags = [
        bare for each in tags for part in str(each).split(",") if (bare := part.strip().lstrip("#"))
    ]
    given = (
        metadata
        | {"type": a.note_type}
        | block
        | {"title": a.title}
        | ({"tags": tags} if tags else {})
    )
    new, did = {"permalink": vault.address(path)} | given, "created"
    replaced = ""
    try:
        if a.overwrite and vault.store.extension.exists(path):
            did, note, body = "updated", vault.store.read(name), f"\n{content}" if content else ""
            replaced = vault.replace(
                note,
                "stale",
                lambda text: _with(
                    text[: read_note(text.encode()).header.body_start] + body, given
                ),
            )
        else:
            vault.session.record_whole_write(vault.store.create(name, content, new, **vault.caller))
    except AlreadyExists:
        if vault.store.extension.exists(path):
            facts = {
                "title": a.title,
                "permalink": new["permalink"],
                "file_path": path,
                "action": "conflict",
            }
            raise vault.refused("exists", "NOTE_ALREADY_EXISTS", **facts) from None
        # Links that the new name would steal are qualified.
        vault.session.record_whole_write(
            vault.store.create(name, content, new, overwrite=True, **vault.caller)
        )
    tagged = [{"type": "tags", "tags": ", ".join(tags)}] if tags else []
    row = vault.row(vault.store.read(name)) | {"action": did, "similar_notes": []}
    reply = vault.reply("written", row | {"did": did.title(), "tagged": tagged})
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


@face_tool
def edit_note(vault: Project, a: Any) -> Reply[Result]:
    metadata = {
        key: each
        for key, each in (a.metadata or {}).items()
        if key.lower() not in ("title", "permalink")
    }
    for argument, among in (("find_text", "find_replace"), ("section", "section")):
        if among in a.operation and not getattr(a, argument):
            raise Invalid(f"{argument} parameter is required for {a.operation} operation")
    made = False
    try:
        note = vault.rewrite(
            vault.find(a.identifier),
            "edit_stale",
            lambda text: _with(_edited(vault, a, text), metadata),
        )
    except NotFound:
        name = (
            a.identifier.removeprefix("memory://")
            .removeprefix(vault.prefix)
            .removesuffix(".md")
            .strip("/")
        )
        missing = f"Entity not found: '{a.identifier}'"
        if is_outside(name):
            raise vault.refused("outside_identifier", "SECURITY_VALIDATION_ERROR") from None
        if a.expected_checksum or a.operation not in ("append", "prepend"):
            gone = (
                ("edit_gone", "NOTE_REVISION_CONFLICT")
                if a.expected_checksum
                else ("edit_note_missing", missing)
            )
            raise vault.refused(*gone) from None
        new = {
            "title": name.rpartition("/")[2],
            "type": "note",
            "permalink": vault.address(name),
        } | metadata
        note, made = (
            vault.store.read(vault.store.create(name, a.content, new, **vault.caller).name),
            True,
        )
    facts = {"lines": a.content.count("\n") + 1, "section": a.section}
    facts = {
        "what": said("edit.made" if made else f"edit.{a.operation}", facts),
        "fileCreated": made,
    }
    facts |= {"did": "Created" if made else "Edited", "made": "fileCreated: true\n" if made else ""}
    return vault.reply("edited", vault.row(note) | facts)


def _edited(vault: Project, a: Any, text: str) -> str:
    """A note's text after the edit that is asked for."""
    note, newline = read_note(text.encode()), newline_of(text)
    start, (content, find) = (
        note.content_start,
        (re.sub(r"\r?\n", newline, each or "") for each in (a.content, a.find_text)),
    )
    if a.operation == "append":
        return text + ("" if not text or text.endswith("\n") else newline) + content
    if a.operation == "prepend":
        return text[:start] + content.rstrip("\r\n") + newline + text[start:]
    if a.operation == "find_replace":
        wanted = 1 if a.expected_replacements is None else a.expected_replacements
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
        raise vault.refused(*what, wanted=wanted, count=count)
    section = a.section.strip() if a.section.lstrip().startswith("#") else f"## {a.section.strip()}"
    headings = note.body.headings
    at = [k for k, each in enumerate(headings) if text[each.start : each.end].strip() == section]
    if len(at) != 1:
        many, none = (
            f"Multiple sections found with header '{section}'",
            f"Section '{section}' not found in document",
        )
        raise vault.refused(
            *(("edit_section_twice", many) if at else ("edit_section_missing", none))
        )
    own, whole = headings[at[0]], a.replace_subsections is not False
    levels = ((each.start, each.level) for each in headings[at[0] + 1 :])
    stop = next((begin for begin, level in levels if not whole or level <= own.level), len(text))
    before, head, after, gap = (
        text[: own.start],
        text[own.start : own.end],
        text[own.end :],
        newline * 2,
    )
    if a.operation == "insert_before_section":
        return before.rstrip("\r\n") + gap + content.rstrip() + gap + head + after
    if a.operation == "insert_after_section":
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


def _below(vault: Project, a: Any) -> list[str]:
    """The notes of a directory."""
    start = a.identifier.removeprefix("memory://").strip("/") + "/"
    return [
        each.name
        for each in vault.store.extension.list_all(Filter(prefix=start))
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


@face_tool
def delete_note(vault: Project, a: Any) -> Reply[Result]:
    if a.is_directory:
        if not (names := _below(vault, a)):
            error = "Directory not found or empty: no files matched"
            raise vault.refused("no_files_delete", error, **_all([], []) | {"deleted": False})
        paths, bytes_of = [path_of(name) for name in names], vault.store.extension.bytes_of
        vault.store.extension.change(
            lambda: [Draft(path, None, bytes_of(path)) for path in paths], **vault.caller
        )
        return vault.reply("directory_deleted", _all(names, paths))
    try:
        row = vault.row(vault.find(a.identifier)) | {"deleted": True}
        known = vault.session.known_hash(row["file_path"])
        gone = vault.store.delete(name_of(row["file_path"]), if_sha256=known, **vault.caller)
        vault.session.record_step(vault.store, gone.version)
    except NotFound:
        row = {"deleted": False}
    except Conflict as error:
        raise without_offer(
            error, "Read it again with read_note. If it is still not needed, delete it."
        ) from None
    reply = vault.reply("deleted", row)
    return (
        reply
        if a.output_format == "json"
        else Reply(str(row["deleted"]).lower(), {"result": row["deleted"]})
    )


def _moved(vault: Project, name: str, new_name: str) -> Moved:
    moved = vault.store.move(name, new_name, **vault.caller)
    vault.session.record_step(vault.store, moved.version)
    return moved


@face_tool
def move_note(vault: Project, a: Any) -> Reply[Result]:
    to, folder, file = (
        a.destination_path,
        a.destination_folder,
        a.destination_path.rpartition("/")[2],
    )
    facts = {"source": a.identifier, "destination": to or folder or None}
    wrong = {
        ("move_folder", "INVALID_PARAMETERS"): a.is_directory and folder,
        ("move_twice", "INVALID_PARAMETERS"): to and folder,
        ("move_nowhere", "MISSING_DESTINATION"): not to and folder is None,
        ("move_outside", "SECURITY_VALIDATION_ERROR"): is_outside(to or folder or "")
        or to.startswith("/"),
        ("move_extension", "FILE_EXTENSION_REQUIRED"): to
        and not a.is_directory
        and "." not in file,
        ("move_other_extension", "FILE_EXTENSION_MISMATCH"): to
        and not a.is_directory
        and not file.endswith(".md"),
    }
    if why := next((why for why, is_so in wrong.items() if is_so), None):
        return vault.reply(why[0], facts | {"moved": False, "error": why[1]})
    if a.is_directory:
        if not (names := _below(vault, a)):
            raise vault.refused(
                "no_files_move", "Directory not found or empty: no files matched", **facts
            )
        old = len(a.identifier.removeprefix("memory://").strip("/"))
        new_paths = {path_of(name): path_of(to.strip("/") + name[old:]) for name in names}
        moved = vault.store.extension.move(new_paths, **vault.caller)
        vault.session.record_step(vault.store, moved[0].version)
        return vault.reply("directory_moved", facts | _all(names, [note.path for note in moved]))
    try:
        note = vault.find(a.identifier)
        facts["destination"] = path = (
            to or f"{folder.strip('/')}/{note.path.rpartition('/')[2]}".lstrip("/")
        )
        if path == note.path:
            return vault.reply("move_same", facts | {"moved": False, "error": "SAME_PATH"})
        moved_to = _moved(vault, note.name, name_of(path))
    except NotFound:
        raise vault.refused(
            "move_missing", f"Entity not found: '{a.identifier}'", **facts
        ) from None
    except AlreadyExists:
        raise vault.refused("move_taken", "Note already exists", **facts) from None
    return vault.reply(
        "moved", vault.row(vault.store.read(moved_to.name)) | facts | {"moved": True}
    )
