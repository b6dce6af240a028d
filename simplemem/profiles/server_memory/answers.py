"""The shapes of the answers of a graph's tools. Their fields are a contract with clients."""

from __future__ import annotations

from typing import NotRequired, TypedDict

EntityOut = TypedDict("EntityOut", {"name": str, "entityType": str, "observations": list[str]})
RelationOut = TypedDict("RelationOut", {"from": str, "to": str, "relationType": str})
GraphOut = TypedDict("GraphOut", {"entities": list[EntityOut], "relations": list[RelationOut]})
AddedObservations = TypedDict(
    "AddedObservations", {"entityName": str, "addedObservations": list[str]}
)

# What the functions of `verbs` answer with.
CreatedEntities = TypedDict(
    "CreatedEntities",
    {
        "entities": list[EntityOut],
        "existing": list[str],
        "merged": NotRequired[list[AddedObservations]],
    },
)
CreatedRelations = TypedDict(
    "CreatedRelations",
    {"relations": list[RelationOut], "skipped": list[RelationOut], "notFound": list[str]},
)
ObservationResults = TypedDict(
    "ObservationResults", {"results": list[AddedObservations], "notFound": list[str]}
)
DeletedEntities = TypedDict("DeletedEntities", {"deleted": list[str], "notFound": list[str]})
DeletedObservations = TypedDict("DeletedObservations", {"deleted": int, "notFound": list[str]})
DeletedRelations = TypedDict("DeletedRelations", {"deleted": int})

# What server-memory answers with instead.
Entities = TypedDict("Entities", {"entities": list[EntityOut]})
Relations = TypedDict("Relations", {"relations": list[RelationOut]})
Results = TypedDict("Results", {"results": list[AddedObservations]})
Success = TypedDict("Success", {"success": bool, "message": str})

# What `traverse_graph` answers with.
ConnectedEntity = TypedDict(
    "ConnectedEntity", {"name": str, "entityType": str, "depth": int, "path": list[RelationOut]}
)
ConnectedEntities = TypedDict("ConnectedEntities", {"hits": list[ConnectedEntity], "more": bool})
