"""What the tools of knowledge share: how an entry is shown, and that every answer is timed and says how it was found."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from simplemem.faces import render
from simplemem.faces.arguments import Arguments
from simplemem.faces.schema import COUNT, FLAG, MAYBE_TEXT, NUMBER, TEXT, TEXTS, Schema, record
from simplemem.faces.tool import Call, Reply

if TYPE_CHECKING:
    from simplemem.kinds.learned.access import Read
    from simplemem.kinds.learned.entries import Entry
    from simplemem.kinds.learned.keeping import Knowledge

A = TypeVar("A", bound=Arguments)

FAILURE = "Error: "
"""How a failure begins in the server whose tools these are."""

ENTRY: Schema = record(
    ("context", "method", "score", "snippet", "status", "supersededBy"),
    id=TEXT,
    type=TEXT,
    content=TEXT,
    context=TEXT,
    confidence={"anyOf": [NUMBER, {"type": "null"}]},
    verified=FLAG,
    tags=TEXTS,
    timestamp=TEXT,
    accessCount=COUNT,
    lastAccessed=MAYBE_TEXT,
    relatedIds=TEXTS,
    name=TEXT,
    score=NUMBER,
    method=TEXT,
    snippet=TEXT,
    status=TEXT,
    supersededBy=TEXT,
)
BRIEF: Schema = record((), id=TEXT, name=TEXT, type=TEXT, says=TEXT)


def knowledge_in(call: Call) -> Knowledge:
    """The knowledge of the vault that a call is about."""
    from simplemem.kinds.learned.keeping import knowledge_of

    return knowledge_of(call.store)


def timed(run: Callable[[Call, A], Reply]) -> Callable[[Call, A], Reply]:
    """A tool whose answers are measured for `get_stats`."""

    def measured(call: Call, asked: A) -> Reply:
        with knowledge_in(call).latencies.measured(call.tool):
            return run(call, asked)

    return measured


def pretty(value: Any) -> str:
    """A value as JSON that people can read too. Half a character, which is no UTF-8, is escaped with all else like it."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return text if text.isascii() or _is_whole(text) else json.dumps(value, indent=2)


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def entry_shown(entry: Entry, read: Read, related: Iterable[Entry]) -> dict[str, Any]:
    """An entry with the fields that clients know, and its note's name."""
    shown: dict[str, Any] = {
        "id": entry.id,
        "type": entry.type,
        "content": entry.content,
        "context": entry.context,
        "confidence": entry.confidence,
        "verified": entry.verified,
        "tags": list(entry.tags),
        "timestamp": entry.created,
        "accessCount": read.count,
        "lastAccessed": read.last or None,
        "relatedIds": list(dict.fromkeys(each.id for each in related)),
        "name": entry.name,
    }
    if entry.is_superseded:
        shown |= {"status": "superseded", "supersededBy": entry.superseded_by}
    return shown


def brief(entry: Entry) -> dict[str, Any]:
    """An entry as it is named in a finding."""
    return {"id": entry.id, "name": entry.name, "type": entry.type, "says": entry.headline}


def named(entry: Entry) -> str:
    """An entry on a line."""
    said = "" if not entry.is_knowledge else f": {render.line(entry.headline, 140)}"
    return f"[[{render.name_of(entry.name)}]]{said}"


def answer(head: str, lines: Sequence[str], how: str, data: Mapping[str, Any]) -> Reply:
    """An answer in Markdown that quotes notes between marks, and says how it was found."""
    return Reply(render.answer(head, "\n".join(lines), f"Method: {how}."), {**data, "method": how})
