"""Entities, relations and graphs in the form of Memento's answers, with versions and times.

Times are milliseconds since 1970. Strength, confidence and metadata of a relation are attributes of
its list item.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from simplemem.features.graph.values import Entity, Graph, Relation
from simplemem.tools.render import pretty
from simplemem.tools.tool import Data, Reply

if TYPE_CHECKING:
    from simplemem.features.graph.history import Period
    from simplemem.features.graph.service import KnowledgeGraph

    V = TypeVar("V", Entity, Relation)

STATED_AT: Final = "at"
"""The attribute that says when a relation or an observation was last stated."""

WEIGHTS: Final = ("strength", "confidence")
"""The attributes that are fields of a relation, in the order of its fields."""

_ID_NAMESPACE: Final = uuid.UUID("6f0f7f4e-5c1b-5a52-9d0e-2d6f2b1a7c11")


def entity_row(entity: Entity, periods: Sequence[Period[Entity]]) -> Data:
    """Return an entity's fields, an id that its name decides, and those of its last version.

    `periods` are its versions, oldest first, or (). The fields of a version are those of
    `version_row`; "updatedAt" is the beginning of the last one, None without versions.
    """
    hexadecimal = entity.name.encode("utf-8", "surrogatepass").hex()
    version = version_row(periods)
    row = entity.as_dict()
    row["id"] = str(uuid.uuid5(_ID_NAMESPACE, hexadecimal))
    return row | version | {"updatedAt": version.get("validFrom")}


def relation_row(relation: Relation, periods: Sequence[Period[Relation]]) -> Data:
    """Return a relation's fields, the weights that it has, and "metadata", a dict.

    Metadata has "createdAt" and "updatedAt" in milliseconds, as far as they are known, and all
    other attributes; keys of a stored "metadata" win. The times that attributes state are used
    rather than those of `periods`, the relation's versions, oldest first.
    """
    attributes = dict(relation.attributes)
    row = relation.as_dict()
    for key in WEIGHTS:
        if key in attributes:
            row[key] = attributes.pop(key)

    stated = parse_moment(attributes.pop(STATED_AT, None))
    created = parse_moment(attributes.pop("created", None)) or stated
    updated = stated
    if periods:
        created = created or periods[0].since
        updated = updated or periods[-1].since

    metadata: Data = {}
    if created is not None:
        metadata["createdAt"] = to_milliseconds(created)
    if updated is not None:
        metadata["updatedAt"] = to_milliseconds(updated)
    stored_metadata = attributes.pop("metadata", None)
    metadata |= attributes
    if isinstance(stored_metadata, dict):
        metadata |= stored_metadata
    row["metadata"] = metadata
    return row


def version_row(periods: Sequence[Period[V]]) -> Data:
    """Return the last of some versions: its number, when it was valid, and who made it.

    `periods` are oldest first. The fields are "version", "createdAt" (of the first version),
    "validFrom", "validTo" (None if still valid) and "changedBy" (None if unknown). Without periods,
    the version is 1, and there are no times.
    """
    if not periods:
        return {"version": 1, "changedBy": None}

    last = periods[-1]
    return {
        "version": len(periods),
        "createdAt": to_milliseconds(periods[0].since),
        "validFrom": to_milliseconds(last.since),
        "validTo": to_milliseconds(last.until),
        "changedBy": last.who or None,
    }


def reply_with_graph(
    graph: KnowledgeGraph,
    part: Graph,
    started: datetime,
    *,
    at: datetime | None = None,
    more: Data | None = None,
) -> Reply[None]:
    """Return a part of the graph as JSON, with the number of its entities and the time taken.

    `graph` is asked for the histories. The time is in milliseconds, since `started`. The fields
    `more` are added. With `at`, each entity and relation has the version that was valid at that
    moment. One that is newer has its first version.
    """
    entities = []
    for entity in part.entities:
        entity_periods = graph.entity_history(entity.name, entity.path)
        entities.append(entity_row(entity, _until(entity_periods, at)))

    relations = []
    for relation in part.relations:
        relation_periods = graph.relation_history(relation)
        relations.append(relation_row(relation, _until(relation_periods, at)))

    seconds = (datetime.now(UTC) - started).total_seconds()
    row: Data = {
        "entities": entities,
        "relations": relations,
        "total": len(entities),
        "timeTaken": max(0, int(seconds * 1000)),
    }
    return Reply(pretty(row | (more or {})))


def _until(periods: Sequence[Period[V]], at: datetime | None) -> Sequence[Period[V]]:
    """Return the versions that began up to a moment, the first one at least; all for None."""
    if at is None:
        return periods
    begun = [period for period in periods if period.since <= at]
    return begun or periods[:1]


def parse_moment(value: Any) -> datetime | None:
    """Return a date of a note, in ISO 8601, as a moment in UTC; None if it is no date.

    Without an offset it is local. Raises nothing, whatever the value is.
    """
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromisoformat(str(value)).astimezone(UTC)
    return None


def to_milliseconds(moment: datetime | None) -> int | None:
    """Return a moment as whole milliseconds since 1970, None for None."""
    return None if moment is None else int(moment.timestamp() * 1000)
