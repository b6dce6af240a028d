"""What Memento keeps beside an entity or a relation, in its words and in ours: strength, confidence, metadata, times and
versions (memento.md §4). In a note they stand behind the bullet they are about, where Obsidian does not show them."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from simplemem.kinds.graph.jsonl import entity_shown, relation_shown
from simplemem.kinds.graph.values import Entity, Graph, Relation
from simplemem.store import EnhancedStore

if TYPE_CHECKING:
    from simplemem.kinds.graph.past import Version

AT: Final = "at"
"""When a relation or an observation was last said to be so."""
_SINCE: Final = "created"
_REST: Final = "metadata"  # what no attribute can be called
_OWN: Final = frozenset({"strength", "confidence", AT, _SINCE, _REST})
_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_NAMESPACE: Final = uuid.UUID("6f0f7f4e-5c1b-5a52-9d0e-2d6f2b1a7c11")


# --- into a note


def attributes_in(said: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The attributes of a relation or an observation out of what a call says. `before` has those that are there: a
    strength and a confidence that are not given again are kept, metadata is replaced."""
    kept = before or {}
    found = {key: value for key in ("strength", "confidence") if (value := said.get(key, kept.get(key))) is not None}
    metadata = said.get("metadata")
    metadata = metadata_of(kept) if metadata is None else metadata
    plain = {key: value for key, value in metadata.items() if _KEY.fullmatch(key) and key not in _OWN}
    found |= plain
    if rest := {key: value for key, value in metadata.items() if key not in plain}:
        found[_REST] = rest
    if not found:
        return {}
    given = next((said[key] for key in ("updatedAt", "validFrom", "createdAt") if said.get(key) is not None), None)
    found[AT] = _written(given)
    if (first := kept.get(_SINCE, kept.get(AT))) is not None:
        found[_SINCE] = first
    return found


def metadata_of(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata among attributes."""
    rest = attributes.get(_REST)
    plain = {key: value for key, value in attributes.items() if key not in _OWN}
    return plain | (dict(rest) if isinstance(rest, Mapping) else {})


def _written(milliseconds: Any) -> str:
    """A time as notes have it: local, to the second."""
    moment = moment_of(milliseconds) if milliseconds is not None else None
    return (moment or datetime.now(UTC)).astimezone().strftime("%Y-%m-%dT%H:%M:%S")


# --- out of a note


def moment_of(milliseconds: Any) -> datetime | None:
    """A time as these tools take it, milliseconds since 1970; None for what is none."""
    try:
        return datetime.fromtimestamp(float(milliseconds) / 1000, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def said_at(value: Any) -> datetime | None:
    """A time that stands in a note: local where it tells no offset."""
    try:
        return datetime.fromisoformat(str(value)).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


@dataclass(frozen=True, slots=True)
class Kept:
    """What the history tells of a page: how many changes, and who made the last."""

    changes: int = 0
    by: str = ""


@dataclass(slots=True)
class _Read:
    """What was read of a history, up to the change of this number."""

    upto: int
    kept: dict[str, Kept]


_READ: WeakKeyDictionary[EnhancedStore, _Read] = WeakKeyDictionary()
_GUARD = threading.Lock()


def kept_of(store: EnhancedStore) -> dict[str, Kept]:
    """What the history tells of every page. Only what is new in it is read again."""
    with _GUARD:
        read = _READ.setdefault(store, _Read(0, {}))
        new = store.bench.changes_since(read.upto)
        for version in reversed(new):
            read.upto = version.number
            for path, _, after in version.effects:
                if after is not None:
                    read.kept[path] = Kept(read.kept.get(path, Kept()).changes + 1, version.who)
        return dict(read.kept)


def entity_told(entity: Entity, kept: Kept) -> dict[str, Any]:
    """An entity as Memento's own tools show it."""
    changed = said_at(entity.modified) or said_at(entity.created)
    made = said_at(entity.created) or changed
    return {
        **entity_shown(entity),
        **_times(entity.name, max(kept.changes, 1), made, changed, None, kept.by),
    }


def version_told(number: int, first: Version[Entity], version: Version[Entity]) -> dict[str, Any]:
    """One version of an entity."""
    times = _times(version.value.name, number, first.since, version.since, version.until, version.by)
    return {**entity_shown(version.value), **times}


def _times(
    name: str, version: int, made: datetime | None, changed: datetime | None, until: datetime | None, by: str
) -> dict[str, Any]:
    return {
        "id": str(uuid.uuid5(_NAMESPACE, name.encode("utf-8", "surrogatepass").hex())),
        "version": version,
        "createdAt": milliseconds(made) if made is not None else None,
        "updatedAt": milliseconds(changed) if changed is not None else None,
        "validFrom": milliseconds(changed) if changed is not None else None,
        "validTo": milliseconds(until) if until is not None else None,
        "changedBy": by or None,
    }


def relation_told(relation: Relation, page: datetime | None) -> dict[str, Any]:
    """A relation as Memento's own tools show it. `page` is when its page was changed, for one that tells no time."""
    shown: dict[str, Any] = relation_shown(relation)
    shown |= {key: relation.attributes[key] for key in ("strength", "confidence") if key in relation.attributes}
    last = last_said(relation) or page
    first = said_at(relation.attributes.get(_SINCE)) or last
    times = {"createdAt": first, "updatedAt": last}
    shown["metadata"] = {key: milliseconds(at) for key, at in times.items() if at is not None} | metadata_of(
        relation.attributes
    )
    return shown


def relation_version_told(number: int, first: Version[Relation], version: Version[Relation]) -> dict[str, Any]:
    """One version of a relation, with from when to when it was so."""
    return {
        **relation_told(version.value, version.since),
        "version": number,
        "createdAt": milliseconds(first.since),
        "validFrom": milliseconds(version.since),
        "validTo": milliseconds(version.until) if version.until is not None else None,
        "changedBy": version.by or None,
    }


def last_said(relation: Relation) -> datetime | None:
    """When a relation was last said to be so, if it tells."""
    return said_at(relation.attributes[AT]) if AT in relation.attributes else None


def graph_told(graph: Graph, kept: Mapping[str, Kept], began: datetime) -> dict[str, Any]:
    """A graph as Memento's own tools show it, with how many entities there are and how long it took."""
    changed = {entity.name: said_at(entity.modified) for entity in graph.entities}
    return {
        "entities": [entity_told(each, kept.get(each.path, Kept())) for each in graph.entities],
        "relations": [relation_told(each, changed.get(each.source)) for each in graph.relations],
        "total": len(graph.entities),
        "timeTaken": max(0, milliseconds(datetime.now(UTC)) - milliseconds(began)),
    }
