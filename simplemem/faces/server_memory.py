"""The face of the graph memory server that most clients know, `@modelcontextprotocol/server-memory`: its nine tools.

memento.md §2 and §3 are their contract: arguments, the shapes of answers, the texts of errors. What people said of that
server is done better, in ways no client can see: nothing acknowledged is lost, and every entity is a note.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator

from simplemem.errors import Invalid
from simplemem.faces import graph_tools as verbs
from simplemem.faces.arguments import about, also, from_json
from simplemem.faces.face import HIDDEN, Data, Manner, Reply, Tool
from simplemem.faces.graph_tools import Added, EntityOut, GraphOut, Outcome, RelationOut, Rules, graph_tools
from simplemem.faces.render import pretty
from simplemem.faces.schema import closed
from simplemem.kinds.graph.values import NoSuchEntity, Relation

if TYPE_CHECKING:
    from simplemem.errors import SimplememError
    from simplemem.kinds.graph.graph import KnowledgeGraph

_DRAFT = "http://json-schema.org/draft-07/schema#"
T = TypeVar("T")


class Exact(BaseModel):
    """Arguments as those servers take them: what is not listed is dropped, a number is no text. Only the form is forgiven
    that models are known to send: anything but a text as a string of JSON, null for what may be left out."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _said_as_json(cls, value: Any) -> Any:
        return from_json(value)


List = Annotated[list[T], BeforeValidator(from_json)]


class JsonText(Manner):
    """The manner of graph memory servers: answers are JSON as text too, failures are words alone."""

    base = Exact

    def listing(self, tool: Tool) -> Data:
        shown = super().listing(tool)
        shown["inputSchema"] = {"$schema": _DRAFT, **tool.input}
        shown["execution"] = {"taskSupport": "forbidden"}
        return shown | ({"outputSchema": {"$schema": _DRAFT, **closed(tool.output)}} if tool.output else {})

    def read(self, tool: Tool, sent: Mapping[str, Any] | None) -> tuple[BaseModel, list[str]]:
        try:
            return tool.model.model_validate({k: v for k, v in (sent or {}).items() if v is not None}), []
        except ValidationError as error:
            wrong = "\n".join(map(_wrong, error.errors(include_url=False)))
            raise Invalid(
                f"MCP error -32602: Input validation error: Invalid arguments for tool {tool.name}: {wrong}"
            ) from None

    def failed(self, error: SimplememError) -> tuple[str, Data | None]:
        """Of an entity that is not there the words are those that clients know, and no more."""
        known = isinstance(error, NoSuchEntity) or not error.hint
        return (error.message if known else f"{error.message} {error.hint}"), None

    def unknown(self, name: str) -> str:
        return f"MCP error -32602: Tool {name} not found"


def _wrong(error: Any) -> str:
    """One thing that is wrong, nearly as those servers say it: `Invalid input: … at entities[0].name`."""
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"]).lstrip(".")
    received = _CALLED.get(type(error["input"]), "number")
    wanted = _CALLED_BY_TYPE.get(error["type"].split("_")[0], "another value")
    said = f"{wanted}, received {received}" if error["type"] != "missing" else "a value, received undefined"
    return f"Invalid input: expected {said}" + (f" at {where}" if where else "")


_CALLED = {type(None): "null", bool: "boolean", str: "string", list: "array", dict: "object"}
_CALLED_BY_TYPE = {"string": "string", "list": "array", "model": "object", "dict": "object", "float": "number",
                   "bool": "boolean"}  # fmt: skip


# --- arguments and answers


class EntityIn(Exact):
    name: Annotated[str, about("The entity's name")]
    entityType: Annotated[str, about("What kind of thing it is")]  # noqa: N815
    observations: Annotated[List[str], about("What is known of it, one fact each")]


class RelationIn(Exact):
    source: Annotated[str, also("from"), about("The entity it begins at")]
    target: Annotated[str, also("to"), about("The entity it leads to")]
    relationType: Annotated[str, about("What the one is or does to the other")]  # noqa: N815

    def relation(self) -> Relation:
        return Relation(self.source, self.relationType, self.target)


class Addition(Exact):
    entityName: Annotated[str, about("The entity they are about")]  # noqa: N815
    contents: Annotated[List[str], about("What to add, one fact each")]


class Removal(Exact):
    entityName: Annotated[str, about("The entity that says them")]  # noqa: N815
    observations: Annotated[List[str], about("What to remove")]


Entities = TypedDict("Entities", {"entities": list[EntityOut]})
Relations = TypedDict("Relations", {"relations": list[RelationOut]})
Results = TypedDict("Results", {"results": list[Added]})
Done = TypedDict("Done", {"success": bool, "message": str})


def as_json(done: Outcome) -> Reply[Any]:
    """Answers as that server gives them: JSON as text, or a sentence that is always the same."""
    match done.verb:
        case "create_entities":
            return _listed("entities", [each.as_dict() for each in done.entities])
        case "create_relations":
            return _listed("relations", [each.as_dict() for each in done.relations])
        case "add_observations":
            return _listed("results", verbs.added(done))
        case "delete_entities" | "delete_observations" | "delete_relations":
            message = f"{done.verb.removeprefix('delete_').capitalize()} deleted successfully"
            return Reply(message, {"success": True, "message": message})
    data = verbs.shown(done.graph)
    return Reply(pretty(data), data)


def _listed(key: str, items: Sequence[Any]) -> Reply[Any]:
    return Reply(pretty(items), {key: items})


def graph_text(graph: KnowledgeGraph) -> str:
    """The resource: what `read_graph` answers with."""
    return pretty(verbs.shown(graph.read()))


# --- the nine

_BARE: Final = {"reason": HIDDEN}
_WHOLE: Final = {"budget_tokens": HIDDEN, "cursor": HIDDEN, "return": Reply[GraphOut]}
_NAMES = Annotated[List[str], about("The names of the entities")]
HINTS: Final[dict[str, dict[str, Any]]] = {
    "create_entities": _BARE | {"entities": List[EntityIn], "return": Reply[Entities]},
    "create_relations": _BARE | {"relations": List[RelationIn], "create_missing": HIDDEN, "return": Reply[Relations]},
    "add_observations": _BARE | {"observations": List[Addition], "return": Reply[Results]},
    "delete_entities": _BARE | {"names": Annotated[_NAMES, also("entityNames")], "return": Reply[Done]},
    "delete_observations": _BARE | {"deletions": List[Removal], "return": Reply[Done]},
    "delete_relations": _BARE | {"relations": List[RelationIn], "return": Reply[Done]},
    "read_graph": _WHOLE,
    "search_nodes": _WHOLE | {"query": Annotated[str, about("What to look for, letter for letter")]},
    "open_nodes": _WHOLE | {"names": _NAMES},
}
RULES: Final = Rules(
    as_json, JsonText(), relate_missing="stub", add_missing="refuse", is_literal=True, title_case=True, hints=HINTS
)
TOOLS: tuple[Tool, ...] = graph_tools(RULES, *verbs.CHANGING, *verbs.READING)
