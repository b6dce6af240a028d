"""undo_change: a change taken back, the last one of a memory, or everything that a client changed.

The last is only looked at unless it is asked for in so many words. Whatever is done here can be undone too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import AliasChoices, Field

from simplemem.errors import Invalid, NotFound
from simplemem.faces import render
from simplemem.faces.arguments import Arguments, OtherName
from simplemem.faces.schema import MAYBE_TEXT, TEXT, record, several
from simplemem.faces.tool import Call, Reply, Tool

if TYPE_CHECKING:
    from simplemem.memory import UndoneMany

_MOST_TOLD = 200


class UndoArguments(Arguments):
    version: str | None = Field(default=None, description="from memory_history")
    name: OtherName = Field(
        default=None,
        description="or a memory: its last change",
        validation_alias=AliasChoices("name", "path", "id"),
    )
    by: str | None = Field(default=None, description="or a client: all it changed since")
    since: str | None = Field(default=None, description="with by: a date or version")
    preview: bool = Field(default=True, description="with by: change nothing, say what would be done")
    reason: str = ""


def undo_change(call: Call, asked: UndoArguments) -> Reply:
    if sum(map(bool, (asked.version, asked.name, asked.by))) != 1 or bool(asked.by) != bool(asked.since):
        raise Invalid("Give either a version, or a name, or by and since.", hint="memory_history lists versions.")
    if asked.by and asked.since:
        return _undo_all(call, asked, asked.by, asked.since)
    version = asked.version or _last_of(call, asked.name or "")
    undone = call.store.undo(version, who=call.who, tool=call.tool, reason=asked.reason)
    data = {"name": undone.name, "sha256": undone.sha256, "version": undone.version, "what": undone.what}
    first = render.line(undone.what[:1].upper() + undone.what[1:] + ".", 4096)
    sha256 = [f"sha256 {undone.sha256}"] if undone.sha256 else []
    return Reply("\n".join([first, *sha256, _back(undone.version)]), data)


def _undo_all(call: Call, asked: UndoArguments, by: str, since: str) -> Reply:
    done = call.store.undo_all(by, since, preview=asked.preview, who=call.who, tool=call.tool, reason=asked.reason)
    doing = "would take back" if asked.preview else "took back" if done.version else "took back nothing of"
    what = f"{doing} what {by} changed since {since}"
    if done.notes:
        what += f" in {render.counted(len(done.notes), 'memory', 'memories')}"
    onward = "preview=false does it." if asked.preview and done.notes else _back(done.version) if done.version else ""
    data: dict[str, Any] = {"name": "", "sha256": None, "version": done.version, "what": what}
    data["notes"] = [{"name": n.name, "becomes": n.becomes, "new_name": n.new_name} for n in done.notes[:_MOST_TOLD]]
    data["left"] = [{"name": each.name, "why": each.why} for each in done.left[:_MOST_TOLD]]
    lines = [render.line(f"This {what}.", 4096), *_lines(done), onward]
    return Reply("\n".join(filter(None, lines)), data)


def _lines(done: UndoneMany) -> list[str]:
    """What becomes of each memory, and what is left; of a number that can be read."""
    said = []
    for note in done.notes:
        back = f" to {render.name_of(note.new_name)}" if note.new_name else ""
        said.append(f"- {render.name_of(note.name)}: {note.becomes}{back}")
    said += [f"- {render.name_of(each.name)}: left as it is, {render.line(each.why, 600)}" for each in done.left]
    more = len(said) - _MOST_TOLD
    return said if more <= 0 else [*said[:_MOST_TOLD], f"(and {more} more)"]


def _back(version: str) -> str:
    return f'undo_change(version="{version}") does it again.'


def _last_of(call: Call, name: str) -> str:
    """The version of the last change of a memory: a memory may be called 2026, and that is no version."""
    for entry in call.store.history(name, limit=_MOST_TOLD):
        if entry.op != "recovered":  # a text that was found, not a change
            return entry.version
    raise NotFound(f"Nothing is known of earlier changes of {name}.", hint="memory_history lists all changes.")


UNDO = Tool(
    "undo_change",
    "Undo a change",
    "Take a change back: an edit, a move or a deletion, by its version, or the last one of a memory; "
    "or all changes of a client.",
    UndoArguments,
    undo_change,
    record(
        ("notes", "left"),
        name=TEXT,
        sha256=MAYBE_TEXT,
        version=TEXT,
        what=TEXT,
        notes=several(record(name=TEXT, becomes=TEXT, new_name=MAYBE_TEXT)),
        left=several(record(name=TEXT, why=TEXT)),
    ),
    writes=True,
    destructive=True,
    idempotent=False,
)
